"""What a measurement was made on and with: without it a table says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.data import CHECKOUT

_PACKAGES = (
    "lecturemill",
    "faster-whisper",
    "ctranslate2",
    "onnxruntime",
    "av",
    "rapidfuzz",
    "torch",
    "transformers",
    "openvino",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts under every table. ``commit`` ends in ``+changes`` where the tree is not clean."""

    date: str
    processor: str
    cores: int
    threads: int
    model: str
    commit: str
    versions: dict[str, str]


def describe(model: str, threads: int) -> Machine:
    """The facts of this machine and environment, now; ``date`` is in UTC."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        processor=processor(),
        cores=os.cpu_count() or 1,
        threads=threads,
        model=Path(model).name,
        commit=commit(CHECKOUT),
        versions={"python": platform.python_version()} | dict(_versions()),
    )


def _versions() -> Iterator[tuple[str, str]]:
    """Of those that are installed: a GPU machine has not all."""
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as ``lscpu`` gives it, else what the platform knows."""
    if cpuinfo.is_file():
        for line in cpuinfo.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def card(device: str) -> str:
    """The GPU's name; empty for a CPU."""
    if device == "cpu":
        return ""
    import torch

    return str(torch.cuda.get_device_name())


def commit(checkout: Path) -> str:
    """The short commit of a checkout, ``unknown`` outside one."""
    try:
        head = _git(checkout, "rev-parse", "--short", "HEAD")
        return head + ("+changes" if _git(checkout, "status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(checkout: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()
