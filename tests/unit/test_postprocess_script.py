"""Folding of characters, widths, marks and spaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.script import fold_marks, fold_script, fold_width, stray_spaces
from pipeline.values import Word


def _words(*texts: str) -> list[Word]:
    return [Word(text, at * 200, at * 200 + 180, 0.9) for at, text in enumerate(texts)]


def _joined(*texts: str, language: str = "zh") -> str:
    return "".join(word.text for word in fold_script(_words(*texts), language))


def test_traditional_characters_are_simplified_and_words_keep_their_times() -> None:
    words = _words("物", "體", "的", "質", "量，")
    folded = fold_script(words, "zh")
    assert [word.text for word in folded] == ["物", "体", "的", "质", "量，"]
    assert [(word.start_ms, word.end_ms) for word in folded] == [(word.start_ms, word.end_ms) for word in words]


def test_a_phrase_is_converted_as_a_whole_though_its_characters_are_words() -> None:
    assert _joined("乾", "坤") == "乾坤"
    assert _joined("乾", "燥") == "干燥"


@pytest.mark.parametrize("language", ["en", "ja"])
def test_other_languages_pass_as_they_are(language: str) -> None:
    assert _joined("體，", " ３", language=language) == "體， ３"


def test_a_half_width_mark_in_its_own_word_becomes_full_width() -> None:
    assert _joined("大", "家", "好", ",", "开", "始", ".") == "大家好，开始。"


@pytest.mark.parametrize("text", ["圆周率是3.14", "用Node.js写", "比例是3:4", "e.g. this", "嗯...", "共1,000个"])
def test_marks_inside_numbers_and_latin_text_stay(text: str) -> None:
    assert fold_marks(text) == text


def test_a_mark_between_latin_and_chinese_is_full_width() -> None:
    assert fold_marks("学了Python,再学C!然后?") == "学了Python，再学C！然后？"


def test_full_width_digits_and_letters_are_half_width() -> None:
    assert fold_width("ＡＢＣ１２３，。") == "ABC123，。"


def test_spaces_between_characters_vanish_and_a_space_between_clauses_stays() -> None:
    assert _joined("勾", " 股", " 定", " 理") == "勾股定理"
    assert _joined("今天", " 我们", " 学习") == "今天我们学习"
    assert _joined("大家好", " 欢迎来到物理课") == "大家好 欢迎来到物理课"


def test_spaces_around_latin_words_stay_and_those_beside_full_width_marks_vanish() -> None:
    assert _joined("用", " Python", " 编程，", " 很", "好") == "用 Python 编程，很好"


def test_a_word_that_was_only_a_space_is_dropped() -> None:
    assert [word.text for word in fold_script(_words("好", " ", "的"), "zh")] == ["好", "的"]


@given(st.text(alphabet="物體力 ,.?!，。Ａ3a", max_size=40))
def test_folding_marks_and_widths_keeps_the_number_of_characters(text: str) -> None:
    assert len(fold_marks(fold_width(text))) == len(text)


@given(st.lists(st.text(alphabet="物體力 ,.?!，。Ａ3a", min_size=1, max_size=4), max_size=20))
def test_folding_twice_is_folding_once(texts: list[str]) -> None:
    once = fold_script(_words(*texts), "zh")
    twice = fold_script(once, "zh")
    assert [word.text for word in twice] == [word.text for word in once]


@given(st.text(alphabet="物力 ，a", max_size=30))
def test_only_spaces_are_stray(text: str) -> None:
    assert all(text[position].isspace() for position in stray_spaces(text))
