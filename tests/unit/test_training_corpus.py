"""The prose that the mark models learn from: what is taken out of a page, and what is made up."""

from __future__ import annotations

import json

import pytest

from training.corpus import paragraphs
from training.lectures import made_up, read_patterns
from training.sources import SOURCES, Source

TALKS = next(source for source in SOURCES if source.kind == "talks")
TEXTBOOK = next(source for source in SOURCES if source.kind == "textbook")
ENDS = tuple("。？！.?!")


def _paragraphs(source: Source, text: str) -> list[str]:
    return list(paragraphs(source, text))


@pytest.mark.parametrize("key", ["message", "content"])
def test_the_turns_of_a_conversation_follow_each_other_and_end_in_a_mark(key: str) -> None:
    talk = {"messages": [{key: "你看过这部电影吗？"}, {key: "看过，【主演】很出色"}, {key: ""}]}
    wanted = ["你看过这部电影吗？看过，主演很出色。"]
    assert _paragraphs(TALKS, json.dumps([talk])) == wanted
    assert _paragraphs(TALKS, json.dumps({"1": talk})) == wanted


def test_a_textbook_gives_its_paragraphs_without_markup_notes_and_formulas() -> None:
    page = """<note><para>This note for teachers is left out of what is learnt.</para></note>
    <para id="a">A <term>force</term> is a push or a pull,
    and it has a size <m:math><m:mi>F</m:mi></m:math> &amp; a direction.</para>"""
    assert _paragraphs(TEXTBOOK, page) == ["A force is a push or a pull, and it has a size x & a direction."]


def test_a_caption_is_no_prose() -> None:
    assert _paragraphs(TEXTBOOK, "<para>A force.</para>") == []


@pytest.mark.parametrize("language", ["zh", "en"])
def test_lectures_are_made_up_the_same_for_the_same_seed(language: str) -> None:
    lectures = made_up(language, 4_000, seed=3)
    assert lectures == made_up(language, 4_000, seed=3) != made_up(language, 4_000, seed=4)
    assert sum(map(len, lectures)) >= 4_000
    assert all("{" not in lecture and lecture.endswith(ENDS) for lecture in lectures)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_pattern_and_lesson_ends_a_sentence(language: str) -> None:
    patterns = read_patterns(language)
    for section in ("openings", "body", "dialogue", "closings", "lessons"):
        assert not [line for line in patterns[section] if not line.endswith(ENDS)]
