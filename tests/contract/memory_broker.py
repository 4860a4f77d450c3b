"""Kafka in memory: the parts of KafkaConsumer and KafkaProducer that the line uses, with a group that rebalances.

It behaves as the real one does where the loop relies on it, which the tests check by running on both: a revoked
partition stays with its member until that member's next poll, who is not polled for too long is put out, and only a
member commits.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kafka.errors import CommitFailedError, KafkaError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kafka.structs import ConsumerGroupMetadata, MemberState, OffsetAndMetadata, TopicPartition

from consumers.membership import Membership

FETCH_RECORDS = 4
"""What one poll brings at most of a partition; the real one counts bytes."""


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


@dataclass(slots=True)
class Group:
    members: list[MemoryConsumer] = field(default_factory=list)
    owners: dict[TopicPartition, MemoryConsumer] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)

    def fair_share(self, places: Collection[TopicPartition]) -> int:
        return -(-len(places) // len(self.members))


class MemoryBroker:
    def __init__(self) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.logs: dict[TopicPartition, list[Record]] = {}
        self.groups: dict[str, Group] = {}
        self.is_away = False

    def create(self, topic: str, partitions: int) -> None:
        self.logs |= {TopicPartition(topic, at): [] for at in range(partitions)}

    def places(self, topics: Collection[str]) -> list[TopicPartition]:
        return [place for place in self.logs if place.topic in topics]

    def append(
        self, topic: str, key: bytes | None, value: bytes, headers: Sequence[tuple[str, bytes]], partition: int | None
    ) -> None:
        with self.lock:
            places = self.places([topic])
            if not places:
                raise UnknownTopicOrPartitionError(topic)
            at = zlib.crc32(key or b"") % len(places) if partition is None else partition
            log = self.logs[TopicPartition(topic, at)]
            log.append(Record(topic, at, len(log), key, value, tuple(headers), round(time.time() * 1000)))
            self.lock.notify_all()


class MemoryConsumer:
    def __init__(self, broker: MemoryBroker, group: str, max_poll_interval_ms: int = 120_000) -> None:
        self._broker, self._group = broker, broker.groups.setdefault(group, Group())
        self._max_poll_interval_s = max_poll_interval_ms / 1000
        self._positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._topics: Sequence[str] = ()
        self._listener: Membership
        self._polled_s = time.monotonic()
        self._is_member = False

    def subscribe(self, topics: Sequence[str], *, listener: Membership) -> None:
        self._topics, self._listener = topics, listener

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Record]]:
        self._polled_s = time.monotonic()
        self._rebalance()
        with self._broker.lock:
            polled = self._fetch()
            if not polled:
                self._broker.lock.wait(timeout_ms / 1000)
                polled = self._fetch()
            return polled

    def pause(self, *partitions: TopicPartition) -> None:
        self._paused |= set(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._paused -= set(partitions)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int) -> None:
        with self._broker.lock:
            self._ask(timeout_ms)
            if not self._is_member:
                raise CommitFailedError
            self._group.committed |= {place: offset.offset for place, offset in offsets.items()}

    def commit_async(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.commit(offsets, timeout_ms=1)

    def group_metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata(state=MemberState.STABLE)

    def topics(self) -> set[str]:
        return {place.topic for place in self._broker.logs}

    def highwater(self, partition: TopicPartition) -> int:
        return len(self._broker.logs[partition])

    def end_offsets(self, partitions: Sequence[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
        self._ask(timeout_ms)
        if not set(partitions) <= set(self._broker.logs):
            raise KafkaTimeoutError("no such partition")
        return {place: len(self._broker.logs[place]) for place in partitions}

    def close(self, autocommit: bool, timeout_ms: int) -> None:
        assert not autocommit
        assert timeout_ms
        with self._broker.lock:
            self.expel()

    def expel(self) -> None:
        """The group takes the member for dead; it hears of it at its next poll."""
        with self._broker.lock:
            self._is_member = False
            self._group.members = [member for member in self._group.members if member is not self]
            self._group.owners = {at: owner for at, owner in self._group.owners.items() if owner is not self}
            self._broker.lock.notify_all()

    def _ask(self, timeout_ms: int) -> None:
        if self._broker.is_away:
            raise KafkaTimeoutError(f"Timed out after {timeout_ms} ms")

    def _rebalance(self) -> None:
        """The listener is called without the lock: it may wait for a batch that is being sent."""
        if lost := self._join():
            self._listener.on_partitions_lost(lost)
        if revoked := self._surplus():
            self._listener.on_partitions_revoked(revoked)
            self._release(revoked)
        if assigned := self._receive():
            self._listener.on_partitions_assigned(assigned)

    def _join(self) -> set[TopicPartition]:
        with self._broker.lock:
            for member in list(self._group.members):
                if time.monotonic() - member._polled_s > member._max_poll_interval_s:
                    member.expel()
            if self._is_member:
                return set()
            lost, self._positions = set(self._positions), {}
            self._is_member = True
            self._group.members.append(self)
            return lost

    def _surplus(self) -> set[TopicPartition]:
        surplus: set[TopicPartition] = set()
        with self._broker.lock:
            for topic in self._topics:
                mine = sorted(place for place in self._positions if place.topic == topic)
                surplus |= set(mine[self._group.fair_share(self._broker.places([topic])) :])
            self._positions = {at: offset for at, offset in self._positions.items() if at not in surplus}
        return surplus

    def _release(self, places: set[TopicPartition]) -> None:
        with self._broker.lock:
            for place in places:
                if self._group.owners.get(place) is self:
                    del self._group.owners[place]

    def _receive(self) -> set[TopicPartition]:
        received: set[TopicPartition] = set()
        with self._broker.lock:
            for topic in self._topics:
                places = self._broker.places([topic])
                room = self._group.fair_share(places) - sum(place.topic == topic for place in self._positions)
                free = [place for place in places if place not in self._group.owners][: max(0, room)]
                self._group.owners |= dict.fromkeys(free, self)
                self._positions |= {place: self._group.committed.get(place, 0) for place in free}
                received |= set(free)
        return received

    def _fetch(self) -> dict[TopicPartition, list[Record]]:
        polled: dict[TopicPartition, list[Record]] = {}
        for place, position in self._positions.items():
            records = self._broker.logs[place][position : position + FETCH_RECORDS]
            if records and place not in self._paused and not self._broker.is_away:
                polled[place] = records
        self._positions |= {place: records[-1].offset + 1 for place, records in polled.items()}
        return polled


@dataclass(frozen=True, slots=True)
class Delivery:
    error: KafkaError | None

    def get(self, timeout: float) -> None:
        assert timeout
        if self.error:
            raise self.error


class MemoryProducer:
    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes,
        headers: list[tuple[str, bytes]],
        partition: int | None = None,
    ) -> Delivery:
        if self._broker.is_away:
            return Delivery(KafkaTimeoutError("not acknowledged"))
        try:
            self._broker.append(topic, key, value, headers, partition)
        except KafkaError as error:
            return Delivery(error)
        return Delivery(None)

    def abandon(self) -> None:
        self.close(timeout=5)

    def close(self, timeout: float) -> None:
        assert timeout
