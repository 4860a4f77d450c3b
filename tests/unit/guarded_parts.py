"""Engines and proofs of the guard's tests: what they can do, and how many slices fit, is set by the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.errors import OutOfMemoryError
from pipeline.guarding import GuardedEngine, Loaded, Rung, Watch
from pipeline.precision import PaceRules, Precision
from pipeline.proof.judgement import Verdict
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import Boundary, Segment, Slice, SliceAudio, Span, Word


def a_request(index: int, language: str | None = "zh") -> Request:
    span = Span(index * 1000, index * 1000 + 1000)
    piece = Slice("m", index, span, Boundary.SILENCE, (span,))
    return Request(SliceAudio(piece, np.zeros(16_000, np.float32)), language, {})


def requests(count: int) -> list[Request]:
    return [a_request(index) for index in range(count)]


def a_hypothesis(request: Request, text: str) -> Hypothesis:
    span = request.audio.slice.span
    words = (Word(text, span.start_ms, span.end_ms, 0.9),)
    return Hypothesis("zh", 1.0, Segment(span.start_ms, span.end_ms, text, words, -0.1, 0.0, 1.0, 0.0))


@dataclass
class NumberingEngine:
    """Writes the number of each slice. ``fits`` says which batches the memory holds."""

    fits: Callable[[Sequence[int]], bool] = lambda _: True
    fingerprint: str = "numbering"
    batches: list[list[int]] = field(default_factory=list)

    def transcribe(self, asked: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:  # noqa: ARG002
        numbers = [request.audio.slice.index for request in asked]
        if not self.fits(numbers):
            raise OutOfMemoryError(f"the engine failed on a batch of {len(asked)} slices: out of memory")
        self.batches.append(numbers)
        return [a_hypothesis(request, str(number)) for request, number in zip(asked, numbers, strict=True)]


@dataclass
class GivenProof:
    """Holds what it is told: sizes in ``wrong`` are refused, ``precision`` is the verdict of doctor."""

    wrong: frozenset[int] = frozenset()
    precision: Verdict | None = None
    works: bool = True
    asked: list[tuple[int, int]] = field(default_factory=list)
    too_large: int = 1000

    def of_size(self, size: int, beam_size: int) -> Verdict:
        if size >= self.too_large:
            raise OutOfMemoryError("out of memory")
        self.asked.append((size, beam_size))
        return Verdict(size not in self.wrong, "other texts" if size in self.wrong else "as alone")

    def can_work(self) -> bool:
        return self.works


class WatchedSteps(Watch):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def stepped(self, label: str, precision: Precision, why: str, *, is_down: bool) -> None:
        self.told.append(("down" if is_down else "up", precision, label, why))

    def bounded(self, slices: int, why: str) -> None:
        self.told.append(("bounded", slices, why))

    def ran_out(self, slices: int) -> None:
        self.told.append(("ran out", slices))

    def refused(self, slices: int, label: str, why: str) -> None:
        self.told.append(("refused", slices, label, why))


class Machine:
    """A device with engines in several precisions; ``free`` is its free memory, ``lacking`` cannot be loaded."""

    def __init__(self, *precisions: str, most: int = 256, target_ms: int | None = None, calm_batches: int = 2) -> None:
        self.free, self.loads, self.watch = 0.5, [], WatchedSteps()
        self.lacking: dict[Precision, Exception] = {}
        self.engines = {Precision(one): NumberingEngine() for one in precisions or ("fp16",)}
        self.proofs = {one: GivenProof() for one in self.engines}
        self._rules = PaceRules(target_ms=target_ms, calm_batches=calm_batches)
        self._most = most

    def guard(self, rungs: int = 9) -> GuardedEngine:
        """Of the precisions the first ``rungs`` are the ladder, the others spares."""
        every = [Rung(one, f"fused base {one} cuda", lambda one=one: self._load(one)) for one in self.engines]
        given = "wanted", every[:rungs], self._most, lambda: self.free, self._rules, self.watch
        return GuardedEngine(*given, every[rungs:])

    def _load(self, precision: Precision) -> Loaded:
        self.loads.append(precision)
        if precision in self.lacking:
            raise self.lacking[precision]
        return Loaded(self.engines[precision], 256, self.proofs[precision])
