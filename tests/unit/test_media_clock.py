"""Placement on the media clock: what follows, what is filled, what is cut off, what is missing."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.media_clock import JITTER, Frame, Kind, Piece, Tally, missing_tail, place
from pipeline.values import SAMPLE_RATE_HZ, Span

SECOND = SAMPLE_RATE_HZ


def _frame(position: int, length: int, value: int = 1) -> Frame:
    return Frame(position, np.full((length, 1), value, np.int16))


def _shape(pieces: list[Piece]) -> list[tuple[Kind, int, int]]:
    return [(piece.kind, piece.start, piece.length) for piece in pieces]


def _placed(*frames: Frame, declared_end: int | None = None) -> list[Piece]:
    return list(place(frames, declared_end=declared_end))


def _tally(pieces: list[Piece]) -> Tally:
    return reduce(Tally.after, pieces, Tally())


def test_a_late_start_is_silence_to_the_sample_and_not_missing() -> None:
    pieces = _placed(_frame(40_001, 1000))
    assert _shape(pieces) == [(Kind.LATE_START, 0, 40_001), (Kind.AUDIO, 40_001, 1000)]
    assert _tally(pieces).missing == ()


def test_a_gap_is_filled_and_from_100_ms_on_missing() -> None:
    short = _placed(_frame(0, 1000), _frame(1000 + 1599, 1000))
    long = _placed(_frame(0, 1600), _frame(1600 + 1600, 1000))
    assert _shape(short)[1] == (Kind.GAP, 1000, 1599)
    assert _tally(short).missing == ()
    assert _tally(long).missing == (Span(100, 200),)
    assert _tally(long).zeros == 1600


def test_time_stamps_that_wander_lose_and_add_nothing() -> None:
    frames = [_frame(i * 320 + (JITTER if i % 2 else -JITTER // 2), 320) for i in range(100)]
    pieces = _placed(_frame(0, 320), *frames[1:])
    assert {piece.kind for piece in pieces} == {Kind.AUDIO}
    assert _tally(pieces).audio == 32_000


def test_a_slow_clock_does_not_drift_away_by_more_than_the_jitter() -> None:
    pieces = _placed(*(_frame(i * 321, 320) for i in range(10_000)))
    last = pieces[-1]
    assert abs(last.start - 9999 * 321) <= JITTER


def test_an_overlap_is_cut_off() -> None:
    pieces = _placed(_frame(0, 8000), _frame(4000, 8000, 2))
    assert _shape(pieces) == [(Kind.AUDIO, 0, 8000), (Kind.TRIMMED, 8000, 4000), (Kind.AUDIO, 8000, 4000)]


def test_what_lies_before_0_is_cut_off_however_long_it_is() -> None:
    frames = [_frame(i * SECOND - 5 * SECOND, SECOND) for i in range(7)]
    pieces = _placed(*frames)
    assert _tally(pieces).audio == 2 * SECOND
    assert _tally(pieces).trimmed == 5 * SECOND


def test_a_clock_that_starts_again_is_followed_on() -> None:
    first = [_frame(i * SECOND, SECOND) for i in range(20)]
    pieces = _placed(*first, *first)
    assert _tally(pieces).audio == 40 * SECOND
    assert _tally(pieces).zeros == 0
    assert _tally(pieces).rebased == 1


def test_one_wrong_time_stamp_moves_nothing() -> None:
    frames = [_frame(i * 320, 320) for i in range(10)]
    for wrong in (-100 * SECOND, 50 * SECOND):
        pieces = _placed(*frames[:5], _frame(wrong, 320), *frames[6:])
        assert _shape(pieces) == [(Kind.AUDIO, i * 320, 320) for i in range(10)]


def test_a_jump_far_beyond_the_declared_end_is_not_filled_with_hours_of_zeros() -> None:
    frames = [_frame(0, SECOND), _frame(30_000 * SECOND, SECOND), _frame(30_001 * SECOND, SECOND)]
    pieces = _placed(*frames, declared_end=60 * SECOND)
    assert _tally(pieces).zeros == 0
    assert _tally(pieces).audio == 3 * SECOND


def test_a_gap_of_half_an_hour_is_believed_where_no_end_is_declared() -> None:
    half_an_hour = 1800 * SECOND
    pieces = _placed(_frame(0, SECOND), _frame(half_an_hour, SECOND), _frame(half_an_hour + SECOND, SECOND))
    assert _tally(pieces).missing == (Span(1000, 1_800_000),)
    pieces = _placed(_frame(0, SECOND), _frame(9000 * SECOND, SECOND), _frame(9001 * SECOND, SECOND))
    assert _tally(pieces).missing == ()


_frames = st.lists(st.builds(_frame, st.integers(-(10**6), 10**9), st.integers(1, 5000)), max_size=30)


@given(_frames, st.none() | st.integers(0, 10**8))
def test_pieces_are_contiguous_from_0_and_no_sample_is_unaccounted_for(
    frames: list[Frame], declared_end: int | None
) -> None:
    pieces = list(place(frames, declared_end=declared_end))
    cursor = 0
    for piece in pieces:
        assert piece.start == cursor
        assert piece.pcm is None or len(piece.pcm) == piece.length
        cursor += piece.length if piece.pcm is not None or piece.is_zeros else 0
    tally = _tally(pieces)
    assert tally.audio + tally.zeros == cursor
    assert tally.audio + tally.trimmed == sum(len(frame.pcm) for frame in frames)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=50), st.integers(0, 10**6))
def test_frames_in_their_places_come_out_as_they_are(lengths: list[int], start: int) -> None:
    frames, at = [], start
    for length in lengths:
        frames.append(_frame(at, length))
        at += length
    assert [p.start for p in place(frames) if p.kind is Kind.AUDIO] == [f.position for f in frames]


@pytest.mark.parametrize(
    ("track_end_ms", "media_end_ms", "last_packet_ms", "missing"),
    [
        (10_000, 20_000, None, None),  # the picture goes on: silence
        (15_000, 20_000, None, Span(10_000, 15_000)),  # the track itself should go on
        (10_250, 10_250, None, None),  # rounding and padding
        (None, 20_000, 19_500, None),  # the picture goes on to the end
        (None, 20_000, 10_100, Span(10_000, 20_000)),  # no stream reaches the end: cut off
        (10_100, 20_000, 10_100, Span(10_000, 20_000)),
        (None, 20_000, None, None),  # nothing is known
        (None, None, None, None),
    ],
)
def test_what_is_missing_at_the_end(
    track_end_ms: int | None, media_end_ms: int | None, last_packet_ms: int | None, missing: Span | None
) -> None:
    found = missing_tail(10_000, track_end_ms=track_end_ms, media_end_ms=media_end_ms, last_packet_ms=last_packet_ms)
    assert found == missing
