"""What glossaries are measured with: text as speech, terms as they may be misheard, and what is counted."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bench.clean_text import prose, spoken
from bench.false_replacements import count_false, count_mended
from bench.fields import FIELDS, field_glossary, nouns
from bench.misheard import garble, mishear
from pipeline.postprocess.sound import by_character, near

TERMS = [term.term for name in FIELDS for term in field_glossary(name).terms]


@given(st.sampled_from(TERMS), st.integers(0, 1_000))
def test_a_misheard_term_has_as_many_characters_and_nearly_the_sound(term: str, seed: int) -> None:
    heard = mishear(term, random.Random(seed))
    assert [near(one) for one in by_character(heard)] == [near(one) for one in by_character(term)]


@given(st.lists(st.sampled_from(TERMS), min_size=1, max_size=5), st.integers(0, 1_000))
def test_what_was_misheard_is_told_and_the_rest_of_the_text_stays(names: list[str], seed: int) -> None:
    text = "，".join(names)
    garbled = garble(text, field_glossary("history"), 1.0, random.Random(seed))
    back = garbled.text
    for heard, term in garbled.pairs:
        back = back.replace(heard, term, 1)
    assert back == text


@given(st.text(alphabet="力能，。 \n", max_size=40))
def test_spoken_text_loses_only_its_spaces_and_runs_forward(text: str) -> None:
    words = spoken(text)
    kept = "".join(word.text for word in words)
    assert kept.replace(" ", "").lstrip("，。") == "".join(text.split()).lstrip("，。")
    assert all(one.end_ms <= other.start_ms for one, other in pairwise(words))


def test_prose_is_the_running_text_without_code_formulas_and_markup() -> None:
    markdown = "## 标题\n```\n这是一段很长很长的代码\n```\n- **梯度**是[函数](x.md)的$\\nabla f$方向导数。\n"
    assert list(prose(markdown)) == ["梯度是函数的方向导数。"]


def test_clean_text_of_the_field_suffers_no_change_and_a_misheard_one_is_mended() -> None:
    text = "梯度下降每次沿梯度的反方向更新权重，学习率决定步长。损失函数越小，神经网络越准。\n" * 3
    glossary = field_glossary("machine learning")
    assert count_false([text], glossary).rules.total() == 0
    mended = count_mended([text], glossary)
    assert mended.misheard.total() > 0
    assert mended.right[False] == mended.misheard[False]


def test_a_large_glossary_has_so_many_terms_each_time_the_same() -> None:
    assert len(nouns(1_000).terms) == 1_000
    assert nouns(50) == nouns(50)
