"""What the line over many machines asks of the store, against a real server."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from alembic import command
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from pipeline.database import connect, migrations, upgrade
from pipeline.errors import InvalidInputError
from pipeline.postprocess.terms import Glossary, Term
from pipeline.store_line import Asked, Complete, LineStore, MadeUnder, Missing
from pipeline.store_rows import slice_row
from pipeline.store_tables import SLICES
from pipeline.subtitle_profiles import BUILT_IN, NETFLIX, profile_from_toml
from pipeline.values import (
    Boundary,
    Cost,
    LedgerSpan,
    Media,
    MediaPlan,
    MediaResult,
    Outcome,
    Priority,
    Segment,
    Slice,
    SliceTranscript,
    Span,
    TranscribedSlice,
    Word,
)

SLICING, ASR = "5" * 16, "a" * 16
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


def a_media(media_id: str = "m1", course_id: str = "geometry") -> Media:
    return Media(media_id, course_id, f"file:///{media_id}.mp4", f"Lecture {media_id}", "f00", 90_000, "zh")


def a_slice(index: int, media_id: str = "m1", asr: str = ASR, said: str = "") -> TranscribedSlice:
    span = Span(index * 30_000, (index + 1) * 30_000)
    said = said or f"{media_id} {index} {asr}"
    segment = Segment(span.start_ms, span.end_ms, said, (Word(said, span.start_ms, span.end_ms, 0.5),), -0.1, 0, 1, 0)
    transcript = SliceTranscript(media_id, index, "zh", 0.9, (segment,), Outcome.TRANSCRIBED, "", 1, 120)
    return TranscribedSlice(
        SLICING, asr, "base on a CPU", Slice(media_id, index, span, Boundary.SILENCE, (span,)), transcript
    )


def a_plan(slice_count: int, media_id: str = "m1", asr: str = ASR) -> MediaPlan:
    return MediaPlan(media_id, SLICING, asr, slice_count, 95_000, (Span(90_000, 95_000),), ("5 s lack",), 700)


def a_result(media_id: str = "m1") -> MediaResult:
    ledger = (LedgerSpan(0, 95_000, Outcome.TRANSCRIBED, ""),)
    return MediaResult(media_id, "zh", 95_000, 60_000, (), (), (), (), ledger, (), Cost(1, 1, 0.0))


def texts(store: LineStore, plan: MediaPlan) -> list[str]:
    return [transcript.segments[0].text for _, transcript in store.planned_slices(plan)]


def content(store: LineStore) -> list[tuple[object, ...]]:
    """All that the messages of the line leave behind."""
    statement = """
        select to_jsonb(s) || to_jsonb(t) || jsonb_build_object('engine', t.engine)
        from lecturemill.slice as s full join lecturemill.slice_transcript as t
            using (media_id, slicing_fingerprint, slice_index)
        union all select to_jsonb(p) from lecturemill.plan as p
        order by 1
    """
    with store._transaction() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def versions(store: LineStore) -> list[tuple[str, ...]]:
    """The row versions of what messages write: a rewritten row has another one."""
    statement = " union all ".join(
        f"select '{name}', ctid::text, xmin::text from lecturemill.{name}"
        for name in ("slice", "slice_transcript", "plan")
    )
    with store._transaction() as connection:
        return sorted(tuple(row) for row in connection.execute(text(statement)))


@pytest.fixture
def store(database_url: str) -> Iterator[LineStore]:
    """With one media that is being sliced."""
    with LineStore.open(database_url) as opened:
        opened.begin_slicing(a_media(), SLICING, ASR)
        yield opened


@pytest.fixture(scope="module")
def shared_store(fresh_database: Callable[[], AbstractContextManager[str]]) -> Iterator[LineStore]:
    with fresh_database() as url, LineStore.open(url) as opened:
        yield opened


def test_a_media_that_is_announced_waits_with_what_was_asked_of_it(store: LineStore) -> None:
    announced = replace(a_media("m2"), content_fingerprint="", duration_ms=None)
    store.announce(announced, Priority.URGENT, 2)
    (status,) = store.status("m2")
    assert (status.state, status.duration_ms, status.slices_done) == ("waiting", None, 0)
    assert store.media("m2") == announced
    assert store.asked("m2") == Asked(Priority.URGENT, 2)


def test_a_media_that_is_announced_again_keeps_its_state_and_rows(store: LineStore) -> None:
    store.record_line([a_slice(0)], [a_plan(1)])
    store.record_result(a_result(), "v1")
    asked_anew = replace(a_media(), title="Triangles", language=None, content_fingerprint="", duration_ms=None)
    store.announce(asked_anew, Priority.BULK, None)
    (status,) = store.status("m1")
    assert (status.state, status.slices_done, status.title) == ("done", 1, "Triangles")
    assert store.media("m1") == replace(a_media(), title="Triangles", language=None)
    assert store.asked("m1") == Asked(Priority.BULK, None)
    assert store.result("m1") == a_result()


def test_a_media_of_another_course_is_not_taken_over(store: LineStore) -> None:
    with pytest.raises(InvalidInputError, match="m1: the media belongs to another course"):
        store.announce(replace(a_media(course_id="algebra"), title="Mine"), Priority.URGENT, None)
    assert store.media("m1") == a_media()


def test_a_waiting_media_runs_once_it_is_sliced_and_keeps_its_priority(store: LineStore) -> None:
    store.announce(a_media("m2"), Priority.URGENT, 1)
    store.begin_slicing(a_media("m2"), SLICING, ASR)
    assert store.status("m2")[0].state == "running"
    assert store.asked("m2") == Asked(Priority.URGENT, 1)


def test_a_failed_media_that_is_sliced_again_starts_clean(store: LineStore) -> None:
    store.record_failure("m1", "broken", [LedgerSpan(0, 1, Outcome.FAILED, "broken")])
    store.begin_slicing(a_media(), SLICING, ASR)
    (status,) = store.status("m1")
    assert (status.state, status.reason, status.failed_ms) == ("running", "", 0)


def test_what_the_messages_say_comes_back_as_it_was(store: LineStore) -> None:
    sent = [a_slice(1), a_slice(0)]
    assert store.record_line(sent, [a_plan(2)]) == frozenset()
    assert store.planned("m1", SLICING, ASR) == a_plan(2)
    assert store.planned_slices(a_plan(2)) == [(one.slice, one.transcript) for one in reversed(sent)]
    assert store.status("m1")[0].slices_done == 2
    assert store.planned("m1", SLICING, "other") is None


def test_the_engine_of_a_slice_is_kept_for_people(store: LineStore) -> None:
    store.record_line([replace(a_slice(0), engine="large on \0 an H200")], [])
    with store._transaction() as connection:
        assert connection.scalars(text("select engine from lecturemill.slice_transcript")).all() == [
            "large on  an H200"
        ]


MESSAGES: tuple[TranscribedSlice | MediaPlan, ...] = (
    *(a_slice(index, media_id) for media_id in ("m1", "m2") for index in range(3)),
    a_slice(0, "m1", asr="b" * 16),
    *(a_plan(3, media_id) for media_id in ("m1", "m2", "m3")),
    a_plan(1, "m1", asr="b" * 16),
)


def deliver(store: LineStore, messages: Sequence[TranscribedSlice | MediaPlan]) -> None:
    transcripts = [one for one in messages if isinstance(one, TranscribedSlice)]
    store.record_line(transcripts, [one for one in messages if isinstance(one, MediaPlan)])


def afresh(store: LineStore) -> None:
    with store._transaction() as connection:
        connection.execute(text("delete from lecturemill.media"))
    for media_id in ("m1", "m2", "m3"):
        store.begin_slicing(a_media(media_id), SLICING, ASR)


@settings(max_examples=40, deadline=None)
@given(
    order=st.permutations(MESSAGES),
    again=st.lists(st.sampled_from(MESSAGES), max_size=8),
    cuts=st.lists(st.integers(0, len(MESSAGES) + 8), max_size=5),
)
def test_any_order_repetition_and_batching_of_the_messages_gives_the_same_rows(
    shared_store: LineStore,
    order: list[TranscribedSlice | MediaPlan],
    again: list[TranscribedSlice | MediaPlan],
    cuts: list[int],
) -> None:
    afresh(shared_store)
    deliver(shared_store, MESSAGES)
    expected = content(shared_store)
    afresh(shared_store)
    sent = [*order, *again]
    for start, end in itertools.pairwise([0, *sorted(cuts), len(sent)]):
        deliver(shared_store, sent[start:end])
    assert content(shared_store) == expected
    assert len(expected) == len(MESSAGES)
    assert [one.plan for one in shared_store.complete(["m1", "m2", "m3"])] == [a_plan(3, "m1"), a_plan(3, "m2")]


def test_messages_that_come_again_rewrite_no_row(store: LineStore) -> None:
    store.record_line([a_slice(0), a_slice(1)], [a_plan(2)])
    first = versions(store)
    store.record_line([a_slice(1)], [])
    store.record_line([a_slice(0), a_slice(1), a_slice(0)], [a_plan(2), a_plan(2)])
    assert versions(store) == first
    assert len(first) == 2 + 2 + 1


def test_of_two_transcripts_of_one_slice_in_a_batch_the_later_counts(store: LineStore) -> None:
    store.record_line([a_slice(0, said="first"), a_slice(0, said="second")], [a_plan(5), a_plan(1)])
    assert store.planned("m1", SLICING, ASR) == a_plan(1)
    assert texts(store, a_plan(1)) == ["second"]


def test_a_batch_is_stored_whole_or_not_at_all(store: LineStore) -> None:
    with pytest.raises(IntegrityError, match="slice_count"):
        store.record_line([a_slice(0)], [a_plan(-1)])
    assert content(store) == []


def test_of_a_media_that_is_not_recorded_nothing_is_stored_and_the_rest_is(store: LineStore) -> None:
    strangers = [a_slice(0, "m8"), a_slice(0), a_slice(1, "m8")]
    assert store.record_line(strangers, [a_plan(1), a_plan(0, "m9")]) == {"m8", "m9"}
    assert texts(store, a_plan(1)) == [f"m1 0 {ASR}"]
    assert len(content(store)) == 2
    assert store.record_line([], [a_plan(0, "m9")]) == {"m9"}
    assert store.record_line([], []) == frozenset()


def wait_for_writers(store: LineStore, count: int) -> None:
    """Until so many wait for a row that somebody else has locked."""
    statement = """
        select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    """
    deadline = time.monotonic() + 60
    with store._engine.connect() as connection:
        while connection.scalar(text(statement)) != count:
            connection.rollback()  # what is active is looked up once a transaction
            assert time.monotonic() < deadline


def test_two_writers_of_the_same_rows_in_opposite_order_end_with_all_of_them(store: LineStore) -> None:
    media_ids = [f"m{i}" for i in range(10, 30)]
    for media_id in media_ids:
        store.begin_slicing(a_media(media_id), SLICING, ASR)
    slices = [a_slice(0, media_id) for media_id in media_ids]
    plans = [a_plan(1, media_id) for media_id in media_ids]
    with ThreadPoolExecutor(2) as writers:
        with store._engine.connect() as holding:
            # Who stands half-way through its rows, in whichever order, has locked those before.
            row = dict(zip(SLICES.columns, ([value] for value in slice_row(slices[10].slice, SLICING)), strict=True))
            holding.execute(text(SLICES.upsert()), {"media_id": media_ids[10], **row})
            written = [writers.submit(store.record_line, slices[::step], plans[::step]) for step in (1, -1)]
            wait_for_writers(store, 2)
        assert [one.result(60) for one in written] == [frozenset(), frozenset()]
    assert [one.plan for one in store.complete(media_ids)] == plans


def test_a_media_is_complete_with_its_end_mark_and_its_last_slice_whichever_comes_first(store: LineStore) -> None:
    store.begin_slicing(a_media("m2"), SLICING, ASR)
    store.record_line([a_slice(0), a_slice(1), a_slice(0, "m2")], [a_plan(2, "m2")])
    assert store.complete(["m1", "m2"]) == ()
    store.record_line([a_slice(1, "m2")], [a_plan(2)])
    assert store.complete(["m1", "m2"]) == (Complete(a_plan(2), None), Complete(a_plan(2, "m2"), None))
    assert store.complete(["m2"]) == (Complete(a_plan(2, "m2"), None),)
    assert store.complete([]) == ()


def test_a_media_without_slices_is_complete_with_its_end_mark(store: LineStore) -> None:
    assert store.complete(["m1"]) == ()
    store.record_line([], [a_plan(0)])
    assert store.complete(["m1"]) == (Complete(a_plan(0), None),)
    assert store.planned_slices(a_plan(0)) == []


def test_a_slice_beyond_the_end_mark_does_not_stand_for_one_that_lacks(store: LineStore) -> None:
    store.record_line([a_slice(0), a_slice(2)], [a_plan(2)])
    assert store.complete(["m1"]) == ()
    store.record_line([a_slice(1)], [])
    assert store.complete(["m1"]) == (Complete(a_plan(2), None),)
    assert len(store.planned_slices(a_plan(2))) == 2


def test_a_trigger_that_comes_again_finds_the_media_complete_and_its_result_stored(store: LineStore) -> None:
    store.record_line([a_slice(0)], [a_plan(1)])
    store.record_result(a_result(), "v1", SLICING, ASR)
    store.record_line([], [a_plan(1)])
    assert store.complete(["m1"]) == (Complete(a_plan(1), "v1"),)
    assert store.status("m1")[0].state == "done"


def test_late_messages_of_an_older_run_do_not_change_what_is_wanted(store: LineStore) -> None:
    new = "b" * 16
    store.begin_slicing(a_media(), SLICING, new)
    store.record_line([a_slice(0), a_slice(1)], [a_plan(2)])
    assert store.complete(["m1"]) == ()
    assert store.missing("m1") == Missing(None, (), (), is_assembled=False)
    store.record_line([a_slice(0, asr=new), a_slice(1, asr=new)], [a_plan(2, asr=new)])
    store.record_line([a_slice(1)], [a_plan(2)])
    assert store.complete(["m1"]) == (Complete(a_plan(2, asr=new), None),)
    assert texts(store, a_plan(2, asr=new)) == [f"m1 0 {new}", f"m1 1 {new}"]


def test_a_done_media_that_is_wanted_under_other_fingerprints_keeps_its_result_until_the_new_one(
    store: LineStore,
) -> None:
    store.record_line([a_slice(0)], [a_plan(1)])
    store.record_result(a_result(), "v1", SLICING, ASR)
    assert store.missing("m1").is_assembled
    assert store.unfinished(None, 0, 10) == ()
    store.begin_slicing(a_media(), SLICING, "b" * 16)
    assert store.complete(["m1"]) == ()
    assert not store.missing("m1").is_assembled
    assert [one.media_id for one in store.unfinished(None, 0, 10)] == ["m1"]
    assert store.result("m1") == a_result()
    assert store.ledger("m1") == a_result().ledger


def test_a_result_is_made_under_what_is_wanted_where_nothing_else_is_said(store: LineStore) -> None:
    store.record_result(a_result(), "v1")
    assert store.course_media("geometry") == (MadeUnder("m1", SLICING, ASR, "v1"),)


def test_what_lacks_is_told_by_slice(store: LineStore) -> None:
    broken = a_slice(2)
    broken = replace(broken, transcript=replace(broken.transcript, outcome=Outcome.FAILED, reason="no samples"))
    store.record_line([broken], [])
    assert store.missing("m1") == Missing(None, (), (2,), is_assembled=False)
    store.record_line([a_slice(0)], [a_plan(4)])
    assert store.missing("m1") == Missing(a_plan(4), (1, 3), (2,), is_assembled=False)


def test_what_is_asked_about_an_unknown_media_is_the_inputs_fault(store: LineStore) -> None:
    with pytest.raises(InvalidInputError, match="m9: no such media"):
        store.missing("m9")
    with pytest.raises(InvalidInputError, match="m9: no such media"):
        store.asked("m9")


def test_unfinished_media_are_those_silent_for_long_that_wait_or_run(store: LineStore) -> None:
    for media_id in ("done", "failed"):
        store.begin_slicing(a_media(media_id), SLICING, ASR)
    store.record_result(a_result("done"), "v1", SLICING, ASR)
    store.record_failure("failed", "broken", [])
    store.announce(a_media("waiting", "algebra"), Priority.NORMAL, None)
    store.record_line([a_slice(0)], [])  # the longest silent is now the one that waits
    assert [one.media_id for one in store.unfinished(None, 0, 10)] == ["waiting", "m1"]
    assert [one.media_id for one in store.unfinished(None, 0, 1)] == ["waiting"]
    assert store.unfinished("geometry", 0, 10) == store.status("m1")
    assert store.unfinished(None, 3600, 10) == ()


def test_the_media_of_a_course_tell_what_their_results_were_made_under(store: LineStore) -> None:
    store.begin_slicing(a_media("m2"), SLICING, ASR)
    store.begin_slicing(a_media("m3", "algebra"), SLICING, ASR)
    store.record_result(a_result("m2"), "v1", SLICING, ASR)
    store.begin_slicing(a_media("m2"), SLICING, "b" * 16)
    assert store.course_media("geometry") == (MadeUnder("m1", None, None, None), MadeUnder("m2", SLICING, ASR, "v1"))


TERMS = st.builds(Term, STORABLE, st.lists(STORABLE, max_size=3).map(tuple), st.sampled_from(["", "zh"]), STORABLE)
GLOSSARIES = st.builds(Glossary, st.lists(TERMS, max_size=4).map(tuple))


@settings(max_examples=30, deadline=None)
@given(GLOSSARIES, GLOSSARIES)
def test_a_glossary_comes_back_as_it_was_given_and_takes_the_place_of_the_one_before(
    shared_store: LineStore, before: Glossary, after: Glossary
) -> None:
    shared_store.record_glossary("geometry", before)
    shared_store.record_glossary("geometry", after)
    assert shared_store.glossary("geometry") == after


def test_a_course_has_the_subtitle_profile_that_was_last_set_and_netflix_before(store: LineStore) -> None:
    school = profile_from_toml("script = 's2hk'\nfillers = 'clean'\n[wide]\nmax_units_per_line = 18", "school.toml")
    assert store.profile("geometry") == NETFLIX
    for profile in (BUILT_IN["bbc"], school):
        store.record_profile("geometry", profile)
        assert store.profile("geometry") == profile
    assert store.profile("algebra") == NETFLIX


def test_each_course_has_a_glossary_of_its_own(store: LineStore) -> None:
    store.record_glossary("geometry", Glossary((Term("勾股定理", ("勾骨定理",), "zh"), Term("sine"))))
    store.record_glossary("algebra", Glossary((Term("ring", note="no \0 jewel"),)))
    assert [term.term for term in store.glossary("geometry").terms] == ["勾股定理", "sine"]
    assert store.glossary("algebra") == Glossary((Term("ring", note="no  jewel"),))
    assert store.glossary("history") == Glossary.empty()


def test_every_import_is_a_version_and_the_old_ones_stay(store: LineStore) -> None:
    first, second = Glossary((Term("斜边"),)), Glossary((Term("斜边", note="最长"), Term("sine")))
    assert [store.record_glossary("geometry", one, "terms.csv") for one in (first, second, second)] == [1, 2, 2]
    assert (store.glossary("geometry"), store.glossary("geometry", 1)) == (second, first)
    assert (store.glossary("geometry").version, store.glossary("geometry", 1).version) == (2, 1)
    with pytest.raises(InvalidInputError, match="no version 3"):
        store.glossary("geometry", 3)


def migrate(url: str, revision: str) -> None:
    engine = connect(url)
    with engine.begin() as connection:
        config = migrations()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    engine.dispose()


def test_a_library_of_the_version_before_keeps_its_results_and_knows_what_they_were_made_under(
    database_url: str, store: LineStore
) -> None:
    store.record_result(a_result(), "v1")
    store.announce(a_media("m2"), Priority.NORMAL, None)
    migrate(database_url, "0003")
    with store._transaction() as connection:
        states = connection.execute(text("select media_id, state from transcripts order by 1")).all()
    assert [tuple(row) for row in states] == [("m1", "done"), ("m2", "running")]
    upgrade(database_url)
    assert store.result("m1") == a_result()
    assert store.course_media("geometry") == (MadeUnder("m1", SLICING, ASR, "v1"), MadeUnder("m2", None, None, None))
