"""The stack without Docker, for real: parts come up, keep their data over a kill, and leave no process behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from kafka import KafkaConsumer

from deploy.local.airflow_client import AirflowClient
from deploy.local.kafka import Broker
from deploy.local.parts import Part
from deploy.local.postgres import Postgres
from deploy.local.stack import Stack
from pipeline import broker as edge
from pipeline.errors import RetriableError, UsageError

MakeHome = Callable[[str], Path]
TIMEOUT_S = 300
READ_TIMEOUT_MS = 30_000


@pytest.fixture(scope="module")
def stack(make_home: MakeHome) -> Iterator[Stack]:
    """A stack of its own; tests bring up what they need."""
    made = Stack(make_home("stack"))
    yield made
    made.down()


def command(stack: Stack, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LECTUREMILL_STACK": str(stack.folder)}
    return subprocess.run(
        [sys.executable, "-m", "deploy.local", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def read_first(address: str, topic: str) -> bytes:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=READ_TIMEOUT_MS
    )
    try:
        value: bytes = next(consumer).value
        return value
    finally:
        consumer.close()


def listened_on(part: Part) -> set[str]:
    processes = [psutil.Process(program.pid()) for program in part.programs]
    family = [*processes, *(child for process in processes for child in process.children(recursive=True))]
    connections = [one for process in family for one in process.net_connections("inet")]
    return {one.laddr.ip.removeprefix("::ffff:") for one in connections if one.status == psutil.CONN_LISTEN}


def runs(pid: int) -> bool:
    """A zombie does not: where nobody collects orphans, it stays one."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_broker_keeps_its_messages_and_its_address_over_a_kill(tmp_path: Path) -> None:
    topic = edge.Topic("kept", 86_400_000)
    with Broker(tmp_path) as broker:
        address = broker.address
        edge.create_topics(address, 1, topics=[topic])
        with edge.Sender.open(address, "test") as sender:
            sender.send([edge.Outgoing("kept", "course", b"a lecture")])
        broker.kill()
        assert not broker.is_healthy()
        broker.start()
        assert broker.address == address
        assert read_first(address, "kept") == b"a lecture"
        pid = broker.pid()
    assert not runs(pid)


def test_a_broker_listens_on_the_loopback_interface_only(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        assert listened_on(broker) == {"127.0.0.1"}


def test_postgres_keeps_its_rows_over_a_kill(make_home: MakeHome) -> None:
    with Postgres(make_home("kept")) as postgres:
        server = postgres.server_pid()
        with psycopg.connect(postgres.address) as connection:
            connection.execute("create table kept as select 'a row' as what")
        postgres.kill()
        assert not postgres.is_healthy()
        postgres.start()
        with psycopg.connect(postgres.address) as connection:
            assert connection.execute("select what from kept").fetchall() == [("a row",)]
        assert postgres.server_pid() not in (0, server)
    assert postgres.server_pid() == 0


def test_the_command_brings_parts_up_once_and_ends_them_from_another_process(stack: Stack) -> None:
    first = command(stack, "up", "postgres", "kafka")
    assert first.returncode == 0, first.stderr
    parts = (stack.postgres, stack.kafka)
    pids = [part.pid() for part in parts]
    assert all(part.is_healthy() for part in parts)
    assert edge.check(stack.kafka.address) == []

    again = command(stack, "up", "postgres", "kafka")
    assert again.returncode == 0, again.stderr
    assert [part.pid() for part in parts] == pids

    down = command(stack, "down")
    assert down.returncode == 0, down.stderr
    assert not any(runs(pid) for pid in pids)
    assert stack.postgres.server_pid() == 0


def test_what_up_prints_is_what_a_shell_can_use(stack: Stack) -> None:
    done = command(stack, "up", "postgres")
    assert done.returncode == 0, done.stderr
    assert (stack.folder / "env").read_text() in done.stdout
    shell = f'. {stack.folder / "env"} && printf %s "$DATABASE_URL"'
    url = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from lecturemill.media").fetchall() == [(0,)]


def test_status_names_every_part_with_its_log_and_fails_where_one_is_down(stack: Stack) -> None:
    done = command(stack, "status")
    assert done.returncode == 1
    for part in stack.parts.values():
        for program in part.programs:
            (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == [program.name]]
            assert str(program.log) in line
            assert line.split()[1] == ("up" if part.is_healthy() else "down")


def test_an_unknown_part_is_wrong_usage(stack: Stack) -> None:
    with pytest.raises(UsageError, match=r"no such part: dishes; there are postgres, kafka, "):
        stack.up(["dishes"])
    assert command(stack, "up", "dishes").returncode == 2


def test_a_part_that_does_not_come_up_is_named_with_its_last_line_and_its_log(make_home: MakeHome, kafka: str) -> None:
    taken = int(kafka.rpartition(":")[2])
    stack = Stack(make_home("taken"), ports={"kafka": taken})
    try:
        with pytest.raises(RetriableError, match=r"kafka does not come up: kafka ended: .+ \(log: .*kafka\.log\)"):
            stack.up(["kafka"])
    finally:
        stack.down()


def test_airflow_is_healthy_on_the_loopback_interface_and_imports_every_dag(stack: Stack) -> None:
    stack.up(["postgres", "airflow"])
    assert stack.airflow.is_healthy()
    assert AirflowClient(stack.airflow.address).import_errors() == {}
    assert listened_on(stack.airflow) == {"127.0.0.1"}
    pids = [program.pid() for program in stack.airflow.programs]
    assert all(pids)
    stack.down()
    assert not any(runs(pid) for pid in pids)
