"""Regrouping of words into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.sentences import LONGEST_SENTENCE_MS, split_sentences
from pipeline.values import Word


def _words(*items: str | int) -> list[Word]:
    words: list[Word] = []
    now_ms = 0
    for item in items:
        if isinstance(item, int):
            now_ms += item
        else:
            words.append(Word(item, now_ms, now_ms + 200, 0.9))
            now_ms += 200
    return words


def _texts(words: list[Word], language: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(words, language)]


def test_chinese_sentences_end_at_their_marks_and_not_inside_a_number() -> None:
    words = _words(*"圆周率是", "3", ".", "14", "。", "对", "吗？", "好！")
    assert _texts(words, "zh") == ["圆周率是3.14。", "对吗？", "好！"]


def test_english_sentences_do_not_end_in_abbreviations_and_numbers() -> None:
    words = _words(
        "Dr.",
        " Wu",
        " is",
        " in",
        " the",
        " U.S.",
        " with",
        " Fig.",
        " 2",
        " and",
        " 3.14.",
        " Really?",
        " Yes.",
    )
    assert _texts(words, "en") == ["Dr. Wu is in the U.S. with Fig. 2 and 3.14.", "Really?", "Yes."]


def test_a_variable_at_the_end_of_a_sentence_ends_it() -> None:
    assert _texts(_words("Solve", " for", " x.", " Then", " stop."), "en") == ["Solve for x.", "Then stop."]


def test_a_closing_quote_stays_with_its_sentence_and_an_opening_one_goes_to_the_next() -> None:
    assert _texts(_words("他说：", "“好。”", "“走", "吧。”"), "zh") == ["他说：“好。”", "“走吧。”"]


def test_a_sentence_has_the_times_of_its_first_and_last_word() -> None:
    first, second = split_sentences(_words(500, "走", "吧。", 300, "好。"), "zh")
    assert (first.start_ms, first.end_ms) == (500, 900)
    assert (second.start_ms, second.end_ms) == (1_200, 1_400)


def test_a_pause_of_two_seconds_ends_a_sentence() -> None:
    assert _texts(_words("物", 2_000, "体"), "zh") == ["物", "体"]
    assert _texts(_words("物", 1_999, "体"), "zh") == ["物体"]


def test_a_sentence_of_more_than_a_minute_is_cut_at_its_last_comma() -> None:
    words = _words(*(["啊"] * 239), "啊，", *(["呀"] * 100))
    assert [len(sentence.words) for sentence in split_sentences(words, "zh")] == [240, 100]


def test_a_long_sentence_without_a_mark_is_cut_at_its_widest_pause() -> None:
    words = _words(*(["啊"] * 250), 240, *(["呀"] * 100))
    assert [len(sentence.words) for sentence in split_sentences(words, "zh")] == [250, 100]


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("ja", ["今日は。", "力です。"]),
        ("de", [" Guten", " Tag.", " Los."]),
        ("yo", [" Bawo", " ni?", " Dara."]),
        ("haw", [" Aloha.", " ʻAe."]),
    ],
)
def test_languages_with_and_without_a_pipeline_of_their_own_are_split(language: str, texts: list[str]) -> None:
    assert len(_texts(_words(*texts), language)) == 2


def test_no_words_make_no_sentences() -> None:
    assert split_sentences([], "zh") == ()


def test_a_mark_that_begins_a_sentence_goes_and_three_dots_stay() -> None:
    assert _texts(_words("，", "好。", 3000, "、我。"), "zh") == ["好。", "我。"]
    assert _texts(_words(" ,", " so.", " ...and", " then."), "en") == ["so.", "...and then."]
    assert _texts(_words("。"), "zh") == []
    assert _texts(_words(" .5", " is", " half."), "en") == [".5 is half."]


@given(
    st.sampled_from(["zh", "en"]),
    st.lists(
        st.tuples(
            st.sampled_from(["物", " x.", "好。", "“吗", "？”", " Dr.", " 3.1", "...", " Then"]),
            st.integers(0, 3_000),
        )
    ),
)
def test_every_word_but_leading_marks_is_in_exactly_one_sentence_in_order(
    language: str, items: list[tuple[str, int]]
) -> None:
    words = _words(*(part for item in items for part in item))
    sentences = split_sentences(words, language)
    kept = [word for sentence in sentences for word in sentence.words]
    at_a_start = [word for word in words if word not in kept]
    assert all(word.text == "？”" for word in at_a_start)
    assert kept == [word for word in words if word not in at_a_start]
    assert all(not sentence.text.startswith("？") for sentence in sentences)
    assert all(sentence.end_ms - sentence.start_ms <= LONGEST_SENTENCE_MS for sentence in sentences)
