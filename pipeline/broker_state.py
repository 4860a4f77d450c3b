"""What the brokers hold: topics and their settings, consumer groups and their lag, dead letters. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kafka import TopicPartition
from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType, OffsetSpec

from pipeline.broker import AUDIO_SLICES, MEDIA_UPLOADED, SLICE_TRANSCRIPTS, TOPICS, Topic, admin, dead_topic

GROUPS: Mapping[str, tuple[str, ...]] = {
    "ingest": (MEDIA_UPLOADED,),
    "transcribe": tuple(AUDIO_SLICES.values()),
    "assemble": (SLICE_TRANSCRIPTS,),
}
"""The consumer groups of the line and what they read."""
REDRIVE = "redrive"
"""The group that has read the dead letters which were sent back."""
UNLIMITED = "-1"
Offsets: TypeAlias = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Group:
    """One consumer group: how many programs are in it, and how many messages wait for them."""

    name: str
    members: int
    lag: int


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What was found at one moment."""

    version: str
    """Of the protocol that the brokers speak, which may lag behind their release."""
    broker_count: int
    missing: tuple[str, ...]
    """Topics that are not there."""
    unfit: tuple[str, ...]
    """One text per setting of a topic that could lose or refuse messages."""
    groups: tuple[Group, ...]
    dead: Mapping[str, int]
    """How many dead letters were not sent back, for each topic that has some."""


def broker_state(brokers: str) -> BrokerState:
    """Raises RetriableError where the brokers cannot be reached, UsageError where they are not named as HOST:PORT."""
    with admin(brokers) as client:
        there = set(client.list_topics())
        present = [topic for topic in TOPICS if topic.name in there]
        partitions = _partitions(client, [topic.name for topic in present])
        first, end = (_offsets(client, partitions, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
        # A broker that never saw a group has no coordinator for one yet, and refuses questions by name.
        known = {group["group_id"] for group in client.list_groups()}
        committed = _committed(client, known)
        return BrokerState(
            version=".".join(map(str, client.get_broker_version_data(_any_broker(client)).broker_version)),
            broker_count=len(client.describe_cluster()["brokers"]),
            missing=tuple(topic.name for topic in TOPICS if topic.name not in there),
            unfit=_unfit(client, present),
            groups=_groups(client, known, committed, first, end),
            dead=_dead(committed.get(REDRIVE, {}), first, end),
        )


def _any_broker(client: Any) -> int:
    return int(client.describe_cluster()["brokers"][0]["broker_id"])


def _partitions(client: Any, names: Sequence[str]) -> list[TopicPartition]:
    found = client.describe_topics(names) if names else []
    return [
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in found
        for partition in topic["partitions"]
    ]


def _offsets(client: Any, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
    found = client.list_partition_offsets(dict.fromkeys(partitions, spec))
    return {partition: at.offset for partition, at in found.items()}


def _groups(
    client: Any, known: Collection[str], committed: Mapping[str, Offsets], first: Offsets, end: Offsets
) -> tuple[Group, ...]:
    asked = [name for name in GROUPS if name in known]
    members = {name: len(one["members"]) for name, one in client.describe_groups(asked).items()} if asked else {}
    return tuple(
        Group(name, members.get(name, 0), sum(_lag(topic, committed.get(name, {}), first, end) for topic in topics))
        for name, topics in GROUPS.items()
    )


def _committed(client: Any, known: Collection[str]) -> dict[str, Offsets]:
    asked = [name for name in (*GROUPS, REDRIVE) if name in known]
    found = client.list_group_offsets(asked) if asked else {}
    return {name: {partition: at.offset for partition, at in offsets.items()} for name, offsets in found.items()}


def _lag(topic: str, committed: Offsets, first: Offsets, end: Offsets) -> int:
    """A group that has committed nothing begins at the earliest message; one that was overtaken goes on there."""
    partitions = [partition for partition in end if partition.topic == topic]
    return sum(end[one] - max(first[one], committed.get(one, 0)) for one in partitions)


def _dead(committed: Offsets, first: Offsets, end: Offsets) -> dict[str, int]:
    names = sorted({partition.topic for partition in end if partition.topic.endswith(dead_topic(""))})
    counts = {name: _lag(name, committed, first, end) for name in names}
    return {name: count for name, count in counts.items() if count}


def _unfit(client: Any, topics: Sequence[Topic]) -> tuple[str, ...]:
    if not topics:
        return ()
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    found = client.describe_configs(asked, config_filter=ConfigFilterType.ALL)["topic"]
    return tuple(
        f"{topic.name}: {name} is {there}, not {wanted}"
        for topic in topics
        for name, wanted in topic.config.items()
        if not is_enough(there := str(found[topic.name][name]["value"]), wanted)
    )


def is_enough(there: str, wanted: str) -> bool:
    """Whether a setting loses nothing that the wanted one keeps: more is as good, and -1 has no limit.

    >>> is_enough("300", "200"), is_enough("100", "200"), is_enough("-1", "200"), is_enough("compact", "delete")
    (True, False, True, False)
    """
    if there in (wanted, UNLIMITED):
        return True
    return wanted != UNLIMITED and there.isdecimal() and wanted.isdecimal() and int(there) >= int(wanted)
