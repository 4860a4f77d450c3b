"""What engines have in common: prompts, the choice of a language, words on the media clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.hypotheses import (
    MAX_PROMPT_TOKENS,
    Answer,
    hypothesis_of,
    likeliest_languages,
    prompt_tokens,
    require_english,
    without_stretches,
    words_of,
)
from pipeline.errors import UsageError
from pipeline.transcription import Decoding, Request
from pipeline.values import Boundary, Ending, Slice, SliceAudio, Span, Word


class Letters:
    """A tokenizer of one token a character."""

    sot_prev, no_timestamps = 1, 2
    sot_sequence = (3, 4, 5)

    def encode(self, text: str) -> list[int]:
        return [1_000 + ord(letter) for letter in text]


def request(media_id: str = "a", language: str | None = None, start_ms: int = 10_000) -> Request:
    span = Span(start_ms, start_ms + 4_000)
    piece = Slice(media_id, 0, span, Boundary.SILENCE, (span,))
    return Request(SliceAudio(piece, np.zeros(64_000, np.float32)), language, {})


def timed(word: str, start: float, end: float) -> dict[str, object]:
    return {"word": word, "tokens": [7], "start": start, "end": end, "probability": 0.5}


def test_without_a_sentence_the_prompt_only_asks_for_a_transcript() -> None:
    assert prompt_tokens(Letters(), "") == [3, 4, 5, 2]


@given(st.text(min_size=1, max_size=400))
def test_a_sentence_stands_before_the_question_and_is_cut_to_what_fits(sentence: str) -> None:
    prompt = prompt_tokens(Letters(), sentence)
    assert prompt[0] == Letters.sot_prev
    assert prompt[-4:] == [3, 4, 5, 2]
    assert prompt[1:-4] == Letters().encode(" " + sentence)[:MAX_PROMPT_TOKENS]


def test_a_certain_slice_keeps_its_language_and_an_uncertain_one_follows_its_media() -> None:
    requests = [request(), request(), request(), request("b")]
    scores = [{"zh": 0.9, "en": 0.1}, {"zh": 0.8, "en": 0.2}, {"zh": 0.4, "en": 0.45}, {"zh": 0.4, "en": 0.45}]
    assert likeliest_languages(requests, scores) == [("zh", 0.9), ("zh", 0.8), ("zh", 0.4), ("en", 0.45)]


def test_a_language_that_was_asked_for_is_not_doubted() -> None:
    assert likeliest_languages([request(language="en")], [{"zh": 1.0, "en": 0.0}]) == [("en", 1.0)]


def test_an_english_model_is_refused_another_language() -> None:
    require_english([None, "en"])
    with pytest.raises(UsageError, match="'zh'"):
        require_english(["en", "zh"])


def test_words_lie_on_the_media_clock_with_their_punctuation() -> None:
    words = words_of([timed(" Good", 0.0, 0.5), timed(".", 0.5, 0.6), timed(" Day", 1.0, 1.4)], request().audio)
    assert words == (Word(" Good.", 10_000, 10_500, 0.5), Word(" Day", 11_000, 11_400, 0.5))


def test_a_word_keeps_what_was_heard_after_it_and_before_its_mark() -> None:
    told = timed(" Good", 0.0, 0.5) | {"marks": (0.123, 0.8)}
    words = words_of([told, timed(".", 0.5, 0.6) | {"marks": (0.0, 0.0)}], request().audio)
    assert words == (Word(" Good.", 10_000, 10_500, 0.5, ending=Ending(0.123, 0.8, 0)),)


@given(st.lists(st.tuples(st.floats(0, 40), st.floats(0, 40)), max_size=6))
def test_no_word_leaves_its_slice_or_ends_before_it_begins(times: list[tuple[float, float]]) -> None:
    span = request().audio.slice.span
    for word in words_of([timed(" x", *each) for each in times], request().audio):
        assert span.start_ms <= word.start_ms <= word.end_ms <= span.end_ms


def test_a_text_without_words_lies_at_the_start_of_its_slice() -> None:
    made = hypothesis_of(request(), ("en", 0.7), Answer("", -0.5, 0.9), (), Decoding(temperature=0.4))
    assert (made.language, made.language_probability) == ("en", 0.7)
    segment = made.segment
    assert (segment.start_ms, segment.end_ms, segment.compression_ratio) == (10_000, 10_000, 0.0)
    assert (segment.avg_logprob, segment.no_speech_probability, segment.temperature) == (-0.5, 0.9, 0.4)


def test_a_text_that_repeats_itself_compresses_well() -> None:
    words = (Word(" a", 10_200, 10_400, 1.0),)
    ratio = hypothesis_of(request(), ("en", 1.0), Answer("again " * 60, 0.0, 0.0), words, Decoding()).segment
    assert ratio.compression_ratio > 10
    assert (ratio.start_ms, ratio.end_ms) == (10_200, 10_400)


def aligned(*words: tuple[str, float, float]) -> list[dict[str, Any]]:
    return [{"word": word, "start": start, "end": end, "tokens": [1], "probability": 1.0} for word, start, end in words]


def spans(words: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    return [(round(word["start"], 3), round(word["end"], 3)) for word in words]


def test_a_word_or_a_mark_that_is_drawn_over_the_pause_after_a_sentence_is_cut_to_twice_the_median() -> None:
    said = ("好", 0.0, 0.2), ("。", 0.2, 1.2), ("我", 1.2, 3.0), ("们", 3.0, 3.2), ("去", 3.2, 3.4)
    assert spans(without_stretches(aligned(*said))) == [(0.0, 0.2), (0.2, 0.6), (2.6, 3.0), (3.0, 3.2), (3.2, 3.4)]


def test_a_long_word_inside_a_sentence_keeps_its_time() -> None:
    said = ("a", 0.0, 0.1), (" long", 0.1, 2.0), (" word", 2.0, 2.1), (".", 2.1, 2.2)
    assert spans(without_stretches(aligned(*said))) == [(start, end) for _, start, end in said]


@given(st.lists(st.tuples(st.sampled_from(["我", "。", " so", "?", ","]), st.integers(0, 60))))
def test_no_word_is_moved_out_of_its_time_nor_out_of_its_order(said: list[tuple[str, int]]) -> None:
    edges = list(accumulate((frames * 0.02 for _, frames in said), initial=0.0))
    before = aligned(*((word, *pair) for (word, _), pair in zip(said, pairwise(edges), strict=True)))
    after = without_stretches(before)
    assert [word["word"] for word in after] == [word for word, _ in said]
    for old, new in zip(before, after, strict=True):
        assert old["start"] - 1e-9 <= new["start"] <= new["end"] + 1e-9 <= old["end"] + 2e-9
