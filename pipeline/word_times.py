"""Step 4a, word times: cross-attention says which word, the detector says when.

Whisper's word times lie within some 200 ms; at a pause the detector's onset lies within 30 ms. So each pause
inside a slice is given to the word boundary that is nearest to it, the word before ends where speech ends, and
the word after starts where speech starts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from pipeline.values import Slice, SliceTranscript, Span, Word

ONSET_LATE_MS = 20
"""Silero hears an onset 20 to 30 ms late (measured on lectures with exact sentence times)."""
OFFSET_LATE_MS = 30
"""And an offset 30 to 60 ms late."""
REACH_MS = 700
"""A boundary further than this from a pause does not belong to it."""
MARK_BONUS_MS = 150
"""A boundary after a punctuation mark counts as this much nearer: pauses stand at marks."""
_MARKS = "。？！，、；：.?!,;:"


def snap_to_speech(transcript: SliceTranscript, piece: Slice) -> SliceTranscript:
    """The transcript with its words' starts and ends moved to the onsets and offsets of ``piece.speech``."""
    segments = tuple(
        replace(segment, words=words, start_ms=words[0].start_ms, end_ms=words[-1].end_ms) if words else segment
        for segment in transcript.segments
        for words in [snap_words(segment.words, piece.speech)]
    )
    return replace(transcript, segments=segments)


def snap_words(words: Sequence[Word], speech: Sequence[Span]) -> tuple[Word, ...]:
    """Words in order, none before the first onset; one ends after the last offset only if it starts there, untimed.

    >>> said = (Word("你", 900, 1300, 0.9), Word("好。", 1300, 2100, 0.9), Word("我", 2100, 2600, 0.9))
    >>> [(w.start_ms, w.end_ms) for w in snap_words(said, [Span(1020, 1730), Span(2220, 2530)])]
    [(1000, 1300), (1300, 1700), (2200, 2500)]
    """
    if not words or not speech:
        return tuple(words)
    starts = [word.start_ms for word in words]
    ends = [word.end_ms for word in words]
    taken = 0
    for before, after in pairwise(speech):
        at = _boundary(words, before, after, taken)
        if at is not None:
            taken = at
            ends[at - 1] = _offset(before)
            starts[at] = max(_onset(after), ends[at - 1])
    starts[0] = _first(starts[0], _onset(speech[0]))
    ends[-1] = _last(ends[-1], _offset(speech[-1]))
    ends = [min(end_ms, _offset(speech[-1])) for end_ms in ends]
    return _ordered(words, starts, ends)


def _boundary(words: Sequence[Word], before: Span, after: Span, taken: int) -> int | None:
    """Which word starts after this pause; None where no boundary is near."""

    def distance_ms(at: int) -> float:
        middle = (words[at - 1].end_ms + words[at].start_ms) / 2
        away = max(before.end_ms - middle, middle - after.start_ms, 0.0)
        return away - (MARK_BONUS_MS if words[at - 1].text.rstrip()[-1:] in _MARKS else 0)

    candidates = range(taken + 1, len(words))
    best = min(candidates, key=distance_ms, default=None)
    return best if best is not None and distance_ms(best) <= REACH_MS else None


def _onset(span: Span) -> int:
    return max(0, span.start_ms - ONSET_LATE_MS)


def _offset(span: Span) -> int:
    return max(span.start_ms, span.end_ms - OFFSET_LATE_MS)


def _first(start_ms: int, onset_ms: int) -> int:
    return onset_ms if start_ms - onset_ms <= REACH_MS else start_ms


def _last(end_ms: int, offset_ms: int) -> int:
    return offset_ms if offset_ms - end_ms <= REACH_MS else end_ms


def _ordered(words: Sequence[Word], starts: Sequence[int], ends: Sequence[int]) -> tuple[Word, ...]:
    """Each word starts where the one before ended, or later; what was moved past its neighbours gives way."""
    ordered: list[Word] = []
    latest = starts[0]
    bounds = _not_after_followers(starts)
    for word, start_ms, end_ms in zip(words, bounds, ends, strict=True):
        start = max(start_ms, latest)
        latest = max(start, end_ms)
        ordered.append(replace(word, start_ms=start, end_ms=latest))
    return _clipped(ordered)


def _not_after_followers(starts: Sequence[int]) -> list[int]:
    """Lower a start that lies after the start of a later word."""
    lowered = list(starts)
    for at in range(len(lowered) - 2, -1, -1):
        lowered[at] = min(lowered[at], lowered[at + 1])
    return lowered


def _clipped(words: list[Word]) -> tuple[Word, ...]:
    """End each word where the next one starts, at the latest."""
    followers = [*(word.start_ms for word in words[1:]), words[-1].end_ms]
    return tuple(
        replace(word, end_ms=max(word.start_ms, min(word.end_ms, follower)))
        for word, follower in zip(words, followers, strict=True)
    )
