"""Consuming outside the loop: what lies in a topic now, from the committed offsets to the end, then no more.

For the commands of an operator. Nothing is lost, whenever it is killed: a batch is committed after it was handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from kafka.errors import KafkaTimeoutError
from kafka.structs import OffsetAndMetadata, TopicPartition

from consumers.intake import Received, next_offsets
from consumers.membership import open_consumer
from pipeline.broker import broker_errors
from pipeline.errors import UsageError

_BATCH = 32
"""Messages at once: 64 MiB at most."""
_POLL_MS = 500
_ANSWER_MS = 15_000

Ends = Mapping[TopicPartition, int]
"""For each partition the offset after its last message."""


def drain(
    brokers: str,
    topic: str,
    group: str,
    handle: Callable[[Sequence[Received]], int],
    *,
    limit: int | None = None,
    keeps_place: bool = False,
) -> int:
    """Give the messages of ``topic`` that are there now to ``handle``, in batches, each partition in order.

    1. **Mark** the end of each partition: what is written during the work is left for the next time.
    2. **Poll** from the committed offset of ``group``, or from the earliest message.
    3. **Handle** a batch; ``handle`` says how many of it count towards ``limit``, and no batch is larger than what is
       left of that.
    4. **Commit** the batch, unless ``keeps_place``.

    Returns how many counted. Two drains of one group at a time may both get a message. Raises UsageError where there
    is no such topic, RetriableError where the brokers are away, and whatever ``handle`` raises; then that batch comes
    again the next time.
    """
    with broker_errors(brokers, f"cannot read {topic}"), ExitStack() as stack:
        consumer = open_consumer(brokers, f"lecturemill-{group}", group)
        stack.callback(consumer.close, autocommit=False, timeout_ms=_ANSWER_MS)
        ends = _assign(consumer, topic)
        counted = 0
        while (limit is None or counted < limit) and not _is_at(consumer, ends):
            left = _BATCH if limit is None else min(limit - counted, _BATCH)
            batch = _poll(consumer, ends, left)
            if batch:
                counted += handle(batch)
                if not keeps_place:
                    _commit(consumer, batch)
        return counted


def _assign(consumer: Any, topic: str) -> Ends:
    """All partitions, without joining the group: nobody waits for a rebalance."""
    places = [TopicPartition(topic, partition) for partition in sorted(consumer.partitions_for_topic(topic))]
    if not places:
        raise UsageError(f"there is no topic {topic}; see: python -m consumers.topics")
    consumer.assign(places)
    ends: Ends = consumer.end_offsets(places, timeout_ms=_ANSWER_MS)
    return ends


def _is_at(consumer: Any, ends: Ends) -> bool:
    return all(_position(consumer, place) >= end for place, end in ends.items())


def _position(consumer: Any, place: TopicPartition) -> int:
    offset: int | None = consumer.position(place, timeout_ms=_ANSWER_MS)
    if offset is None:
        raise KafkaTimeoutError(f"partition {place.partition} gave no offset")
    return offset


def _poll(consumer: Any, ends: Ends, at_most: int) -> list[Received]:
    polled = consumer.poll(timeout_ms=_POLL_MS, max_records=at_most)
    if not polled:
        # A poll does not say that the brokers are away; this does.
        consumer.end_offsets(list(ends), timeout_ms=_ANSWER_MS)
    return [Received.of(one) for place, records in polled.items() for one in records if one.offset < ends[place]]


def _commit(consumer: Any, batch: Sequence[Received]) -> None:
    offsets = {place: OffsetAndMetadata(offset, "", -1) for place, offset in next_offsets(batch).items()}
    consumer.commit(offsets, timeout_ms=_ANSWER_MS)
