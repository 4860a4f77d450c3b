"""Where a lecture changes its language: slice transcripts as runs of words in one language."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipeline.values import Outcome, Segment, SliceTranscript, Word


@dataclass(frozen=True, slots=True)
class Run:
    """Words in one language, in order. ``next_start_ms`` is where the next run begins, None for the last."""

    language: str
    words: tuple[Word, ...]
    next_start_ms: int | None


def language_runs(slices: Sequence[SliceTranscript]) -> tuple[Run, ...]:
    """The runs of a media; only slices that were transcribed count, and slices without words change no
    language.
    """
    spoken = [(item.language, tuple(_words(item))) for item in slices if item.outcome is Outcome.TRANSCRIBED]
    groups = groupby((pair for pair in spoken if pair[1]), key=lambda pair: pair[0])
    runs = [(language, tuple(word for _, words in group for word in words)) for language, group in groups]
    starts = [words[0].start_ms for _, words in runs]
    return tuple(
        Run(language, words, following) for (language, words), following in zip(runs, [*starts, None][1:], strict=True)
    )


def _words(item: SliceTranscript) -> Iterator[Word]:
    for segment in item.segments:
        yield from (word for word in segment.words or _whole(segment) if word.text.strip())


def _whole(segment: Segment) -> tuple[Word, ...]:
    """A segment that came without word times is kept as one word: text is never lost in silence."""
    return (Word(segment.text, segment.start_ms, segment.end_ms, math.exp(min(0.0, segment.avg_logprob))),)
