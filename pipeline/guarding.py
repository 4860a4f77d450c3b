"""An engine under guard: it never runs out of memory for long, keeps its pace, and uses only batches that are proven.

Around a loaded engine stand three things that the line must not have to know of: the ladder of precisions
(``precision.py``), the bound on batches, and the proof of each size (``proof/``). Whatever they do, a batch that was
begun in one precision is ended in it, and each slice gets an answer.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from pipeline.errors import OutOfMemoryError, RetriableError, UsageError
from pipeline.precision import Bounds, Load, PaceRules, Precision, after_batch, first_pace, ran_out
from pipeline.proof.batches import SIZES
from pipeline.proof.judgement import Verdict
from pipeline.transcription import Decoding, Engine, Failed, Hypothesis, Request

NO_MEMORY = "the device has not the memory for this slice"
"""The reason of a slice that failed; one text, as it is a metric's label."""


class Proof(Protocol):
    """What is proven of a loaded engine; ``proof.batches.BatchProof``."""

    @property
    def precision(self) -> Verdict | None: ...
    def of_size(self, size: int, beam_size: int) -> Verdict: ...
    def can_work(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine in memory, the most slices that it takes at once, and its proof."""

    engine: Engine
    most_slices: int
    proof: Proof


@dataclass(frozen=True, slots=True)
class Rung:
    """One precision of an engine."""

    precision: Precision
    label: str
    """For people: engine, model, precision, device."""
    load: Callable[[], Loaded]
    """Raises UsageError, or OutOfMemoryError, where it cannot be loaded."""
    is_faster: bool = True
    """Than the more exact ones; else it only takes less memory."""


class Watch:
    """Told what the guard does. By default it is told for nothing."""

    def stepped(self, label: str, precision: Precision, why: str, *, is_down: bool) -> None:
        """From now on ``precision`` is computed in; ``label`` names it with its engine."""

    def bounded(self, slices: int, why: str) -> None:
        """No more than ``slices`` at once from now on."""

    def ran_out(self, slices: int) -> None:
        """A batch of so many did not fit into the memory."""

    def refused(self, slices: int, label: str, why: str) -> None:
        """A batch of so many gave other texts than its slices alone, and is not used."""


class GuardedEngine:
    """``Engine`` and ``Adaptive``. Not thread-safe, but for ``most_slices``."""

    def __init__(
        self,
        fingerprint: str,
        rungs: Sequence[Rung],
        most_slices: int,
        free_share: Callable[[], float | None],
        rules: PaceRules,
        watch: Watch,
        spares: Sequence[Rung] = (),
    ) -> None:
        """Loads the first of ``rungs``, which is wanted; the others are for when memory or time are short.

        ``spares`` are more exact than what is wanted: they are taken where none of the rungs is proven right.
        ``fingerprint`` names what is wanted. ``free_share`` is the device's. Raises UsageError where no rung can be
        loaded, and OutOfMemoryError where there is no memory for any.
        """
        self.fingerprint = fingerprint
        self._rungs, self._spares, self._most_slices = list(rungs), list(spares), most_slices
        self._free_share, self._rules, self._watch = free_share, rules, watch
        self._loaded: Loaded | None = None
        self._pace = first_pace(self._bounds)
        self._has_run_out, self._aside_ms = False, 0
        self._told: set[tuple[str, int]] = set()
        self._at = self._arrive()
        self._label, self._aside_ms = self._at.label, 0

    @property
    def label(self) -> str:
        return self._label

    @property
    def most_slices(self) -> int:
        """How many slices the next batch should have at most."""
        return min(self._pace.slices, self._loaded.most_slices if self._loaded else self._most_slices)

    @property
    def loaded_engine(self) -> Engine:
        """The one that computes now."""
        return self._in_memory().engine

    @property
    def _bounds(self) -> Bounds:
        fast = [at for at, rung in enumerate(self._rungs) if rung.is_faster]
        return Bounds(len(self._rungs) - 1, self._most_slices, fast[-1] if fast else 0)

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis | Failed]:
        """An answer for each request, in order. Raises RetriableError where the device can do nothing at all."""
        answers: dict[int, Hypothesis | Failed] = {}
        left = list(range(len(requests)))
        while left:
            some = left[: self._size(len(left), decoding)]
            made = self._part([requests[at] for at in some], decoding)
            if made is not None:
                answers |= zip(some, made, strict=True)
                left = left[len(some) :]
        return [answers[at] for at in range(len(requests))]

    def _part(self, requests: Sequence[Request], decoding: Decoding) -> Sequence[Hypothesis | Failed] | None:
        """None where there was no memory for so many: fewer come next."""
        loaded, self._label = self._in_memory(), self._at.label
        try:
            return loaded.engine.transcribe(requests, decoding)
        except OutOfMemoryError:
            self._runs_out(len(requests))
            if len(requests) > 1:
                return None
            # If the device cannot do any other slice either, this one is not at fault, and waits.
            if not loaded.proof.can_work():
                raise
            return [Failed(NO_MEMORY)]

    def _runs_out(self, slices: int) -> None:
        self._has_run_out = True
        self._pace = ran_out(self._pace, slices)
        self._watch.ran_out(slices)

    def _size(self, waiting: int, decoding: Decoding) -> int:
        """The largest proven size that is not larger than what waits, nor than the bound."""
        # The bound is asked each time: a proof that runs out of memory lowers it.
        return next(
            size
            for size in reversed(SIZES)
            if size <= min(waiting, self.most_slices) and self._is_proven(size, decoding)
        )

    def _is_proven(self, size: int, decoding: Decoding) -> bool:
        loaded = self._in_memory()
        try:
            with self._aside():
                verdict = loaded.proof.of_size(size, decoding.beam_size)
        except OutOfMemoryError:
            if size == 1:
                raise
            self._runs_out(size)
            return False
        if not verdict.holds and (self._at.label, size) not in self._told:
            self._told.add((self._at.label, size))
            self._watch.refused(size, self._at.label, verdict.said)
        return verdict.holds

    def prove(self, slices: int, beam_size: int) -> None:
        """Prove the sizes that a batch of ``slices`` is done in now, not when the first one comes."""
        self._size(slices, Decoding(beam_size=beam_size))

    def settle(self, slices: int, took_ms: int) -> None:
        """A batch is done: what comes next is done in the precision, and in batches, that memory and time allow."""
        load = Load(slices, max(0, took_ms - self._aside_ms), self._free_share(), self._has_run_out)
        self._has_run_out, self._aside_ms = False, 0
        before = self._pace
        self._pace, why = after_batch(before, load, self._bounds, self._rules)
        if self._pace.memory_slices != before.memory_slices:
            self._watch.bounded(self._pace.memory_slices, why)
        if self._pace.rung != before.rung:
            self._step(why)

    def _step(self, why: str) -> None:
        before = self._at
        try:
            self._in_memory(anew=True)
        except RetriableError:  # the batch that was just done is not lost by it: the next one tries again, or says so
            return
        if self._at != before:
            order = list(Precision)
            is_down = order.index(self._at.precision) > order.index(before.precision)
            self._watch.stepped(self._at.label, self._at.precision, why, is_down=is_down)

    def _in_memory(self, *, anew: bool = False) -> Loaded:
        if self._loaded is None or anew:  # or the last step found no rung that could be loaded
            try:
                self._at = self._arrive()
            except UsageError as error:  # the slices are not at fault
                raise RetriableError(error.reason) from error
        assert self._loaded
        return self._loaded

    def _arrive(self) -> Rung:
        """Load the rung of the pace; one that cannot be loaded, or that was proven wrong, is left out from now on."""
        usable, at = list(self._rungs), self._pace.rung
        while True:
            at = min(at, len(usable) - 1)
            try:
                self._load(usable[at])
            except (UsageError, OutOfMemoryError):
                del usable[at]
                usable = usable or self._spares[:1]
                if not usable:
                    raise
                self._spares = [spare for spare in self._spares if spare not in usable]
            else:
                self._rungs, self._pace = usable, replace(self._pace, rung=at)
                return usable[at]

    def _load(self, rung: Rung) -> None:
        """Raises UsageError, or OutOfMemoryError, with nothing loaded."""
        self._loaded = None
        gc.collect()
        with self._aside():
            loaded = rung.load()
        verdict = loaded.proof.precision
        if verdict and not verdict.holds:
            raise UsageError(f"{rung.label} is refused: {verdict.said}; run: lecturemill doctor --engine")
        self._loaded = loaded

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Time for loading and proving is none of the batch's."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._aside_ms += round((time.perf_counter() - started) * 1000)
