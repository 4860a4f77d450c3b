from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InvalidInputError
from pipeline.store_rows import (
    checked_key,
    clean,
    cue_rows,
    ledger_rows,
    plan,
    plan_row,
    segments_from_json,
    segments_to_json,
    sentence_rows,
    sentences,
    slice_,
    slice_row,
    slice_transcript_row,
    word_rows,
)
from pipeline.store_tables import PLANS, SLICE_TRANSCRIPTS, SLICES
from pipeline.values import (
    Boundary,
    Cue,
    Ending,
    LedgerSpan,
    MediaPlan,
    Outcome,
    Segment,
    Sentence,
    Slice,
    SliceTranscript,
    Span,
    Word,
)

STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
TIME_MS = st.integers(0, 2**40)
CHANCE = st.floats(0, 1)
ENDINGS = st.none() | st.builds(Ending, CHANCE, CHANCE, TIME_MS)
WORDS = st.builds(Word, STORABLE, TIME_MS, TIME_MS, CHANCE, ending=ENDINGS)
SAID = st.builds(Word, STORABLE, TIME_MS, TIME_MS, st.floats(0, 1), st.sampled_from(["", "teacher", "speaker 2"]))
FLOATS = st.floats(allow_nan=False)
SEGMENTS = st.builds(
    Segment,
    TIME_MS,
    TIME_MS,
    STORABLE,
    st.lists(WORDS, max_size=3).map(tuple),
    FLOATS,
    FLOATS,
    FLOATS,
    FLOATS,
)
SENTENCES = st.builds(
    Sentence,
    TIME_MS,
    TIME_MS,
    STORABLE,
    st.sampled_from(["zh", "en"]),
    st.lists(SAID, max_size=3).map(tuple),
)
SPANS = st.builds(lambda start_ms, length_ms: Span(start_ms, start_ms + length_ms), TIME_MS, TIME_MS)
SPAN_LISTS = st.lists(SPANS, max_size=3).map(tuple)
SLICES_OF_M1 = st.builds(Slice, st.just("m1"), TIME_MS, SPANS, st.sampled_from(Boundary), SPAN_LISTS)
PLANS_OF_M1 = st.builds(
    MediaPlan,
    st.just("m1"),
    STORABLE,
    STORABLE,
    TIME_MS,
    TIME_MS,
    SPAN_LISTS,
    st.lists(STORABLE, max_size=2).map(tuple),
    TIME_MS,
)


@given(st.text())
def test_cleaned_text_can_be_encoded_and_holds_no_nul(text: str) -> None:
    cleaned = clean(text)
    assert b"\0" not in cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned


@given(STORABLE)
def test_text_that_postgresql_can_hold_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize("key", ["a\0b", "caf\udce9"])
def test_an_id_that_cannot_be_stored_is_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidInputError, match="an id must not hold") as caught:
        checked_key(key)
    assert caught.value.source == ascii(key)


@given(st.lists(SEGMENTS, max_size=3).map(tuple))
def test_segments_come_back_from_json_as_they_were(segments: tuple[Segment, ...]) -> None:
    assert segments_from_json(segments_to_json(segments)) == segments


@given(st.lists(SENTENCES, max_size=4).map(tuple))
def test_sentences_come_back_from_their_rows_with_their_words(given_: tuple[Sentence, ...]) -> None:
    assert sentences(sentence_rows(given_), word_rows(given_)) == given_


@given(SLICES_OF_M1)
def test_a_slice_comes_back_from_its_row(given_: Slice) -> None:
    assert slice_("m1", slice_row(given_, "s1")[1:]) == given_


@given(PLANS_OF_M1)
def test_a_plan_comes_back_from_its_row(given_: MediaPlan) -> None:
    assert plan("m1", plan_row(given_)) == given_


def test_a_warning_that_cannot_be_stored_is_kept_readably() -> None:
    warned = MediaPlan("m1", "s1", "a1", 0, 0, (), ("caf\udce9\0.mp4 is short",), 0)
    assert plan("m1", plan_row(warned)).warnings == ("caf\ufffd.mp4 is short",)


def test_each_row_has_a_value_for_each_column() -> None:
    whole = Slice("m1", 0, Span(0, 1), Boundary.END, ())
    transcript = SliceTranscript("m1", 0, "zh", 1.0, (), Outcome.SILENCE, "", 1, 1)
    assert len(slice_row(whole, "s1")) == len(SLICES.columns)
    assert len(slice_transcript_row(transcript, "s1", "a1")) == len(SLICE_TRANSCRIPTS.columns)
    assert len(plan_row(MediaPlan("m1", "s1", "a1", 0, 0, (), (), 0))) == len(PLANS.columns)


def test_a_cue_has_the_language_of_the_sentence_that_it_begins_in() -> None:
    spoken = [Sentence(1000, 2000, "你好", "zh", ()), Sentence(2000, 4000, "hello", "en", ())]
    cues = [Cue(start, start + 100, ("x",)) for start in (0, 1000, 1999, 2000, 3900)]
    assert [row[4] for row in cue_rows(cues, spoken, "fr")] == ["fr", "zh", "zh", "en", "en"]


def test_a_cue_is_searched_with_the_beginning_of_the_cues_after_it() -> None:
    cues = [Cue(0, 1, ("first",)), Cue(1, 2, ("second", "line")), Cue(2, 3, ("x" * 100,))]
    following = [row[5] for row in cue_rows(cues, (), "en")]
    assert following[0].startswith("second\nline x")
    assert len(following[0]) == 40
    assert following[2] == ""


def test_an_empty_ledger_span_gives_way_to_the_one_that_starts_with_it() -> None:
    empty = LedgerSpan(500, 500, Outcome.FAILED, "")
    full = LedgerSpan(500, 900, Outcome.SILENCE, "")
    assert ledger_rows([full, empty]) == ledger_rows([empty, full]) == [(500, 900, "silence", "")]
