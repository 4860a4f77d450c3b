"""What was polled and waits to be handled: a bounded buffer for each topic, first in, first out.

A topic whose buffer is full is paused until half of it is gone; the other topics go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.structs import TopicPartition

from consumers.membership import Consumer
from consumers.priorities import BY_URGENCY
from pipeline.values import Priority


@dataclass(frozen=True, slots=True)
class Received:
    """A message as it came."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes = field(repr=False)
    """Empty where the message has none (a tombstone)."""
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int
    """When it was written, in milliseconds since 1970 (UTC)."""

    @classmethod
    def of(cls, record: Any) -> Received:
        """From kafka-python's ConsumerRecord."""
        headers = tuple((name, value or b"") for name, value in record.headers)
        value = record.value or b""
        return cls(record.topic, record.partition, record.offset, record.key, value, headers, record.timestamp)

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size_bytes(self) -> int:
        return len(self.value) + len(self.key or b"") + sum(len(name) + len(value) for name, value in self.headers)


class Buffer:
    """The waiting messages of one topic, first in, first out. The limits say when it is full; it takes what comes."""

    def __init__(self, limit: int, limit_bytes: int) -> None:
        self._limit, self._limit_bytes = limit, limit_bytes
        self._waiting: deque[Received] = deque()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def is_full(self) -> bool:
        return len(self) >= self._limit or self._size_bytes >= self._limit_bytes

    @property
    def is_half_empty(self) -> bool:
        """Where a full buffer is filled again: at half, so that partitions are not paused and resumed in turns."""
        return 2 * len(self) <= self._limit and 2 * self._size_bytes <= self._limit_bytes

    def put(self, messages: Iterable[Received]) -> None:
        for message in messages:
            self._waiting.append(message)
            self._size_bytes += message.size_bytes

    def first(self, count: int) -> list[Received]:
        """The first ``count``, left where they are."""
        return [message for message, _ in zip(self._waiting, range(count), strict=False)]

    def take(self, count: int) -> list[Received]:
        """Remove and return the first ``count``."""
        taken = [self._waiting.popleft() for _ in range(count)]
        self._size_bytes -= sum(message.size_bytes for message in taken)
        return taken

    def drop(self, places: Iterable[TopicPartition]) -> None:
        """Forget what waits of these partitions: another member of the group has them now."""
        gone = set(places)
        kept = [message for message in self._waiting if message.place not in gone]
        self._waiting = deque(kept)
        self._size_bytes = sum(message.size_bytes for message in kept)


class Intake:
    """The buffers of all topics, and which topics are paused because theirs is full."""

    def __init__(self, consumer: Consumer, topics: Mapping[Priority, str], limit: int, limit_bytes: int) -> None:
        self._consumer = consumer
        self._buffers = {one: Buffer(limit, limit_bytes) for one in topics}
        self._priorities = {topic: one for one, topic in topics.items()}
        self._paused: set[Priority] = set()
        self._owned: set[TopicPartition] = set()

    @property
    def waiting(self) -> Mapping[Priority, int]:
        return {one: len(buffer) for one, buffer in self._buffers.items()}

    def put(self, polled: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """Keep kafka-python's records, then pause and resume."""
        for place, records in polled.items():
            self._buffers[self._priorities[place.topic]].put(Received.of(record) for record in records)
        for one, buffer in self._buffers.items():
            if one in self._paused and buffer.is_half_empty:
                self._paused.remove(one)
                self._consumer.resume(*self._places(one))
            elif one not in self._paused and buffer.is_full:
                self._paused.add(one)
                self._consumer.pause(*self._places(one))

    def first(self, counts: Mapping[Priority, int]) -> list[Received]:
        """So many of each priority, urgent ones first, left where they are."""
        return [one for at in BY_URGENCY if at in self._buffers for one in self._buffers[at].first(counts[at])]

    def take(self, counts: Mapping[Priority, int]) -> list[Received]:
        """The same, removed."""
        return [one for at in BY_URGENCY if at in self._buffers for one in self._buffers[at].take(counts[at])]

    def assign(self, places: Iterable[TopicPartition]) -> None:
        new = set(places)
        self._owned |= new
        self._consumer.pause(*(place for place in new if self._priorities[place.topic] in self._paused))

    def drop(self, places: Iterable[TopicPartition]) -> None:
        """These partitions are given up: what waits of them will be somebody else's."""
        self._owned -= set(places)
        for buffer in self._buffers.values():
            buffer.drop(places)

    def close(self) -> None:
        """Nothing more is wanted."""
        self._paused = set(self._buffers)
        self._consumer.pause(*self._owned)

    def _places(self, priority: Priority) -> list[TopicPartition]:
        return [place for place in self._owned if self._priorities[place.topic] is priority]


def next_offsets(messages: Iterable[Received]) -> dict[TopicPartition, int]:
    """For each partition the offset after the last of ``messages``: where reading goes on once they are done."""
    offsets: dict[TopicPartition, int] = {}
    for message in messages:
        offsets[message.place] = max(offsets.get(message.place, 0), message.offset + 1)
    return offsets
