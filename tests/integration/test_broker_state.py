"""What doctor reads from a real broker: topics, their settings, groups and their lag, dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType

from deploy.local.kafka import Broker
from pipeline.broker import TOPICS, Outgoing, Sender, admin, create_topics
from pipeline.broker_state import BrokerState, Group, broker_state


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of its own: the tests count everything that is in it, in the order of this file."""
    with Broker(Path(tmp_path_factory.mktemp("kafka"))) as broker:
        yield broker.address


def test_a_new_broker_lacks_every_topic_and_nobody_is_there(brokers: str) -> None:
    state = broker_state(brokers)
    assert set(state.missing) == {topic.name for topic in TOPICS}
    assert state.broker_count == 1
    assert {group.members for group in state.groups} == {0}


def test_topics_made_by_the_line_are_as_they_must_be(brokers: str) -> None:
    create_topics(brokers, partitions=2)
    state = broker_state(brokers)
    nobody = tuple(Group(name, 0, 0) for name in ("ingest", "transcribe", "assemble"))
    assert state == BrokerState(state.version, 1, (), (), nobody, {})
    assert state.version.startswith("4.")


def test_what_a_group_has_not_committed_waits_for_it_and_members_are_counted(brokers: str) -> None:
    with Sender.open(brokers, "test") as sender:
        sender.send([Outgoing("media.uploaded", f"course {at}", b"x") for at in range(10)])
    assert group(brokers, "ingest") == Group("ingest", 0, 10)
    consumer = KafkaConsumer(
        "media.uploaded",
        bootstrap_servers=brokers,
        group_id="ingest",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=4,
    )
    with closing(consumer):
        read = 0
        while read < 4:
            read += sum(map(len, consumer.poll(500, max_records=4 - read).values()))
        consumer.commit()
        assert group(brokers, "ingest") == Group("ingest", 1, 6)
    assert group(brokers, "ingest") == Group("ingest", 0, 6)


def test_dead_letters_count_until_they_are_sent_back(brokers: str) -> None:
    with Sender.open(brokers, "test") as sender:
        sender.send([Outgoing("slice.transcripts.dead", "c", b"x") for _ in range(3)])
    assert broker_state(brokers).dead == {"slice.transcripts.dead": 3}
    consumer = KafkaConsumer(
        "slice.transcripts.dead",
        bootstrap_servers=brokers,
        group_id="redrive",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    with closing(consumer):
        while not consumer.poll(500):
            pass
        consumer.commit()
    assert broker_state(brokers).dead == {}


def test_a_setting_that_would_refuse_or_lose_messages_is_named(brokers: str) -> None:
    with admin(brokers) as client:
        for name, value in (("max.message.bytes", "1000"), ("cleanup.policy", "compact"), ("retention.ms", "-1")):
            client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "media.uploaded", {name: value})])
    assert broker_state(brokers).unfit == (
        "media.uploaded: cleanup.policy is compact, not delete",
        "media.uploaded: max.message.bytes is 1000, not 2097152",
    )


def group(brokers: str, name: str) -> Group:
    return next(one for one in broker_state(brokers).groups if one.name == name)
