"""Timing of engines in turns, and the memory that each takes."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.engine_systems import Heard, Run, System
from pipeline.transcription import Request

_LOOK_S = 0.05
_WARM = 8
"""Slices of a warm-up."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One pass of one system over its slices."""

    system: str
    batch: int
    with_words: bool
    seconds: float
    audio_s: float

    @property
    def x_real_time(self) -> float:
        return self.audio_s / self.seconds


@dataclass(slots=True)
class Loaded:
    """A system at work: what it was measured at, and what it heard in its first round of slices."""

    system: System
    run: Run
    slices: Sequence[Request]
    timings: list[Timing] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    """With word times, at the best batch size."""
    peak_gib: float = 0.0
    """The most memory meanwhile, less what was in use before it was loaded: device memory, or this process's."""

    def explore(self, batches: Sequence[int], say: Callable[[str], None]) -> None:
        """Every batch size once with word times. A size that does not fit into the memory is passed over."""
        for batch in batches:
            try:
                self.run(self.slices if self.system.warms_whole else self.slices[:_WARM], batch, True)
                self.time(batch, True, say)
            except RuntimeError as error:
                say(f"{self.system.name} at {batch}: {str(error).splitlines()[0]}")

    def time(self, batch: int, with_words: bool, say: Callable[[str], None]) -> None:
        begun = time.perf_counter()
        heard = self.run(self.slices, batch, with_words)
        seconds = time.perf_counter() - begun
        if with_words and (not self.heard or seconds <= min(one.seconds for one in self.of(True))):
            self.heard = heard
        audio_s = sum(request.audio.slice.span.duration_ms for request in self.slices) / 1000
        self.timings.append(Timing(self.system.name, batch, with_words, seconds, audio_s))
        say(f"{self.system.name:24} {batch:4} words {with_words!s:5} {self.timings[-1].x_real_time:8.1f} x real time")

    def of(self, with_words: bool) -> list[Timing]:
        return [one for one in self.timings if one.with_words == with_words]

    @property
    def best_batch(self) -> int:
        return max(self.of(True), key=lambda one: one.x_real_time).batch

    def rounds(self, with_words: bool) -> list[float]:
        """Times real time at the best batch size, round by round."""
        return [one.x_real_time for one in self.of(with_words) if one.batch == self.best_batch]

    def x_real_time(self, with_words: bool) -> float | None:
        """The median of the rounds; None where it was not measured."""
        return statistics.median(self.rounds(with_words)) if self.rounds(with_words) else None


@contextmanager
def watched(device: str) -> Iterator[Callable[[], float]]:
    """How much more memory was in use at most since this began, in GiB, whoever asked for it."""
    before = held_bytes(device)
    most = [before]
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(_LOOK_S):
            most[0] = max(most[0], held_bytes(device))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: (most[0] - before) / 2**30
    finally:
        stop.set()
        watcher.join()


def held_bytes(device: str) -> int:
    """Of the device, or of this process on a CPU."""
    if device == "cuda":
        import torch

        free, whole = torch.cuda.mem_get_info()
        return int(whole - free)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
