"""What was heard at the end of a word, weighed against the mark model's chances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess import Glossary, PostprocessOptions, Term, postprocess
from pipeline.postprocess.mark_choice import chances_after
from pipeline.postprocess.mark_hearing import INPUTS, evidence, kind_of, load_hearing, weighed
from pipeline.postprocess.mark_model import MARKS
from pipeline.postprocess.punctuation import punctuate
from pipeline.values import Ending, Outcome, Segment, SliceTranscript, Word

CLASSES = len(MARKS["zh"])
CHANCE = st.floats(0, 1)
ENDINGS = st.builds(Ending, CHANCE, CHANCE, st.integers(0, 5_000))


def said(text: str, **endings: Ending) -> list[Word]:
    """Each character a word of 200 ms, side by side; ``endings`` by character."""
    return [Word(char, at * 200, at * 200 + 200, 0.9, ending=endings.get(char)) for at, char in enumerate(text)]


def marked(*words: Word) -> str:
    return "".join(word.text for word in punctuate(words, "zh"))


@given(st.lists(st.tuples(st.lists(CHANCE, min_size=CLASSES, max_size=CLASSES), st.none() | ENDINGS), max_size=5))
def test_chances_stay_chances(rows: list[tuple[list[float], Ending | None]]) -> None:
    given_ = np.array([row for row, _ in rows]).reshape(-1, CLASSES) + 0.01
    given_ /= given_.sum(axis=1, keepdims=True)
    found = weighed(given_, [ending for _, ending in rows], [""] * len(rows), "zh")
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(1)


def test_where_nothing_was_told_or_whisper_ended_a_sentence_the_model_stands() -> None:
    given_ = np.full((3, CLASSES), 1 / CLASSES)
    heard = Ending(0.9, 0.0, 200)
    found = weighed(given_, [None, heard, heard], ["", "。", ""], "zh")
    assert (found[:2] == given_[:2]).all()
    assert not np.allclose(found[2], given_[2])
    assert weighed(given_, [heard] * 3, [""] * 3, "en") is given_


def test_inside_a_kind_the_shares_of_the_model_stay() -> None:
    given_ = np.array([[0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]])
    (found,) = weighed(given_, [Ending(0.6, 0.1, 120)], [""], "zh")
    inside = [at for at, mark in enumerate(MARKS["zh"]) if kind_of(mark) == 1]
    assert found[inside] / found[inside].sum() == pytest.approx(given_[0, inside] / given_[0, inside].sum())
    assert found[inside].sum() > given_[0, inside].sum()


def test_more_that_speaks_for_a_mark_makes_it_likelier() -> None:
    given_ = np.array([[0.8, 0.1, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0]])
    for first, second in (
        (Ending(0.02, 0.0, 0), Ending(0.4, 0.0, 0)),
        (Ending(0.1, 0.0, 0), Ending(0.1, 0.0, 150)),
        (Ending(0.1, 0.0, 150), Ending(0.1, 0.0, 250)),
    ):
        less, more = (weighed(given_, [one], [""], "zh")[0, 0] for one in (first, second))
        assert more < less


def test_a_comma_that_whisper_nearly_wrote_where_the_voice_paused_is_written() -> None:
    text = "抛物线的开口向上函数有最小值"
    assert marked(*said(text)) == "抛物线的开口向上函数有最小值。"
    assert marked(*said(text, 上=Ending(0.34, 0.0, 130))) == "抛物线的开口向上，函数有最小值。"


def test_other_evidence_than_numbers_from_0_to_1_does_no_harm() -> None:
    found = evidence(np.array([[1.0, 0.0, 0.0]]), [Ending(0.9, 0.9, 10**9)])
    assert found.shape == (1, INPUTS)
    assert np.isfinite(found).all()
    assert load_hearing("zh").shape == (2, INPUTS, 2)


def test_what_was_heard_lasts_through_the_steps_before() -> None:
    """The last word of a term, and words that became one, have what was heard after the last of them."""
    heard = {"利": Ending(0.5, 0.0, 90), "力": Ending(0.25, 0.0, 30)}
    words = said("这就是浮利和重力", **heard)
    segment = Segment(0, 2_000, "", tuple(words), -0.2, 0.0, 1.0, 0.0)
    slices = [SliceTranscript("m", 0, "zh", 1.0, (segment,), Outcome.TRANSCRIBED, "", 1, 0)]
    done = postprocess(slices, Glossary((Term("浮力", aliases=("浮利",)),)), PostprocessOptions(punctuation=False))
    (sentence,) = done.sentences
    by_place = {word.end_ms: word for word in sentence.words}
    assert [by_place[words[at].end_ms].text for at in (4, 7)] == ["力", "力"]
    assert [by_place[words[at].end_ms].ending for at in (4, 7)] == [heard["利"], heard["力"]]


def test_what_was_heard_changes_nothing_but_the_chances() -> None:
    words = said("今天我们学习浮力")
    told = [replace(word, ending=Ending(0.1, 0.1, 20)) for word in words]
    texts = [word.text for word in words]
    plain, weighed_ = (chances_after(some, texts, "zh", None) for some in (words, told))
    assert len(plain) == len(weighed_) == len(words)
    assert plain != weighed_
