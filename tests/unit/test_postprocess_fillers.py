"""Fillers and stutters, and what only looks like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.fillers import drop_fillers
from pipeline.postprocess.term_spans import NO_TERMS, spotter
from pipeline.values import Word


def _words(text: str, language: str) -> list[Word]:
    texts: list[str] = []
    if language == "en":
        texts = [f" {word}" for word in text.split()]
    else:
        for char in text:
            if texts and char in "，。？！":
                texts[-1] += char
            else:
                texts.append(char)
    return [Word(one, at * 200, at * 200 + 190, 0.9) for at, one in enumerate(texts)]


def _clean(text: str, language: str = "zh") -> str:
    return "".join(word.text for word in drop_fillers(_words(text, language), language, NO_TERMS)[0]).strip()


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("嗯，我们今天学习呃勾股定理。", "我们今天学习勾股定理。"),
        ("我我我们来看这这个三角形，就就是这样。", "我们来看这个三角形，就是这样。"),
        ("那个，我们今天讲函数。", "我们今天讲函数。"),
        ("我，我们来看。然后，然后证明。", "我们来看。然后证明。"),
        ("很好，嗯。下面看例题。", "很好。下面看例题。"),
    ],
)
def test_hesitations_and_stutters_go(said: str, left: str) -> None:
    assert _clean(said) == left


@pytest.mark.parametrize(
    "text",
    [
        "对吗？嗯，对的。",
        "嗯。我们看。",
        "那个函数很重要。你要哪个？那个。",
        "看看，慢慢来，问题的目的的，研究研究，一个一个来。",
        "额度很大，好啊，是啊！",
        "这问题是是否存在，非常非常好。",
        "呃逆是一种症状。",
    ],
)
def test_content_stays(text: str) -> None:
    assert _clean(text) == text


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Um, we start the the lecture, uh, now.", "We start the lecture, now."),
        ("So um. We go, um. Really?", "So. We go. Really?"),
        ("It is, you know, very very good.", "It is, very very good."),
        ("I I think w- we can go to to the ER um", "I think we can go to the ER"),
        ("Uh-huh. Uh huh, so uh-oh. To err is human.", "Uh-huh. Uh huh, so uh-oh. To err is human."),
        ("So um- the pH. Um, pH is low. Um, this is it.", "So the pH. pH is low. This is it."),
        ("We compute A A transpose, a a matrix, OR or XOR.", "We compute A A transpose, a matrix, OR or XOR."),
        ("That that is is fine. Do you know? Um, yes.", "That that is is fine. Do you know? Um, yes."),
    ],
)
def test_english_loses_its_fillers_and_keeps_its_grammar(said: str, left: str) -> None:
    assert _clean(said, "en") == left


def test_each_filler_is_accounted_for_and_the_other_words_keep_their_times() -> None:
    words = _words("嗯，我我们学。", "zh")
    kept, replacements = drop_fillers(words, "zh", NO_TERMS)
    assert kept == tuple(words[2:])
    assert [(one.before, one.after, one.rule) for one in replacements] == [("嗯，", "", "filler"), ("我", "", "repeat")]


def test_a_term_of_the_course_keeps_its_letters() -> None:
    words = _words("the the band", "en")
    assert drop_fillers(words, "en", spotter(("the the",)))[0] == tuple(words)


@given(st.lists(st.sampled_from(["嗯", "嗯，", "我", "我们", "那个，", "好。", "这", "看", "吗？", "。"]), max_size=25))
def test_only_listed_words_go_and_no_time_changes(texts: list[str]) -> None:
    words = [Word(text, at * 200, at * 200 + 190, 0.9) for at, text in enumerate(texts)]
    kept, _ = drop_fillers(words, "zh", NO_TERMS)
    times = {(word.start_ms, word.end_ms) for word in words}
    assert {(word.start_ms, word.end_ms) for word in kept} <= times
    assert [c for word in kept for c in word.text if c in "好看吗"] == [
        c for text in texts for c in text if c in "好看吗"
    ]
