"""Words of the dictionary that were heard as other characters of their sound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.homophones import correct_homophones
from pipeline.values import Word

DOUBTED = 0.6
CHARACTER_MS = 200


def _words(text: str, probability: float = DOUBTED) -> list[Word]:
    starts = range(0, len(text) * CHARACTER_MS, CHARACTER_MS)
    return [Word(char, start, start + CHARACTER_MS, probability) for char, start in zip(text, starts, strict=True)]


def _corrected(text: str, probability: float = DOUBTED, protected: frozenset[int] = frozenset()) -> str:
    words, _ = correct_homophones(_words(text, probability), protected)
    return "".join(word.text for word in words)


@pytest.mark.parametrize(
    ("heard", "meant"),
    [
        ("植物进行光核作用的场所。", "植物进行光合作用的场所。"),
        ("业绿体和线力体", "叶绿体和线粒体"),
        ("染色体完成托养和糖核酸的复制", "染色体完成脱氧核糖核酸的复制"),
        ("什么是机械能手衡定律呢？", "什么是机械能守恒定律呢？"),
        ("一个纸角三角形的边长", "一个直角三角形的边长"),
    ],
)
def test_a_word_heard_as_characters_of_its_sound_is_written_right(heard: str, meant: str) -> None:
    assert _corrected(heard) == meant


@pytest.mark.parametrize(
    "text",
    [
        "今天我们来看一个基于显式评分的例子。",
        "这棵树的边集是由两部分组成的。",
        "主编赵敏静说，从遍历子树的过程中可以看出来。",
        "下午二时三十三分，我们开始上课。",
    ],
)
def test_text_that_was_heard_right_stays(text: str) -> None:
    assert _corrected(text, probability=0.99) == text


def test_the_surer_whisper_is_the_more_must_speak_against_it() -> None:
    assert _corrected("植物细胞还有细胞币。", probability=0.4) == "植物细胞还有细胞壁。"
    assert _corrected("植物细胞还有细胞币。", probability=0.95) == "植物细胞还有细胞币。"


def test_a_word_is_not_looked_for_across_a_mark() -> None:
    assert _corrected("这叫业，绿体是什么") == "这叫业，绿体是什么"


def test_what_a_term_of_the_course_covers_stays() -> None:
    assert _corrected("进行光核作用", protected=frozenset({3})) == "进行光核作用"


def test_a_change_says_what_where_by_which_rule_and_how_sure() -> None:
    _, (made,) = correct_homophones(_words("进行光核作用的"), frozenset())
    assert (made.before, made.after, made.rule) == ("光核作用", "光合作用", "word-same-tones")
    assert (made.start_ms, made.end_ms) == (400, 1200)
    assert 0.5 < made.score <= 1


@given(st.text("光核合作用叶业绿体守恒手衡定律的，。 aB3", max_size=40), st.floats(0, 1))
def test_every_word_keeps_its_time_and_its_length(text: str, probability: float) -> None:
    words = _words(text, probability)
    changed, made = correct_homophones(words, frozenset())
    assert [(word.start_ms, word.end_ms, len(word.text)) for word in changed] == [
        (word.start_ms, word.end_ms, len(word.text)) for word in words
    ]
    assert (changed == tuple(words)) == (not made)
