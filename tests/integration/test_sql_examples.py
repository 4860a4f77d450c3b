"""Each example query runs as it stands, and answers its question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import sql
from pipeline.postprocess.terms import Glossary, Term
from pipeline.store import Store
from pipeline.store_line import LineStore
from pipeline.values import (
    Cost,
    Cue,
    CueQuality,
    LedgerSpan,
    Media,
    MediaResult,
    Outcome,
    Priority,
    Replacement,
    Sentence,
    Word,
)

EXAMPLES = Path(sql.__path__[0]) / "examples"

GEOMETRY = Media("g1", "geometry", "https://videos/g1.mp4", "Geometry 1", "f", 60_000, "zh")
ALGEBRA = Media("a1", "algebra", "https://videos/a1.mp4", "Algebra 1", "f", 120_000, "en")
BROKEN = Media("a2", "algebra", "https://videos/a2.mp4", "Algebra 2", "f", 30_000, "en")
"""Its ledger fails it whole."""
WAITING = Media("g2", "geometry", "https://videos/g2.mp4", "Geometry 2", "", None, "zh")
URGENT = Media("g3", "geometry", "https://videos/g3.mp4", "Geometry 3", "", None, "zh")
GLOSSARY = Glossary((Term("锐角"), Term("勾股定理")))


def words(text_: str, probability: float, speaker: str = "") -> tuple[Word, ...]:
    return tuple(Word(part, i * 500, i * 500 + 400, probability, speaker) for i, part in enumerate(text_.split("|")))


GEOMETRY_RESULT = MediaResult(
    "g1",
    "zh",
    60_000,
    30_000,
    (Sentence(0, 9000, "今天学习勾股定理。", "zh", words("勾|股|定|理。", 0.9, "teacher")),),
    (Cue(1000, 3000, ("今天学习", "勾股定理。")), Cue(62_345 - 60_000, 9000, ("直角三角形。",))),
    (),
    (Replacement(0, 2000, "购股定理", "勾股定理", "homophone"), Replacement(2000, 4000, "勾古", "勾股定理", "alias")),
    (
        LedgerSpan(0, 30_000, Outcome.TRANSCRIBED, ""),
        LedgerSpan(30_000, 48_000, Outcome.FILTERED, "music"),
        LedgerSpan(48_000, 60_000, Outcome.SILENCE, ""),
    ),
    (),
    Cost(1_000, 800, 0.01),
    (CueQuality(0.61, 0.5, 8, 0, 1, 0, ""), CueQuality(0.0183, 4.0, 6, 2, 0, 1_240, "skipped speech")),
    0.87,
)
ALGEBRA_RESULT = MediaResult(
    "a1",
    "en",
    120_000,
    6_000,
    (Sentence(0, 900, "Let x be", "en", words("Let| x", 0.95) + words(" bee", 0.25)),),
    (Cue(0, 900, ("Let x be",)),),
    (),
    (),
    (LedgerSpan(0, 120_000, Outcome.TRANSCRIBED, ""),),
    (),
    Cost(4_000, 3_000, 0.03),
    (CueQuality(0.4066, 0.9, 3, 1, 0, 0, ""),),
    0.7,
)

ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "search_a_term": [("Geometry 1", "00:00:01,000", "今天学习\n勾股定理。", "phrase", Decimal("1.06"))],
    "lecture_as_time_coded_list": [("00:00:01,000", "今天学习 勾股定理。"), ("00:00:02,345", "直角三角形。")],
    "cost_per_course": [
        ("algebra", 1, Decimal("0.03"), Decimal("0.0300"), Decimal("0.9000"), Decimal("30.0")),
        ("geometry", 1, Decimal("0.02"), Decimal("0.0100"), Decimal("0.6000"), Decimal("60.0")),
    ],
    "ledger_sums": [],
    "time_lost_by_reason": [
        ("failed", "no index", 1, Decimal("0.50")),
        ("filtered", "music", 1, Decimal("0.30")),
    ],
    "link_to_the_moment": [("Geometry 1", "00:00:02,345", "https://videos/g1.mp4#t=2")],
    "speaking_rate": [
        ("Geometry 1", "zh", 4, Decimal("8.0")),
        ("Algebra 1", "en", 3, Decimal("30.0")),
    ],
    "worst_cues": [
        (
            *("geometry", "Geometry 1", "00:00:02,345", "直角三角形。", Decimal("0.02"), Decimal("4.0"), 2, 0),
            *(Decimal("1.2"), "skipped speech", "https://videos/g1.mp4#t=2"),
        ),
        (
            *("algebra", "Algebra 1", "00:00:00,000", "Let x be", Decimal("0.41"), Decimal("0.9"), 1, 0),
            *(Decimal("0.0"), "", "https://videos/a1.mp4#t=0"),
        ),
        (
            *("geometry", "Geometry 1", "00:00:01,000", "今天学习 勾股定理。", Decimal("0.61"), Decimal("0.5"), 0, 1),
            *(Decimal("0.0"), "", "https://videos/g1.mp4#t=1"),
        ),
    ],
    "talk_by_speaker": [("Geometry 1", "teacher", Decimal("1.6"), Decimal("100.0"))],
    "doubtful_words": [("Algebra 1", 0, "bee", Decimal("0.25"))],
    "glossary_use": [("geometry", "勾股定理", 2, 1), ("geometry", "锐角", 0, 0)],
    "older_glossary": [("geometry", "Geometry 1", None, 1)],
    "least_speech": [
        ("Algebra 1", Decimal("2.0"), Decimal("5.0")),
        ("Geometry 1", Decimal("1.0"), Decimal("50.0")),
    ],
}


@pytest.fixture(scope="module")
def library(fresh_database: Callable[[], AbstractContextManager[str]]) -> Iterator[Store]:
    """Two finished lectures, a failed one, and two that wait; one glossary."""
    with fresh_database() as url, LineStore.open(url) as store:
        store.record_glossary("geometry", GLOSSARY)
        store.announce(WAITING, Priority.NORMAL, None)
        store.announce(URGENT, Priority.URGENT, None)
        for media, result in ((GEOMETRY, GEOMETRY_RESULT), (ALGEBRA, ALGEBRA_RESULT)):
            store.record_media(media)
            store.record_result(result, "v1")
        store.record_media(BROKEN)
        store.record_failure("a2", "a2.mp4: no index", [LedgerSpan(0, 30_000, Outcome.FAILED, "no index")])
        yield store


def answer(store: Store, name: str) -> list[tuple[Any, ...]]:
    query = (EXAMPLES / f"{name}.sql").read_text("utf-8")
    with store._transaction() as connection:
        found = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
        return [tuple(row) for row in found]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_example_answers_its_question(library: Store, name: str) -> None:
    assert answer(library, name) == ANSWERS[name]


def test_failed_media_says_which_why_and_when(library: Store) -> None:
    ((*what, when),) = answer(library, "failed_media")
    assert what == ["algebra", "Algebra 2", "https://videos/a2.mp4", "a2.mp4: no index"]
    assert when == library.status("a2")[0].updated_at


def test_unfinished_media_come_by_urgency(library: Store) -> None:
    found = answer(library, "unfinished_media")
    assert [row[:4] for row in found] == [
        ("geometry", "Geometry 3", "urgent", "waiting"),
        ("geometry", "Geometry 2", "normal", "waiting"),
    ]
    assert all(waited_for > timedelta() for *_, waited_for in found)


@pytest.mark.parametrize(
    ("spans", "found"),
    [
        ([(0, 50_000)], (50_000, 0, 0)),
        ([(0, 20_000), (30_000, 70_000)], (60_000, 10_000, 0)),
        ([(0, 40_000), (20_000, 40_000)], (60_000, 0, 20_000)),
        ([], (0, 0, 0)),
    ],
)
def test_ledger_sums_names_a_media_whose_ledger_is_wrong(
    store: Store, spans: list[tuple[int, int]], found: tuple[int, int, int]
) -> None:
    store.record_media(GEOMETRY)
    ledger = [LedgerSpan(*span, Outcome.TRANSCRIBED, "") for span in spans]
    store.record_result(replace(GEOMETRY_RESULT, ledger=ledger), "v1")
    assert answer(store, "ledger_sums") == [("g1", "Geometry 1", 60_000, *found)]


def test_every_example_is_tested_and_says_what_it_answers() -> None:
    files = sorted(EXAMPLES.glob("*.sql"))
    assert {file.stem for file in files} == {*ANSWERS, "failed_media", "unfinished_media"}
    assert all(file.read_text("utf-8").startswith("-- ") for file in files)
