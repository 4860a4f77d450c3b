"""The speech gate: frame probabilities in, speech spans out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.speech import Probabilities, SpeechGate, SpeechRules
from pipeline.values import Span

RULES = SpeechRules()
FRAME = 160  # samples, 10 ms: so that times can be read off
SHORT = SpeechRules(max_speech_ms=2_000, search_ms=700)
"""Splits often, so that short examples reach it."""
NEVER_SPLITS = replace(SHORT, max_speech_ms=10**9)


def frames(*runs: tuple[float, int]) -> Probabilities:
    """Runs of (probability, milliseconds), in frames of 10 ms."""
    return np.repeat(np.array([probability for probability, _ in runs], np.float32), [ms // 10 for _, ms in runs])


def spans_of(probabilities: Probabilities, rules: SpeechRules = RULES, frame: int = FRAME) -> list[Span]:
    gate = SpeechGate(rules, frame)
    return [*gate.push(probabilities), *gate.finish(end_ms(probabilities, frame))]


def end_ms(probabilities: Probabilities, frame: int = FRAME) -> int:
    return len(probabilities) * frame // 16


def joined(spans: list[Span]) -> list[Span]:
    """Spans that touch made one."""
    whole: list[Span] = []
    for span in spans:
        if whole and whole[-1].end_ms == span.start_ms:
            span = Span(whole.pop().start_ms, span.end_ms)
        whole.append(span)
    return whole


runs = st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.49, 0.6, 0.8, 1.0]), st.integers(1, 40))
probabilities = st.lists(runs, max_size=30).map(
    lambda drawn: np.repeat(np.array([value for value, _ in drawn], np.float32), [count for _, count in drawn])
)
frame_sizes = st.sampled_from([160, 270, 512])


def test_silence_has_no_speech() -> None:
    assert spans_of(frames((0.1, 5_000))) == []


def test_no_audio_has_no_speech() -> None:
    assert spans_of(frames()) == []


def test_speech_begins_at_the_threshold_and_ends_where_it_falls_under_the_release() -> None:
    heard = frames((0.0, 500), (0.49, 100), (0.5, 200), (0.36, 300), (0.0, 1_000))
    assert spans_of(heard) == [Span(600, 1_100)]


def test_a_click_is_not_speech() -> None:
    assert spans_of(frames((0.0, 500), (0.9, 90), (0.0, 500))) == []
    assert spans_of(frames((0.0, 500), (0.9, 100), (0.0, 500))) == [Span(500, 600)]


def test_a_dip_shorter_than_the_shortest_silence_stays_inside_speech() -> None:
    assert spans_of(frames((0.9, 500), (0.0, 150), (0.9, 500))) == [Span(0, 1_150)]
    assert spans_of(frames((0.9, 500), (0.0, 160), (0.9, 500))) == [Span(0, 500), Span(660, 1_160)]


def test_speech_that_is_open_at_the_end_ends_with_the_media() -> None:
    gate = SpeechGate(RULES, FRAME)
    assert gate.push(frames((0.0, 300), (0.9, 700))) == []
    assert gate.finish(993) == [Span(300, 993)]


def test_speech_that_only_the_padding_of_the_last_frame_holds_is_none() -> None:
    gate = SpeechGate(replace(RULES, min_speech_ms=0), 512)
    gate.push(np.array([0.0, 1.0], np.float32))
    assert gate.finish(32) == []


def test_a_span_that_is_too_long_is_split_at_its_weakest_frame() -> None:
    heard = frames((0.9, 25_000), (0.4, 50), (0.9, 10_000), (0.0, 500))
    assert spans_of(heard) == [Span(0, 25_000), Span(25_000, 35_050)]


def test_the_weakest_frame_is_sought_only_near_the_end() -> None:
    heard = frames((0.9, 5_000), (0.36, 50), (0.9, 20_000), (0.5, 50), (0.9, 9_000), (0.0, 500))
    assert spans_of(heard)[0] == Span(0, 25_050)


def test_the_rest_of_a_split_span_is_kept_however_short() -> None:
    heard = frames((0.9, 29_540), (0.4, 60), (0.0, 500))
    assert spans_of(heard) == [Span(0, 29_540), Span(29_540, 29_600)]


def test_a_click_after_a_split_span_is_still_not_speech() -> None:
    heard = frames((0.9, 29_540), (0.4, 60), (0.0, 500), (0.9, 50), (0.0, 500))
    assert len(spans_of(heard)) == 2


def test_the_start_of_an_open_span_is_how_far_silence_is_certain() -> None:
    gate = SpeechGate(RULES, FRAME)
    gate.push(frames((0.0, 400)))
    assert gate.silent_until_ms == 400
    gate.push(frames((0.9, 400)))
    assert gate.silent_until_ms == 400
    gate.push(frames((0.0, 400)))
    assert gate.silent_until_ms == 1_200


def test_times_do_not_drift_over_ten_hours() -> None:
    ten_hours = 10 * 3_600 * 16_000 // 270
    gate = SpeechGate(RULES, 270)
    gate._frame = ten_hours  # as if ten hours of silence had been heard
    gate.push(np.ones(60, np.float32))
    (span,) = gate.finish(40_000_000)
    assert span.start_ms == round(ten_hours * 270 / 16)


@given(probabilities, frame_sizes)
def test_spans_are_ordered_inside_the_media_and_do_not_overlap(heard: Probabilities, frame: int) -> None:
    spans = spans_of(heard, SHORT, frame)
    assert all(first.end_ms <= second.start_ms for first, second in pairwise(spans))
    assert all(span.start_ms < span.end_ms <= end_ms(heard, frame) for span in spans)


@given(probabilities, frame_sizes, st.lists(st.integers(0, 1_200), max_size=8))
def test_spans_do_not_depend_on_how_the_probabilities_are_chunked(
    heard: Probabilities, frame: int, cuts: list[int]
) -> None:
    gate = SpeechGate(SHORT, frame)
    spans = [span for chunk in np.split(heard, sorted(cuts)) for span in gate.push(chunk)]
    assert [*spans, *gate.finish(end_ms(heard, frame))] == spans_of(heard, SHORT, frame)


@given(probabilities, frame_sizes)
def test_splitting_adds_cuts_and_loses_no_speech(heard: Probabilities, frame: int) -> None:
    assert joined(spans_of(heard, SHORT, frame)) == spans_of(heard, NEVER_SPLITS, frame)


@given(probabilities, frame_sizes)
def test_no_span_is_longer_than_the_longest_and_one_dip(heard: Probabilities, frame: int) -> None:
    longest_ms = SHORT.max_speech_ms + SHORT.min_silence_ms
    assert all(span.duration_ms <= longest_ms for span in spans_of(heard, SHORT, frame))


@given(probabilities, frame_sizes)
def test_speech_has_a_least_length_and_silences_between_it_too(heard: Probabilities, frame: int) -> None:
    whole = joined(spans_of(heard, SHORT, frame))
    last_ms = end_ms(heard, frame)
    assert all(span.duration_ms >= SHORT.min_speech_ms for span in whole if span.end_ms < last_ms)
    rounding_ms = 1
    for first, second in pairwise(whole):
        assert second.start_ms - first.end_ms >= SHORT.min_silence_ms - rounding_ms


@given(probabilities, frame_sizes)
def test_every_frame_over_the_threshold_is_in_a_span_unless_it_was_a_click(heard: Probabilities, frame: int) -> None:
    rules = replace(SHORT, min_speech_ms=0)
    spans = spans_of(heard, rules, frame)
    for index in np.flatnonzero(heard >= rules.threshold):
        middle_ms = (index + 0.5) * frame / 16
        assert sum(span.start_ms < middle_ms < span.end_ms for span in spans) == 1


@given(probabilities, frame_sizes)
def test_what_is_said_to_be_silent_stays_silent(heard: Probabilities, frame: int) -> None:
    gate = SpeechGate(SHORT, frame)
    promised_ms = 0
    for probability in heard:
        spans = gate.push(np.array([probability], np.float32))
        assert all(span.start_ms >= promised_ms for span in spans)
        assert gate.silent_until_ms >= promised_ms
        promised_ms = gate.silent_until_ms
    assert all(span.start_ms >= promised_ms for span in gate.finish(end_ms(heard, frame)))


@pytest.mark.parametrize("rules", [RULES, SHORT])
def test_the_gate_remembers_no_more_than_one_span(rules: SpeechRules) -> None:
    gate = SpeechGate(rules, FRAME)
    for _ in range(40):
        gate.push(frames((0.9, 10_000)))
        assert len(gate._history) <= (rules.max_speech_ms + rules.min_silence_ms) / 10
