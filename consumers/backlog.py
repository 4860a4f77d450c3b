"""How far a consumer group is behind, in time: when the oldest message was written that it has not finished."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kafka.structs import TopicPartition

from consumers.membership import open_consumer
from pipeline.broker import broker_errors
from pipeline.errors import RetriableError

CLIENT_ID = "lecturemill-backlog"
_TIMEOUT_S = 15.0
_POLL_MS = 500


def oldest_unread_ms(brokers: str, group: str, topics: Iterable[str]) -> int | None:
    """In milliseconds since 1970 (UTC); None where the group has finished everything.

    The group is not joined and its offsets stay. Raises RetriableError where the brokers cannot be reached.
    """
    consumer = open_consumer(brokers, CLIENT_ID, group)
    try:
        with broker_errors(brokers, f"cannot ask how far {group} is"):
            partitions = [
                TopicPartition(topic, number)
                for topic in topics
                for number in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            behind = _behind(consumer, partitions)
            return min(_first_times(consumer, behind), default=None)
    finally:
        consumer.close(autocommit=False)


def _behind(consumer: Any, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """The partitions with unread messages, and the offset of the first of those."""
    if not partitions:
        return {}
    consumer.assign(partitions)
    first, end = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    # A group that was overtaken by the topic's retention goes on at the earliest message.
    at = {one: max(first[one], consumer.committed(one) or 0) for one in partitions}
    return {one: offset for one, offset in at.items() if offset < end[one]}


def _first_times(consumer: Any, behind: dict[TopicPartition, int]) -> list[int]:
    """The time of the first unread message of each partition."""
    times: list[int] = []
    deadline_s = time.monotonic() + _TIMEOUT_S
    for partition, offset in behind.items():
        consumer.assign([partition])
        consumer.seek(partition, offset)
        while not (records := consumer.poll(_POLL_MS, max_records=1).get(partition)):
            if time.monotonic() > deadline_s:
                raise RetriableError(f"{partition.topic}: its oldest unread message cannot be read in {_TIMEOUT_S:g} s")
        times.append(records[0].timestamp)
    return times
