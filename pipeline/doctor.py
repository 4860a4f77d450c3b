"""``lecturemill doctor``: everything the line needs is tried, not looked up; each finding comes with its remedy."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.decoding import find_ffmpeg
from pipeline.devices import choose_device
from pipeline.engine_loading import rungs_of
from pipeline.errors import LecturemillError, UsageError
from pipeline.models import find_model
from pipeline.settings import Settings, open_database
from pipeline.store import Store

LEAST_FREE_BYTES = 2_000_000_000
"""A model, the embedded database and a day's transcripts of one machine."""
EARLIEST_S = 1_735_689_600
"""2025-01-01: a clock before that is wrong, and so would be every time in the database."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried. ``remedy`` says what to do where it is not ok."""

    what: str
    is_ok: bool
    detail: str
    remedy: str


def examine(settings: Settings) -> Iterator[Finding]:
    """All findings, the cheap ones first."""
    yield _clock()
    yield _disk(settings)
    yield _ffmpeg()
    yield _device(settings)
    yield from (_model(name, settings) for name in dict.fromkeys(("base", settings.model, "silero-vad")))
    yield _database(settings)


def _clock() -> Finding:
    now = time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    return finding("clock", now > EARLIEST_S, shown, "set the clock, and have it kept by NTP")


def _disk(settings: Settings) -> Finding:
    folder = next(path for path in (settings.home, *settings.home.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    remedy = "free some space, or set LECTUREMILL_HOME to a larger disk"
    return finding("disk", free > LEAST_FREE_BYTES, f"{free / 1e9:.1f} GB free for {settings.home}", remedy)


def _ffmpeg() -> Finding:
    remedy = "install the package imageio-ffmpeg anew, or set IMAGEIO_FFMPEG_EXE to an ffmpeg of yours"
    try:
        program = find_ffmpeg()
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        return finding("ffmpeg", False, str(error), remedy)
    return finding("ffmpeg", True, said.splitlines()[0], "")


def _device(settings: Settings) -> Finding:
    remedy = "correct LECTUREMILL_ENGINE or LECTUREMILL_PRECISION, or install what is named"
    try:
        device = choose_device("auto", settings.engine, settings.precision)
    except UsageError as error:
        return finding("engine", False, error.reason, remedy)
    what = f"{device.engine} on {device.name}, {' then '.join(rungs_of(device))}, {settings.threads} cores"
    return finding("engine", True, f"{what}: {device.why}", "")


def _model(name: str, settings: Settings) -> Finding:
    try:
        found = find_model(name, settings.models)
    except LecturemillError as error:
        return finding(f"model {name}", False, error.reason, f"run: lecturemill models fetch {name}")
    return finding(f"model {name}", True, str(found.folder), "")


def _database(settings: Settings) -> Finding:
    where = "DATABASE_URL" if settings.database_url else f"embedded in {settings.home}"
    remedy = "start it, or correct DATABASE_URL" if settings.database_url else "set LECTUREMILL_HOME to another folder"
    try:
        with open_database(settings) as url, Store.open(url) as store:
            count = len(store.status())
    except LecturemillError as error:
        return finding("database", False, error.reason, f"{remedy}; then run: lecturemill doctor")
    return finding("database", True, f"{where}, {count} media", "")


def finding(what: str, is_ok: bool, detail: str, remedy: str) -> Finding:
    """A remedy is for what is not ok."""
    return Finding(what, is_ok, detail, "" if is_ok else remedy)
