"""Step 6, word times: cross-attention says which word, the detector says when.

Whisper's word times lie within some 200 ms; at a pause the detector's onset lies within 30 ms. So each pause
inside a slice is given to the word boundary that it belongs to, the word before ends where speech ends, and
the word after starts where speech starts again. Cross-attention looks at a word too early rather than too late: a
word drawn over a pause is said after it (so it was at all 22 such sentence starts of the 226 in the references).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from pipeline.values import Slice, SliceTranscript, Span, Word

ONSET_LATE_MS = 20
"""Silero hears an onset 20 to 30 ms late (measured on lectures with exact sentence times)."""
OFFSET_LATE_MS = 30
"""And an offset 30 to 60 ms late."""
REACH_MS = 700
"""A boundary further than this from a pause does not belong to it."""
MARK_BONUS_MS = 150
"""A boundary after a punctuation mark counts as this much nearer: pauses stand at marks."""
EARLY_SHARE = 0.1
"""How much of its distance counts where a boundary lies before a pause and its word lasts beyond it: those are the
words that are drawn over pauses, by 10 to 380 ms."""
REACHED_MS = 20
"""A word must last this far beyond a pause to be said after it: one frame of the alignment."""
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
    return _shared(_ordered(words, starts, ends, _offset(speech[-1])))


def _boundary(words: Sequence[Word], before: Span, after: Span, taken: int) -> int | None:
    """Which word starts after this pause; None where no boundary is near."""

    def distance_ms(at: int) -> float:
        away = _away_ms(words[at - 1], words[at], before.end_ms, after.start_ms)
        return away - (MARK_BONUS_MS if words[at - 1].text.rstrip()[-1:] in _MARKS else 0)

    reach_ms = REACH_MS + MARK_BONUS_MS
    first = bisect_left(words, before.end_ms - reach_ms, taken + 1, key=_start_ms)
    last = bisect_right(words, after.start_ms + reach_ms, first, key=_start_ms) + 1
    best = min(range(first, min(last, len(words))), key=distance_ms, default=None)
    return best if best is not None and distance_ms(best) <= REACH_MS else None


def _start_ms(word: Word) -> int:
    return word.start_ms


def _away_ms(word: Word, following: Word, offset_ms: int, onset_ms: int) -> float:
    """How far the boundary between two words is from the pause ``[offset_ms, onset_ms)``."""
    middle_ms = (word.end_ms + following.start_ms) / 2
    early_ms = max(0.0, offset_ms - middle_ms)
    if early_ms <= REACH_MS and following.end_ms >= onset_ms + REACHED_MS:
        early_ms *= EARLY_SHARE
    return max(early_ms, middle_ms - onset_ms)


def _onset(span: Span) -> int:
    return max(0, span.start_ms - ONSET_LATE_MS)


def _offset(span: Span) -> int:
    return max(span.start_ms, span.end_ms - OFFSET_LATE_MS)


def _first(start_ms: int, onset_ms: int) -> int:
    return onset_ms if start_ms - onset_ms <= REACH_MS else start_ms


def _last(end_ms: int, offset_ms: int) -> int:
    return offset_ms if offset_ms - end_ms <= REACH_MS else end_ms


def _ordered(words: Sequence[Word], starts: Sequence[int], ends: Sequence[int], last_ms: int) -> tuple[Word, ...]:
    """Each word starts where the one before ended, or later; what was moved past its neighbours gives way.
    It ends where the next one starts, at the latest.

    A word that was moved past its own end keeps its length, as far as the next one and ``last_ms`` leave room.
    """
    firsts: list[int] = []
    lasts: list[int] = []
    latest = starts[0]
    bounds = _not_after_followers(starts)
    for word, start_ms, end_ms, room_ms in zip(words, bounds, ends, [*bounds[1:], last_ms], strict=True):
        start = max(start_ms, latest)
        end = end_ms if end_ms > start else min(start + word.end_ms - word.start_ms, room_ms)
        latest = max(start, min(end, last_ms))
        firsts.append(start)
        lasts.append(latest)
    return tuple(
        _timed(word, start_ms, max(start_ms, min(end_ms, following_ms)))
        for word, start_ms, end_ms, following_ms in zip(words, firsts, lasts, [*firsts[1:], lasts[-1]], strict=True)
    )


def _not_after_followers(starts: Sequence[int]) -> list[int]:
    """Lower a start that lies after the start of a later word."""
    lowered = list(starts)
    for at in range(len(lowered) - 2, -1, -1):
        lowered[at] = min(lowered[at], lowered[at + 1])
    return lowered


def _shared(words: Sequence[Word]) -> tuple[Word, ...]:
    """A word without time (Whisper gives many a digit or letter none) shares that of the word it touches.

    >>> [(w.text, w.start_ms, w.end_ms) for w in _shared([Word("3", 0, 200, 0.9), Word(".5", 200, 200, 0.9)])]
    [('3', 0, 66), ('.5', 66, 200)]
    """
    groups: list[list[Word]] = []
    for word in words:
        touches = bool(groups) and groups[-1][-1].end_ms == word.start_ms
        is_open = touches and (not _length_ms(word) or not any(map(_length_ms, groups[-1])))
        if is_open:
            groups[-1].append(word)
        else:
            groups.append([word])
    return tuple(word for group in groups for word in _divided(group))


def _divided(group: Sequence[Word]) -> Iterator[Word]:
    """The words of a group, their common time divided by their lengths in characters."""
    if len(group) == 1:
        yield from group
        return
    start_ms, end_ms = group[0].start_ms, group[-1].end_ms
    lengths = list(accumulate((max(1, len(word.text.strip())) for word in group), initial=0))
    edges = [start_ms + (end_ms - start_ms) * length // lengths[-1] for length in lengths]
    for word, (first_ms, last_ms) in zip(group, pairwise(edges), strict=True):
        yield _timed(word, first_ms, last_ms)


def _timed(word: Word, start_ms: int, end_ms: int) -> Word:
    return replace(word, start_ms=start_ms, end_ms=end_ms)


def _length_ms(word: Word) -> int:
    return word.end_ms - word.start_ms
