"""The two brokers that the loop is tested on: one in memory, and the real one (``kafka`` of tests/conftest.py)."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from consumers.membership import MemberRules, open_consumer
from pipeline.broker import Sender, Topic, create_topics
from tests.contract.memory_broker import MemoryBroker, MemoryConsumer, MemoryProducer

QUICK = MemberRules(session_timeout_ms=6000, heartbeat_interval_ms=200)
"""A member learns by its next heartbeat that another has come; 6 s is the least session that a broker allows."""


class Cluster(Protocol):
    """A broker, and what the tests ask of it."""

    def create(self, topic: str, partitions: int) -> None: ...
    def sender(self) -> Sender: ...
    def consumer(self, group: str, rules: MemberRules = QUICK) -> Any: ...
    def read(self, topic: str) -> list[Any]:
        """All records of the topic, each partition in order."""

    def committed(self, group: str, topic: str) -> int:
        """How many messages of the topic the group has done with, over all partitions."""


class MemoryCluster:
    def __init__(self) -> None:
        self.broker = MemoryBroker()

    def create(self, topic: str, partitions: int) -> None:
        self.broker.create(topic, partitions)

    def sender(self) -> Sender:
        return Sender(lambda: MemoryProducer(self.broker), "memory")

    def consumer(self, group: str, rules: MemberRules = QUICK) -> Any:
        return MemoryConsumer(self.broker, group, rules.max_poll_interval_ms)

    def read(self, topic: str) -> list[Any]:
        return [record for place in self.broker.places([topic]) for record in self.broker.logs[place]]

    def committed(self, group: str, topic: str) -> int:
        with self.broker.lock:
            offsets = self.broker.groups[group].committed if group in self.broker.groups else {}
            return sum(offset for place, offset in offsets.items() if place.topic == topic)


class KafkaCluster:
    def __init__(self, brokers: str) -> None:
        self._brokers = brokers
        self._opened: list[Any] = []

    def create(self, topic: str, partitions: int) -> None:
        create_topics(self._brokers, partitions, topics=[Topic(topic, retention_ms=3_600_000)])

    def sender(self) -> Sender:
        sender = Sender.open(self._brokers, "test-sender")
        self._opened.append(sender)
        return sender

    def consumer(self, group: str, rules: MemberRules = QUICK) -> Any:
        return open_consumer(self._brokers, "test-consumer", group, rules)

    def read(self, topic: str) -> list[Any]:
        reader = KafkaConsumer(bootstrap_servers=self._brokers, auto_offset_reset="earliest", enable_auto_commit=False)
        try:
            places = [TopicPartition(topic, at) for at in reader.partitions_for_topic(topic)]
            ends = reader.end_offsets(places)
            reader.assign(places)
            records: list[Any] = []
            while len(records) < sum(ends.values()):
                records += itertools.chain.from_iterable(reader.poll(timeout_ms=1000).values())
            return records
        finally:
            reader.close()

    def committed(self, group: str, topic: str) -> int:
        asker = KafkaConsumer(bootstrap_servers=self._brokers, group_id=group, enable_auto_commit=False)
        try:
            places = [TopicPartition(topic, at) for at in asker.partitions_for_topic(topic)]
            return sum(asker.committed(place) or 0 for place in places)
        finally:
            asker.close()

    def close(self) -> None:
        for one in self._opened:
            one.close()


@pytest.fixture
def memory() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture(params=["memory", "kafka"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "memory":
        yield MemoryCluster()
        return
    real = KafkaCluster(request.getfixturevalue("kafka"))
    yield real
    real.close()


@pytest.fixture
def name() -> str:
    """A name that no other test uses, on a broker that they share."""
    return f"test-{uuid.uuid4().hex[:8]}"
