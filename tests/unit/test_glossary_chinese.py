"""Chinese terms: written, under an alias, by sound; and what must stay as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypinyin import lazy_pinyin

from pipeline.glossary_file import load_glossary
from pipeline.postprocess.glossary import correct_terms
from pipeline.postprocess.relations import relations
from pipeline.postprocess.sound import in_context, near
from pipeline.postprocess.terms import Corrected, Glossary, Term
from pipeline.values import Word

_NAMES = """
勾股定理 加速度 有丝分裂 斜边 斜面 势能 合外力 多项式 整式 直角边 细胞核 孟德尔 摩擦力 动能定理 平方差公式
机械能守恒定律 直角三角形 乘积
"""
_COURSE = Glossary(tuple(Term(name, (), "zh") for name in _NAMES.split()))


def _words(text: str, pause_ms: int = 0) -> list[Word]:
    """A word a character, marks attached; ``pause_ms`` after each mark."""
    words: list[Word] = []
    now_ms = 0
    for char in text:
        if char in "，。、" and words:
            words[-1] = Word(words[-1].text + char, words[-1].start_ms, words[-1].end_ms, 0.9)
            now_ms += pause_ms
        else:
            words.append(Word(char, now_ms, now_ms + 200, 0.9))
            now_ms += 200
    return words


def _correct(text: str, glossary: Glossary = _COURSE, pause_ms: int = 0) -> Corrected:
    return correct_terms(_words(text, pause_ms), "zh", glossary)


def _text(corrected: Corrected) -> str:
    return "".join(word.text for word in corrected.words)


@pytest.mark.parametrize(
    ("heard", "written", "rule"),
    [
        ("今天学习购股定理。", "今天学习勾股定理。", "homophone"),
        ("物体的加速杜跟力成正比", "物体的加速度跟力成正比", "homophone"),
        ("细胞进行有丝分列的过程", "细胞进行有丝分裂的过程", "homophone"),
        ("它受到摩察力", "它受到摩擦力", "near-homophone"),
        ("蒙得尔的实验", "孟德尔的实验", "homophone"),
        ("用支角三角形", "用直角三角形", "homophone"),
        ("这个支角三角心", "这个直角三角形", "near-homophone"),
        ("细胞的有丝分离过程", "细胞的有丝分裂过程", "one-syllable"),
    ],
)
def test_a_misheard_term_is_written_right(heard: str, written: str, rule: str) -> None:
    corrected = _correct(heard)
    assert _text(corrected) == written
    assert [replacement.rule for replacement in corrected.replacements] == [rule]


def test_every_word_keeps_its_time_and_the_replacement_says_what_changed_where() -> None:
    words = _words("学购股定理。")
    corrected = correct_terms(words, "zh", _COURSE)
    assert [(word.start_ms, word.end_ms) for word in corrected.words] == [
        (word.start_ms, word.end_ms) for word in words
    ]
    (change,) = corrected.replacements
    assert (change.start_ms, change.end_ms, change.before, change.after) == (
        200,
        1_000,
        "购股定理",
        "勾股定理",
    )


@pytest.mark.parametrize(
    "text",
    [
        "他的成绩很好",
        "重点是能看懂",
        "这是能量守恒",
        "重力和外力的合力",
        "长城机械公司",
        "动量定理很重要",
        "平方和公式",
        "整十的数",
        "直角变成锐角",
        "这个细胞和那个细胞",
        "包括多项是这样的",
        "勾股定理和加速度",
    ],
)
def test_real_words_that_sound_like_a_term_stay(text: str) -> None:
    corrected = _correct(text)
    assert (_text(corrected), corrected.replacements) == (text, ())


def test_a_term_is_not_heard_across_a_sentence_mark_or_a_long_pause() -> None:
    assert not _correct("购股。定理").replacements
    pause = [
        *_words("购股"),
        *(Word(word.text, word.start_ms + 1_000, word.end_ms + 1_000, 0.9) for word in _words("定理")),
    ]
    assert not correct_terms(pause, "zh", _COURSE).replacements


def test_a_spurious_comma_inside_a_term_goes_if_there_is_no_pause() -> None:
    corrected = _correct("用购股，定理来算", pause_ms=249)
    assert _text(corrected) == "用勾股定理来算"
    assert corrected.replacements[0].before == "购股，定理"
    assert _text(_correct("用购股，定理来算", pause_ms=250)) == "用购股，定理来算"
    assert _text(_correct("用购股、定理来算")) == "用购股、定理来算"


def test_a_comma_inside_a_near_homophone_stays() -> None:
    assert not _correct("它受摩察，力").replacements


def test_words_of_several_characters_are_changed_in_place() -> None:
    words = [Word("学购", 0, 400, 0.9), Word("股定", 400, 800, 0.8), Word("理，", 800, 1_000, 0.7)]
    assert [word.text for word in correct_terms(words, "zh", _COURSE).words] == ["学勾", "股定", "理，"]


def test_the_words_inside_a_term_are_told_however_it_was_written() -> None:
    assert _correct("学购股定理了").inside == frozenset({1, 2, 3})
    assert _correct("学勾股定理了").inside == frozenset({1, 2, 3})


def test_the_longest_term_wins() -> None:
    glossary = Glossary((Term("定律", ("定率",), "zh"), Term("机械能守恒定律", (), "zh")))
    assert [change.after for change in _correct("机械能首恒定律", glossary).replacements] == ["机械能守恒定律"]


def test_an_alias_is_replaced_also_by_a_term_of_another_length() -> None:
    shorter = Glossary((Term("力", ("作用力度",), "zh"),))
    corrected = _correct("用作用力度推", shorter)
    assert [word.text for word in corrected.words] == ["用", "力", "推"]
    assert (corrected.words[1].start_ms, corrected.words[1].end_ms) == (200, 1_000)
    longer = Glossary((Term("卷积神经网络", ("卷网",), "zh"),))
    assert [word.text for word in _correct("用卷网做", longer).words] == ["用", "卷积神", "经网络", "做"]


def test_an_alias_does_not_cut_into_a_term_that_is_written_right() -> None:
    glossary = Glossary((Term("加速度", (), "zh"), Term("速率", ("度的",), "zh")))
    assert _text(_correct("加速度的大小", glossary)) == "加速度的大小"


def test_a_latin_term_gets_its_capitals_also_where_it_is_in_pieces() -> None:
    glossary = Glossary((Term("PyTorch"), Term("Java", ("加瓦",), "zh"), Term("MachineLearning", (), "zh")))
    words = [
        Word(text, at * 100, at * 100 + 100, 0.9)
        for at, text in enumerate(("用", " py", "torch", " 和", " javascript"))
    ]
    corrected = correct_terms(words, "zh", glossary)
    assert [word.text for word in corrected.words] == ["用", " Py", "Torch", " 和", " javascript"]
    assert [change.rule for change in corrected.replacements] == ["case"]
    assert _text(_correct("学加瓦", glossary)) == "学Java"
    spaced = [Word("用", 0, 100, 0.9), Word(" machine", 100, 200, 0.9), Word(" learning", 200, 300, 0.9)]
    assert _text(correct_terms(spaced, "zh", glossary)) == "用 Machine Learning"


def test_a_string_equally_near_to_two_terms_is_left_alone() -> None:
    glossary = Glossary((Term("甲型肝炎", (), "zh"), Term("假性肝炎", (), "zh")))
    assert _text(_correct("佳形肝炎", glossary)) == "佳形肝炎"


def test_terms_of_another_language_are_not_looked_for() -> None:
    assert not _correct("购股定理", Glossary((Term("勾股定理", (), "en"),))).replacements


def test_a_large_glossary_asks_for_more() -> None:
    filler = tuple(Term(f"第{at}项专名", (), "zh") for at in range(1_000))
    glossary = Glossary((*_COURSE.terms, *filler))
    assert _text(_correct("购股定理和鞋边", _COURSE)) == "勾股定理和斜边"
    assert _text(_correct("购股定理和鞋边", glossary)) == "勾股定理和鞋边"


@pytest.mark.parametrize(
    ("heard", "written"),
    [
        ("直角三角形的鞋边", "直角三角形的斜边"),
        ("直角边比协便短", "直角边比斜边短"),
        ("动能定理说，动能和试能可以转化", "动能定理说，动能和势能可以转化"),
        ("受到摩擦力和合外力，放在鞋面上，有加速度", "受到摩擦力和合外力，放在斜面上，有加速度"),
    ],
)
def test_terms_near_it_let_a_short_term_be_heard(heard: str, written: str) -> None:
    assert _text(_correct(heard)) == written
    assert not _correct(re.sub("直角三角形|直角边|动能定理|动能|摩擦力|合外力|加速度", "它们", heard)).replacements


@pytest.mark.parametrize(
    "text",
    [
        "直角三角形这一课，他的成绩很好",
        "摩擦力这一题，重点是能看懂",
        "斜边上的直角变成锐角",
        "有丝分裂时，细胞和细胞之间",
    ],
)
def test_common_words_stay_among_terms_too(text: str) -> None:
    assert _correct(text).replacements == ()


@pytest.mark.parametrize(
    "text", ["反函数的导数等于导数的倒数", "这个函数的导数，请看倒数第二行", "是奇数，不是级数，积分"]
)
def test_a_word_in_other_tones_than_the_term_stays_among_its_neighbours(text: str) -> None:
    glossary = Glossary(tuple(Term(term, (), "zh") for term in ("导数", "函数", "级数", "极限", "积分")))
    assert _correct(text, glossary).replacements == ()


def test_a_term_said_elsewhere_in_the_lecture_is_likelier_here() -> None:
    glossary = Glossary(tuple(Term(f"{name}", (), "zh") for name in ("斜边", "抛物线", "多项式")))
    far = "讲抛物线。" + "我们今天上午先把作业做完。" * 2
    alone = _correct(f"{far}它的鞋边", glossary)
    said = _correct(f"{far}斜边。它的鞋边", glossary)
    assert [change.score for change in alone.replacements] < [change.score for change in said.replacements]


def test_a_replacement_says_how_sure_it_is() -> None:
    (sure,) = _correct("今天学习购股定理。").replacements
    (spelled,) = _correct("学加瓦", Glossary((Term("Java", ("加瓦",), "zh"),))).replacements
    assert 0.99 < sure.score <= 1
    assert spelled.score == 1


def test_a_note_ties_two_terms_of_the_course() -> None:
    tied = relations(
        [Term("顶点", note="抛物线的最高处"), Term("抛物线"), Term("斜边", note="几何"), Term("中线", note="几何")]
    )
    assert tied.step("抛物线", "顶点") > 0 == tied.step("抛物线", "斜边")
    assert tied.step("斜边", "中线") > 0


@given(st.lists(st.text(alphabet="直角斜边函数", min_size=1, max_size=4), min_size=1, max_size=8, unique=True))
def test_a_walk_between_terms_ends_somewhere(names: list[str]) -> None:
    course = relations([Term(name) for name in names])
    assert sum(course.step(names[0], name) for name in names) == pytest.approx(1)


def test_near_sounds_are_folded_alike() -> None:
    pairs = [("zhi", "zi"), ("chu", "cu"), ("shan", "san"), ("nan", "lan"), ("jing", "jin"), ("fa", "hua")]
    assert all(near(one) == near(other) for one, other in pairs)
    assert near("ba") != near("pa")


@pytest.mark.parametrize("name", ["math", "physics", "biology"])
def test_no_clean_sentence_of_the_references_is_changed(shared_data: Path, name: str) -> None:
    glossary = load_glossary(shared_data / "lectures" / f"glossary_{name}.csv")
    lines = (json.loads(line) for line in (shared_data / "refs.jsonl").read_text().splitlines())
    texts = [line["text"] for line in lines if line["language"] == "zh"]
    for path in sorted((shared_data / "lectures").glob("zh_*.json")):
        texts += [sentence["text"] for sentence in json.loads(path.read_text())]
    assert len(texts) > 100
    assert [change for text in texts for change in _correct(text, glossary).replacements] == []


@given(st.text(alphabet="勾购股定理加速杜度的和，。 aX", max_size=30))
def test_correcting_twice_is_correcting_once(text: str) -> None:
    once = _correct(text)
    twice = correct_terms(once.words, "zh", _COURSE)
    assert twice.words == once.words
    assert twice.inside == once.inside


@given(st.text(alphabet="勾购股定理加速杜度的和，。 aX", max_size=30))
def test_by_sound_no_time_changes(text: str) -> None:
    words = _words(text)
    times = [(word.start_ms, word.end_ms) for word in words]
    assert [(word.start_ms, word.end_ms) for word in correct_terms(words, "zh", _COURSE).words] == times


@given(st.text("银行长重庆还没得了大学乐不中国〇", min_size=1, max_size=12))
def test_a_reading_follows_the_phrases_around_it(text: str) -> None:
    assert in_context(text) == tuple(lazy_pinyin(text))
