"""Sending and topics: what the producing edge promises."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from consumers.draining import drain
from consumers.intake import Received
from consumers.membership import open_consumer
from consumers.topics import main
from deploy.local.kafka import Broker
from pipeline import broker as edge
from pipeline.broker import MAX_MESSAGE_BYTES, TOPICS, Outgoing, Sender, Topic, check, create_topics
from pipeline.errors import InvalidInputError, RetriableError
from tests.contract.conftest import Cluster, MemoryCluster

NOWHERE = "127.0.0.1:1"


def test_messages_arrive_in_order_with_key_and_headers(cluster: Cluster, name: str) -> None:
    cluster.create(name, 1)
    cluster.sender().send([Outgoing(name, "高等数学", b"%d" % at, (("at", b"%d" % at),)) for at in range(50)])
    records = cluster.read(name)
    assert [record.value for record in records] == [b"%d" % at for at in range(50)]
    assert {record.key for record in records} == {"高等数学".encode()}
    assert tuple(records[7].headers) == (("at", b"7"),)


def test_a_message_as_large_as_the_line_allows_arrives(cluster: Cluster, name: str) -> None:
    cluster.create(name, 1)
    cluster.sender().send([Outgoing(name, "course", bytes(MAX_MESSAGE_BYTES - 2000))])
    assert len(cluster.read(name)) == 1


def test_nothing_is_sent_where_one_message_is_too_large(cluster: Cluster, name: str) -> None:
    cluster.create(name, 1)
    with pytest.raises(InvalidInputError, match="the limit is"):
        cluster.sender().send([Outgoing(name, "course", b"1"), Outgoing(name, "course", bytes(MAX_MESSAGE_BYTES))])
    assert cluster.read(name) == []


def test_a_sender_whose_broker_was_away_sends_when_it_is_back(memory: MemoryCluster, name: str) -> None:
    memory.create(name, 1)
    sender = memory.sender()
    memory.broker.is_away = True
    with pytest.raises(RetriableError, match=f"memory: cannot deliver to {name}: KafkaTimeoutError"):
        sender.send([Outgoing(name, "course", b"1")])
    memory.broker.is_away = False
    sender.send([Outgoing(name, "course", b"1")])
    assert [record.value for record in memory.read(name)] == [b"1"]


def test_a_topic_that_is_not_there_is_named_with_the_command_that_makes_it(memory: MemoryCluster) -> None:
    with pytest.raises(RetriableError, match=r"nosuch: no such topic; run: python -m consumers\.topics"):
        memory.sender().send([Outgoing("nosuch", "course", b"1")])


def test_topics_are_made_once_and_found_afterwards(kafka: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--brokers", kafka, "--partitions", "2"]
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert set(capsys.readouterr().out.split()) <= {topic.name for topic in TOPICS}
    assert create_topics(kafka, partitions=2) == check(kafka) == []


@pytest.mark.parametrize(
    "ask",
    [
        check,
        create_topics,
        lambda brokers: Sender.open(brokers, "client"),
        lambda brokers: open_consumer(brokers, "client", "group"),
    ],
)
def test_brokers_that_are_away_are_named(ask: Callable[[str], object]) -> None:
    with pytest.raises(RetriableError, match=f"{NOWHERE}: no broker can be reached: .*refused"):
        ask(NOWHERE)


def test_one_broker_of_several_is_enough(kafka: str) -> None:
    assert create_topics(f"{NOWHERE},{kafka}", topics=[]) == []


def test_what_a_broker_did_not_acknowledge_in_time_never_arrives_between_what_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "_DELIVERY_TIMEOUT_MS", 3000)
    values = [b"%d" % at for at in range(200)]
    messages = [Outgoing("late", "course", value) for value in values]
    threads = set(threading.enumerate())
    with Broker(tmp_path) as broker, Sender.open(broker.address, "test") as sender:
        create_topics(broker.address, 1, topics=[Topic("late", 3_600_000)])
        sender.send(messages[:1])
        os.kill(broker.pid(), signal.SIGSTOP)
        try:
            with pytest.raises(RetriableError, match="cannot deliver to late"):
                sender.send(messages)
            assert set(threading.enumerate()) == threads
        finally:
            os.kill(broker.pid(), signal.SIGCONT)
        sender.send(messages)
        arrived: list[bytes] = []

        def keep(batch: Sequence[Received]) -> int:
            arrived.extend(one.value for one in batch)
            return len(batch)

        drain(broker.address, "late", "reader", keep)
    assert list(dict.fromkeys(arrived)) == values
