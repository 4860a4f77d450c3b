"""The assembling consumer over a real PostgreSQL: what it makes, whatever comes in whatever order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consumers import assemble
from consumers.assemble import AssembleStep, Target, wire
from consumers.intake import Received
from consumers.loop import run
from consumers.membership import open_consumer
from consumers.metrics import PUBLISHED_MS, Metrics
from consumers.tracing import Tracing
from consumers.wiring import Surroundings
from pipeline.broker import SLICE_TRANSCRIPTS, TRANSCRIPTS_COMPLETED, Outgoing, Sender, Topic, create_topics
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.finishing import Heard, cost_of, finish
from pipeline.message_segments import SegmentSpoken
from pipeline.messages import MediaSliced, SliceTranscribed, TranscriptsCompleted, decode_completed, encode
from pipeline.postprocess import Glossary, PostprocessOptions, Term
from pipeline.settings import settings_from
from pipeline.store_line import LineStore
from pipeline.subtitle_profiles import NETFLIX
from pipeline.subtitles import document_of, render
from pipeline.values import Boundary, Media, MediaPlan, MediaResult, Outcome, Priority, Segment, Span, Word

SLICING, ASR = "5" * 16, "a" * 16
NUMBERS = itertools.count()
TERMS = Glossary((Term("勾股定理", ("构古定理",), "zh", ""),))
SAID = "今天我们讲构古定理，它说的是直角三角形"


def a_media(course_id: str = "geometry", uri: str = "file:///lectures/%E7%AC%AC1%E8%AF%BE.mp4") -> Media:
    return Media(f"m{next(NUMBERS)}", course_id, uri, "第1课", "f00", None, "zh")


def a_slice(media: Media, index: int, said: str = SAID) -> SliceTranscribed:
    start_ms = index * 30_000 + 1_000
    words = [Word(one, start_ms + at * 250, start_ms + at * 250 + 240, 0.9) for at, one in enumerate(said)]
    segment = Segment(start_ms, words[-1].end_ms, said, tuple(words), -0.1, 0.0, 1.0, 0.0)
    return SliceTranscribed(
        course_id=media.course_id,
        media_id=media.media_id,
        slice_index=index,
        start_ms=index * 30_000,
        end_ms=index * 30_000 + 30_000,
        boundary=Boundary.SILENCE,
        speech=((start_ms, words[-1].end_ms),),
        slicing=SLICING,
        asr=ASR,
        engine="base on a CPU",
        language="zh",
        language_probability=0.9,
        segments=(SegmentSpoken.of(segment),),
        outcome=Outcome.TRANSCRIBED,
        reason="",
        attempts=1,
        engine_ms=300 + index,
    )


def an_end(media: Media, slice_count: int) -> MediaSliced:
    duration_ms = slice_count * 30_000 + 5_000
    missing = (Span(duration_ms - 1_000, duration_ms),)
    plan = MediaPlan(media.media_id, SLICING, ASR, slice_count, duration_ms, missing, ("1 s lacks",), 700)
    return MediaSliced.of(plan, media.course_id)


def messages_of(media: Media, slice_count: int) -> list[SliceTranscribed | MediaSliced]:
    return [*(a_slice(media, index) for index in range(slice_count)), an_end(media, slice_count)]


def in_one_process(media: Media, slice_count: int, glossary: Glossary) -> MediaResult:
    """What the steps make of the same slices without Kafka and PostgreSQL."""
    made = [a_slice(media, index).to_value() for index in range(slice_count)]
    plan = an_end(media, slice_count).to_plan()
    cost = cost_of(sum(one.transcript.engine_ms for one in made), plan.slicing_ms, 0.36)
    heard = Heard(plan.duration_ms, plan.missing, plan.warnings)
    slices, transcripts = [one.slice for one in made], [one.transcript for one in made]
    return finish(media.media_id, slices, transcripts, heard, glossary, PostprocessOptions(), cost)


class Line:
    """An assembler, and what it answers."""

    def __init__(self, store: LineStore, media_store: Path) -> None:
        self.store, self.metrics = store, Metrics()
        target = Target(media_store.as_uri(), ("srt", "json"), 0.36)
        self.step = AssembleStep(store, target, self.metrics, Tracing())

    def begin(self, media: Media) -> Media:
        self.store.begin_slicing(media, SLICING, ASR)
        return media

    def answer(
        self, messages: Sequence[SliceTranscribed | MediaSliced], headers: tuple[tuple[str, bytes], ...] = ()
    ) -> list[Sequence[Outgoing] | InvalidInputError]:
        batch = [
            Received(SLICE_TRANSCRIPTS, 0, at, one.course_id.encode(), encode(one), headers, 0)
            for at, one in enumerate(messages)
        ]
        return list(self.step.handle([self.step.prepare(one) for one in batch]))

    def announced(self, messages: Sequence[SliceTranscribed | MediaSliced]) -> list[TranscriptsCompleted]:
        """What one batch brings about; all of it must have been good."""
        answers = self.answer(messages)
        assert not [one for one in answers if isinstance(one, InvalidInputError)]
        return [decode_completed(out.value) for one in answers if not isinstance(one, InvalidInputError) for out in one]


@pytest.fixture
def line(database_url: str, tmp_path: Path) -> Iterator[Line]:
    with LineStore.open(database_url) as store:
        yield Line(store, tmp_path)


@pytest.fixture(scope="module")
def shared_line(
    fresh_database: Callable[[], AbstractContextManager[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Line]:
    """For all examples of a property; each has media of its own."""
    with fresh_database() as url, LineStore.open(url) as store:
        store.record_glossary("geometry", TERMS)
        yield Line(store, tmp_path_factory.mktemp("media"))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.data())
def test_the_rows_are_those_of_one_process_whatever_comes_when_and_how_often(
    shared_line: Line, slice_counts: list[int], data: st.DataObject
) -> None:
    media = {shared_line.begin(a_media()): count for count in slice_counts}
    once = [message for one, count in media.items() for message in messages_of(one, count)]
    again = data.draw(st.lists(st.sampled_from(once), max_size=6), "again")
    messages = data.draw(st.permutations(once + again), "messages")
    announced: set[str] = set()
    while messages:
        count = data.draw(st.integers(1, len(messages)), "batch")
        announced |= {one.media_id for one in shared_line.announced(messages[:count])}
        messages = messages[count:]
    assert announced == {one.media_id for one in media}
    for one, count in media.items():
        assert shared_line.store.result(one.media_id) == in_one_process(one, count, TERMS)


def test_a_course_that_wants_other_subtitles_gets_them(line: Line) -> None:
    media = line.begin(a_media())
    line.announced(messages_of(media, 2))
    plain = line.store.result(media.media_id)
    narrow = replace(NETFLIX, wide=replace(NETFLIX.wide, max_units_per_line=4), script="s2t")
    line.store.record_profile(media.course_id, narrow)
    line.announced([an_end(media, 2)])
    made = line.store.result(media.media_id)
    assert made.cues != plain.cues
    assert all(len(row) <= 4 for cue in made.cues for row in cue.lines)
    assert made.ledger == plain.ledger


WORDS = st.builds(
    Word,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.integers(0, 2**53 - 1) | st.integers(0, 40_000),
    st.integers(0, 2**53 - 1) | st.integers(0, 40_000),
    st.floats(),
)
SEGMENTS = st.builds(
    Segment,
    st.integers(0, 40_000),
    st.integers(0, 40_000),
    st.text(max_size=4),
    st.lists(WORDS, max_size=6).map(tuple),
    *[st.floats()] * 4,
)


TOO_FAST_AND_TOO_SHORT = Segment(0, 0, "", (Word("", 34_868, 0, 0), Word("0", 0, 0, 0)), 0, 0, 0, 0)
RUNS_BACKWARDS = Segment(1, 0, "0", (), 0, 0, 0, 0)


@settings(deadline=None, max_examples=60)
@example([TOO_FAST_AND_TOO_SHORT], "zh", Outcome.TRANSCRIBED)
@example([RUNS_BACKWARDS], "zh", Outcome.TRANSCRIBED)
@given(st.lists(SEGMENTS, max_size=2), st.sampled_from(["zh", "en", "de", "?"]), st.sampled_from(Outcome))
def test_nothing_that_a_message_can_hold_ends_the_consumer(
    shared_line: Line, segments: list[Segment], language: str, outcome: Outcome
) -> None:
    media = shared_line.begin(a_media())
    spoken = tuple(SegmentSpoken.of(one) for one in segments)
    odd = msgspec.structs.replace(
        a_slice(media, 0), speech=((0, 9), (5, 30_000)), language=language, segments=spoken, outcome=outcome
    )
    try:
        encode(odd)
    except InvalidInputError:
        return
    answers = shared_line.answer([odd, an_end(media, 1)])
    (status,) = shared_line.store.status(media.media_id)
    assert status.state == ("failed" if isinstance(answers[1], InvalidInputError) else "done")


def test_a_media_is_announced_with_the_last_of_its_messages_under_its_course(line: Line) -> None:
    first, second = line.begin(a_media()), line.begin(a_media("algebra"))
    messages = [*messages_of(first, 2), a_slice(second, 0)]
    answers = line.answer(messages)
    assert [len(one) for one in answers if not isinstance(one, InvalidInputError)] == [0, 0, 1, 0]
    (out,) = answers[2]  # type: ignore[misc]
    assert (out.topic, out.key) == (TRANSCRIPTS_COMPLETED, "geometry")


def test_the_announcement_counts_what_was_made(line: Line) -> None:
    media = line.begin(a_media())
    (completed,) = line.announced(messages_of(media, 2))
    result = in_one_process(media, 2, Glossary.empty())
    assert completed == TranscriptsCompleted(
        course_id="geometry",
        media_id=media.media_id,
        title="第1课",
        language="zh",
        duration_ms=65_000,
        speech_ms=result.speech_ms,
        cues=len(result.cues),
        violations=len(result.violations),
        filtered_ms=0,
        failed_ms=1_000,
        files=completed.files,
    )


def test_the_files_lie_in_the_media_store_under_course_and_media(line: Line, tmp_path: Path) -> None:
    media = line.begin(a_media())
    (completed,) = line.announced(messages_of(media, 1))
    folder = tmp_path / "subtitles" / "geometry" / media.media_id
    files = [folder / "第1课.zh.srt", folder / "第1课.zh.json"]
    assert completed.files == tuple(file.as_uri() for file in files)
    document = document_of(media, in_one_process(media, 1, Glossary.empty()))
    assert [file.read_text("utf-8") for file in files] == [render(name, media=document) for name in ("srt", "json")]


@pytest.mark.parametrize("course_id", ["../../../out", "..", "a/b", "/etc"])
def test_no_course_writes_outside_the_media_store(line: Line, tmp_path: Path, course_id: str) -> None:
    media = line.begin(replace(a_media(course_id, "s3://media/../.mp4"), media_id=course_id))
    (completed,) = line.announced(messages_of(media, 1))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.as_uri() for path in files) == sorted(completed.files)
    assert {path.parents[2] for path in files} == {tmp_path / "subtitles"}


def test_a_silent_media_is_complete_with_its_end_mark(line: Line) -> None:
    media = line.begin(a_media())
    (completed,) = line.announced([an_end(media, 0)])
    assert (completed.cues, completed.language, line.store.status(media.media_id)[0].state) == (0, "", "done")


def test_a_media_is_not_announced_before_it_is_whole(line: Line) -> None:
    media = line.begin(a_media())
    assert line.announced([a_slice(media, 0), an_end(media, 2)]) == []
    assert line.store.status(media.media_id)[0].state == "running"


def test_messages_of_an_unknown_media_are_refused_and_the_others_stored(line: Line) -> None:
    known, unknown = line.begin(a_media()), a_media()
    answers = line.answer([*messages_of(unknown, 1), *messages_of(known, 1)])
    assert [str(one) for one in answers[:2]] == [
        f"{unknown.media_id}: the media is not recorded; announce it on media.uploaded"
    ] * 2
    assert len(answers[3]) == 1  # type: ignore[arg-type]


def test_bytes_that_are_no_message_are_refused(line: Line) -> None:
    with pytest.raises(InvalidInputError):
        line.step.prepare(Received(SLICE_TRANSCRIPTS, 0, 0, b"geometry", b"garbage", (), 0))


def test_a_media_that_cannot_be_finished_fails_alone(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = line.begin(a_media()), line.begin(a_media())

    def finish_good(media_id: str, *rest: Any) -> MediaResult:
        if media_id == bad.media_id:
            raise InvalidInputError("its words run backwards")
        return finish(media_id, *rest)

    monkeypatch.setattr(assemble, "finish", finish_good)
    answers = line.answer([*messages_of(bad, 1), *messages_of(good, 1)])
    assert [isinstance(one, InvalidInputError) for one in answers] == [False, True, False, False]
    assert len(answers[3]) == 1  # type: ignore[arg-type]
    (status,) = line.store.status(bad.media_id)
    assert (status.state, status.reason, status.failed_ms) == ("failed", "its words run backwards", 35_000)


def test_a_message_that_comes_again_announces_again_and_makes_nothing_anew(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    media = line.begin(a_media())
    first = line.announced(messages_of(media, 2))
    monkeypatch.setattr(assemble, "finish", None)
    assert line.announced([a_slice(media, 1)]) == first


def test_a_media_store_that_was_away_gets_its_files_when_the_batch_comes_again(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    media = line.begin(a_media())

    def away(*_: object) -> tuple[str, ...]:
        raise RetriableError("the media store cannot be written now")

    with monkeypatch.context() as patch:
        patch.setattr(assemble, "write_subtitles", away)
        with pytest.raises(RetriableError):
            line.answer(messages_of(media, 1))
    (completed,) = line.announced(messages_of(media, 1))
    assert len(completed.files) == 2


def test_a_new_glossary_holds_for_what_comes_again(line: Line) -> None:
    media = line.begin(a_media())
    line.announced(messages_of(media, 1))
    line.store.record_glossary("geometry", TERMS)
    line.announced([an_end(media, 1)])
    assert line.store.result(media.media_id) == in_one_process(media, 1, TERMS)
    assert "勾股定理" in line.store.result(media.media_id).sentences[0].text


def test_a_glossary_is_its_course_s_own(line: Line) -> None:
    media = line.begin(a_media("algebra"))
    line.store.record_glossary("geometry", TERMS)
    line.announced(messages_of(media, 1))
    assert line.store.result(media.media_id) == in_one_process(media, 1, Glossary.empty())


def test_the_time_that_slicing_and_waiting_took_is_measured(line: Line) -> None:
    media = line.begin(a_media())
    line.answer(messages_of(media, 2), ((PUBLISHED_MS, b"1000"),))
    line.answer(messages_of(media, 2)[:1])
    value = line.metrics.registry.get_sample_value
    assert value("lecturemill_slicing_seconds_sum") == 0.7
    assert value("lecturemill_slice_to_store_seconds_count") == 2
    assert value("lecturemill_upload_to_store_seconds_count") == 1
    assert 0 <= (value("lecturemill_upload_to_store_seconds_sum") or 0) < 600


def completed_on(brokers: str, media_id: str) -> TranscriptsCompleted:
    consumer = open_consumer(brokers, "test", f"test-{media_id}")
    consumer.subscribe([TRANSCRIPTS_COMPLETED])
    try:
        while True:
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    completed = decode_completed(record.value)
                    if completed.media_id == media_id:
                        return completed
    finally:
        consumer.close(autocommit=False)


def test_through_a_real_broker_a_media_is_announced(
    kafka: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LECTUREMILL_FORMATS", "txt")
    own = Topic("test.assemble", 3_600_000)
    create_topics(kafka, 2, topics=[own, Topic(TRANSCRIPTS_COMPLETED, 3_600_000)])
    found = settings_from(
        {"LECTUREMILL_HOME": str(tmp_path), "DATABASE_URL": database_url, "LECTUREMILL_BROKERS": kafka}
    )
    media, stop = replace(a_media(), media_id="assembled-through-kafka"), threading.Event()
    with LineStore.open(database_url) as store:
        store.begin_slicing(media, SLICING, ASR)
    with wire(Surroundings(found, Metrics(), Tracing(), print)) as (step, rules), Sender.open(kafka, "test") as sender:
        assert rules.topics == {Priority.NORMAL: SLICE_TRANSCRIPTS}
        sender.send([Outgoing(own.name, media.course_id, encode(one)) for one in messages_of(media, 2)])
        rules = replace(rules, topics={Priority.NORMAL: own.name})
        loop = threading.Thread(
            target=run, args=(step, open_consumer(kafka, "test", rules.group), sender, rules, None, stop)
        )
        loop.start()
        try:
            completed = completed_on(kafka, media.media_id)
        finally:
            stop.set()
            loop.join()
    assert completed.files == ((tmp_path / "media/subtitles/geometry" / media.media_id / "第1课.zh.txt").as_uri(),)
