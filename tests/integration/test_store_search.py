"""What ``search`` finds, and in which order."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from pipeline.store import Store
from pipeline.values import Cost, Cue, Media, MediaResult

LINES = (
    "同学们好，今天我们学习",
    "勾股定理。它说的是",
    "直角三角形的三条边，",
    "用 Python 也能算",
    "Now the Pythagorean theorem:",
    "squares of the two legs are",
    "added. He computed it in C++",
    "a smart start",
    "this is art",
)


@pytest.fixture
def lecture(store: Store) -> Store:
    store.record_media(Media("m1", "geometry", "file:///m1.mp4", "Geometry 1", "f", None, None))
    cues = [Cue(i * 2000, i * 2000 + 1900, tuple(line.split("|"))) for i, line in enumerate(LINES)]
    store.record_result(MediaResult("m1", "zh", 20_000, 9, (), cues, (), (), (), (), Cost(1, 1, 0.0)), "v1")
    return store


def search(store: Store, query: str) -> list[tuple[int, str]]:
    with store._transaction() as connection:
        found = connection.execute(text("select cue_index, match from search(:query)"), {"query": query})
        return [(row.cue_index, row.match) for row in found]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("勾股定理", [1]),
        ("定理", [1]),
        ("三角", [2]),
        ("边", [2]),
        ("学习勾股定理", [0]),
        ("它说的是直角三角形", [1]),
        ("ｐｙｔｈｏｎ", [3]),
        ("用Python", [3]),
        ("pythagorean theorem squares", [4]),
        ("two legs are added", [5]),
        ("C++", [6]),
    ],
)
def test_a_phrase_is_found_where_it_begins(lecture: Store, query: str, found: list[int]) -> None:
    assert search(lecture, query) == [(index, "phrase") for index in found]


def test_english_is_found_in_any_inflection(lecture: Store) -> None:
    assert search(lecture, "computing") == [(6, "words")]
    assert search(lecture, "theorems") == [(4, "words")]


def test_a_whole_word_comes_before_a_part_of_one(lecture: Store) -> None:
    assert [index for index, _ in search(lecture, "art")] == [8, 7]


def test_a_misspelt_word_is_found_where_nothing_else_matches(lecture: Store) -> None:
    assert (4, "similar") in search(lecture, "Pythagorian")


@pytest.mark.parametrize("query", ["", "   ", "。", "量子力学", "%", "_", "'; drop table x; --"])
def test_what_is_not_said_is_not_found(lecture: Store, query: str) -> None:
    assert search(lecture, query) == []
