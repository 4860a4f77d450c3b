"""The sentence that Whisper is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.prompt import prompt_sentence, tokens_at_most
from pipeline.postprocess.terms import Glossary, Term


def _glossary(*terms: str, language: str = "zh") -> Glossary:
    return Glossary(tuple(Term(term, (), language) for term in terms))


def test_chinese_terms_stand_in_whole_sentences_of_six() -> None:
    text = prompt_sentence(_glossary(*"甲乙丙丁戊己庚辛"), "zh", 100)
    assert text == "本节课讲甲、乙、丙、丁、戊和己。接着讲庚和辛。"


def test_english_terms_stand_in_whole_sentences() -> None:
    text = prompt_sentence(_glossary("rank", "basis", language="en"), "en", 100)
    assert text == "In this lecture we cover rank and basis."


def test_terms_of_another_language_are_left_out() -> None:
    mixed = Glossary((Term("rank", (), "en"), Term("斜边", (), "zh"), Term("DNA")))
    assert prompt_sentence(mixed, "zh", 100) == "本节课讲斜边和DNA。"


@pytest.mark.parametrize(("language", "end"), [("zh", "："), ("en", ".")])
def test_without_terms_it_is_a_generic_punctuated_sentence(language: str, end: str) -> None:
    assert prompt_sentence(Glossary.empty(), language, 200).endswith(end)


def test_another_language_or_too_little_room_gives_nothing() -> None:
    assert prompt_sentence(Glossary.empty(), "de", 100) == ""
    assert prompt_sentence(_glossary("机械能守恒定律"), "zh", 5) == ""


@pytest.mark.parametrize(
    ("title", "first"),
    [("第三讲：勾股定理", "勾股定理"), ("三角形的面积", "直角三角形"), ("03", "抛物线"), ("", "抛物线")],
)
def test_where_room_is_short_the_terms_of_the_title_come_first(title: str, first: str) -> None:
    course = _glossary("抛物线", "配方法", "直角三角形", "勾股定理", "斜边")
    assert prompt_sentence(course, "zh", 16, title).startswith(f"本节课讲{first}")
    assert sorted(prompt_sentence(course, "zh", 100, title)) == sorted(prompt_sentence(course, "zh", 100))


@given(st.lists(st.text(alphabet="力能量定理", min_size=1, max_size=8), max_size=30), st.integers(0, 120))
def test_it_never_exceeds_its_bound_and_cuts_no_term(terms: list[str], max_tokens: int) -> None:
    text = prompt_sentence(_glossary(*terms), "zh", max_tokens)
    assert tokens_at_most(text) <= max_tokens
    listed = text.replace("本节课讲", "").replace("接着讲", "、").replace("和", "、").replace("。", "").split("、")
    assert not text.startswith("本节课讲") or set(listed) - {""} <= set(terms)
