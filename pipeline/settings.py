"""Where things lie and what the machine is: resolved once, in the entry point, from options and environment."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_data_path

from pipeline import database
from pipeline.errors import UsageError
from pipeline.models import default_cache

DEFAULT_BROKERS = "127.0.0.1:9092"
DEFAULT_AIRFLOW_URL = "http://127.0.0.1:8080"
DEFAULT_MODEL = "base"
ENGINES = ("faster-whisper", "fused")
BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16"})
"""Processors with one of these run the fused engine faster than the reference; others do not."""
DEFAULT_USD_PER_HOUR = 0.10


@dataclass(frozen=True, slots=True)
class Settings:
    """The command's surroundings."""

    home: Path
    """State: the embedded database, unfinished work."""
    models: Path
    """The model cache, the same whichever home is used."""
    database_url: str | None
    """None stands for the embedded PostgreSQL in ``home``."""
    threads: int
    """Processor cores that this process may use."""
    brokers: str = DEFAULT_BROKERS
    """Kafka's bootstrap servers, separated by commas."""
    media_store: str = ""
    """fsspec URI of the folder that holds uploaded media and finished files."""
    airflow_url: str = DEFAULT_AIRFLOW_URL
    model: str = DEFAULT_MODEL
    engine: str = "auto"
    """``auto``, or one of ``ENGINES``."""
    """The Whisper model of the distributed line: a name or a folder."""
    usd_per_hour: float = DEFAULT_USD_PER_HOUR
    """What one hour of a machine of the line costs."""


@dataclass(frozen=True, slots=True)
class Device:
    """What the engine runs on: ``cpu`` or ``cuda``, and the arithmetic and the engine that are fastest there."""

    name: str
    compute_type: str
    engine: str
    """One of ``ENGINES``."""


def settings_from(environment: Mapping[str, str], database_url: str | None = None) -> Settings:
    """``LECTUREMILL_HOME`` and ``DATABASE_URL`` count where no option says otherwise."""
    given = environment.get("LECTUREMILL_HOME")
    home = Path(given).expanduser().resolve() if given else user_data_path("lecturemill")
    return Settings(
        home=home,
        models=default_cache(),
        database_url=database_url or environment.get("DATABASE_URL") or None,
        threads=len(os.sched_getaffinity(0)),
        brokers=environment.get("LECTUREMILL_BROKERS") or DEFAULT_BROKERS,
        media_store=environment.get("LECTUREMILL_MEDIA_STORE") or (home / "media").as_uri(),
        airflow_url=(environment.get("LECTUREMILL_AIRFLOW_URL") or DEFAULT_AIRFLOW_URL).rstrip("/"),
        model=environment.get("LECTUREMILL_MODEL") or DEFAULT_MODEL,
        engine=environment.get("LECTUREMILL_ENGINE") or "auto",
        usd_per_hour=_price(environment.get("LECTUREMILL_USD_PER_HOUR")),
    )


def _price(text: str | None) -> float:
    try:
        price = float(text) if text else DEFAULT_USD_PER_HOUR
    except ValueError:
        price = -1.0
    if not 0 <= price < math.inf:
        raise UsageError(f"LECTUREMILL_USD_PER_HOUR must be a number from 0, not {text!r}")
    return price


def choose_device(asked: str, engine: str = "auto") -> Device:
    """``auto`` takes the GPU where CTranslate2 sees one. Raises UsageError for anything unknown or absent."""
    import ctranslate2

    if asked not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--device must be auto, cpu or cuda, not {asked!r}")
    if engine not in ("auto", *ENGINES):
        raise UsageError(f"--engine must be auto or one of {', '.join(ENGINES)}, not {engine!r}")
    has_cuda = ctranslate2.get_cuda_device_count() > 0
    if asked == "cuda" and not has_cuda:
        raise UsageError("--device cuda: no CUDA device is visible to CTranslate2; run: lecturemill doctor")
    if has_cuda and asked != "cpu":
        has_torch = all(find_spec(name) for name in ("torch", "triton"))
        if engine == "fused" and not has_torch:
            raise UsageError("--engine fused on a GPU needs PyTorch and Triton: install the extra 'gpu'")
        return Device("cuda", "float16", "fused" if has_torch and engine != "faster-whisper" else "faster-whisper")
    has_bfloat16 = bool(BFLOAT16 & _processor_flags())
    if engine == "fused" or (engine == "auto" and has_bfloat16):
        return Device("cpu", "bf16" if has_bfloat16 else "f32", "fused")
    return Device("cpu", "int8", "faster-whisper")


def _processor_flags() -> frozenset[str]:
    """What the processor can, as Linux says; empty where it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


@contextmanager
def open_database(settings: Settings) -> Iterator[str]:
    """The URL of the database, with its tables in place; the embedded one runs as long as the context lasts."""
    if settings.database_url:
        database.upgrade(settings.database_url)
        yield settings.database_url
        return
    with database.embedded(settings.home) as url:
        database.upgrade(url)
        yield url
