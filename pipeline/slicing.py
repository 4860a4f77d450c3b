"""Step 4, slice: speech spans packed into slices of at most 30 s, cut at the best silence, never overlapping.

Whisper pays for 30 s whatever it is given, so a slice is filled as far as a good silence allows. Streaming: the
slicer decides as soon as nothing that may still come can change the decision.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.values import Boundary, Span


@dataclass(frozen=True, slots=True)
class SlicingRules:
    """How slices are cut; times in milliseconds."""

    max_slice_ms: int = 30_000
    """Whisper's window."""
    pad_ms: int = 200
    """Kept before the first and after the last speech of a slice; at most half of the silence there is."""
    max_inner_silence_ms: int = 8_000
    """A longer silence always ends the slice: Whisper invents text in long silences."""
    good_silence_ms: int = 700
    """A silence this long is as good a cut as any longer one: a sentence ended."""
    full_weight: float = 2.5
    """What a full slice is worth against a good silence, when several silences could end it. At 1.2 lectures took
    1.15 x the time, and neither errors nor punctuation were better."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One planned slice: its span, how it ends, and the speech inside."""

    span: Span
    boundary: Boundary
    speech: tuple[Span, ...]


class Slicer:
    """Feeds on speech spans in order and returns the slices that are decided.

    >>> slicer = Slicer(SlicingRules())
    >>> slicer.push(Span(1_000, 9_000)), slicer.push(Span(10_000, 20_000))
    ([], [])
    >>> [cut.span for cut in slicer.finish(media_end_ms=60_000)]
    [Span(start_ms=800, end_ms=20200)]
    """

    def __init__(self, rules: SlicingRules) -> None:
        self._rules = rules
        self._pending: list[Span] = []
        self._floor_ms = 0

    @property
    def needed_from_ms(self) -> int | None:
        """Audio from here on is still needed for the pending slice; None where nothing is pending."""
        return self._start_ms() if self._pending else None

    def push(self, span: Span) -> list[Cut]:
        """Take the next speech span; returns the slices that its coming decides.

        ``ValueError`` where it is longer than a slice: the speech gate splits such spans.
        """
        if span.duration_ms > self._rules.max_slice_ms:
            raise ValueError(f"{span} is longer than a slice of {self._rules.max_slice_ms} ms")
        cuts = self.advance(span.start_ms)
        self._pending.append(span)
        while self._pending[-1].end_ms - self._start_ms() > self._rules.max_slice_ms:
            cuts.append(self._cut_at_best(self._pending[-1].start_ms))
        return cuts

    def advance(self, silent_until_ms: int) -> list[Cut]:
        """Told that no speech starts before ``silent_until_ms``: close what can grow no further."""
        if not self._pending:
            return []
        silence_ms = silent_until_ms - self._pending[-1].end_ms
        too_late = silent_until_ms - self._start_ms() >= self._rules.max_slice_ms
        if silence_ms > self._rules.max_inner_silence_ms or (too_late and silence_ms >= self._rules.good_silence_ms):
            return [self._take(len(self._pending), silent_until_ms, Boundary.SILENCE)]
        return []

    def finish(self, media_end_ms: int) -> list[Cut]:
        """The last slice: it ends with the media, or in silence where that is long enough to end any slice."""
        cuts = self.advance(media_end_ms)
        if self._pending:
            end_ms = max(media_end_ms, self._pending[-1].end_ms)
            cuts.append(self._take(len(self._pending), end_ms, Boundary.END))
        return cuts

    def _start_ms(self) -> int:
        first = self._pending[0]
        pad_ms = min(self._rules.pad_ms, self._rules.max_slice_ms - first.duration_ms)
        return max(self._floor_ms, first.start_ms - pad_ms)

    def _cut_at_best(self, next_start_ms: int) -> Cut:
        """The last span does not fit: cut after one of those before it, where silence and fullness are best."""
        count = len(self._pending) - 1
        best = max(range(1, count + 1), key=self._worth)
        gap_ms = self._pending[best].start_ms - self._pending[best - 1].end_ms
        boundary = Boundary.SILENCE if gap_ms > 0 else Boundary.FORCED
        return self._take(best, min(next_start_ms, self._pending[best].start_ms), boundary)

    def _worth(self, count: int) -> float:
        gap_ms = self._pending[count].start_ms - self._pending[count - 1].end_ms
        silence = min(gap_ms, self._rules.good_silence_ms) / self._rules.good_silence_ms
        fullness = (self._pending[count - 1].end_ms - self._start_ms()) / self._rules.max_slice_ms
        return silence + self._rules.full_weight * fullness

    def _take(self, count: int, silent_until_ms: int, boundary: Boundary) -> Cut:
        speech, start_ms = tuple(self._pending[:count]), self._start_ms()
        last_ms = speech[-1].end_ms
        room_ms = silent_until_ms - last_ms
        tail_ms = room_ms if boundary is Boundary.END else room_ms // 2
        limit_ms = start_ms + self._rules.max_slice_ms
        end_ms = max(last_ms, min(last_ms + min(self._rules.pad_ms, tail_ms), limit_ms))
        del self._pending[:count]
        self._floor_ms = end_ms
        return Cut(Span(start_ms, end_ms), boundary, speech)
