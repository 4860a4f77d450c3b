"""Where things lie and what the machine is: resolved once, in the entry point, from options and environment."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from pipeline import database
from pipeline.errors import UsageError
from pipeline.models import default_cache

DEFAULT_BROKERS = "127.0.0.1:9092"
DEFAULT_AIRFLOW_URL = "http://127.0.0.1:8080"
DEFAULT_MODEL = "base"
DEFAULT_USD_PER_HOUR = 0.10
DEFAULT_LATENCY_S = 60.0


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
    """The Whisper model of the distributed line: a name or a folder."""
    engine: str = "auto"
    """``auto``, or one of ``devices.ENGINES``."""
    precision: str = "auto"
    """``auto``, or one of ``Precision``: the top of the ladder."""
    latency_ms: int = round(DEFAULT_LATENCY_S * 1000)
    """The longest that a batch of the distributed line should take."""
    usd_per_hour: float = DEFAULT_USD_PER_HOUR
    """What one hour of a machine of the line costs."""


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
        precision=environment.get("LECTUREMILL_PRECISION") or "auto",
        latency_ms=_latency_ms(environment.get("LECTUREMILL_LATENCY_S")),
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


def _latency_ms(text: str | None) -> int:
    try:
        seconds = float(text) if text else DEFAULT_LATENCY_S
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"LECTUREMILL_LATENCY_S must be a number of seconds over 0, not {text!r}")
    return max(1, round(seconds * 1000))


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
