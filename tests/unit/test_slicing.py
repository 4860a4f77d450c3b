"""The slicer: speech spans in, slices of at most 30 s out, each cut at the best silence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.slicing import Cut, Slicer, SlicingRules
from pipeline.speech import SpeechGate, SpeechRules
from pipeline.values import Boundary, Span

RULES = SlicingRules()
SPEECH = SpeechRules()
FRAME_SAMPLES = 512
LONGEST_NEED_MS = (
    RULES.max_slice_ms + RULES.good_silence_ms + RULES.pad_ms + SPEECH.max_speech_ms + SPEECH.min_silence_ms + 2 * 32
)
"""A full pending slice, the silence that could still end it, and an open span that may yet be split: a minute."""


@dataclass(frozen=True)
class Lecture:
    spans: list[Span]
    media_end_ms: int


@st.composite
def lectures(draw: st.DrawFn) -> Lecture:
    """Speech as the gate gives it: gaps of 0 are its splits."""
    gaps = st.one_of(st.just(0), st.integers(1, 900), st.integers(500, 3_000), st.integers(3_000, 40_000))
    lengths = st.one_of(st.integers(1, 4_000), st.integers(4_000, 29_760), st.just(30_000))
    at_ms, spans = 0, []
    for gap, length in draw(st.lists(st.tuples(gaps, lengths), max_size=25)):
        spans.append(Span(at_ms + gap, at_ms + gap + length))
        at_ms = spans[-1].end_ms
    return Lecture(spans, at_ms + draw(st.one_of(st.integers(0, 900), st.integers(0, 40_000))))


def cuts_of(lecture: Lecture) -> list[Cut]:
    slicer = Slicer(RULES)
    cuts = [cut for span in lecture.spans for cut in slicer.push(span)]
    return [*cuts, *slicer.finish(lecture.media_end_ms)]


def slices(*spans: tuple[int, int], end: int) -> list[tuple[int, int, Boundary]]:
    """The slices of spans given in milliseconds, as (start, end, boundary)."""
    lecture = Lecture([Span(*span) for span in spans], end)
    return [(cut.span.start_ms, cut.span.end_ms, cut.boundary) for cut in cuts_of(lecture)]


def test_a_media_without_speech_has_no_slice() -> None:
    assert slices(end=60_000) == []


def test_short_speech_is_one_slice_with_its_pads() -> None:
    assert slices((1_000, 4_000), (5_000, 9_000), end=10_000) == [(800, 9_200, Boundary.END)]


def test_the_pads_stay_inside_the_media() -> None:
    assert slices((50, 4_000), end=4_100) == [(0, 4_100, Boundary.END)]


def test_a_slice_ends_in_the_last_good_silence_before_thirty_seconds() -> None:
    spoken = [(0, 12_000), (12_800, 24_000), (24_800, 36_000)]
    assert slices(*spoken, end=36_000) == [(0, 24_200, Boundary.SILENCE), (24_600, 36_000, Boundary.END)]


def test_a_good_silence_is_worth_a_little_less_of_a_slice() -> None:
    spoken = [(0, 25_000), (25_700, 28_000), (28_100, 36_000)]
    assert slices(*spoken, end=36_000)[0] == (0, 25_200, Boundary.SILENCE)


def test_a_good_silence_is_not_worth_half_of_a_slice() -> None:
    spoken = [(0, 5_000), (5_700, 28_000), (28_300, 36_000)]
    assert slices(*spoken, end=36_000)[0] == (0, 28_150, Boundary.SILENCE)


def test_a_long_silence_ends_a_slice_that_is_not_full() -> None:
    spoken = [(0, 5_000), (13_001, 15_000)]
    assert slices(*spoken, end=15_000) == [(0, 5_200, Boundary.SILENCE), (12_801, 15_000, Boundary.END)]
    assert len(slices((0, 5_000), (13_000, 15_000), end=15_000)) == 1


def test_a_long_silence_at_the_end_of_the_media_ends_the_slice_too() -> None:
    assert slices((0, 5_000), end=60_000) == [(0, 5_200, Boundary.SILENCE)]


def test_speech_without_a_silence_is_cut_where_the_gate_split_it() -> None:
    spoken = [(200, 25_000), (25_000, 40_000)]
    assert slices(*spoken, end=40_000) == [(0, 25_000, Boundary.FORCED), (25_000, 40_000, Boundary.END)]


def test_a_span_as_long_as_a_slice_gets_no_pads() -> None:
    assert slices((500, 30_500), end=31_000) == [(500, 30_500, Boundary.END)]


def test_a_span_longer_than_a_slice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="longer than a slice of 30000 ms"):
        Slicer(RULES).push(Span(0, 30_001))


def test_a_slice_is_given_as_soon_as_no_speech_can_join_it() -> None:
    slicer = Slicer(RULES)
    slicer.push(Span(0, 25_000))
    assert slicer.advance(29_999) == []
    (cut,) = slicer.advance(30_000)
    assert (cut.span, cut.boundary, cut.speech) == (Span(0, 25_200), Boundary.SILENCE, (Span(0, 25_000),))
    assert slicer.finish(60_000) == []


@given(lectures())
def test_no_slice_is_longer_than_thirty_seconds_and_none_overlap(lecture: Lecture) -> None:
    cuts = cuts_of(lecture)
    assert all(cut.span.duration_ms <= RULES.max_slice_ms for cut in cuts)
    assert all(first.span.end_ms <= second.span.start_ms for first, second in pairwise(cuts))
    assert all(cut.span.end_ms <= lecture.media_end_ms for cut in cuts)


@given(lectures())
def test_every_speech_span_lies_whole_in_exactly_one_slice(lecture: Lecture) -> None:
    cuts = cuts_of(lecture)
    assert [span for cut in cuts for span in cut.speech] == lecture.spans
    for cut in cuts:
        assert cut.span.start_ms <= cut.speech[0].start_ms
        assert cut.speech[-1].end_ms <= cut.span.end_ms


@given(lectures())
def test_the_boundary_tells_whether_there_was_silence_to_cut_in(lecture: Lecture) -> None:
    cuts = cuts_of(lecture)
    for cut, following in pairwise(cuts):
        silence_ms = following.speech[0].start_ms - cut.speech[-1].end_ms
        assert cut.boundary is (Boundary.SILENCE if silence_ms else Boundary.FORCED)
    for cut in cuts[-1:]:
        silence_ms = lecture.media_end_ms - cut.speech[-1].end_ms
        assert cut.boundary is Boundary.END or silence_ms >= RULES.good_silence_ms


@given(lectures())
def test_no_slice_holds_a_silence_that_is_too_long(lecture: Lecture) -> None:
    for cut in cuts_of(lecture):
        for first, second in pairwise(cut.speech):
            assert second.start_ms - first.end_ms <= RULES.max_inner_silence_ms


@given(lectures())
def test_the_pads_of_two_slices_share_the_silence_between_them(lecture: Lecture) -> None:
    for cut, following in pairwise(cuts_of(lecture)):
        silence_ms = following.speech[0].start_ms - cut.speech[-1].end_ms
        after_ms = cut.span.end_ms - cut.speech[-1].end_ms
        before_ms = following.speech[0].start_ms - following.span.start_ms
        assert after_ms <= min(RULES.pad_ms, silence_ms // 2)
        assert before_ms <= min(RULES.pad_ms, silence_ms - after_ms)


@given(lectures(), st.data())
def test_slices_do_not_depend_on_when_silence_is_told(lecture: Lecture, data: st.DataObject) -> None:
    slicer, cuts, heard_ms = Slicer(RULES), [], 0
    for span in [*lecture.spans, None]:
        true_until_ms = span.start_ms if span else lecture.media_end_ms
        for told_ms in sorted(data.draw(st.lists(st.integers(heard_ms, true_until_ms), max_size=4))):
            cuts += slicer.advance(told_ms)
        if span:
            cuts += slicer.push(span)
            heard_ms = span.end_ms
    assert [*cuts, *slicer.finish(lecture.media_end_ms)] == cuts_of(lecture)


@given(lectures())
def test_no_cut_is_made_before_a_slice_would_overflow(lecture: Lecture) -> None:
    """Unless a long silence ends it: two slices and the first speech of the next never fit into one."""
    cuts = cuts_of(lecture)
    for index, (cut, following) in enumerate(pairwise(cuts)):
        silence_ms = following.speech[0].start_ms - cut.speech[-1].end_ms
        heard = [span for later in cuts[index + 1 : index + 3] for span in later.speech]
        last = heard[min(len(following.speech), len(heard) - 1)]
        together_ms = last.end_ms - cut.span.start_ms
        assert together_ms > RULES.max_slice_ms or silence_ms > RULES.max_inner_silence_ms


runs = st.tuples(st.sampled_from([0.0, 0.0, 0.4, 0.9, 1.0]), st.one_of(st.integers(1, 30), st.integers(30, 1_000)))


@given(st.lists(runs, max_size=12))
def test_gate_and_slicer_together_need_no_more_than_a_minute_of_audio(drawn: list[tuple[float, int]]) -> None:
    gate, slicer = SpeechGate(SPEECH, FRAME_SAMPLES), Slicer(RULES)
    for frame, probability in enumerate(p for p, count in drawn for _ in range(count)):
        for span in gate.push(np.array([probability], np.float32)):
            slicer.push(span)
        slicer.advance(gate.silent_until_ms)
        needed_ms = slicer.needed_from_ms
        from_ms = gate.silent_until_ms - RULES.pad_ms if needed_ms is None else needed_ms
        assert (frame + 1) * 32 - from_ms <= LONGEST_NEED_MS
