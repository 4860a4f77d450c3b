"""A consumer and a sender without a broker: messages lie in memory, and what is sent is delivered at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kafka.structs import MemberState, TopicPartition

from consumers.membership import FETCH_BYTES
from pipeline.broker import DEFAULT_PARTITIONS, Outgoing


class MemoryConsumer:
    """What the loop uses of a KafkaConsumer, over values that are all there from the beginning."""

    _coordinator = SimpleNamespace(request_rejoin=lambda: None)

    def __init__(self, topic: str, values: Sequence[bytes]) -> None:
        """The values go to the partitions in turn."""
        self._ends: dict[TopicPartition, int] = {}
        self._waiting: deque[Any] = deque()
        now_ms = time.time_ns() // 1_000_000
        for at, value in enumerate(values):
            place = TopicPartition(topic, at % DEFAULT_PARTITIONS)
            offset = self._ends.get(place, 0)
            self._ends[place] = offset + 1
            self._waiting.append(
                SimpleNamespace(
                    topic=topic,
                    partition=place.partition,
                    offset=offset,
                    key=b"bench",
                    value=value,
                    headers=(),
                    timestamp=now_ms,
                )
            )
        self._is_paused = False

    def subscribe(self, topics: Sequence[str], *, listener: Any) -> None:  # noqa: ARG002 - one topic, from the start
        listener.on_partitions_assigned(list(self._ends))

    def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[Any]]:
        """As much as an answer of a broker holds."""
        polled: dict[TopicPartition, list[Any]] = {}
        left = 0 if self._is_paused else FETCH_BYTES
        while self._waiting and left > 0:
            record = self._waiting.popleft()
            left -= len(record.value)
            polled.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        if not polled:
            time.sleep(timeout_ms / 1000)
        return polled

    def pause(self, *partitions: TopicPartition) -> None:
        self._is_paused = self._is_paused or bool(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._is_paused = self._is_paused and not partitions

    def commit(self, offsets: Any, timeout_ms: int) -> None: ...

    def commit_async(self, offsets: Any) -> None: ...

    def group_metadata(self) -> Any:
        return SimpleNamespace(state=MemberState.STABLE)

    def topics(self) -> set[str]:
        return {place.topic for place in self._ends}

    def highwater(self, partition: TopicPartition) -> int:
        return self._ends[partition]

    def end_offsets(self, partitions: Sequence[TopicPartition], timeout_ms: int) -> Mapping[TopicPartition, int]:  # noqa: ARG002
        return {place: self._ends[place] for place in partitions}

    def close(self, autocommit: bool, timeout_ms: int) -> None: ...


class MemorySender:
    """Counts what is delivered, and stops the loop when it is all."""

    def __init__(self, expected: int, stop: threading.Event) -> None:
        self._left, self._stop = expected, stop
        self.deliveries: list[tuple[float, int]] = []
        """When, by ``time.perf_counter``, and how many."""

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        self._left -= len(outgoings)
        self.deliveries.append((time.perf_counter(), len(outgoings)))
        if self._left <= 0:
            self._stop.set()
