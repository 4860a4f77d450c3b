"""What a backfill starts, why, and how fast."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from pipeline.admission import admit, media_of
from pipeline.announcements import MediaUploaded
from pipeline.ledger import failed_ledger
from pipeline.publisher import Present
from pipeline.store_line import LineStore
from pipeline.values import Cost, Media, MediaResult
from tests.integration.speaking import LoudnessDetector

DEFAULTS: dict[str, object] = {
    "course_id": "geometry",
    "source": "",
    "uris": [],
    "language": None,
    "audio_track": None,
    "priority": "bulk",
    "per_minute": 30,
    "max_waiting": 50,
    "dry_run": False,
    "force": False,
}


@dataclass
class Airflow:
    """Starts runs; ``unfinished`` are others'."""

    unfinished: int = 0
    runs: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def start_run(self, _dag_id: str, run_id: str, conf: Mapping[str, Any]) -> bool:
        is_new = run_id not in self.runs
        self.runs[run_id] = conf
        return is_new

    def unfinished_runs(self, _dag_id: str) -> int:
        return self.unfinished


@pytest.fixture(autouse=True)
def airflow_api(line: Any, monkeypatch: pytest.MonkeyPatch) -> Airflow:
    assert line
    from dags import backfill_course

    api = Airflow()
    monkeypatch.setattr(backfill_course, "opened_airflow", lambda _: api)
    return api


def minutes(**asked: object) -> Iterator[dict[str, int]]:
    """The counts after each minute of a backfill; the last are its result."""
    from airflow.sdk.exceptions import TaskDeferred

    from dags.backfill_course import StartRuns

    task = StartRuns(task_id="start_runs")
    context: Any = {"params": {**DEFAULTS, **asked}, "run_id": "manual__1"}
    state: dict[str, Any] | None = None
    while True:
        try:
            yield task.resume(context, None, **state) if state else task.execute(context)
            return
        except TaskDeferred as deferred:
            state = dict(deferred.kwargs or {})
            yield dict(state["counts"])


def whole(**asked: object) -> dict[str, int]:
    *_, last = minutes(**asked)
    return last


def finished(store: LineStore, name: str, fingerprint: str | None = None) -> Media:
    """A media that is done, under the present fingerprints where none is given."""
    media = admit(MediaUploaded("geometry", f"file:///{name}.mp4", media_id=name), store)
    present = Present(store, LoudnessDetector.fingerprint, "base").options(media)
    result = MediaResult(name, "zh", 0, 0, (), (), (), (), (), (), Cost(0, 0, 0.0))
    store.record_result(result, fingerprint or present.result, present.slicing, present.asr)
    return media


def folder(tmp_path: Path, *names: str) -> str:
    for name in names:
        path = tmp_path / "lectures" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()
    return (tmp_path / "lectures").as_uri()


def test_every_media_of_a_folder_gets_its_run(airflow_api: Airflow, tmp_path: Path) -> None:
    source = folder(tmp_path, "a.mp4", "2/第二讲.mkv", "notes.txt", "._a.mp4")
    assert whole(source=source, language="zh", audio_track=2) == {"started": 2}
    uris = {f"{source}/a.mp4", f"{source}/2/%E7%AC%AC%E4%BA%8C%E8%AE%B2.mkv"}
    assert {conf["uri"] for conf in airflow_api.runs.values()} == uris
    assert set(airflow_api.runs) == {media_of(MediaUploaded("geometry", uri)).media_id for uri in uris}
    assert {(one["priority"], one["language"], one["audio_track"]) for one in airflow_api.runs.values()} == {
        ("bulk", "zh", 2)
    }


def test_a_second_backfill_of_the_same_list_starts_nothing() -> None:
    uris = ["file:///a.mp4", "file:///b.mp4", "file:///a.mp4"]
    assert whole(uris=uris) == {"started": 2}
    assert whole(uris=uris) == {"already there": 2}


def test_only_media_that_were_made_otherwise_go_again(airflow_api: Airflow, store: LineStore) -> None:
    finished(store, "fresh")
    old = finished(store, "old", "made otherwise")
    assert whole() == {"started": 1, "left alone": 1}
    ((run_id, conf),) = airflow_api.runs.items()
    assert run_id.startswith("old+")
    assert (conf["uri"], conf["force"]) == (old.uri, False)


def test_media_that_failed_go_again_only_by_force_and_in_a_run_of_their_own(
    airflow_api: Airflow, store: LineStore
) -> None:
    finished(store, "fresh")
    finished(store, "bad")
    store.record_failure("bad", "no media", failed_ledger(1, "no media"))
    assert whole() == {"left alone": 2}
    assert whole(force=True) == {"started": 2}
    assert whole(force=True) == {"already there": 2}, "a retry of the same backfill starts nothing twice"
    assert all(conf["force"] and "+" in run_id for run_id, conf in airflow_api.runs.items())


def test_media_that_are_being_worked_on_are_left_alone(store: LineStore) -> None:
    media = admit(MediaUploaded("geometry", "file:///a.mp4"), store)
    assert whole() == {"started": 1}
    store.begin_slicing(media, "s", "a")
    assert whole() == {"left alone": 1}


def test_a_dry_run_starts_nothing_and_says_what_it_would_do_and_why(
    airflow_api: Airflow, store: LineStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    finished(store, "fresh")
    finished(store, "old", "made otherwise")
    assert whole(dry_run=True) == {"left alone": 1, "to be started": 1}
    assert airflow_api.runs == {}
    said = caplog.text
    assert "media old (file:///old.mp4): to be started: its result was made with another model" in said
    assert "media fresh (file:///fresh.mp4): left alone: its result is up to date" in said


def test_no_more_runs_are_started_in_a_minute_than_asked_for(airflow_api: Airflow) -> None:
    uris = [f"file:///{number}.mp4" for number in range(7)]
    assert [counts["started"] for counts in minutes(uris=uris, per_minute=3)] == [3, 6, 7]
    assert len(airflow_api.runs) == 7


def test_nothing_is_started_while_enough_runs_are_unfinished(airflow_api: Airflow) -> None:
    uris = [f"file:///{number}.mp4" for number in range(4)]
    airflow_api.unfinished = 9
    course_of_things = minutes(uris=uris, max_waiting=10)
    assert next(course_of_things) == {"started": 1}
    airflow_api.unfinished = 10
    assert next(course_of_things) == {"started": 1}
    airflow_api.unfinished = 0
    assert next(course_of_things) == {"started": 4}


def test_what_can_be_no_media_is_refused_and_the_others_go_on() -> None:
    assert whole(uris=["file:///a.mp4", " "], course_id="geometry") == {"started": 1, "refused": 1}


def test_a_folder_that_is_not_there_fails_the_backfill_at_once(airflow_api: Airflow, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="no such folder"):
        whole(source=(tmp_path / "none").as_uri())
    assert airflow_api.runs == {}
