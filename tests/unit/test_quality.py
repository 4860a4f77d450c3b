"""How likely a cue is right: what lowers its score, and by how much."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.quality import OBJECTION_ERRORS, judge_cues, media_quality
from pipeline.values import (
    Boundary,
    CueQuality,
    LedgerSpan,
    Outcome,
    Replacement,
    Sentence,
    Slice,
    SliceTranscript,
    Span,
    Word,
)


def _sentence(*probabilities: float, start_ms: int = 0, step_ms: int = 200) -> Sentence:
    words = tuple(
        Word("字", start_ms + at * step_ms, start_ms + (at + 1) * step_ms, probability)
        for at, probability in enumerate(probabilities)
    )
    return Sentence(words[0].start_ms, words[-1].end_ms, "", "zh", words)


def _slice(
    index: int, start_ms: int, end_ms: int, reason: str = "", attempts: int = 1, outcome: Outcome = Outcome.TRANSCRIBED
) -> tuple[Slice, SliceTranscript]:
    span = Span(start_ms, end_ms)
    piece = Slice("m", index, span, Boundary.SILENCE, (span,))
    return piece, SliceTranscript("m", index, "zh", 1.0, (), outcome, reason, attempts, 0)


def _one(
    sentence: Sentence, pair: tuple[Slice, SliceTranscript] | None = None, *replacements: Replacement
) -> CueQuality:
    pairs = [pair or _slice(0, 0, sentence.end_ms)]
    (quality,) = judge_cues([len(sentence.words)], [sentence], pairs, replacements)
    return quality


def test_the_errors_to_expect_are_what_the_recogniser_doubts() -> None:
    quality = _one(_sentence(0.9, 0.4, 1.0))
    assert (quality.expected_errors, quality.doubtful_words, quality.words) == (0.7, 1, 3)
    assert quality.score == pytest.approx(math.exp(-0.7), abs=1e-4)


def test_a_term_that_the_glossary_put_right_is_as_sure_as_its_rule() -> None:
    doubtful = _sentence(0.2, 0.2)
    sure = _one(doubtful, None, Replacement(0, 400, "购股", "勾股", "alias"))
    unsure = _one(doubtful, None, Replacement(0, 400, "购股", "勾股", "homophone", 0.5))
    assert (sure.expected_errors, sure.replacements, sure.doubtful_words) == (0.1, 1, 0)
    assert sure.expected_errors < unsure.expected_errors < _one(doubtful).expected_errors


@pytest.mark.parametrize("rule", ["number", "filler", "repeat"])
def test_a_number_in_digits_is_no_surer_than_it_was_heard(rule: str) -> None:
    doubtful = _sentence(0.2)
    assert _one(doubtful, None, Replacement(0, 200, "十三", "13", rule)) == _one(doubtful)


def test_speech_that_no_word_covers_costs_the_words_it_may_hold() -> None:
    gap = Sentence(0, 2200, "", "zh", (Word("好", 0, 200, 1.0), Word("。", 2000, 2200, 1.0)))
    quality = _one(gap)
    assert (quality.unheard_ms, quality.expected_errors) == (1800, 4.5)


def test_what_the_judge_objected_to_stands_with_the_cue() -> None:
    sentence = _sentence(1.0)
    objected = _one(sentence, _slice(0, 0, 200, "skipped speech"))
    assert (objected.objection, objected.expected_errors) == ("skipped speech", OBJECTION_ERRORS)
    assert _one(sentence, _slice(0, 0, 200, attempts=3)).objection == "transcribed on a retry"


def test_each_cue_is_judged_by_its_own_words() -> None:
    qualities = judge_cues([1, 2], [_sentence(0.5, 0.9), _sentence(0.8, start_ms=1000)], [_slice(0, 0, 400)], ())
    assert [(one.words, one.expected_errors) for one in qualities] == [(1, 0.5), (2, 0.3)]


def test_a_media_is_as_good_as_its_words_and_the_share_of_its_speech_that_has_any() -> None:
    qualities = judge_cues([4], [_sentence(0.5, 0.5, 1.0, 1.0)], [_slice(0, 0, 800)], ())
    ledger = [
        LedgerSpan(0, 6_000, Outcome.TRANSCRIBED, ""),
        LedgerSpan(6_000, 8_000, Outcome.FILTERED, "music"),
        LedgerSpan(8_000, 60_000, Outcome.SILENCE, ""),
    ]
    assert media_quality(qualities, ledger) == pytest.approx(0.75 * 0.75)
    assert media_quality([], [LedgerSpan(0, 60_000, Outcome.SILENCE, "")]) is None
    assert media_quality([], [LedgerSpan(0, 60_000, Outcome.FAILED, "")]) == 0.0


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 500), st.floats(0, 1)), max_size=4),
    st.sampled_from(["", "skipped speech"]),
)
def test_a_score_is_a_chance_and_falls_with_every_doubt(
    probabilities: list[float], changes: list[tuple[int, int, float]], reason: str
) -> None:
    replacements = [Replacement(start, start + length, "a", "b", "alias", score) for start, length, score in changes]
    sentence = _sentence(*probabilities)
    quality = _one(sentence, _slice(0, 0, 10_000, reason), *replacements)
    worse = _one(_sentence(*(0.5 * one for one in probabilities)), _slice(0, 0, 10_000, reason), *replacements)
    assert 0 <= worse.score <= quality.score <= 1
    assert quality.words == len(probabilities)
