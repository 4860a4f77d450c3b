"""Step 5, transcribe: slices through an engine, judged, and the flagged ones decoded again by a ladder.

An ``Engine`` turns slices into hypotheses; it decides nothing. ``transcribe`` judges each one (``judging.py``) and
climbs the ladder only for those that were flagged. What stays bad is filtered, with its reason.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from pipeline.judging import JudgeRules, Objection, judge
from pipeline.values import Outcome, Segment, SliceAudio, SliceTranscript


@dataclass(frozen=True, slots=True)
class Decoding:
    """One rung of the ladder: how the text is searched for."""

    beam_size: int = 5
    temperature: float = 0.0
    """0 searches for the most probable text; above, the text is sampled."""
    use_prompt: bool = True
    no_repeat_ngram_tokens: int = 0
    """Forbids a run of this many tokens from coming twice; 0 allows it."""


LADDER: tuple[Decoding, ...] = (
    Decoding(),
    # Without the prompt: a prompt that is echoed or that skips a sentence is the commonest fault.
    Decoding(use_prompt=False),
    # Against loops. Six tokens are about four Chinese characters: longer phrases do repeat in lectures.
    Decoding(use_prompt=False, no_repeat_ngram_tokens=6),
    # Sampling last: it is the only rung whose text differs from run to run.
    Decoding(beam_size=1, temperature=0.4, use_prompt=False),
    Decoding(beam_size=1, temperature=0.8, use_prompt=False),
)


@dataclass(frozen=True, slots=True)
class Request:
    """A slice to transcribe."""

    audio: SliceAudio
    language: str | None
    """None detects it from the slice's own sound."""
    prompts: Mapping[str, str]
    """A sentence per language that Whisper is told before it listens."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What one decoding of one slice gave: one segment, its words on the media clock."""

    language: str
    language_probability: float
    segment: Segment


@dataclass(frozen=True, slots=True)
class Failed:
    """A slice that cannot be decoded at all, though others can; ``reason`` goes into the ledger."""

    reason: str


class Engine(Protocol):
    """Whisper, however it is run."""

    fingerprint: str
    """Changes with the weights and the arithmetic: equal fingerprints, comparable transcripts."""

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> Sequence[Hypothesis | Failed]:
        """An answer per request, in order. Raises OutOfMemoryError where they are too many at once."""


@runtime_checkable
class Adaptive(Protocol):
    """An engine that may compute otherwise in its next batch; it is told how long each one took."""

    label: str
    """For people: what computed the last batch, its precision included."""

    def settle(self, slices: int, took_ms: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Look:
    """What an engine computes of a slice before it writes a text: what precisions are compared by."""

    encoded: npt.NDArray[np.float32] | None
    """The encoder's output, or a linear image of it that is as large; None where it was not asked for."""
    first_token: int


@runtime_checkable
class Inspectable(Engine, Protocol):
    """An engine that shows more than texts."""

    def look(self, requests: Sequence[Request], *, with_sound: bool) -> list[Look]:
        """Without prompts; each request names its language."""


def label_of(engine: Engine) -> str:
    """What an engine says of itself; empty where it says nothing."""
    return engine.label if isinstance(engine, Adaptive) else ""


@dataclass(frozen=True, slots=True)
class TranscriptionOptions:
    """What the transcripts depend on beside the engine."""

    ladder: tuple[Decoding, ...]
    judge: JudgeRules


@dataclass(frozen=True, slots=True)
class _Attempt:
    hypothesis: Hypothesis
    objections: tuple[Objection, ...]

    @property
    def is_fatal(self) -> bool:
        return any(objection.is_fatal for objection in self.objections)

    @property
    def is_final(self) -> bool:
        return any(objection.is_final for objection in self.objections)

    def is_better_than(self, other: _Attempt) -> bool:
        """A text that stands wins, then fewer objections, then less speech lost, then the more probable text."""
        return self._rank() > other._rank()

    def _rank(self) -> tuple[bool, int, int, float]:
        lost_ms = sum(objection.lost_ms for objection in self.objections)
        return (not self.is_fatal, -len(self.objections), -lost_ms, self.hypothesis.segment.avg_logprob)


def transcribe(engine: Engine, requests: Sequence[Request], options: TranscriptionOptions) -> list[SliceTranscript]:
    """The transcripts of ``requests``, in order; each is transcribed, filtered or failed, none is missing."""
    started = time.perf_counter()
    best: dict[int, _Attempt] = {}
    failed: dict[int, Failed] = {}
    decodings = [0] * len(requests)
    open_ones = list(range(len(requests)))
    for decoding in options.ladder:
        if decoding.temperature:
            # A sample gives other words, not more of them: no remedy for a text that only skips.
            open_ones = [at for at in open_ones if at not in best or best[at].is_fatal]
        if not open_ones:
            break
        batch = [_as_heard(requests[at], best.get(at)) for at in open_ones]
        answers = engine.transcribe(batch, decoding)
        failed |= {at: made for at, made in zip(open_ones, answers, strict=True) if isinstance(made, Failed)}
        attempts = {
            at: _attempt(requests[at], made, decoding, best.get(at), options)
            for at, made in zip(open_ones, answers, strict=True)
            if not isinstance(made, Failed)
        }
        for at in open_ones:
            decodings[at] += 1
        best |= {at: new for at, new in attempts.items() if at not in best or new.is_better_than(best[at])}
        open_ones = [at for at in attempts if best[at].objections and not attempts[at].is_final]
    took_ms = round((time.perf_counter() - started) * 1000)
    if requests and isinstance(engine, Adaptive):
        engine.settle(len(requests), took_ms)
    share_ms = round(took_ms / max(1, len(requests)))
    # What failed on a retry keeps the text that it has.
    return [
        _finished(request, best[at], decodings[at], share_ms)
        if at in best
        else _not_done(request, failed[at], decodings[at], share_ms)
        for at, request in enumerate(requests)
    ]


def _as_heard(request: Request, before: _Attempt | None) -> Request:
    """A retry keeps the language that was detected: then all slices of the batch had a say, of which few are left."""
    return replace(request, language=before.hypothesis.language) if before else request


def _attempt(
    request: Request, hypothesis: Hypothesis, decoding: Decoding, before: _Attempt | None, options: TranscriptionOptions
) -> _Attempt:
    """``before`` is the best attempt on the rungs below."""
    prompt = request.prompts.get(hypothesis.language, "") if decoding.use_prompt else ""
    rules = options.judge.for_retries() if before else options.judge
    if before:
        hypothesis = replace(hypothesis, language_probability=before.hypothesis.language_probability)
    return _Attempt(hypothesis, judge(hypothesis.segment, request.audio.slice, prompt, rules))


def _finished(request: Request, attempt: _Attempt, decodings: int, engine_ms: int) -> SliceTranscript:
    hypothesis = attempt.hypothesis
    return SliceTranscript(
        media_id=request.audio.slice.media_id,
        slice_index=request.audio.slice.index,
        language=hypothesis.language,
        language_probability=hypothesis.language_probability,
        segments=(hypothesis.segment,),
        outcome=Outcome.FILTERED if attempt.is_fatal else Outcome.TRANSCRIBED,
        reason=", ".join(objection.rule for objection in attempt.objections),
        attempts=decodings,
        engine_ms=engine_ms,
    )


def _not_done(request: Request, failed: Failed, decodings: int, engine_ms: int) -> SliceTranscript:
    return SliceTranscript(
        media_id=request.audio.slice.media_id,
        slice_index=request.audio.slice.index,
        language=request.language or "",
        language_probability=0.0,
        segments=(),
        outcome=Outcome.FAILED,
        reason=failed.reason,
        attempts=decodings,
        engine_ms=engine_ms,
    )
