"""The assemble consumer, which also notes when each row is there: ``python -m bench.load.noting FILE``.

A batch is noted when its step has returned: then its transaction is committed and on the disk (fsync), and visible
to everybody. The step also asks which media are complete, a millisecond that the latencies hold too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import msgspec

from consumers.assemble import Arrived, wire
from consumers.handling import Answer, Step
from consumers.intake import Received
from consumers.wiring import Surroundings, Wired, run_program
from pipeline.values import TranscribedSlice


@dataclass(frozen=True, slots=True)
class Stored:
    """A slice whose row is committed since ``stored_ms`` (milliseconds since 1970)."""

    media_id: str
    slice_index: int
    stored_ms: int


class NotingStep:
    """Another step, and a line of JSON for each slice that it has stored."""

    def __init__(self, step: Step[Arrived], notes: TextIO, now_ms: Callable[[], int]) -> None:
        self._step, self._notes, self._now_ms = step, notes, now_ms

    def prepare(self, message: Received) -> Arrived:
        return self._step.prepare(message)

    def handle(self, batch: Sequence[Arrived]) -> Sequence[Answer]:
        answers = self._step.handle(batch)
        now_ms = self._now_ms()
        for one in batch:
            if isinstance(one.value, TranscribedSlice):
                stored = Stored(one.media_id, one.value.slice.index, now_ms)
                self._notes.write(msgspec.json.encode(stored).decode() + "\n")
        self._notes.flush()
        return answers


@contextmanager
def noting(around: Surroundings, path: Path) -> Iterator[Wired]:
    with wire(around) as (step, rules), path.open("a", encoding="utf-8") as notes:
        yield NotingStep(step, notes, lambda: time.time_ns() // 1_000_000), rules


if __name__ == "__main__":
    sys.exit(run_program("assemble", lambda around: noting(around, Path(sys.argv[1]))))
