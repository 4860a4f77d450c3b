"""How far a group is behind, asked of a real broker."""

from __future__ import annotations

import time
import uuid

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from consumers.backlog import oldest_unread_ms
from consumers.membership import open_consumer
from pipeline.broker import Outgoing, Sender, Topic, create_topics

PARTITIONS = 3


@pytest.fixture
def topic(kafka: str) -> str:
    name = f"backlog-{uuid.uuid4().hex[:8]}"
    create_topics(kafka, PARTITIONS, 1, [Topic(name, 60_000)])
    return name


def finish(kafka: str, group: str, topic: str) -> None:
    """Commit as a member of the group does that has handled everything."""
    consumer = open_consumer(kafka, "test", group)
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(places)
    ends = consumer.end_offsets(places)
    consumer.commit({place: OffsetAndMetadata(end, "", -1) for place, end in ends.items()})
    consumer.close(autocommit=False)


def test_a_group_is_as_far_behind_as_its_oldest_unread_message(kafka: str, topic: str) -> None:
    group = f"group-{topic}"
    assert oldest_unread_ms(kafka, group, [topic]) is None
    before_ms = time.time_ns() // 1_000_000
    with Sender.open(kafka, "test") as sender:
        sender.send([Outgoing(topic, "geometry", b"first")])
        first_ms = oldest_unread_ms(kafka, group, [topic])
        assert first_ms is not None
        assert before_ms <= first_ms <= time.time_ns() // 1_000_000
        sender.send([Outgoing(topic, "geometry", b"second"), Outgoing(topic, "algebra", b"third")])
    assert oldest_unread_ms(kafka, group, [topic]) == first_ms
    assert oldest_unread_ms(kafka, group, [topic]) == first_ms, "asking must not read"


def test_a_group_that_has_finished_everything_is_not_behind(kafka: str, topic: str) -> None:
    group = f"group-{topic}"
    with Sender.open(kafka, "test") as sender:
        sender.send([Outgoing(topic, name, b"x") for name in ("geometry", "algebra", "topology")])
    finish(kafka, group, topic)
    assert oldest_unread_ms(kafka, group, [topic]) is None
