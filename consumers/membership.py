"""The place of a consumer in its group: how it is opened, and what it is told when partitions move."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import ConsumerGroupMetadata, MemberState, OffsetAndMetadata, TopicPartition

from pipeline.broker import MAX_MESSAGE_BYTES, broker_errors, reachable

FETCH_BYTES = 4 * MAX_MESSAGE_BYTES
"""What one answer of a broker holds, and so what one poll may bring from each broker."""
MAX_POLL_RECORDS = 1_000_000
"""More records than any answer holds: a poll takes all that came, and what limits it is ``FETCH_BYTES``.

With a smaller limit a poll leaves a part of an answer inside the client; if its partition is paused then, kafka-python
3.0.12 does not give the rest out after ``resume`` until the partition's neighbours get messages, which may be never.
"""


class Consumer(Protocol):
    """What the loop uses of a KafkaConsumer."""

    def subscribe(self, topics: Sequence[str], *, listener: Membership) -> None: ...
    def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[Any]]: ...
    def pause(self, *partitions: TopicPartition) -> None: ...
    def resume(self, *partitions: TopicPartition) -> None: ...
    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int) -> None: ...
    def commit_async(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> object: ...
    def group_metadata(self) -> ConsumerGroupMetadata: ...
    def topics(self) -> Collection[str]: ...
    def highwater(self, partition: TopicPartition) -> int | None: ...
    def end_offsets(self, partitions: Sequence[TopicPartition], timeout_ms: int) -> Mapping[TopicPartition, int]: ...
    def close(self, autocommit: bool, timeout_ms: int) -> None: ...
    @property
    def _coordinator(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class MemberRules:
    """When the group takes a member for dead. Tests make them short."""

    session_timeout_ms: int = 30_000
    """Without a heartbeat for so long (the process or its machine is gone), its partitions go to others. No heartbeat
    is sent while a partition is handed over, so that it must be longer than ``LoopRules.revoke_wait_ms``."""
    heartbeat_interval_ms: int = 3000
    max_poll_interval_ms: int = 120_000
    """Without a poll for so long (the process hangs), likewise. The loop polls while it works, so that this need
    not be longer than any batch."""


def open_consumer(brokers: str, client_id: str, group: str, rules: MemberRules | None = None) -> Any:
    """A KafkaConsumer as the loop needs it, not yet subscribed. Raises RetriableError where no broker answers.

    Nothing is left to defaults where they lose data: no automatic commit, and a new group starts at the earliest
    message. Rebalances are cooperative: a member keeps what it has while others come and go, and gives up a partition
    only when it is told so by name. Membership is dynamic, not static: a static member that dies holds its partitions
    until its session ends, even when it is back at once under another name.
    """
    member = rules or MemberRules()
    with broker_errors(brokers, f"cannot join the group {group}"):
        return KafkaConsumer(
            bootstrap_servers=reachable(brokers),
            client_id=client_id,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            partition_assignment_strategy=(CooperativeStickyAssignor,),
            session_timeout_ms=member.session_timeout_ms,
            heartbeat_interval_ms=member.heartbeat_interval_ms,
            max_poll_interval_ms=member.max_poll_interval_ms,
            max_poll_records=MAX_POLL_RECORDS,
            fetch_min_bytes=1,
            fetch_max_wait_ms=250,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=MAX_MESSAGE_BYTES,
            check_crcs=True,
            allow_auto_create_topics=False,
            bootstrap_timeout_ms=10_000,
            request_timeout_ms=15_000,
            reconnect_backoff_max_ms=2000,
            metadata_max_age_ms=60_000,
        )


Places = frozenset[TopicPartition]


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Passes on what kafka-python tells during a poll.

    It tells it in its network thread, while the caller of ``poll`` waits: whatever only the caller touches can be
    touched, heartbeats pause, and nothing can be asked of the brokers but by ``commit_async``, which goes out before
    the member gives anything up.
    """

    def __init__(
        self,
        assigned: Callable[[Places], None],
        revoked: Callable[[Places], None],
        lost: Callable[[Places], None],
    ) -> None:
        """``revoked``: to be given up, but still ours until it returns. ``lost``: somebody else may have them."""
        self._assigned, self._revoked, self._lost = assigned, revoked, lost

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._assigned(frozenset(assigned))

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._revoked(frozenset(revoked))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._lost(frozenset(lost))


def is_joining(consumer: Consumer) -> bool:
    """Whether the member is on its way into the group, again or for the first time. Then a poll should take its time:
    kafka-python starts anew where an answer of the group comes between two polls."""
    joining: bool = consumer.group_metadata().state == MemberState.REBALANCING
    if joining:
        # And kafka-python 3.0.12 forgets a rejoin that changed metadata have caused, for ever, where a poll ends
        # between its two requests: the member would neither commit nor send heartbeats again.
        consumer._coordinator.request_rejoin()
    return joining
