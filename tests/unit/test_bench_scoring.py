"""The benchmark's judge: what it counts as an error, as a right mark, as a late sentence."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.folding import Mark, tokens_of
from bench.numerals import en_cardinal, readings, zh_cardinal
from bench.scoring import ErrorCount, MarkCount, Score, StartErrors, marks_wanted, percentile, score, start_errors
from bench.values import Hypothesis, Item, Timed

ZH_TEXT = st.text(alphabet="直角三形勾股定理斜边，。？ 二十", max_size=40)


def _item(text: str, language: str, sentences: tuple[Timed, ...] = (), *, is_punctuated: bool = True) -> Item:
    return Item("item", Path("item.wav"), language, 60_000, text, is_punctuated, sentences)


def _shown(*texts: str) -> Hypothesis:
    return Hypothesis(tuple(Timed(text, 2000 * n, 2000 * n + 1900) for n, text in enumerate(texts)), ())


def _judge(reference: str, heard: str, language: str) -> Score:
    shown = _shown(heard)
    return score(_item(reference, language), shown, shown)


def _characters(text: str) -> tuple[Timed, ...]:
    return tuple(Timed(c, 100 * n, 100 * n + 100) for n, c in enumerate(text))


@pytest.mark.parametrize(
    ("reference", "heard", "language", "errors"),
    [
        ("勾股定理。", "勾股定理", "zh", 0),
        ("勾股定理", "勾鼓定理", "zh", 1),
        ("这个结论很美丽", "這個結論很美麗", "zh", 0),
        ("三加四", "３加4", "zh", 0),
        ("一千二百个", "1200个", "zh", 0),
        ("二零二三年", "2023年", "zh", 0),
        ("有两个二", "有2个二", "zh", 0),
        ("百分之八十五", "85%", "zh", 0),
        ("九加十六等于二十五", "9+16=25", "zh", 0),
        ("三、四、五", "3,4,5", "zh", 0),
        ("x的平方", "x²", "zh", 0),
        ("x squared", "x²", "en", 0),
        ("一点五", "1.5", "zh", 0),
        ("One thousand two hundred.", "1,200", "en", 0),
        ("two point five", "2.5", "en", 0),
        ("in nineteen sixty-eight", "In 1968,", "en", 0),
        ("In 1968", "in nineteen sixty eight", "en", 0),
        ("three hundred and five", "305", "en", 0),
        ("the twenty-first century", "The 21st century", "en", 0),
        ("Newton’s law", "newton's LAW!", "en", 0),
        ("force equals mass", "force is mass times", "en", 2),
    ],
)
def test_the_same_thing_written_another_way_is_no_error(reference: str, heard: str, language: str, errors: int) -> None:
    assert _judge(reference, heard, language).error.errors == errors


def test_a_number_that_is_wrong_is_an_error() -> None:
    assert _judge("二十五", "26", "zh").error == ErrorCount(1, 3)


def test_a_text_that_was_not_heard_is_all_errors() -> None:
    nothing = Hypothesis((), ())
    assert score(_item("勾股定理", "zh"), nothing, nothing).error.rate == 1.0


@given(ZH_TEXT)
def test_a_text_is_without_fault_against_itself(text: str) -> None:
    judged = _judge(text, text, "zh")
    assert judged.error.errors == 0
    assert judged.marks.right == judged.marks.given == judged.marks.expected


@given(ZH_TEXT, ZH_TEXT)
def test_errors_do_not_exceed_the_longer_text_and_marks_not_what_was_given(one: str, other: str) -> None:
    judged = _judge(one, other, "zh")
    longer = max(len(tokens_of([Timed(text, 0, 1)], "zh")) for text in (one, other))
    assert 0 <= judged.error.errors <= longer
    assert judged.marks.right <= min(judged.marks.given, judged.marks.expected)


@given(ZH_TEXT, st.lists(st.integers(1, 5), min_size=1, max_size=20))
def test_where_a_text_is_cut_into_words_does_not_change_its_tokens(text: str, sizes: list[int]) -> None:
    cuts = [sum(sizes[:n]) for n in range(len(sizes) + 1)]
    parts = [*(text[a:b] for a, b in pairwise(cuts)), text[cuts[-1] :]]
    pieces = [Timed(part, 0, 1) for part in parts]
    whole = tokens_of([Timed(text, 0, 1)], "zh")
    assert [(t.text, t.mark) for t in tokens_of(pieces, "zh")] == [(t.text, t.mark) for t in whole]


def test_a_number_cut_across_words_is_read_as_one() -> None:
    pieces = [Timed("1", 0, 1), Timed("6", 1, 2), Timed("米", 2, 3)]
    assert [(token.text, token.piece) for token in tokens_of(pieces, "zh")] == [
        ("十", 0),
        ("六", 0),
        ("米", 2),
    ]


def test_a_comma_for_a_full_stop_is_wrong_and_a_full_stop_for_a_question_mark_is_not() -> None:
    assert _judge("你好。再见。", "你好，再见。", "zh").marks == MarkCount(1, 2, 2)
    asked = _judge("对吗？对。", "对吗。对。", "zh")
    assert asked.marks.f1 == 1.0
    assert asked.questions == MarkCount(0, 0, 1)


def test_a_mark_counts_after_a_misheard_character_and_not_one_character_off() -> None:
    assert _judge("斜边，直角", "协变，直角", "zh").marks.f1 == 1.0
    assert _judge("斜边，直角", "斜，边直角", "zh").marks.right == 0


def test_a_reference_without_marks_gives_no_punctuation_figure() -> None:
    shown = _shown("你好。")
    assert math.isnan(score(_item("你好", "zh", is_punctuated=False), shown, shown).marks.f1)


def test_the_start_error_is_the_distance_to_the_word_that_begins_the_sentence() -> None:
    sentences = (Timed("大家好。", 50, 400), Timed("看斜边。", 500, 800))
    assert start_errors(sentences, _characters("大家好。看斜边。"), "zh", joint="") == StartErrors((50, 100), 0)


def test_a_sentence_inside_a_cue_comes_on_the_screen_when_the_cue_does() -> None:
    sentences = (Timed("大家好。", 1000, 1900), Timed("看斜边。", 5000, 6000))
    cues = [Timed("大家好。看斜边。", 900, 7000)]
    assert start_errors(sentences, cues, "zh", joint="\n").errors_ms == (100, 4100)


def test_a_sentence_that_was_not_heard_is_missed_and_shifts_no_other() -> None:
    sentences = (Timed("大家好。", 0, 300), Timed("看斜边。", 400, 900), Timed("再见。", 1000, 1400))
    words = (*_characters("大家好。"), Timed("再", 1010, 1100), Timed("见", 1100, 1200))
    assert start_errors(sentences, words, "zh", joint="") == StartErrors((0, 10), 1)


def test_a_system_without_word_times_has_no_word_start_error() -> None:
    assert start_errors((Timed("好", 0, 1),), (), "zh", joint="") == StartErrors()


def test_cues_are_judged_by_the_profile_of_their_language() -> None:
    long_line = "a" * 40
    assert "line_too_long" not in _judge("a", long_line, "en").violations
    assert "line_too_long" in _judge("啊", "啊" * 17, "zh").violations


def test_scores_add_up_over_files() -> None:
    both = _judge("勾股", "勾鼓", "zh") + _judge("定理", "定理", "zh")
    assert both.error == ErrorCount(1, 4)
    assert both.cues == 2


def test_percentiles_are_measured_values() -> None:
    assert percentile(list(range(1, 101)), 90) == 90
    assert math.isnan(percentile([], 50))


@given(st.integers(0, 10**12))
def test_a_chinese_number_reads_back_as_itself(number: int) -> None:
    assert _value(zh_cardinal(number)) == number


@given(st.integers(0, 10**12))
def test_different_english_numbers_are_said_differently(number: int) -> None:
    assert en_cardinal(number) != en_cardinal(number + 1)


@given(st.integers(0, 10**6), st.sampled_from(["zh", "en"]))
def test_every_reading_of_a_number_is_free_of_digits(number: int, language: str) -> None:
    assert not any(character.isdigit() for say in readings(str(number), language) for character in say)


def _value(said: str) -> int:
    """A second, independent way back from Chinese numerals: sections by 万 and 亿."""
    for unit, name in ((10**12, "万亿"), (10**8, "亿"), (10**4, "万"), (1000, "千"), (100, "百"), (10, "十")):
        head, found, tail = said.partition(name)
        if found:
            return (_value(head) if head.strip("零") else 1) * unit + _value(tail)
    return "零一二三四五六七八九".index(said.strip("零") or "零")


def test_a_term_is_right_where_it_stands_at_its_place_and_the_longest_counts(tmp_path: Path) -> None:
    glossary = tmp_path / "glossary.csv"
    glossary.write_text("term,aliases,language,note\n直角边,,zh,\n直角,,zh,\n斜边,,zh,\nrank,,en,\n", "utf-8")
    spoken = "直角边比斜边短，斜边最长。"
    item = Item("x", Path("x.mp4"), "zh", 9_000, spoken, is_punctuated=True, glossary=glossary)
    heard = Hypothesis((Timed("直角边比鞋边短，斜边最长，斜边。", 0, 9_000),), ())
    assert score(item, heard, heard).terms == MarkCount(right=2, given=3, expected=3)


def test_each_piece_is_told_the_mark_that_the_reference_has_after_its_last_token() -> None:
    pieces = [Timed(text, at, at + 1) for at, text in enumerate(("嗯", "好", "，", "我们", "跑"))]
    assert marks_wanted(_item("好，我们走。", "zh"), pieces) == [None, Mark.COMMA, None, Mark.NONE, Mark.END]
