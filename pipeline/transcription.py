"""Step 3, transcribe: slices through an engine, judged, and the flagged ones decoded again by a ladder.

An ``Engine`` turns slices into hypotheses; it decides nothing. ``transcribe`` judges each one (``judging.py``) and
climbs the ladder only for those that were flagged. What stays bad is filtered, with its reason.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

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
    Decoding(beam_size=3),
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


class Engine(Protocol):
    """Whisper, however it is run."""

    fingerprint: str
    """Changes with the weights and the arithmetic: equal fingerprints, comparable transcripts."""

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        """One hypothesis per request, in order."""


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
    """The transcripts of ``requests``, in order; each is transcribed or filtered, none is missing."""
    started = time.perf_counter()
    best: dict[int, _Attempt] = {}
    decodings = [0] * len(requests)
    open_ones = list(range(len(requests)))
    for decoding in options.ladder:
        if decoding.temperature:
            # A sample gives other words, not more of them: no remedy for a text that only skips.
            open_ones = [at for at in open_ones if at not in best or best[at].is_fatal]
        if not open_ones:
            break
        batch = [_as_heard(requests[at], best.get(at)) for at in open_ones]
        hypotheses = engine.transcribe(batch, decoding)
        attempts = {
            at: _attempt(requests[at], hypothesis, decoding, best.get(at), options)
            for at, hypothesis in zip(open_ones, hypotheses, strict=True)
        }
        for at in attempts:
            decodings[at] += 1
        best |= {at: new for at, new in attempts.items() if at not in best or new.is_better_than(best[at])}
        open_ones = [at for at in open_ones if best[at].objections and not attempts[at].is_final]
    share_ms = round((time.perf_counter() - started) * 1000 / max(1, len(requests)))
    return [_finished(request, best[at], decodings[at], share_ms) for at, request in enumerate(requests)]


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
