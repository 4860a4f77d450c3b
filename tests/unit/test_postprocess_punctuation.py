"""Marks at pauses, question marks, English sentence case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.punctuation import punctuate
from pipeline.postprocess.text import CLOSERS, MARKS, is_abbreviation
from pipeline.values import Word


def _words(*items: str | int) -> list[Word]:
    """Texts are words of 200 ms, numbers are pauses in ms."""
    words: list[Word] = []
    now_ms = 0
    for item in items:
        if isinstance(item, int):
            now_ms += item
        else:
            words.append(Word(item, now_ms, now_ms + 200, 0.9))
            now_ms += 200
    return words


def _spaced(text: str, pause_ms: int, rest: str) -> list[Word]:
    return _words(*text, pause_ms, *rest)


def _zh(words: list[Word], inside: frozenset[int] = frozenset(), next_start_ms: int | None = None) -> str:
    return "".join(word.text for word in punctuate(words, "zh", inside=inside, next_start_ms=next_start_ms))


def _en(*items: str | int) -> str:
    return "".join(word.text for word in punctuate(_words(*items), "en"))


@pytest.mark.parametrize(
    ("pause_ms", "text"),
    [
        (249, "物体运动方向不变。"),
        (250, "物体运动，方向不变。"),
        (499, "物体运动，方向不变。"),
        (500, "物体运动。方向不变。"),
    ],
)
def test_a_pause_without_a_mark_gets_one_by_its_length(pause_ms: int, text: str) -> None:
    assert _zh(_spaced("物体运动", pause_ms, "方向不变")) == text


def test_whispers_mark_stays_where_there_is_no_pause_and_where_the_pause_is_long() -> None:
    assert _zh(_words("物", "体，", "和", "力")) == "物体，和力。"
    assert _zh(_words("物", "体，", 900, "和", "力。")) == "物体，和力。"


def test_a_mark_one_character_off_the_pause_is_the_mark_of_that_pause() -> None:
    assert _zh(_words("物", "体，", "和", 300, "力", "量", "相", "同")) == "物体，和力量相同。"
    assert _zh(_words("物", "体", 300, "和，", "力", "量", "相", "同")) == "物体和，力量相同。"


def test_no_mark_is_added_inside_a_term() -> None:
    words = _words("勾", "股", 600, "定", "理")
    assert _zh(words, inside=frozenset({0, 1, 2})) == "勾股定理。"
    assert _zh(words) == "勾股。定理。"


def test_the_last_word_gets_a_period_unless_speech_goes_on_at_once_in_another_language() -> None:
    words = _words("我", "们", "用")
    assert _zh(words) == "我们用。"
    assert _zh(words, next_start_ms=650) == "我们用"
    assert _zh(words, next_start_ms=1_200) == "我们用。"


@pytest.mark.parametrize("text", ["你们听懂了吗", "什么是惯性呢", "它们是什么关系", "这个数等于多少", "为什么会这样"])
def test_a_clause_that_asks_ends_in_a_question_mark(text: str) -> None:
    assert _zh(_words(*text)) == text + "？"


@pytest.mark.parametrize("text", ["我们开始吧", "还没有讲呢", "我知道这是什么", "无论多少都可以", "看看有没有规律"])
def test_a_clause_that_only_sounds_like_a_question_ends_in_a_period(text: str) -> None:
    assert _zh(_words(*text)) == text + "。"


def test_the_question_is_judged_by_its_own_sentence_only() -> None:
    assert _zh(_spaced("你懂吗", 600, "我们继续")) == "你懂吗？我们继续。"


def test_doubled_marks_collapse_to_the_stronger_one_also_across_words() -> None:
    assert _zh(_words("好，。")) == "好。"
    assert _zh(_words("好，", "？", "走")) == "好？走。"


def test_a_space_between_clauses_becomes_a_comma_and_a_period_at_a_long_pause() -> None:
    assert _zh(_words("大家好", " 欢迎来到物理课")) == "大家好，欢迎来到物理课。"
    assert _zh(_words("大家好", 600, " 欢迎来到物理课")) == "大家好。欢迎来到物理课。"


def test_a_pause_between_two_latin_words_says_nothing_in_chinese() -> None:
    assert _zh(_words("用", " machine", 400, " learning", "来", "做")) == "用 machine learning来做。"


def test_a_quotation_that_is_closed_behind_its_mark_gets_no_second_mark() -> None:
    assert _zh(_words("他", "说：", "“好。”", 800, "然", "后")) == "他说：“好。”然后。"


def test_english_gets_a_period_before_a_long_pause_and_a_capital() -> None:
    assert _en("we", " stop", 700, " Then", " go") == "We stop. Then go."
    assert _en("we", " stop", 699, " Then", " go") == "We stop Then go."
    assert _en("we", " stop", 900, " then", " go") == "We stop then go."
    assert _en("and", " then", 900, " I", " go") == "And then I go."


def test_english_sentences_begin_with_a_capital_but_not_after_an_abbreviation() -> None:
    assert _en("hello.", " see", " e.g.", " this.", " right?", " yes.") == "Hello. See e.g. this. Right? Yes."


def test_a_word_with_its_own_capitals_keeps_them_at_the_start_of_a_sentence() -> None:
    assert _en("pH", " matters.", " mRNA", " too.") == "pH matters. mRNA too."


def test_a_lone_i_is_a_capital() -> None:
    assert _en("so", " i", " think", " i'm", " right,", " i.e.", " sure.") == "So I think I'm right, i.e. sure."


def test_other_languages_pass_as_they_are() -> None:
    words = _words(" guten", 900, " Tag")
    assert punctuate(words, "de") == tuple(words)


def test_an_initial_is_an_abbreviation_and_the_end_of_a_number_is_none() -> None:
    assert is_abbreviation(" J.")
    assert not is_abbreviation(" 3.5.")


_ITEMS = st.lists(
    st.tuples(st.sampled_from(["物", "力，", "能。", "吗", " x", " machine", "，", "好 "]), st.integers(0, 1_500)),
    max_size=30,
)


@given(_ITEMS)
def test_punctuation_adds_nothing_but_marks_and_keeps_every_time(items: list[tuple[str, int]]) -> None:
    words = _words(*(part for item in items for part in item))
    done = punctuate(words, "zh")

    def letters(given_words: object) -> str:
        texts = "".join(word.text for word in given_words)  # type: ignore[attr-defined]
        return "".join(char for char in texts if char not in MARKS | CLOSERS and not char.isspace())

    assert letters(done) == letters(words)
    assert {(word.start_ms, word.end_ms) for word in done} <= {(word.start_ms, word.end_ms) for word in words}


@given(_ITEMS)
def test_punctuating_twice_is_punctuating_once(items: list[tuple[str, int]]) -> None:
    once = punctuate(_words(*(part for item in items for part in item)), "zh")
    assert punctuate(once, "zh") == once
