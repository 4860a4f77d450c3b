"""The script of a course, and the words of its region."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess import Glossary, PostprocessOptions, Term, postprocess
from pipeline.postprocess.rendering import terms_as_shown, write_script
from pipeline.postprocess.script import SCRIPTS, fold_script
from pipeline.values import Outcome, Segment, SliceTranscript, Word


def _words(text: str) -> list[Word]:
    return [Word(char, at * 100, at * 100 + 90, 0.9) for at, char in enumerate(text)]


def _shown(text: str, script: str, *terms: str) -> str:
    glossary = Glossary(tuple(Term(term) for term in terms))
    return "".join(word.text for word in write_script(_words(text), "zh", script, glossary))


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("t2s", "在里面用鼠标和内存"),
        ("s2t", "在裏面用鼠標和內存"),
        ("s2tw", "在裡面用鼠標和內存"),
        ("s2hk", "在裏面用鼠標和內存"),
        ("s2twp", "在裡面用滑鼠和記憶體"),
        ("none", "在里面用鼠标和内存"),
    ],
)
def test_a_course_has_its_characters_and_where_wanted_its_words(script: str, shown: str) -> None:
    assert _shown("在里面用鼠标和内存", script) == shown


def test_a_lecture_from_taiwan_can_be_shown_in_the_words_of_the_mainland() -> None:
    words = fold_script(_words("用滑鼠和記憶體"), "zh")
    assert "".join(one.text for one in write_script(words, "zh", "tw2sp", Glossary.empty())) == "用鼠标和内存"


def test_words_that_become_longer_become_one_with_the_whole_time() -> None:
    done = write_script(_words("用内存"), "zh", "s2twp", Glossary.empty())
    assert [(word.text, word.start_ms, word.end_ms) for word in done] == [("用", 0, 90), ("記憶體", 100, 290)]


def test_a_term_keeps_its_words_and_is_shown_as_its_editor_wrote_it() -> None:
    assert _shown("用内存和鼠标", "s2twp", "内存") == "用內存和滑鼠"
    assert _shown("细胞膜里面", "s2twp", "細胞膜") == "細胞膜裡面"


def test_a_lecture_does_not_flip_between_scripts() -> None:
    words = tuple(_words("這裡的軟件和软件，物體与物体。"))
    segment = Segment(0, 2000, "", words, -0.1, 0.0, 1.0, 0.0)
    item = SliceTranscript("m", 0, "zh", 1.0, (segment,), Outcome.TRANSCRIBED, "", 1, 0)

    def text(script: str) -> str:
        return postprocess([item], Glossary.empty(), PostprocessOptions(script, punctuation=False)).sentences[0].text

    assert text("t2s") == "这里的软件和软件，物体与物体。"
    assert text("s2tw") == "這裡的軟件和軟件，物體與物體。"
    assert text("none") == "這裡的軟件和软件，物體与物体。"


def test_the_glossary_works_in_the_script_of_the_course() -> None:
    words = tuple(_words("这是购股定理。"))
    segment = Segment(0, 2000, "", words, -0.1, 0.0, 1.0, 0.0)
    item = SliceTranscript("m", 0, "zh", 1.0, (segment,), Outcome.TRANSCRIBED, "", 1, 0)
    glossary = Glossary((Term("勾股定理", (), "zh"),))
    done = postprocess([item], glossary, PostprocessOptions("s2tw", punctuation=False))
    assert done.sentences[0].text == "這是勾股定理。"
    assert [(one.before, one.after) for one in done.replacements] == [("購股定理", "勾股定理")]


def test_terms_are_looked_for_as_they_are_shown() -> None:
    glossary = Glossary((Term("细胞", (), "zh"), Term("cell", (), "en")))
    assert set(terms_as_shown(glossary, "s2tw")) == {"細胞", "cell"}
    assert set(terms_as_shown(glossary, "none")) == {"细胞", "cell"}


@given(st.text(alphabet="用内存打印机软件里面的，。a1 ", max_size=30), st.sampled_from(SCRIPTS))
def test_no_script_loses_a_mark_or_moves_a_time(text: str, script: str) -> None:
    words = _words(text)
    done = write_script(words, "zh", script, Glossary.empty())
    assert [char for word in done for char in word.text if char in "，。a1"] == [
        char for char in text if char in "，。a1"
    ]
    starts = {word.start_ms for word in words}
    assert all(word.start_ms in starts for word in done)
