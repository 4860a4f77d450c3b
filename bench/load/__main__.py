"""The load on the distributed line without its engine: ``python -m bench.load`` (``make bench-load``).

1. live: many lectures at once, each handing over a slice whenever its speech ends: how long until its row is there?
2. flat out: how many slices a second, and which process takes the time?

Tables go to the terminal and into ``bench/results/<date>-load.md``, every number into the ``.json`` beside it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from bench.data import CHECKOUT
from bench.load.line import Line, Producer, notes_of, running
from bench.load.producer import Job
from bench.load.report import Around, Measured, markdown, measured
from bench.load.usage import machine_s
from bench.machine import describe
from pipeline.errors import LecturemillError

COURSES = "50,150,312,600"
"""312 make 12 slices a second: the sizing case of DESIGN.md, 1,000,000 a day."""
FLAT_COURSES = 48
"""On 12 partitions."""
WARM_UP_SLICES = 400
"""The broker's Java has compiled what it needs by then."""
BATCH = 32
"""What transcribe takes at once on a GPU; with a CPU's engine this rate is out of reach anyhow."""
STALL_S = 20.0
"""Without a new row for so long, what is missing is lost."""
POLL_S = 0.25


def jobs(given: argparse.Namespace, brokers: str) -> Iterator[Job]:
    """The measurements, in order; first a short one that warms up every process and is not reported."""
    yield Job(brokers, "warm", FLAT_COURSES, 0, WARM_UP_SLICES)
    for number, courses in enumerate(given.live):
        yield Job(brokers, f"live{number}", courses, given.seconds * 1000, 0, seed=number)
    for number in range(given.rounds):
        yield Job(brokers, f"flat{number}", FLAT_COURSES, 0, given.slices)


def measure(line: Line, job: Job) -> Measured:
    """Run one job to its end. Raises RetriableError where the producer fails."""
    line.announce(job.run, job.courses)
    already = _noted(line)
    producer = Producer(job)
    try:
        load, meter = os.getloadavg()[0], Meter(line)
        produced = producer.produce()
        _await_notes(line, already + len(produced.handed))
        cpu_s, others_cores = meter.read(produced.cpu_s)
    finally:
        producer.close()
    around = Around(others_cores, load)
    return measured(job, produced.handed, line.stored(job.run), line.rows(job.run), cpu_s, around)


class Meter:
    """Processor time since it was made."""

    def __init__(self, line: Line) -> None:
        self._line, self._usage_s, self._machine_s = line, line.usage_s(), machine_s()
        self._began_s, self._own_s = time.monotonic(), time.process_time()

    def read(self, producer_s: float) -> tuple[dict[str, float], float]:
        """Seconds by process of the line, and how many cores everybody else had on the average."""
        now_s, machine_now_s, lasted_s = self._line.usage_s(), machine_s(), time.monotonic() - self._began_s
        cpu_s = {"producer": producer_s} | {name: used - self._usage_s[name] for name, used in now_s.items()}
        others_s = machine_now_s - self._machine_s - sum(cpu_s.values()) - (time.process_time() - self._own_s)
        return cpu_s, max(0.0, others_s / lasted_s)


def _await_notes(line: Line, count: int) -> None:
    """Return when so many slices are noted in all, or no more come."""
    noted, changed_s = 0, time.monotonic()
    while noted < count and time.monotonic() - changed_s < STALL_S:
        time.sleep(POLL_S)
        now = _noted(line)
        if now != noted:
            noted, changed_s = now, time.monotonic()


def _noted(line: Line) -> int:
    return notes_of(line.folder).read_bytes().count(b"\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.load", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--live", type=_numbers, default=COURSES, help="numbers of live courses (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=40, help="of each (default: %(default)s)")
    parser.add_argument("--slices", type=int, default=2000, help="of each round flat out (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="flat out (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=BATCH, help="of transcribe (default: %(default)s)")
    parser.add_argument("--delay-ms", type=int, default=0, help="of the stub, for each batch (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results")
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _run(given: argparse.Namespace) -> list[Measured]:
    results = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lecturemill-load-")))
        line = stack.enter_context(running(folder, given.batch, given.delay_ms))
        for job in jobs(given, line.kafka.address):
            results.append(measure(line, job))
            print(f"{job.run}: {results[-1].slices_per_s:.1f} slices/s", file=sys.stderr)
    return results[1:]


def main() -> None:
    given = _arguments()
    try:
        results = _run(given)
    except LecturemillError as error:
        sys.exit(error.reason)
    command = shlex.join(["python", "-m", "bench.load", *sys.argv[1:]])
    machine = describe("stub", os.cpu_count() or 1)
    text = markdown(results, given.batch, given.delay_ms, machine, command)
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / f"{machine.date}-load"
    path.with_suffix(".md").write_text(text, "utf-8")
    path.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode([machine, *results])))
    print(text)


if __name__ == "__main__":
    main()
