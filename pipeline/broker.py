"""The Kafka edge for producing: the topics of the line, and a sender that returns when a message is safe.

Foreign errors are mapped here: a broker that is away, or refuses, is a RetriableError of one line that names the
brokers and the topic; a message that no broker will ever take is an InvalidInputError.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.values import Priority

MAX_MESSAGE_BYTES = 2 * 1024 * 1024
"""30 s of FLAC is under 1 MiB."""
DEAD_LETTER_ROOM_BYTES = 64 * 1024
"""What the headers of a dead letter may add to the largest message."""
FRAME_BYTES = 1024
"""More than what Kafka adds to a lone message, and to each of its headers, before it measures."""
DEFAULT_PARTITIONS = 12

MEDIA_UPLOADED = "media.uploaded"
AUDIO_SLICES = {priority: f"audio.slices.{priority}" for priority in Priority}
SLICE_TRANSCRIPTS = "slice.transcripts"
TRANSCRIPTS_COMPLETED = "transcripts.completed"

_DAY_MS = 24 * 60 * 60 * 1000
_CONNECT_TIMEOUT_MS = 10_000
_REQUEST_TIMEOUT_MS = 10_000
_DELIVERY_TIMEOUT_MS = 30_000
_ABANDON_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as ``create_topics`` makes it: kept ``retention_ms`` whatever its size, then deleted."""

    name: str
    retention_ms: int
    max_message_bytes: int = MAX_MESSAGE_BYTES

    @property
    def config(self) -> dict[str, str]:
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(self.max_message_bytes),
        }


def dead_topic(topic: str) -> str:
    """Where the messages of ``topic`` go that can never be processed.

    >>> dead_topic("media.uploaded")
    'media.uploaded.dead'
    """
    return f"{topic}.dead"


def _topics() -> tuple[Topic, ...]:
    # Audio is nine tenths of the bytes and can be cut again from the media: three days outlast a long weekend.
    consumed = [Topic(name, 3 * _DAY_MS) for name in AUDIO_SLICES.values()]
    consumed += [Topic(name, 7 * _DAY_MS) for name in (MEDIA_UPLOADED, SLICE_TRANSCRIPTS)]
    roomy_bytes = MAX_MESSAGE_BYTES + DEAD_LETTER_ROOM_BYTES
    dead = [Topic(dead_topic(topic.name), 7 * _DAY_MS, roomy_bytes) for topic in consumed]
    return (*consumed, Topic(TRANSCRIPTS_COMPLETED, 7 * _DAY_MS), *dead)


TOPICS = _topics()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send. Equal keys of one topic stay in order; the key of the line is the course id."""

    topic: str
    key: str | bytes | None
    """Text goes out as UTF-8. Bytes and None are for dead letters, whose key is passed on as it came."""
    value: bytes = field(repr=False)
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def key_bytes(self) -> bytes | None:
        return self.key.encode() if isinstance(self.key, str) else self.key

    @property
    def size_bytes(self) -> int:
        in_headers = sum(len(name.encode()) + len(value) for name, value in self.headers)
        return len(self.value) + len(self.key_bytes or b"") + in_headers


def refusal(outgoing: Outgoing) -> InvalidInputError | None:
    """Why no broker of the line would ever take the message: it is too large. None where it fits."""
    is_dead_letter = outgoing.topic.endswith(dead_topic(""))
    limit_bytes = MAX_MESSAGE_BYTES + (DEAD_LETTER_ROOM_BYTES if is_dead_letter else 0) - FRAME_BYTES
    if outgoing.size_bytes <= limit_bytes:
        return None
    return InvalidInputError(
        f"a message of {outgoing.size_bytes} bytes for {outgoing.topic}: the limit is {limit_bytes} bytes"
    )


class Sender:
    """Sends, and returns when it is safe. One thread at a time."""

    def __init__(self, open_producer: Callable[[], Any], brokers: str) -> None:
        """``open_producer`` makes something like a KafkaProducer; it is called again after a failed send."""
        self._open_producer, self._brokers = open_producer, brokers
        self._producer: Any = None

    @classmethod
    def open(cls, brokers: str, client_id: str) -> Self:
        """Connect. ``brokers`` are bootstrap servers, separated by commas. Raises RetriableError where none answers."""
        sender = cls(lambda: _producer(brokers, client_id), brokers)
        sender._connect()
        return sender

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        """Send all, in order, and return when the broker has acknowledged each.

        Raises InvalidInputError, with nothing sent, where a message is too large. Raises RetriableError where one is
        not acknowledged; any of them may have arrived, and all can be sent again.
        """
        for outgoing in outgoings:
            if refused := refusal(outgoing):
                raise refused
        topics = ", ".join(sorted({outgoing.topic for outgoing in outgoings}))
        try:
            with broker_errors(self._brokers, f"cannot deliver to {topics}"):
                self._deliver(outgoings)
        except RetriableError:
            self._abandon()
            raise

    def close(self) -> None:
        """Everything sent is acknowledged or given up already; harmless where nothing is open."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=5)

    def _abandon(self) -> None:
        """Whatever is not acknowledged is not sent any more: it must not arrive between what is sent again.

        An idempotent producer that lost a message may be in a state that it never leaves, too.
        """
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> Any:
        if self._producer is None:
            with broker_errors(self._brokers, "cannot connect to send"):
                self._producer = self._open_producer()
        return self._producer

    def _deliver(self, outgoings: Sequence[Outgoing]) -> None:
        producer = self._connect()
        deadline_s = time.monotonic() + _DELIVERY_TIMEOUT_MS / 1000
        futures = [
            producer.send(one.topic, key=one.key_bytes, value=one.value, headers=list(one.headers)) for one in outgoings
        ]
        for future in futures:
            future.get(timeout=max(0.1, deadline_s - time.monotonic()))


def servers(brokers: str) -> list[str]:
    """The addresses in a comma-separated list. Raises UsageError where one is not HOST:PORT.

    >>> servers("127.0.0.1:9092,kafka-2:9092")
    ['127.0.0.1:9092', 'kafka-2:9092']
    """
    addresses = [address.strip() for address in brokers.split(",")]
    if not all(re.fullmatch(r"[^\s:]+:\d{1,5}|\[[0-9a-fA-F:.]+\]:\d{1,5}", address) for address in addresses):
        raise UsageError(f"Kafka's brokers must be given as HOST:PORT,HOST:PORT, not {brokers!r}")
    return addresses


def reachable(brokers: str) -> list[str]:
    """The addresses, as ``servers`` gives them, once one takes a connection. Raises RetriableError where none does.

    A kafka-python client that finds no broker leaves its sockets and its thread behind; trying again and again would
    pile them up.
    """
    addresses = servers(brokers)
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_MS / 1000).close()
        except OSError as error:
            said = error
        else:
            return addresses
    raise RetriableError(f"{brokers}: no broker can be reached: {said}")


class _Producer(KafkaProducer):  # type: ignore[misc]  # kafka-python has no types
    def abandon(self) -> None:
        """End at once. Of what was not acknowledged the broker has a part of each partition's messages, the first."""
        # ``close`` cannot do it: it waits for what is not delivered, and where that takes too long it raises and leaves
        # the thread at work (kafka-python 3.0.12).
        self._sender.force_close()
        self._sender.join(_ABANDON_TIMEOUT_S)
        with suppress(KafkaError):
            self.close(timeout=_ABANDON_TIMEOUT_S)


def _producer(brokers: str, client_id: str) -> Any:
    return _Producer(
        bootstrap_servers=reachable(brokers),
        client_id=client_id,
        # Acknowledged by all in-sync replicas, without duplicates or reordering by the producer's own retries.
        acks="all",
        enable_idempotence=True,
        max_in_flight_requests_per_connection=5,
        retries=2**31 - 1,
        # Longer than anybody waits: a producer gives up batch by batch, and may deliver the one behind.
        delivery_timeout_ms=4 * _DELIVERY_TIMEOUT_MS,
        request_timeout_ms=_REQUEST_TIMEOUT_MS,
        max_block_ms=_REQUEST_TIMEOUT_MS,
        bootstrap_timeout_ms=_CONNECT_TIMEOUT_MS,
        reconnect_backoff_max_ms=2000,
        # A batch of the line is sent and waited for: lingering would only add to its time.
        linger_ms=1,
        batch_size=256 * 1024,
        max_request_size=MAX_MESSAGE_BYTES + DEAD_LETTER_ROOM_BYTES,
        # FLAC does not compress, and of the rest there is little.
        compression_type=None,
        allow_auto_create_topics=False,
    )


@contextmanager
def broker_errors(brokers: str, failed: str) -> Iterator[None]:
    """Map what kafka-python raises; ``failed`` says in the message what could not be done."""
    try:
        yield
    except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
        # Larger ones were refused before: it is the topic that was not made by create_topics.
        raise RetriableError(f"{brokers}: {failed}: its max.message.bytes is below {MAX_MESSAGE_BYTES}") from error
    except UnknownTopicOrPartitionError as error:
        raise RetriableError(f"{brokers}: {failed}: no such topic; run: python -m consumers.topics") from error
    except KafkaError as error:
        raise RetriableError(f"{brokers}: {failed}: {_one_line(error)}") from error


def _one_line(error: KafkaError) -> str:
    name, said = type(error).__name__, str(error)
    return " ".join((said if name in said else f"{name}: {said}").split())[:300]


@contextmanager
def admin(brokers: str) -> Iterator[Any]:
    """Kafka's administration client. Raises RetriableError where no broker answers."""
    with broker_errors(brokers, "cannot ask the brokers"):
        client = KafkaAdminClient(
            bootstrap_servers=reachable(brokers),
            client_id="lecturemill-admin",
            bootstrap_timeout_ms=_CONNECT_TIMEOUT_MS,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        try:
            yield client
        finally:
            client.close()


def create_topics(
    brokers: str, partitions: int = DEFAULT_PARTITIONS, replication: int = 1, topics: Iterable[Topic] = TOPICS
) -> list[str]:
    """Make the topics that are missing and return their names; one that is there is left as it is.

    More partitions later would move courses from one partition to another, out of order: choose enough at once.
    Raises RetriableError where the brokers cannot be reached.
    """
    with admin(brokers) as client:
        there = set(client.list_topics())
        missing = {
            topic.name: {"num_partitions": partitions, "replication_factor": replication, "configs": topic.config}
            for topic in topics
            if topic.name not in there
        }
        if missing:
            _create(client, missing)
    return list(missing)


def _create(client: Any, missing: dict[str, dict[str, Any]]) -> None:
    try:
        client.create_topics(missing, timeout_ms=_REQUEST_TIMEOUT_MS, wait_for_metadata=True)
    except TopicAlreadyExistsError:
        # Another process made one meanwhile; which others were refused with it is not told.
        for name, options in missing.items():
            with _ignored_if_there():
                client.create_topics({name: options}, timeout_ms=_REQUEST_TIMEOUT_MS, wait_for_metadata=True)


@contextmanager
def _ignored_if_there() -> Iterator[None]:
    try:
        yield
    except TopicAlreadyExistsError:
        return


def check(brokers: str) -> list[str]:
    """The topics of the line that are missing there. Raises RetriableError where the brokers cannot be reached."""
    with admin(brokers) as client:
        there = set(client.list_topics())
    return [topic.name for topic in TOPICS if topic.name not in there]
