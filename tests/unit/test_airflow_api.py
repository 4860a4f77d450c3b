"""Airflow's REST API as the line uses it, against answers written here."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.airflow_api import AirflowApi, Credentials, credentials_from, run_id_of
from pipeline.errors import InvalidInputError, RetriableError, UsageError

Answer = Callable[[httpx.Request], httpx.Response]


class Airflow:
    """Answers to log in with tokens t1, t2, …, and to everything else as it is told, in turn."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.logins = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.url.path == "/auth/token":
            self.logins += 1
            return httpx.Response(201, json={"access_token": f"t{self.logins}"})
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def api(airflow: Answer, credentials: Credentials | None = None) -> AirflowApi:
    return AirflowApi("http://airflow.test", credentials, httpx.MockTransport(airflow))


def start(airflow: Airflow, conf: Mapping[str, object] | None = None) -> bool:
    return api(airflow).start_run("ingest_media", "lecture-1", conf or {})


def test_a_run_is_started_under_its_own_id_with_what_it_is_told() -> None:
    airflow = Airflow(httpx.Response(200, json={}))
    assert start(airflow, {"uri": "file:///第一讲.mp4"}) is True
    request = airflow.requests[-1]
    assert (request.method, request.url.path) == ("POST", "/api/v2/dags/ingest_media/dagRuns")
    assert request.headers["Authorization"] == "Bearer t1"
    assert json.loads(request.content) == {
        "dag_run_id": "lecture-1",
        "logical_date": None,
        "conf": {"uri": "file:///第一讲.mp4"},
    }


def test_a_run_that_is_there_already_is_as_good() -> None:
    assert start(Airflow(httpx.Response(409))) is False


def test_one_login_serves_many_calls() -> None:
    airflow = Airflow(*[httpx.Response(200)] * 3)
    client = api(airflow)
    assert [client.start_run("ingest_media", name, {}) for name in "abc"] == [True] * 3
    assert airflow.logins == 1


def test_a_token_that_ran_out_is_renewed() -> None:
    airflow = Airflow(httpx.Response(401), httpx.Response(200))
    assert start(airflow) is True
    assert airflow.requests[-1].headers["Authorization"] == "Bearer t2"


@pytest.mark.parametrize(
    "answers",
    [
        [httpx.ConnectError("refused")],
        [httpx.ReadTimeout("too slow")],
        [httpx.Response(500)],
        [httpx.Response(503, text="starting")],
        [httpx.Response(404, text="Dag with dag_id: 'ingest_media' not found")],
        [httpx.Response(403, text="Forbidden")],
        [httpx.Response(401), httpx.Response(401)],
        [httpx.Response(400, text="Dag with dag_id: 'ingest_media' has import errors and cannot be triggered")],
    ],
    ids=["away", "slow", "ill", "starting", "no such DAG", "forbidden", "never let in", "broken DAG"],
)
def test_what_is_wrong_with_airflow_is_no_fault_of_the_message(answers: list[httpx.Response | Exception]) -> None:
    with pytest.raises(RetriableError, match=r"http://airflow\.test"):
        start(Airflow(*answers))


@pytest.mark.parametrize("status", [400, 422])
def test_a_run_that_airflow_refuses_for_what_it_says_is_the_fault_of_the_message(status: int) -> None:
    with pytest.raises(InvalidInputError, match=r"lecture-1: Airflow refuses the run: .*no integer"):
        start(Airflow(httpx.Response(status, text="audio_track:\n is no integer")))


def test_something_else_that_answers_at_the_address_is_not_taken_for_airflow() -> None:
    with pytest.raises(RetriableError, match="does not answer as Airflow does"):
        api(lambda _: httpx.Response(200, text="<html>welcome</html>")).start_run("ingest_media", "a", {})


def test_the_password_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "password"
    airflow = Airflow(httpx.Response(401), httpx.Response(200))
    file.write_text("old\n")
    client = api(airflow, Credentials("ingest", file))
    client.start_run("ingest_media", "a", {})
    bodies = [json.loads(one.content) for one in airflow.requests if one.url.path == "/auth/token"]
    assert bodies == [{"username": "ingest", "password": "old"}] * 2


def test_a_password_that_cannot_be_read_is_worth_another_try(tmp_path: Path) -> None:
    with pytest.raises(RetriableError, match="LECTUREMILL_AIRFLOW_PASSWORD_FILE"):
        api(Airflow(), Credentials("ingest", tmp_path / "none")).start_run("ingest_media", "a", {})


def test_credentials_come_whole_or_not_at_all() -> None:
    both = {"LECTUREMILL_AIRFLOW_USER": "ingest", "LECTUREMILL_AIRFLOW_PASSWORD_FILE": "/run/secrets/airflow"}
    assert credentials_from({}) is None
    assert credentials_from(both) == Credentials("ingest", Path("/run/secrets/airflow"))
    for name in both:
        with pytest.raises(UsageError, match="both"):
            credentials_from({name: both[name]})


def test_the_unfinished_runs_are_counted_by_airflow() -> None:
    airflow = Airflow(httpx.Response(200, json={"dag_runs": [], "total_entries": 17}))
    assert api(airflow).unfinished_runs("ingest_media") == 17
    assert airflow.requests[-1].url.params.get_list("state") == ["queued", "running"]


def test_the_state_of_a_run_is_empty_where_there_is_none() -> None:
    client = api(Airflow(httpx.Response(200, json={"state": "failed"}), httpx.Response(404)))
    assert [client.run_state("ingest_media", "a+b") for _ in range(2)] == ["failed", ""]


def test_the_state_of_a_task_is_empty_where_it_has_none_yet() -> None:
    client = api(Airflow(httpx.Response(200, json={"state": "deferred"}), httpx.Response(200, json={"state": None})))
    assert [client.task_state("ingest_media", "a+b", "wait") for _ in range(2)] == ["deferred", ""]


@given(st.text(min_size=1, max_size=200), st.text(string.hexdigits, max_size=16))
def test_airflow_takes_the_run_id_of_any_media_id(media_id: str, version: str) -> None:
    run_id = run_id_of(media_id, version)
    assert set(run_id) <= set(string.ascii_letters + string.digits + "_.~:+-")
    assert 1 <= len(run_id) <= 250
    assert not run_id.startswith(("manual__", "scheduled__"))


@given(st.lists(st.text("ab/讲_", min_size=1, max_size=8), unique=True, max_size=20))
def test_two_media_never_share_a_run(media_ids: list[str]) -> None:
    assert len({run_id_of(media_id) for media_id in media_ids}) == len(media_ids)
