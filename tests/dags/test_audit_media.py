"""What the audit does with media that are stuck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline.admission import admit
from pipeline.announcements import MediaUploaded
from pipeline.broker import Outgoing
from pipeline.decoding import find_ffmpeg
from pipeline.messages import MediaSliced, SliceReady, decode_audio_topic
from pipeline.publisher import Present, Publisher
from pipeline.publishing import PublishingTools
from pipeline.store_line import LineStore
from pipeline.values import Media
from tests.dags.conftest import Line
from tests.integration.speaking import LoudnessDetector, write_sound


@dataclass
class Airflow:
    """Knows the state of runs, and starts others."""

    states: dict[str, str] = field(default_factory=dict)
    started: dict[str, Mapping[str, object]] = field(default_factory=dict)
    sliced: tuple[str, ...] = ()
    """Runs whose slicing task is done."""

    def run_state(self, _dag_id: str, run_id: str) -> str:
        return self.states.get(run_id, "")

    def task_state(self, _dag_id: str, run_id: str, _task_id: str) -> str:
        return "success" if run_id in self.sliced else "running"

    def start_run(self, _dag_id: str, run_id: str, conf: Mapping[str, object]) -> bool:
        self.started[run_id] = conf
        self.states[run_id] = "queued"
        return True


class Deaf:
    """A broker that loses what it is sent."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        self.sent += outgoings


def audit(store: LineStore, airflow: Airflow, send: Any, *, is_behind: bool = False, limit: int = 20) -> dict[str, int]:
    from dags.audit_media import Auditing, suspects

    tools = PublishingTools(store, send, LoudnessDetector, find_ffmpeg())
    publisher = Publisher(tools, Present(store, LoudnessDetector.fingerprint, "base"), print)
    asked = {"course_id": None, "media_id": None, "silent_minutes": 0}
    found = suspects(store, asked)
    auditing = Auditing(publisher, airflow, lambda _: is_behind)  # type: ignore[arg-type]
    return {name: count for name, count in auditing.with_all(found, limit).items() if count}


def recorded(store: LineStore, tmp_path: Path, name: str = "a") -> Media:
    uri = write_sound(tmp_path / f"{name}.wav", *[(25.0, 5.0)] * 3).as_uri()
    return admit(MediaUploaded("geometry", uri, media_id=name), store)


def test_a_waiting_media_without_a_run_gets_one(store: LineStore, tmp_path: Path) -> None:
    media, airflow = recorded(store, tmp_path), Airflow()
    assert audit(store, airflow, None) == {"started": 1}
    assert airflow.started["a"]["uri"] == media.uri
    assert audit(store, airflow, None) == {"left alone": 1}


def test_what_a_broker_lost_is_sent_again_and_the_media_gets_done(line: Line, store: LineStore, tmp_path: Path) -> None:
    recorded(store, tmp_path)
    deaf, airflow = Deaf(), Airflow({"a": "failed"})
    slices = audit(store, airflow, deaf.send)["slices"]
    assert (len(deaf.sent), slices) == (slices + 1, 3)
    assert audit(store, airflow, line.send) == {"sent again": 1, "slices": 3}
    line.settle()
    (status,) = store.status("a")
    assert (status.state, status.slices_done) == ("done", 3)
    assert audit(store, airflow, deaf.send) == {}


def test_only_the_missing_slices_are_sent_again(line: Line, store: LineStore, tmp_path: Path) -> None:
    recorded(store, tmp_path)
    deaf = Deaf()
    audit(store, Airflow({"a": "failed"}), deaf.send)
    line.send(deaf.sent[:1])
    line.settle()
    again = Deaf()
    audit(store, Airflow({"a": "failed"}), again.send)
    *slices, mark = [decode_audio_topic(one.value) for one in again.sent]
    assert [one.slice_index for one in slices if isinstance(one, SliceReady)] == [1, 2]
    assert isinstance(mark, MediaSliced)


def test_a_media_is_left_alone_while_the_consumers_are_behind(store: LineStore, tmp_path: Path) -> None:
    recorded(store, tmp_path)
    deaf = Deaf()
    assert audit(store, Airflow({"a": "failed"}), deaf.send, is_behind=True) == {"left alone": 1}
    assert deaf.sent == []


def test_a_media_is_left_alone_while_its_run_is_slicing_it(store: LineStore, tmp_path: Path) -> None:
    recorded(store, tmp_path)
    assert audit(store, Airflow({"a": "running"}), None) == {"left alone": 1}


def test_a_media_whose_end_mark_was_lost_is_sent_again_while_its_run_waits(store: LineStore, tmp_path: Path) -> None:
    recorded(store, tmp_path)
    deaf = Deaf()
    assert audit(store, Airflow({"a": "running"}, sliced=("a",)), deaf.send) == {"sent again": 1, "slices": 3}
    assert len(deaf.sent) == 4


def test_a_media_whose_file_is_gone_does_not_hold_up_the_others(store: LineStore, tmp_path: Path) -> None:
    recorded(store, tmp_path, "a")
    recorded(store, tmp_path, "b")
    (tmp_path / "a.wav").unlink()
    deaf = Deaf()
    assert audit(store, Airflow({"a": "failed", "b": "failed"}), deaf.send) == {
        "failed": 1,
        "sent again": 1,
        "slices": 3,
    }
    assert {status.media_id: status.state for status in store.status()} == {"a": "failed", "b": "running"}


def test_no_more_media_are_set_going_than_the_limit_and_those_left_alone_do_not_count(
    store: LineStore, tmp_path: Path
) -> None:
    for name in "abcd":
        recorded(store, tmp_path, name)
    airflow = Airflow({"a": "queued"})
    assert audit(store, airflow, None, limit=2) == {"started": 2, "left alone": 1}
    assert set(airflow.started) == {"b", "c"}


@pytest.mark.parametrize(("oldest_ms", "expected"), [({}, False), ({"transcribe": 0}, True), ({"assemble": 0}, True)])
def test_a_message_that_has_waited_for_long_means_that_the_consumers_are_behind(
    airflow: Path, monkeypatch: pytest.MonkeyPatch, oldest_ms: dict[str, int], *, expected: bool
) -> None:
    assert airflow.is_dir()
    from consumers import backlog
    from dags.audit_media import is_behind
    from pipeline.values import Priority

    monkeypatch.setattr(backlog, "oldest_unread_ms", lambda _brokers, group, _topics: oldest_ms.get(group))
    assert is_behind("brokers", Priority.NORMAL, 60) is expected
