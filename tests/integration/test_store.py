"""The store against a real server."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pipeline.database import connect, migrations, upgrade
from pipeline.errors import InvalidInputError, UsageError
from pipeline.store import Store
from pipeline.values import (
    Boundary,
    Cost,
    Cue,
    CueQuality,
    LedgerSpan,
    Media,
    MediaResult,
    Outcome,
    Replacement,
    Segment,
    Sentence,
    Slice,
    SliceTranscript,
    Span,
    Violation,
    Word,
)

MEDIA = Media("m1", "geometry", "file:///lectures/m1.mp4", "Geometry 1", "f00", 10_000, "zh")
WORDS = tuple(Word(character, i * 100, i * 100 + 90, 0.5 + i / 100) for i, character in enumerate("你好世界"))
RESULT = MediaResult(
    media_id="m1",
    language="zh",
    duration_ms=10_040,
    speech_ms=8_000,
    sentences=(Sentence(0, 400, "你好世界。", "zh", WORDS), Sentence(5000, 6000, "Hello", "en", ())),
    cues=(Cue(0, 400, ("你好", "世界。")), Cue(5000, 6000, ("Hello",))),
    violations=(Violation(1, "characters_per_second", math.inf, 17.0),),
    replacements=(Replacement(0, 200, "尼好", "你好", "pinyin"),),
    ledger=(
        LedgerSpan(0, 8000, Outcome.TRANSCRIBED, ""),
        LedgerSpan(8000, 10_040, Outcome.FILTERED, "music"),
    ),
    warnings=("audio starts 40 ms late",),
    cost=Cost(2_000, 1_000, 0.0013),
    qualities=(CueQuality(0.61, 0.5, 4, 1, 1, 0, ""), CueQuality(0.0183, 4.0, 1, 0, 0, 1_240, "skipped speech")),
    quality=0.75,
)

STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), min_size=1, max_size=12)
TIME_MS = st.integers(0, 2**40)
SPANS = st.builds(lambda start, length: Span(start, start + length), TIME_MS, st.integers(0, 9999))
FINITE = st.floats(allow_nan=False)
WORD = st.builds(
    lambda text, span, probability: Word(text, span.start_ms, span.end_ms, probability),
    STORABLE,
    SPANS,
    st.floats(0, 1),
)
WORD_LISTS = st.lists(WORD, max_size=3).map(tuple)
SENTENCE = st.builds(
    lambda span, text, words: Sentence(span.start_ms, span.end_ms, text, "zh", words),
    SPANS,
    STORABLE,
    WORD_LISTS,
)
SEGMENT = st.builds(Segment, TIME_MS, TIME_MS, STORABLE, WORD_LISTS, FINITE, FINITE, FINITE, FINITE)
CUE = st.builds(lambda span, lines: Cue(span.start_ms, span.end_ms, tuple(lines)), SPANS, st.lists(LINE, max_size=2))
REPLACEMENT = st.builds(
    lambda span, before, after, rule: Replacement(span.start_ms, span.end_ms, before, after, rule),
    SPANS,
    STORABLE,
    STORABLE,
    STORABLE,
)
VIOLATION = st.builds(Violation, st.integers(0, 9), STORABLE, FINITE, FINITE)
RESULTS = st.builds(
    MediaResult,
    media_id=st.just("m1"),
    language=STORABLE,
    duration_ms=TIME_MS,
    speech_ms=TIME_MS,
    sentences=st.lists(SENTENCE, max_size=4).map(tuple),
    cues=st.lists(CUE, max_size=4).map(tuple),
    violations=st.lists(VIOLATION, max_size=3).map(tuple),
    replacements=st.lists(REPLACEMENT, max_size=3).map(tuple),
    ledger=st.just(()) | st.just(RESULT.ledger),
    warnings=st.lists(STORABLE, max_size=2).map(tuple),
    cost=st.builds(Cost, TIME_MS, TIME_MS, st.floats(0, 1e6)),
)


def a_slice(index: int) -> Slice:
    span = Span(index * 30_000, (index + 1) * 30_000)
    return Slice("m1", index, span, Boundary.SILENCE, (Span(span.start_ms, span.start_ms + 500),))


def a_transcript(index: int, *segments: Segment) -> SliceTranscript:
    return SliceTranscript("m1", index, "zh", 0.98, segments, Outcome.TRANSCRIBED, "", 1, 120)


def versions(store: Store) -> list[tuple[str, ...]]:
    """The row versions of everything that a result writes: a rewritten row has another one."""
    names = ("sentence", "word", "cue", "violation", "replacement", "ledger_span")
    statement = " union all ".join(
        f"select '{name}', ctid::text, xmin::text from lecturemill.{name} where media_id = 'm1'" for name in names
    )
    with store._transaction() as connection:
        return sorted(tuple(row) for row in connection.execute(text(statement)))


def test_a_media_comes_back_as_it_was_recorded(store: Store) -> None:
    store.record_media(MEDIA)
    assert store.media("m1") == MEDIA


def test_a_result_comes_back_as_it_was_recorded(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_result(RESULT, "v1")
    assert store.result("m1") == RESULT
    assert store.finished("m1", "v1") == RESULT
    assert store.finished("m1", "v2") is None
    assert store.ledger("m1") == RESULT.ledger


@settings(max_examples=40, deadline=None)
@given(RESULTS)
def test_any_result_comes_back_as_it_was_recorded_whatever_stood_there_before(
    shared_store: Store, result: MediaResult
) -> None:
    shared_store.record_media(MEDIA)
    shared_store.record_result(result, "v1")
    assert shared_store.finished("m1", "v1") == result


@settings(max_examples=40, deadline=None)
@given(st.lists(SEGMENT, max_size=3), STORABLE)
def test_any_slice_transcript_comes_back_as_it_was_recorded(
    shared_store: Store, segments: list[Segment], reason: str
) -> None:
    transcript = replace(a_transcript(0, *segments), reason=reason)
    shared_store.record_media(MEDIA)
    shared_store.record_slices("m1", "s1", "a1", [(a_slice(0), transcript)])
    assert shared_store.slice_transcripts("m1", "s1", "a1") == (transcript,)


def test_a_measure_that_is_no_number_survives_storage(store: Store) -> None:
    segment = Segment(0, 1, "x", (Word("x", 0, 1, math.nan),), -math.inf, math.nan, math.inf, 0.0)
    store.record_media(MEDIA)
    store.record_slices("m1", "s1", "a1", [(a_slice(0), a_transcript(0, segment))])
    ((read,),) = (done.segments for done in store.slice_transcripts("m1", "s1", "a1"))
    assert (read.avg_logprob, read.compression_ratio) == (-math.inf, math.inf)
    assert math.isnan(read.no_speech_probability)
    assert math.isnan(read.words[0].probability)


def test_slices_come_back_in_order_and_only_those_of_their_fingerprints(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_slices("m1", "s1", "a1", [(a_slice(i), a_transcript(i)) for i in (2, 0)])
    store.record_slices("m1", "s1", "a1", [(a_slice(1), a_transcript(1))])
    store.record_slices("m1", "s1", "a2", [(a_slice(1), replace(a_transcript(1), language="en"))])
    assert store.slice_transcripts("m1", "s1", "a1") == tuple(a_transcript(i) for i in range(3))
    assert [done.language for done in store.slice_transcripts("m1", "s1", "a2")] == ["en"]
    assert store.slice_transcripts("m1", "s2", "a1") == ()


def test_a_slice_that_comes_twice_in_a_batch_is_there_once(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_slices("m1", "s1", "a1", [(a_slice(0), a_transcript(0))] * 2)
    store.record_slices("m1", "s1", "a1", [(a_slice(0), a_transcript(0))])
    assert store.slice_transcripts("m1", "s1", "a1") == (a_transcript(0),)
    assert store.status("m1")[0].slices_done == 1


def test_a_batch_with_a_slice_that_cannot_be_stored_leaves_nothing(store: Store) -> None:
    store.record_media(MEDIA)
    stray = replace(a_transcript(7))
    with pytest.raises(InvalidInputError, match="not recorded"):
        store.record_slices("m1", "s1", "a1", [(a_slice(0), a_transcript(0)), (a_slice(1), stray)])
    assert store.slice_transcripts("m1", "s1", "a1") == ()
    assert store.status("m1")[0].slices_done == 0


def test_running_twice_writes_nothing_twice(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_result(RESULT, "v1")
    first = versions(store)
    store.record_media(MEDIA)
    store.record_result(RESULT, "v1")
    assert versions(store) == first
    assert len(first) == 2 + 4 + 2 + 1 + 1 + 2
    assert len(store.status()) == 1


def test_a_smaller_result_leaves_no_row_of_the_larger_one(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_result(RESULT, "v1")
    ledger = (LedgerSpan(0, 10_040, Outcome.SILENCE, ""),)
    smaller = replace(
        RESULT, sentences=(), cues=RESULT.cues[:1], violations=(), replacements=(), ledger=ledger, warnings=()
    )
    store.record_result(smaller, "v2")
    assert store.result("m1") == smaller
    assert store.finished("m1", "v1") is None


def test_a_failure_is_told_with_its_ledger_and_takes_the_place_of_an_earlier_result(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_slices("m1", "s1", "a1", [(a_slice(0), a_transcript(0))])
    store.record_result(RESULT, "v1")
    ledger = (LedgerSpan(0, 10_000, Outcome.FAILED, "broken"),)
    store.record_failure("m1", "m1.mp4: broken", ledger)
    (status,) = store.status("m1")
    assert (status.state, status.reason, status.failed_ms, status.cues) == (
        "failed",
        "m1.mp4: broken",
        10_000,
        0,
    )
    assert store.ledger("m1") == ledger
    assert store.finished("m1", "v1") is None
    assert store.slice_transcripts("m1", "s1", "a1") == (a_transcript(0),)


def test_a_failed_media_that_is_run_again_starts_clean(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_failure("m1", "broken", [LedgerSpan(0, 10_000, Outcome.FAILED, "broken")])
    store.record_media(MEDIA)
    (status,) = store.status("m1")
    assert (status.state, status.reason, status.failed_ms) == ("running", "", 0)


def test_a_done_media_stays_done_when_it_is_recorded_again(store: Store) -> None:
    store.record_media(MEDIA)
    store.record_result(RESULT, "v1")
    store.record_media(replace(MEDIA, title="Geometry, lecture 1"))
    (status,) = store.status("m1")
    assert (status.state, status.title) == ("done", "Geometry, lecture 1")
    assert store.finished("m1", "v1") == RESULT


def test_status_counts_what_there_is(store: Store) -> None:
    store.record_media(replace(MEDIA, media_id="m0", duration_ms=None))
    store.record_media(MEDIA)
    store.record_slices("m1", "s1", "a1", [(a_slice(i), a_transcript(i)) for i in range(3)])
    store.record_result(RESULT, "v1")
    running, done = store.status()
    assert (running.media_id, running.state, running.duration_ms, running.speech_ms) == (
        "m0",
        "running",
        None,
        None,
    )
    assert (done.duration_ms, done.speech_ms, done.slices_done, done.cues) == (10_040, 8_000, 3, 2)
    assert (done.violations, done.failed_ms, done.filtered_ms) == (1, 0, 2_040)
    assert done.updated_at >= running.updated_at
    assert store.status("m2") == ()


def test_an_unknown_media_is_the_inputs_fault(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="m9: no such media"):
        store.result("m9")
    with pytest.raises(InvalidInputError, match="m9: no such media"):
        store.ledger("m9")
    with pytest.raises(InvalidInputError, match="m9: no such media"):
        store.record_failure("m9", "broken", [])
    with pytest.raises(InvalidInputError, match="not recorded"):
        store.record_slices("m9", "s1", "a1", [(a_slice(0), a_transcript(0))])
    with pytest.raises(InvalidInputError, match="not recorded"):
        store.record_result(replace(RESULT, media_id="m9"), "v1")


def test_the_result_of_a_media_that_still_runs_is_refused_by_its_title(store: Store) -> None:
    store.record_media(MEDIA)
    with pytest.raises(InvalidInputError, match="m1: Geometry 1 is not done yet"):
        store.result("m1")


def test_a_file_name_with_undecodable_bytes_or_nul_is_stored_readably(store: Store) -> None:
    store.record_media(replace(MEDIA, title="caf\udce9\0", uri="/x/caf\udce9"))
    store.record_failure("m1", "caf\udce9: bro\0ken", [LedgerSpan(0, 1, Outcome.FAILED, "\0\ud800")])
    (status,) = store.status()
    assert (status.title, status.uri, status.reason) == ("caf\ufffd", "/x/caf\ufffd", "caf\ufffd: broken")
    with pytest.raises(InvalidInputError, match="an id must not hold"):
        store.record_media(replace(MEDIA, media_id="m\0"))


def test_a_ten_hour_lecture_is_stored_whole(store: Store) -> None:
    sentences = tuple(
        Sentence(
            i * 7000,
            i * 7000 + 6000,
            "我们今天学习几何学" * 2,
            "zh",
            tuple(Word("学", i * 7000 + j * 300, i * 7000 + j * 300 + 290, 0.9) for j in range(20)),
        )
        for i in range(5000)
    )
    cues = tuple(Cue(s.start_ms, s.end_ms, (s.text,)) for s in sentences)
    store.record_media(MEDIA)
    store.record_result(replace(RESULT, sentences=sentences, cues=cues, duration_ms=36_000_000), "v1")
    assert store.result("m1").sentences == sentences
    assert store.status("m1")[0].cues == 5000


def test_a_database_without_tables_is_refused_with_the_command_that_makes_them(server_url: str) -> None:
    with pytest.raises(UsageError, match="lecturemill db upgrade"):
        Store.open(server_url.replace("/lecturemill?", "/postgres?"))


def test_the_schema_can_be_taken_back_and_made_again(database_url: str) -> None:
    from alembic import command

    engine = connect(database_url)
    with engine.begin() as connection:
        config = migrations()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        tables = connection.scalars(text("select tablename from pg_tables where schemaname = 'lecturemill'")).all()
    engine.dispose()
    assert tables == ["alembic_version"]
    upgrade(database_url)
    with Store.open(database_url) as store:
        store.record_media(MEDIA)
        assert store.media("m1") == MEDIA


def test_every_view_and_column_says_what_it_is(store: Store) -> None:
    statement = """
        select c.table_name || '.' || c.column_name
        from information_schema.columns as c
        where c.table_schema = 'public' and c.table_name not like 'pg_%'
            and (col_description(c.table_name::regclass, c.ordinal_position) is null
                or obj_description(c.table_name::regclass) is null)
    """
    with store._transaction() as connection:
        assert connection.scalars(text(statement)).all() == []
        assert connection.scalar(text("select count(*) from pg_views where schemaname = 'public'")) == 11
