"""Marks restored and kept, questions, English sentence case."""

from __future__ import annotations

import re
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController

from pipeline.one_thread import one_thread
from pipeline.postprocess.mark_model import MARKS, HeardUnit, load_marks
from pipeline.postprocess.punctuation import punctuate
from pipeline.postprocess.text import CLOSERS, is_abbreviation
from pipeline.postprocess.text import MARKS as ALL_MARKS
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


def _zh(words: list[Word], inside: frozenset[int] = frozenset(), next_start_ms: int | None = None) -> str:
    return "".join(word.text for word in punctuate(words, "zh", inside=inside, next_start_ms=next_start_ms))


def _en(*items: str | int) -> str:
    return "".join(word.text for word in punctuate(_words(*items), "en"))


def _said(text: str, *pauses: tuple[str, int]) -> list[Word]:
    """Each character a word of 180 ms; after each named piece of the text a pause, before which a voice slows down."""
    ends = {text.index(piece) + len(piece) - 1: pause_ms for piece, pause_ms in pauses}
    words, now_ms = [], 0
    for index, char in enumerate(text):
        pause_ms = ends.get(index, 0)
        end_ms = now_ms + (260 if pause_ms else 180)
        words.append(Word(char, now_ms, end_ms, 0.9))
        now_ms = end_ms + pause_ms
    return words


def test_marks_that_whisper_did_not_write_are_restored() -> None:
    bare = _said(
        "同学们好今天我们学习浮力如果物体比水轻它就会浮起来那么什么是浮力呢",
        ("同学们好", 240),
        ("学习浮力", 700),
        ("比水轻", 230),
        ("浮起来", 800),
    )
    assert _zh(bare) == "同学们好，今天我们学习浮力。如果物体比水轻，它就会浮起来。那么什么是浮力呢？"


def test_commas_that_whisper_wrote_for_periods_become_periods() -> None:
    words = _said("今天我们学习浮力接下来我们做一个实验", ("学习浮力", 900))
    words[7] = Word("力，", words[7].start_ms, words[7].end_ms, 0.9)
    assert _zh(words) == "今天我们学习浮力。接下来我们做一个实验。"


def test_whispers_marks_stay_where_they_make_sense() -> None:
    words = _words(*"因为水很", "轻，", 240, *"所以它会浮起", "来。", 600, *"大家明白了", "吗？")
    assert _zh(words) == "因为水很轻，所以它会浮起来。大家明白了吗？"


def test_a_pause_inside_a_word_is_no_reason_for_a_mark() -> None:
    assert _zh(_said("我们来看这个物体的加速度是多少", ("物", 300))) == "我们来看这个物体的加速度是多少？"


def test_no_mark_is_added_inside_a_term() -> None:
    words = _said("这就是质量守恒定律", ("质量", 900))
    assert "质量守恒" in _zh(words, inside=frozenset(range(3, 8)))


def test_the_last_word_gets_an_end_unless_speech_goes_on_at_once_in_another_language() -> None:
    words = _words(*"我们用")
    assert _zh(words) == "我们用。"
    assert _zh(words, next_start_ms=650) == "我们用"
    assert _zh(words, next_start_ms=1_200) == "我们用。"
    assert _zh(_words(*"我们用", "它，")) == "我们用它。"


@pytest.mark.parametrize("text", ["你们听懂了吗", "什么是惯性呢", "这个数等于多少呢", "为什么会这样呢"])
def test_a_sentence_that_asks_ends_in_a_question_mark(text: str) -> None:
    assert _zh(_words(*text)) == text + "？"


@pytest.mark.parametrize("text", ["我们开始上课", "这就是我们要讲的内容", "无论多少都可以"])
def test_a_sentence_that_tells_ends_in_a_period(text: str) -> None:
    assert _zh(_words(*text)) == text + "。"


def test_a_question_ends_where_whisper_wrote_a_comma() -> None:
    words = _words(*"什么是惯", "性，", 300, *"物体保持原来状态的性质就叫惯性")
    assert _zh(words) == "什么是惯性？物体保持原来状态的性质就叫惯性。"


def test_a_clause_with_a_question_word_that_goes_on_keeps_its_comma() -> None:
    assert _zh(_words(*"我不知道他是", "谁，", 200, *"也不想知道")) == "我不知道他是谁，也不想知道。"


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("老师我有一个问题", "老师，我有一个问题。"),
        ("同学们请看黑板", "同学们，请看黑板。"),
        ("对就是这样", "对，就是这样。"),
    ],
)
def test_who_is_spoken_to_and_what_is_answered_stand_before_a_comma(said: str, written: str) -> None:
    assert _zh(_words(*said)) == written


def test_doubled_marks_collapse_to_the_stronger_one_also_across_words() -> None:
    assert _zh(_words("好，。")) == "好。"
    assert _zh(_words(*"你懂", "吗，", "？", 600, *"懂了")) == "你懂吗？懂了。"


def test_a_space_between_clauses_becomes_a_mark() -> None:
    assert _zh(_words(*"大家", "好", " 欢", *"迎来到物理课")) in (
        "大家好，欢迎来到物理课。",
        "大家好。欢迎来到物理课。",
    )


def test_a_pause_between_two_latin_words_says_nothing_in_chinese() -> None:
    assert "machine learning" in _zh(_words(*"我们用", " machine", 400, " learning", *"来做这件事"))


def test_a_quotation_that_is_closed_behind_its_mark_keeps_its_closer() -> None:
    words = _words(*"他", "说：", "“好", "的。”", 800, *"然后他就走了")
    assert _zh(words).startswith("他说：“好的。”然后")


def test_english_gets_marks_and_capitals_where_whisper_wrote_none() -> None:
    words = (" welcome", " back", 900, " today", " we", " talk", " about", " energy", 900, " what", " is", " energy")
    assert _en(*words) == " Welcome back. Today we talk about energy. What is energy?"


def test_whispers_english_marks_stay_in_spite_of_pauses() -> None:
    said = ("The", " answer", " of", " the", " question", 320, " is", " seven,", " and", " that", " is", " all.")
    assert _en(*said) == "The answer of the question is seven, and that is all."


def test_a_number_in_two_pieces_gets_no_mark_inside() -> None:
    assert _en("We", " counted", " 3", 400, ",000", " of", " them.") == "We counted 3,000 of them."


def test_english_sentences_begin_with_a_capital_but_not_after_an_abbreviation() -> None:
    said = ("we", " know", " this.", 800, " see,", " e.g.", " this", " page.", 800, " are", " you", " sure?")
    assert _en(*said) == "We know this. See, e.g. this page. Are you sure?"


def test_a_word_with_its_own_capitals_keeps_them_at_the_start_of_a_sentence() -> None:
    said = ("pH", " is", " what", " matters.", 800, " mRNA", " is", " copied", " as", " well.")
    assert _en(*said) == "pH is what matters. mRNA is copied as well."


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
        return "".join(char for char in texts if char not in ALL_MARKS | CLOSERS and not char.isspace())

    assert letters(done) == letters(words)
    assert {(word.start_ms, word.end_ms) for word in done} <= {(word.start_ms, word.end_ms) for word in words}


@given(_ITEMS)
def test_no_two_marks_stand_side_by_side(items: list[tuple[str, int]]) -> None:
    done = "".join(word.text for word in punctuate(_words(*(part for item in items for part in item)), "zh"))
    assert not re.search("[，。、；：？！]{2}", done)


def test_a_long_text_is_marked_as_its_parts_are() -> None:
    units = [HeardUnit(char, 180, 300 * (at % 11 == 0), "") for at, char in enumerate("我们来看一个例子" * 700)]
    model = load_marks("zh")
    whole, part = model.chances(units), model.chances(units[4000:4400])
    np.testing.assert_allclose(whole[4050:4350], part[50:350], atol=1e-4)


def test_the_weights_are_small_and_know_every_mark() -> None:
    for language in ("zh", "en"):
        chances = load_marks(language).chances([HeardUnit("好", 200, 0, "")])
        assert chances.shape == (1, len(MARKS[language]))
    folder = files("pipeline.postprocess")
    assert sum(len((folder / f"marks.{language}.npz").read_bytes()) for language in ("zh", "en")) < 5_000_000


def test_matrix_products_are_made_by_one_thread_and_afterwards_by_as_many_as_before() -> None:
    openblas = ThreadpoolController().select(internal_api="openblas")

    def threads() -> set[int]:
        return {library["num_threads"] for library in openblas.info()}

    with openblas.limit(limits=2):
        with one_thread():
            assert threads() == {1}
        assert threads() == {2}
