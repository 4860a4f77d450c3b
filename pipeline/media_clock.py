"""Where decoded audio lies on the media clock, and what is missing there: pure arithmetic, no decoder.

Positions and lengths are counted in samples at ``SAMPLE_RATE_HZ``; position 0 is what a player shows as 0:00.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from pipeline.values import SAMPLE_RATE_HZ, SAMPLES_PER_MS, Span

Pcm = npt.NDArray[np.int16]
"""Interleaved audio as it comes from the decoder, shape ``(n, channels)``."""

JITTER = 15 * SAMPLES_PER_MS
"""Time stamps wander by less than this without anything being lost or doubled: milliseconds are the clock of
Matroska and FLV, and Vorbis states some blocks 9 ms early or late. Half of what a cue may be off is more."""
RESET = SAMPLE_RATE_HZ
"""A step back by more than this is a clock that started again (recordings put end to end), not an overlap."""
BEYOND_END = 10 * SAMPLE_RATE_HZ
"""No frame can begin this far behind the declared end; a time stamp that says so is wrong."""
LONGEST_GAP = 3600 * SAMPLE_RATE_HZ
"""The longest gap that is believed where no end is declared."""
MISSING_MS = 100
"""A shorter gap costs no word and is only filled."""
SHORTFALL_MS = 250
"""Declared ends are rounded to frames and count an encoder's padding, up to two frames of MP3 at 8 kHz."""
NEAR_END_MS = 1000
"""A last packet this near to the declared end shows that the file is whole; a slide may last that long."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the decoder gave out at once. ``position`` is where its time stamp puts it; it may be negative."""

    position: int
    pcm: Pcm


class Kind(StrEnum):
    """What a piece is: audio, zeros in its place, or a note (of no extent) that something was set right."""

    AUDIO = "audio"
    LATE_START = "late start"
    GAP = "gap"
    TRIMMED = "trimmed"
    REBASED = "rebased"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the media clock that begins at ``start``.

    ``length`` samples of it are audio (``pcm``) or zeros; of a note, ``length`` says how much was cut off or
    how far the time stamps jumped, and ``start`` where.
    """

    kind: Kind
    start: int
    length: int
    pcm: Pcm | None = None

    @property
    def is_zeros(self) -> bool:
        """Whether it stands for audio that is not there."""
        return self.kind in (Kind.LATE_START, Kind.GAP)


def place(frames: Iterable[Frame], *, declared_end: int | None = None) -> Iterator[Piece]:
    """Put frames on the media clock, one after the other from 0.

    Audio and zero pieces are contiguous. A frame within ``JITTER`` of its place follows the one before it; a
    later one leaves a gap; what lies before 0 or overlaps is cut off. A clock that starts again, or jumps to
    where nothing can be, is followed on from here instead.
    """
    cursor, offset, begun = 0, 0, False
    for frame, following in _with_following(frames):
        at = frame.position + offset
        if begun and _is_outlier(at, cursor, frame, following, offset):
            at = cursor
        if _is_new_clock(at, cursor, begun, declared_end):
            yield Piece(Kind.REBASED, cursor, abs(at - cursor))
            offset, at = offset + cursor - at, cursor
        if at - cursor > (JITTER if begun else 0):
            yield Piece(Kind.GAP if begun else Kind.LATE_START, cursor, at - cursor)
            cursor = at
        cut = min(cursor - at, len(frame.pcm)) if cursor - at > JITTER else 0
        if cut:
            yield Piece(Kind.TRIMMED, cursor, cut)
        if cut < len(frame.pcm):
            yield Piece(Kind.AUDIO, cursor, len(frame.pcm) - cut, frame.pcm[cut:])
            cursor += len(frame.pcm) - cut
            begun = True


def _with_following(frames: Iterable[Frame]) -> Iterator[tuple[Frame, Frame | None]]:
    before: Frame | None = None
    for frame in frames:
        if before is not None:
            yield before, frame
        before = frame
    if before is not None:
        yield before, None


def _is_outlier(at: int, cursor: int, frame: Frame, following: Frame | None, offset: int) -> bool:
    """One wrong time stamp: this frame is far off and the next one is where it would be without that."""
    if abs(at - cursor) <= RESET or following is None:
        return False
    return abs(following.position + offset - cursor - len(frame.pcm)) <= JITTER


def _is_new_clock(at: int, cursor: int, begun: bool, declared_end: int | None) -> bool:
    if at < cursor:
        return begun and cursor - at > RESET
    if declared_end is None:
        return at - cursor > LONGEST_GAP
    return at - cursor > BEYOND_END and at > declared_end + BEYOND_END


@dataclass(frozen=True, slots=True)
class Tally:
    """What was placed so far. Immutable; ``after`` gives the next one."""

    audio: int = 0
    zeros: int = 0
    trimmed: int = 0
    rebased: int = 0
    missing: tuple[Span, ...] = ()

    def after(self, piece: Piece) -> Tally:
        """The tally with one more piece."""
        match piece.kind:
            case Kind.AUDIO:
                return Tally(self.audio + piece.length, self.zeros, self.trimmed, self.rebased, self.missing)
            case Kind.TRIMMED:
                return Tally(self.audio, self.zeros, self.trimmed + piece.length, self.rebased, self.missing)
            case Kind.REBASED:
                return Tally(self.audio, self.zeros, self.trimmed, self.rebased + 1, self.missing)
        span = Span(to_ms(piece.start), to_ms(piece.start + piece.length))
        is_missing = piece.kind is Kind.GAP and span.duration_ms >= MISSING_MS
        missing = (*self.missing, span) if is_missing else self.missing
        return Tally(self.audio, self.zeros + piece.length, self.trimmed, self.rebased, missing)

    @property
    def end_ms(self) -> int:
        """Where the audio ends on the media clock."""
        return to_ms(self.audio + self.zeros)


def to_ms(samples: int) -> int:
    """Samples as milliseconds, rounded.

    >>> to_ms(16_000), to_ms(7), to_ms(8)
    (1000, 0, 1)
    """
    return (samples + SAMPLES_PER_MS // 2) // SAMPLES_PER_MS


def missing_tail(
    end_ms: int, *, track_end_ms: int | None, media_end_ms: int | None, last_packet_ms: int | None
) -> Span | None:
    """What is missing behind the last decoded sample at ``end_ms``, or None.

    ``track_end_ms`` is where the track ends by its own account or that of its last packet, ``media_end_ms``
    where the container says that everything ends, ``last_packet_ms`` where the packets of all streams end. A
    track shorter than the rest is silence there, unless the file itself stops short.
    """
    if track_end_ms is not None and track_end_ms - end_ms > SHORTFALL_MS:
        return Span(end_ms, track_end_ms)
    if media_end_ms is None or last_packet_ms is None or media_end_ms - end_ms <= SHORTFALL_MS:
        return None
    is_cut_off = last_packet_ms < media_end_ms - NEAR_END_MS
    return Span(end_ms, media_end_ms) if is_cut_off else None
