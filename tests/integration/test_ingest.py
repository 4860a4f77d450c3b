"""The ingest step: announcements become rows and runs, once each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from consumers.ingest import IngestStep
from consumers.intake import Received
from consumers.tracing import Tracing
from pipeline.announcements import MediaUploaded
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.identity import media_id_of
from pipeline.messages import encode
from pipeline.store_line import LineStore
from pipeline.values import Priority

URI = "file:///lectures/%E7%AC%AC1%E8%AE%B2.mp4"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Airflow:
    """Starts runs, or fails as it is told for a run id."""

    failures: Mapping[str, Exception] = field(default_factory=dict)
    runs: dict[str, Mapping[str, object]] = field(default_factory=dict)

    def start_run(self, dag_id: str, run_id: str, conf: Mapping[str, object]) -> bool:
        assert dag_id == "ingest_media"
        if run_id in self.failures:
            raise self.failures[run_id]
        is_new = run_id not in self.runs
        self.runs.setdefault(run_id, conf)
        return is_new


@pytest.fixture
def line_store(database_url: str) -> Iterator[LineStore]:
    with LineStore.open(database_url) as store:
        yield store


def received(message: MediaUploaded, offset: int = 0, written_ms: int = 0) -> Received:
    trace = (("traceparent", TRACE.encode()),)
    return Received("media.uploaded", 0, offset, b"geometry", encode(message), trace, written_ms)


def handled(store: LineStore, airflow: Airflow, *messages: MediaUploaded) -> list[object]:
    return handled_received(store, airflow, *map(received, messages))


def handled_received(store: LineStore, airflow: Airflow, *messages: Received) -> list[object]:
    step = IngestStep(store, airflow, Tracing(), print)
    return list(step.handle([step.prepare(message) for message in messages]))


LATER_MS = 4_000_000_000_000
"""After whatever fails in this century."""


def failed_once(store: LineStore, airflow: Airflow) -> Received:
    """The media ``a`` has failed; returns its announcement."""
    first = received(MediaUploaded("geometry", URI, media_id="a"), offset=1)
    handled_received(store, airflow, first)
    store.record_failure("a", "no media", [])
    return first


def another_try(offset: int = 2) -> Received:
    return received(MediaUploaded("geometry", URI, media_id="a", audio_track=2), offset, LATER_MS)


def test_a_media_is_recorded_as_waiting_and_its_run_started(line_store: LineStore) -> None:
    airflow = Airflow()
    uploaded = MediaUploaded("geometry", URI, language="zh", priority=Priority.URGENT, audio_track=2)
    assert handled(line_store, airflow, uploaded) == [()]
    media_id = media_id_of("geometry", URI)
    (status,) = line_store.status(media_id)
    assert (status.state, status.title) == ("waiting", "第1讲")
    assert airflow.runs == {
        media_id: {
            "media_id": media_id,
            "course_id": "geometry",
            "uri": URI,
            "title": "第1讲",
            "language": "zh",
            "priority": "urgent",
            "audio_track": 2,
            "traceparent": TRACE,
        }
    }


def test_a_media_that_comes_again_is_the_same_row_and_the_same_run(line_store: LineStore) -> None:
    airflow = Airflow()
    assert handled(line_store, airflow, *[MediaUploaded("geometry", URI)] * 3) == [()] * 3
    assert len(airflow.runs) == len(line_store.status()) == 1


def test_a_media_that_is_announced_again_after_it_failed_gets_another_run(line_store: LineStore) -> None:
    airflow = Airflow()
    failed_once(line_store, airflow)
    assert handled_received(line_store, airflow, another_try(), another_try()) == [(), ()]
    first_run, second_run = airflow.runs
    assert second_run.startswith(f"{first_run}+")
    assert airflow.runs[second_run]["audio_track"] == 2
    (status,) = line_store.status("a")
    assert (status.state, status.reason) == ("waiting", "")


def test_another_try_that_comes_twice_is_one_run_though_it_failed_in_between(line_store: LineStore) -> None:
    airflow = Airflow()
    failed_once(line_store, airflow)
    handled_received(line_store, airflow, another_try())
    line_store.record_failure("a", "no media", [])
    handled_received(line_store, airflow, another_try())
    assert len(airflow.runs) == 2
    assert line_store.status("a")[0].state == "failed"


def test_each_try_after_a_failure_is_a_run_of_its_own(line_store: LineStore) -> None:
    airflow = Airflow()
    for offset in (2, 3):
        failed_once(line_store, airflow)
        handled_received(line_store, airflow, another_try(offset))
    assert len(airflow.runs) == 3


def test_another_try_waits_for_airflow_as_a_first_one_does(line_store: LineStore) -> None:
    airflow = Airflow()
    failed_once(line_store, airflow)
    airflow.failures = {"a": RetriableError("Airflow is away")}
    with pytest.raises(RetriableError):
        handled_received(line_store, airflow, another_try())
    airflow.failures = {}
    handled_received(line_store, airflow, another_try())
    assert len(airflow.runs) == 2


def test_the_first_announcement_that_comes_again_after_the_failure_starts_nothing(line_store: LineStore) -> None:
    airflow = Airflow()
    first = failed_once(line_store, airflow)
    handled_received(line_store, airflow, first)
    assert list(airflow.runs) == ["a"]
    assert line_store.status("a")[0].state == "failed"


def test_a_media_that_is_worked_on_again_gets_no_other_run(line_store: LineStore) -> None:
    airflow = Airflow()
    failed_once(line_store, airflow)
    line_store.begin_slicing(line_store.media("a"), "slicing", "asr")
    handled_received(line_store, airflow, another_try())
    assert list(airflow.runs) == ["a"]


def test_a_media_that_failed_again_meanwhile_is_not_taken_for_waiting(line_store: LineStore) -> None:
    failed_once(line_store, Airflow())
    failed_at = line_store.status("a")[0].finished_at
    assert failed_at
    line_store.record_failure("a", "no media still", [])
    line_store.reopen("a", failed_at)
    assert line_store.status("a")[0].reason == "no media still"


def test_a_media_id_that_is_given_is_kept(line_store: LineStore) -> None:
    airflow = Airflow()
    handled(line_store, airflow, MediaUploaded("geometry", URI, media_id="几何/1"))
    assert line_store.media("几何/1").uri == URI
    ((run_id, conf),) = airflow.runs.items()
    assert conf["media_id"] == "几何/1"
    assert run_id.isascii()


def test_airflow_away_keeps_the_whole_batch_for_another_try(line_store: LineStore) -> None:
    airflow = Airflow({"b": RetriableError("Airflow is away")})
    messages = [MediaUploaded("geometry", f"file:///{name}.mp4", media_id=name) for name in "abc"]
    with pytest.raises(RetriableError):
        handled(line_store, airflow, *messages)
    airflow.failures = {}
    assert handled(line_store, airflow, *messages) == [()] * 3
    assert set(airflow.runs) == set("abc")


def test_a_run_that_airflow_refuses_does_not_hold_up_the_others(line_store: LineStore) -> None:
    refused = InvalidInputError("Airflow refuses the run")
    airflow = Airflow({"b": refused})
    messages = [MediaUploaded("geometry", f"file:///{name}.mp4", media_id=name) for name in "abc"]
    assert handled(line_store, airflow, *messages) == [(), refused, ()]
    assert set(airflow.runs) == set("ac")


def test_a_media_of_another_course_is_refused(line_store: LineStore) -> None:
    mine, theirs = (MediaUploaded(course, URI, media_id="a") for course in ("geometry", "algebra"))
    airflow = Airflow()
    first, second = handled(line_store, airflow, mine, theirs)
    assert first == ()
    assert isinstance(second, InvalidInputError)
    assert airflow.runs["a"]["course_id"] == "geometry"


def test_bytes_that_are_no_announcement_are_refused_before_anything_is_done(line_store: LineStore) -> None:
    step = IngestStep(line_store, Airflow(), Tracing(), print)
    with pytest.raises(InvalidInputError):
        step.prepare(Received("media.uploaded", 0, 0, None, b"\x00 garbage", (), 0))
