"""Word times: words are moved to the onsets and offsets of speech, and none is lost, turned round or made longer."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.values import Boundary, Outcome, Segment, Slice, SliceTranscript, Span, Word
from pipeline.word_times import OFFSET_LATE_MS, ONSET_LATE_MS, REACH_MS, snap_to_speech, snap_words

END_MS = 30_000


def ordered(edges: list[int]) -> list[tuple[int, int]]:
    edges = sorted(edges)
    return list(zip(edges[::2], edges[1::2], strict=False))


times = st.integers(0, END_MS)
words = st.lists(st.tuples(times, st.sampled_from(["好", "。", " word", "a."])), max_size=30).map(
    lambda drawn: [
        Word(drawn[at][1], start_ms, end_ms, at / 100)
        for at, (start_ms, end_ms) in enumerate(ordered([time for time, _ in drawn]))
    ]
)
"""As an engine gives them: in order, not overlapping, apart or touching, often without any length."""
speech = st.lists(times, max_size=16, unique=True).map(
    lambda drawn: [Span(start_ms, end_ms) for start_ms, end_ms in ordered(drawn)]
)


def said(*timed: tuple[str, int, int]) -> list[Word]:
    return [Word(text, start_ms, end_ms, 0.9) for text, start_ms, end_ms in timed]


def spans_of(snapped: tuple[Word, ...]) -> list[tuple[int, int]]:
    return [(word.start_ms, word.end_ms) for word in snapped]


@given(words, speech)
def test_every_word_is_kept_in_its_order_those_without_length_too(given_words: list[Word], heard: list[Span]) -> None:
    snapped = snap_words(given_words, heard)
    assert [(word.text, word.probability) for word in snapped] == [(w.text, w.probability) for w in given_words]


@given(words, speech)
def test_no_word_runs_backwards_or_into_the_next_one(given_words: list[Word], heard: list[Span]) -> None:
    snapped = snap_words(given_words, heard)
    assert all(word.start_ms <= word.end_ms for word in snapped)
    assert all(before.end_ms <= after.start_ms for before, after in pairwise(snapped))


@given(words, speech)
def test_no_word_starts_before_the_first_onset(given_words: list[Word], heard: list[Span]) -> None:
    onset_ms = max(0, heard[0].start_ms - ONSET_LATE_MS) if heard else 0
    assert all(word.start_ms >= onset_ms for word in snap_words(given_words, heard))


@given(words, speech)
def test_no_word_that_was_heard_ends_after_the_last_offset(given_words: list[Word], heard: list[Span]) -> None:
    for word in snap_words(given_words, heard):
        assert not heard or word.end_ms <= max(word.start_ms, heard[-1].start_ms, heard[-1].end_ms - OFFSET_LATE_MS)


def test_a_pause_goes_to_the_boundary_nearest_to_it() -> None:
    given_words = said(("one", 0, 1_000), (" two", 1_000, 2_000), (" three", 2_000, 3_000))
    snapped = snap_words(given_words, [Span(20, 1_030), Span(1_420, 3_030)])
    assert spans_of(snapped) == [(0, 1_000), (1_400, 2_000), (2_000, 3_000)]
    snapped = snap_words(given_words, [Span(20, 2_030), Span(2_420, 3_030)])
    assert spans_of(snapped) == [(0, 1_000), (1_000, 2_000), (2_400, 3_000)]


def test_a_pause_prefers_a_boundary_with_a_mark() -> None:
    given_words = said(("one.", 0, 1_000), (" two", 1_000, 1_100), (" three", 1_500, 2_000))
    assert spans_of(snap_words(given_words, [Span(20, 1_130), Span(1_420, 2_030)]))[1] == (1_400, 1_500)


def test_a_word_drawn_over_a_pause_is_said_after_it() -> None:
    """As the alignment does it: the word before ends early, and the next one fills the silence."""
    given_words = said(
        ("the", 0, 1_000), (" exhibition", 1_000, 1_700), (" in", 1_700, 2_420), (" being", 2_420, 3_000)
    )
    snapped = snap_words(given_words, [Span(20, 1_980), Span(2_360, 3_030)])
    assert spans_of(snapped)[1:3] == [(1_000, 1_950), (2_340, 2_420)]


def test_a_word_with_a_mark_behind_it_is_said_before_the_pause_that_it_is_drawn_over() -> None:
    given_words = said(("in", 0, 1_000), (" 1462,", 1_000, 2_420), (" imitates", 2_420, 3_000))
    snapped = snap_words(given_words, [Span(20, 1_930), Span(2_360, 3_030)])
    assert spans_of(snapped)[1:] == [(1_000, 1_900), (2_340, 3_000)]


def test_a_digit_without_time_shares_that_of_the_word_before_it() -> None:
    given_words = said(("等于", 0, 400), ("3", 400, 600), (".", 600, 600), ("14", 600, 600), ("米", 600, 800))
    assert spans_of(snap_words(given_words, [Span(20, 830)])) == [
        (0, 400),
        (400, 450),
        (450, 500),
        (500, 600),
        (600, 800),
    ]


@given(words, speech)
def test_a_word_is_left_without_time_only_where_no_word_beside_it_has_any(
    given_words: list[Word], heard: list[Span]
) -> None:
    snapped = snap_words(given_words, heard)
    for before, after in pairwise(snapped) if heard else ():
        lengths = [before.end_ms - before.start_ms, after.end_ms - after.start_ms]
        assert before.end_ms < after.start_ms or all(lengths) or max(lengths) < len(before.text + after.text) * 30


def test_a_pause_far_from_every_boundary_moves_no_word() -> None:
    given_words = said(("one", 20, 5_000), (" two", 5_000, 9_000))
    far_ms = 5_000 + REACH_MS + 200
    snapped = snap_words(given_words, [Span(40, far_ms), Span(far_ms + 300, 9_030)])
    assert spans_of(snapped) == [(20, 5_000), (5_000, 9_000)]


def test_a_word_that_begins_long_after_the_onset_stays_where_it_was_heard() -> None:
    assert spans_of(snap_words(said(("late", 5_000, 6_000)), [Span(1_000, 6_030)])) == [(5_000, 6_000)]


def test_without_words_or_without_speech_nothing_is_moved() -> None:
    given_words = said(("one", 100, 200))
    assert snap_words(given_words, []) == tuple(given_words)
    assert snap_words([], [Span(0, 100)]) == ()


def test_a_segment_begins_and_ends_with_its_words() -> None:
    segment = Segment(900, 2_600, "你好", tuple(said(("你", 900, 1_300), ("好", 1_300, 2_600))), -0.2, 0, 1, 0)
    empty = Segment(3_000, 3_500, "", (), -0.2, 0, 1, 0)
    transcript = SliceTranscript("m", 0, "zh", 1.0, (segment, empty), Outcome.TRANSCRIBED, "", 1, 0)
    piece = Slice("m", 0, Span(800, 3_600), Boundary.SILENCE, (Span(1_020, 2_530),))
    snapped, untouched = snap_to_speech(transcript, piece).segments
    assert (snapped.start_ms, snapped.end_ms) == (1_000, 2_500)
    assert untouched == empty
