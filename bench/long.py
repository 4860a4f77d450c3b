"""Memory over a very long file: ``python -m bench.long [--hours 10] [--out bench/results]``.

Makes a file of that length out of our own demo lecture, read at the start of every half hour with silence between,
takes it through ``lecturemill run`` in a process of its own, and reports the peak memory, the time, and whether the
ledger adds up. The speech is 4 % of the file, so that this is done in minutes; the memory that words take in a lecture
spoken throughout is not measured here.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.data import CHECKOUT
from bench.machine import describe
from pipeline.decoding import find_ffmpeg

PERIOD_S = 1800
LECTURE = CHECKOUT / "demo" / "pythagoras.mp4"


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run took. ``peak_bytes`` is that of the largest process, which is ours."""

    hours: float
    seconds: float
    peak_bytes: int
    cues: int
    violations: int
    ledger_ms: int
    duration_ms: int


def make_media(path: Path, hours: float) -> None:
    """Write an Opus file of ``hours``: the lecture's sound, padded to half an hour, again and again."""
    half_hour = path.with_name("half-hour.opus")
    _ffmpeg("-i", str(LECTURE), "-vn", "-af", f"apad=whole_dur={PERIOD_S}", "-b:a", "24k", str(half_hour))
    repeats = max(1, round(hours * 3600 / PERIOD_S)) - 1
    _ffmpeg("-stream_loop", str(repeats), "-i", str(half_hour), "-c", "copy", str(path))


def measure(hours: float) -> Measured:
    """Make the file, run the command on it, read what it says."""
    with tempfile.TemporaryDirectory(prefix="lecturemill-long-") as folder:
        Path(folder).chmod(0o755)  # root's PostgreSQL is nobody: its data stay in this folder, and go with it
        media = Path(folder, "long.mka")
        make_media(media, hours)
        environment = os.environ | {"LECTUREMILL_HOME": str(Path(folder, "home"))}
        command = [str(Path(sys.executable).with_name("lecturemill"))]
        started = time.perf_counter()
        run = [*command, "run", str(media), "--course", "bench", "--language", "zh", "--out", folder, "--json"]
        report = msgspec.json.decode(_output(run, environment))[0]
        seconds = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        ledger = msgspec.json.decode(_output([*command, "ledger", report["media_id"], "--json"], environment))
    covered = sum(span["end_ms"] - span["start_ms"] for span in ledger)
    duration = report["duration_ms"]
    return Measured(hours, seconds, peak, report["cues"], report["violations"], covered, duration)


def markdown(measured: Measured) -> str:
    """The report."""
    exact = "exactly" if measured.ledger_ms == measured.duration_ms else f"NOT: {measured.ledger_ms} ms"
    machine = describe("base", os.cpu_count() or 1)
    return (
        f"# A file of {measured.hours:g} hours\n\n"
        f"- peak memory {measured.peak_bytes / 2**20:.0f} MiB, {measured.seconds:.0f} s "
        f"({measured.duration_ms / 1000 / measured.seconds:.0f} x real time; 4 % of the file is speech)\n"
        f"- {measured.cues} cues, {measured.violations} violations; "
        f"the ledger adds up to {measured.duration_ms} ms: {exact}\n"
        f"- {machine.date}, commit {machine.commit}, {machine.processor}, {machine.cores} cores\n"
    )


def _ffmpeg(*arguments: str) -> None:
    command = [find_ffmpeg(), "-nostdin", "-hide_banner", "-loglevel", "error", "-y", *arguments]
    subprocess.run(command, check=True, timeout=1800)


def _output(command: list[str], environment: dict[str, str]) -> bytes:
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.long", description="Memory over a very long file.")
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results")
    given = parser.parse_args()
    text = markdown(measure(given.hours))
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"{time.strftime('%Y-%m-%d')}-long.md"
    path.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
