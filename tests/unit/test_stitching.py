"""Stitching: whatever order the slice transcripts come in, the media's order comes out."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import RetriableError
from pipeline.stitching import main_language, stitch
from pipeline.values import Boundary, Outcome, Segment, Slice, SliceTranscript, Span, Word


def piece(index: int, speech_ms: int = 1_000) -> Slice:
    start_ms = index * 10_000
    speech = (Span(start_ms + 200, start_ms + 200 + speech_ms),)
    return Slice("m", index, Span(start_ms, start_ms + speech_ms + 400), Boundary.SILENCE, speech)


def transcript(index: int, language: str = "zh", outcome: Outcome = Outcome.TRANSCRIBED) -> SliceTranscript:
    start_ms = index * 10_000
    words = (Word("好", start_ms, start_ms + 500, 0.9), Word("。", start_ms + 500, start_ms + 500, 0.9))
    segment = Segment(start_ms, start_ms + 500, "好。", words, -0.2, 0.0, 1.0, 0.0)
    return SliceTranscript("m", index, language, 1.0, (segment,), outcome, "", 1, 0)


@given(st.integers(0, 12), st.lists(st.integers(0, 20), max_size=30), st.randoms(use_true_random=False))
def test_any_order_with_any_repeated_or_foreign_transcripts_gives_the_medias_order(
    count: int, others: list[int], random: Random
) -> None:
    slices = [piece(index) for index in range(count)]
    came = [transcript(index) for index in [*range(count), *others]]
    random.shuffle(came)
    random.shuffle(slices)
    stitched = stitch(slices, came)
    assert [one.index for one, _ in stitched] == list(range(count))
    assert all(one.index == its.slice_index for one, its in stitched)


@given(st.integers(1, 30), st.data())
def test_a_missing_transcript_stops_the_media_and_is_named(count: int, data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, count - 1))
    came = [transcript(index) for index in range(count) if index != gone]
    with pytest.raises(RetriableError, match=rf"without a transcript: \[{gone}\].*same command"):
        stitch([piece(index) for index in range(count)], came)


def test_a_media_without_slices_is_stitched_to_nothing() -> None:
    assert stitch([], []) == ()


def test_word_times_are_snapped_to_the_speech_of_their_own_slice() -> None:
    ((_, first), (_, second)) = stitch([piece(0), piece(1)], [transcript(1), transcript(0)])
    assert [one.segments[0].start_ms for one in (first, second)] == [180, 10_180]
    assert [one.segments[0].words[0].start_ms for one in (first, second)] == [180, 10_180]


def test_the_main_language_is_that_of_most_speech_not_of_most_slices() -> None:
    slices = [piece(0, 1_000), piece(1, 1_000), piece(2, 5_000)]
    came = [transcript(0, "en"), transcript(1, "en"), transcript(2, "zh")]
    assert main_language(stitch(slices, came)) == "zh"


def test_what_was_filtered_does_not_vote_on_the_language() -> None:
    came = [transcript(0, "en"), transcript(1, "ko", Outcome.FILTERED)]
    assert main_language(stitch([piece(0, 1_000), piece(1, 9_000)], came)) == "en"


def test_without_transcribed_speech_there_is_no_language() -> None:
    assert main_language([]) == ""
    assert main_language(stitch([piece(0)], [transcript(0, "zh", Outcome.FILTERED)])) == ""
