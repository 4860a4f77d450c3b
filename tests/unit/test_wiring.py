"""What the programs of the line share: lines on standard error, the metrics port, signals, the exit status."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from kafka.structs import TopicPartition

from consumers import wiring
from consumers.handling import Hooks, Taken
from consumers.intake import Received
from consumers.loop import LoopRules
from consumers.metrics import Metrics
from consumers.wiring import Reports, Surroundings, Wired, metrics_served, run_program, speaker, stop_on_signals
from pipeline.errors import DeviceLostError, InvalidInputError, RetriableError, UsageError
from pipeline.values import Priority

RULES = LoopRules("test", {Priority.NORMAL: "t"}, max_batch=3)
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ test: (.*)")


class Quiet:
    """A step, a sender and a consumer in one: nothing happens."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None: ...


@contextmanager
def a_wire(_around: Surroundings) -> Iterator[Wired]:
    step: Any = Quiet()
    yield step, RULES


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[LoopRules]:
    """The rules of the loops that ran, which consume nothing."""
    loops: list[LoopRules] = []

    def run(_step: Any, _consumer: Any, _sender: Any, rules: LoopRules, _hooks: Hooks, _stop: threading.Event) -> None:
        loops.append(rules)

    monkeypatch.setattr(wiring, "run", run)
    monkeypatch.setattr(wiring, "open_consumer", lambda *_: Quiet())
    monkeypatch.setattr("pipeline.broker.Sender.open", lambda *_: Quiet())
    return loops


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = [LINE.fullmatch(line) for line in capsys.readouterr().err.splitlines()]
    return [line[1] if line else "not such a line" for line in lines]


def a_free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def a_message(course: str, offset: int = 0) -> Received:
    return Received("t", 2, offset, course.encode(), b"", (), 1_000)


@pytest.mark.usefixtures("ran")
def test_a_program_that_was_stopped_in_order_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LECTUREMILL_BROKERS", "127.0.0.1:9")
    assert run_program("test", a_wire) == 0
    assert said(capsys) == ["consumes t from 127.0.0.1:9", "stopped"]


def test_the_loop_knows_the_version_of_the_program(ran: list[LoopRules]) -> None:
    run_program("test", a_wire)
    assert [(rules.max_batch, rules.version != "") for rules in ran] == [(3, True)]


@pytest.mark.parametrize(
    ("error", "status"),
    [(RetriableError("no broker"), 75), (DeviceLostError("no device any more"), 75), (UsageError("no model"), 2)],
)
def test_a_program_that_cannot_work_ends_with_its_status_and_one_line(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def wire(_around: Surroundings) -> Iterator[Wired]:
        raise error
        yield

    assert run_program("test", wire) == status
    assert said(capsys) == [str(error)]


@pytest.mark.usefixtures("ran")
def test_a_fault_of_the_program_itself_is_not_hidden() -> None:
    @contextmanager
    def wire(_around: Surroundings) -> Iterator[Wired]:
        raise KeyError("a bug")
        yield

    with pytest.raises(KeyError):
        run_program("test", wire)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_for_an_orderly_stop_and_a_second_one_ends_the_process(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        assert signal.getsignal(number) is signal.SIG_DFL
    assert signal.getsignal(number) is before


def test_metrics_are_served_as_long_as_the_program_runs() -> None:
    port, metrics = a_free_port(), Metrics()
    metrics.handled(1, 1500)
    with metrics_served(metrics, {"LECTUREMILL_METRICS_PORT": str(port)}):
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False)
        assert "lecturemill_handling_seconds_sum 1.5" in answer.text
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False)


def test_metrics_listen_at_another_address_of_the_machine_where_it_is_named() -> None:
    port = a_free_port()
    environment = {"LECTUREMILL_METRICS_PORT": str(port), "LECTUREMILL_METRICS_HOST": "127.0.0.2"}
    with metrics_served(Metrics(), environment):
        assert httpx.get(f"http://127.0.0.2:{port}/metrics", trust_env=False).is_success
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False)


def test_an_address_of_another_machine_is_wrong_usage() -> None:
    environment = {"LECTUREMILL_METRICS_PORT": str(a_free_port()), "LECTUREMILL_METRICS_HOST": "192.0.2.1"}
    with pytest.raises(UsageError, match="LECTUREMILL_METRICS_HOST"), metrics_served(Metrics(), environment):
        pass


@pytest.mark.parametrize("environment", [{}, {"LECTUREMILL_METRICS_PORT": ""}, {"LECTUREMILL_METRICS_PORT": "0"}])
def test_without_a_port_nothing_listens(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "start_http_server", None)
    with metrics_served(Metrics(), environment) as port:
        assert port is None


@pytest.mark.parametrize("text", ["-1", "65536", "http", "80.5"])
def test_a_port_that_is_none_is_wrong_usage(text: str) -> None:
    with (
        pytest.raises(UsageError, match="LECTUREMILL_METRICS_PORT"),
        metrics_served(Metrics(), {"LECTUREMILL_METRICS_PORT": text}),
    ):
        pass


def test_a_port_that_is_taken_is_wrong_usage() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment = {"LECTUREMILL_METRICS_PORT": str(taken.getsockname()[1])}
        with pytest.raises(UsageError, match="in use"), metrics_served(Metrics(), environment):
            pass


def test_a_batch_is_one_line_that_names_its_courses(capsys: pytest.CaptureFixture[str]) -> None:
    reports = Reports(Metrics(), speaker("test"))
    messages = [a_message(course) for course in ["physics", "algebra", "physics"]]
    reports.taken(Taken(messages, 250, {TopicPartition("t", 2): 9}))
    reports.handled(3, 1500)
    assert said(capsys) == ["3 messages of algebra, physics in 1500 ms; the oldest waited 250 ms"]


def test_of_many_courses_three_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    reports = Reports(Metrics(), speaker("test"))
    reports.taken(Taken([a_message(f"c{number}") for number in range(8)], 0, {}))
    reports.handled(8, 10)
    assert said(capsys) == ["8 messages of c0, c1, c2 and 5 more in 10 ms; the oldest waited 0 ms"]


def test_what_goes_wrong_is_a_line_with_its_place_or_its_wait(capsys: pytest.CaptureFixture[str]) -> None:
    reports = Reports(Metrics(), speaker("test"))
    reports.dead(a_message("c", 17), InvalidInputError("the audio is damaged"))
    reports.retry(RetriableError("the database is away"), 2, 800)
    assert said(capsys) == [
        "dead letter: t, partition 2, offset 17: the audio is damaged",
        "failed 2 times, again in 800 ms: the database is away",
    ]


def test_all_that_happens_is_measured() -> None:
    metrics = Metrics()
    reports = Reports(metrics, lambda _: None)
    reports.taken(Taken([a_message("c")], 0, {}))
    reports.handled(1, 1000)
    reports.dead(a_message("c"), InvalidInputError("bad"))
    reports.retry(RetriableError("away"), 1, 1)
    value = metrics.registry.get_sample_value
    names = ["batch_messages_count", "handling_seconds_count", "retries_total"]
    assert [value(f"lecturemill_{name}") for name in names] == [1, 1, 1]
    assert value("lecturemill_dead_letters_total", {"topic": "t"}) == 1
