"""What doctor finds of the line over many machines, and what it says to do about it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from pipeline import broker, doctor_line
from pipeline.broker_state import BrokerState, Group, broker_state
from pipeline.doctor import Finding
from pipeline.doctor_line import examine_line
from pipeline.errors import RetriableError
from pipeline.settings import Settings

NOBODY = "127.0.0.1:1"
WELL = BrokerState("4.3", 3, (), (), (Group("ingest", 1, 0), Group("transcribe", 4, 120)), {})
HEALTHY = {name: {"status": "healthy"} for name in ("metadatabase", "scheduler", "triggerer", "dag_processor")}
READY = {"is_stale": False, "has_import_errors": False, "is_paused": False}
ANSWERS: Mapping[str, object] = {
    "/api/v2/monitor/health": HEALTHY,
    "/auth/token": {"access_token": "t"},
    **{f"/api/v2/dags/{name}": READY for name in doctor_line.DAGS},
}


@pytest.fixture
def make_airflow() -> Iterator[Callable[[Mapping[str, object]], str]]:
    """The URL of a server that answers as Airflow does, and 404 where it is given no answer."""
    servers = []

    def make(answers: Mapping[str, object]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path in answers else 404)
                self.end_headers()
                self.wfile.write(json.dumps(answers.get(self.path)).encode())

            def log_message(self, *_: object) -> None:
                """Nothing on standard error."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., dict[str, Finding]]:
    """The findings by name, where Kafka and the database are well."""

    @contextmanager
    def open_database(_: Settings) -> Iterator[str]:
        yield "postgresql://somewhere"

    monkeypatch.setattr(doctor_line, "broker_state", lambda _: WELL)
    monkeypatch.setattr(doctor_line, "open_database", open_database)
    monkeypatch.setattr(doctor_line, "server_time_s", lambda _: time.time())

    def found(airflow_url: str = f"http://{NOBODY}", media_store: Path = tmp_path, **environment: str) -> Any:
        settings = Settings(tmp_path, tmp_path, None, 1, NOBODY, media_store.as_uri(), airflow_url)
        return {one.what: one for one in examine_line(settings, environment)}

    return found


Make = Callable[[Mapping[str, object]], str]
Examine = Callable[..., dict[str, Finding]]


def test_a_line_that_is_well_has_no_problem_and_needs_no_remedy(make_airflow: Make, examine: Examine) -> None:
    findings = examine(make_airflow(ANSWERS))
    assert list(findings) == [
        *("kafka", "topics", "group ingest", "group transcribe", "dead letters", "airflow"),
        *("dag ingest_media", "dag backfill_course", "dag audit_media", "media store", "clocks"),
    ]
    assert all(one.is_ok and not one.remedy for one in findings.values())
    assert findings["group transcribe"].detail == "4 members, 120 messages waiting"


def test_a_broker_that_is_away_is_a_finding_and_the_rest_is_examined(
    monkeypatch: pytest.MonkeyPatch, examine: Examine
) -> None:
    def unreachable(**_: object) -> None:
        raise KafkaTimeoutError("Unable to bootstrap")

    monkeypatch.setattr(broker, "KafkaAdminClient", unreachable)
    monkeypatch.setattr(doctor_line, "broker_state", broker_state)
    findings = examine()
    assert not findings["kafka"].is_ok
    assert NOBODY in findings["kafka"].detail
    assert findings["kafka"].remedy == "start it (make stack), or correct LECTUREMILL_BROKERS"
    assert "topics" not in findings
    assert findings["media store"].is_ok


@pytest.mark.parametrize(
    ("state", "what", "detail", "remedy"),
    [
        ({"missing": ("media.uploaded",)}, "topics", "missing: media.uploaded", "python -m consumers.topics"),
        ({"unfit": ("a: b is 1, not 2",)}, "topics", "a: b is 1, not 2", "kafka-configs --alter"),
        ({"groups": (Group("ingest", 0, 7),)}, "group ingest", "0 members, 7 messages", "python -m consumers.ingest"),
        ({"dead": {"media.uploaded.dead": 2}}, "dead letters", "media.uploaded.dead: 2", "python -m consumers.redrive"),
    ],
)
def test_what_is_wrong_in_kafka_has_its_remedy(
    monkeypatch: pytest.MonkeyPatch, examine: Examine, state: Mapping[str, Any], what: str, detail: str, remedy: str
) -> None:
    sound = {"missing": (), "unfit": (), "groups": (), "dead": {}}
    monkeypatch.setattr(doctor_line, "broker_state", lambda _: BrokerState("4.3", 1, **{**sound, **state}))
    finding = examine()[what]
    assert not finding.is_ok
    assert detail in finding.detail
    assert remedy in finding.remedy


def test_an_airflow_that_is_away_is_named_with_its_remedy(examine: Examine) -> None:
    findings = examine()
    assert not findings["airflow"].is_ok
    assert f"http://{NOBODY}" in findings["airflow"].detail
    assert findings["airflow"].remedy == "start it (make stack), or correct LECTUREMILL_AIRFLOW_URL"
    assert not [what for what in findings if what.startswith("dag")]


@pytest.mark.parametrize(
    ("path", "answer", "what", "detail"),
    [
        ("monitor/health", {**HEALTHY, "scheduler": {"status": "unhealthy"}}, "airflow", "scheduler unhealthy"),
        ("monitor/health", "no Airflow", "airflow", "does not answer as Airflow does"),
        ("dags/ingest_media", {**READY, "is_paused": True}, "dag ingest_media", "paused"),
        ("dags/audit_media", {**READY, "has_import_errors": True}, "dag audit_media", "cannot be imported"),
        ("dags/audit_media", {**READY, "is_stale": True}, "dag audit_media", "not there"),
    ],
)
def test_what_is_wrong_in_airflow_is_told_by_part(
    make_airflow: Make, examine: Examine, path: str, answer: object, what: str, detail: str
) -> None:
    finding = examine(make_airflow({**ANSWERS, f"/api/v2/{path}": answer}))[what]
    assert not finding.is_ok
    assert detail in finding.detail
    assert finding.remedy


def test_a_dag_that_airflow_has_not_read_is_a_finding(make_airflow: Make, examine: Examine) -> None:
    answers = {path: answer for path, answer in ANSWERS.items() if "backfill" not in path}
    findings = examine(make_airflow(answers))
    assert {what for what, one in findings.items() if not one.is_ok} == {"dag backfill_course"}


def test_an_airflow_that_does_not_let_doctor_in_is_told_apart_from_one_that_is_ill(
    make_airflow: Make, examine: Examine
) -> None:
    findings = examine(make_airflow({"/api/v2/monitor/health": HEALTHY}))
    assert findings["airflow"].is_ok
    assert not findings["dags"].is_ok
    assert "LECTUREMILL_AIRFLOW_PASSWORD_FILE" in findings["dags"].remedy


def test_a_media_store_that_cannot_be_written_is_a_finding(examine: Examine) -> None:
    finding = examine(media_store=Path("/dev/null/media"))["media store"]
    assert not finding.is_ok
    assert finding.remedy == "make it writable, or correct LECTUREMILL_MEDIA_STORE"


@pytest.mark.parametrize(("skew_s", "is_ok"), [(-60.0, False), (-4.0, True), (4.0, True), (60.0, False)])
def test_a_clock_that_is_seconds_off_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, examine: Examine, skew_s: float, is_ok: bool
) -> None:
    monkeypatch.setattr(doctor_line, "server_time_s", lambda _: time.time() + skew_s)
    finding = examine()["clocks"]
    assert finding.is_ok is is_ok
    assert ("ahead" if skew_s > 0 else "behind") in finding.detail


def test_without_a_database_nothing_is_said_of_its_clock(monkeypatch: pytest.MonkeyPatch, examine: Examine) -> None:
    def away(_: str) -> float:
        raise RetriableError("database db:5432/x: connection refused")

    monkeypatch.setattr(doctor_line, "server_time_s", away)
    finding = examine()["clocks"]
    assert (finding.is_ok, finding.remedy) == (False, "mend the database first")
