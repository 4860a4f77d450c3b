"""The buffers between polling and handling, and what goes with a dead letter."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.structs import TopicPartition

from consumers.dead_letters import ATTEMPTS, REASON, TIME, Author, Brake, BrakeRules, dead_letter
from consumers.intake import Buffer, Received, next_offsets
from consumers.patience import BackoffRules, Clock, Patience
from pipeline.broker import DEAD_LETTER_ROOM_BYTES, MAX_MESSAGE_BYTES, Outgoing, refusal
from pipeline.errors import InvalidInputError, RetriableError

AUTHOR = Author("group", "1.0")


def message(offset: int = 0, partition: int = 0, value: bytes = b"", **headers: bytes) -> Received:
    return Received("topic", partition, offset, b"key", value, tuple(headers.items()), 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=9))), st.sets(st.integers(0, 3)), st.integers(0, 50))
def test_a_buffer_keeps_the_order_of_each_partition_and_counts_its_bytes(
    arrivals: list[tuple[int, bytes]], revoked: set[int], count: int
) -> None:
    messages = [message(offset, partition, value) for offset, (partition, value) in enumerate(arrivals)]
    buffer = Buffer(limit=10, limit_bytes=100)
    buffer.put(messages)
    buffer.drop({TopicPartition("topic", partition) for partition in revoked})
    kept = [one for one in messages if one.partition not in revoked]
    assert buffer.is_full == (len(kept) >= 10 or sum(one.size_bytes for one in kept) >= 100)
    count = min(count, len(kept))
    assert buffer.first(count) == kept[:count]
    assert buffer.take(count) == kept[:count]
    assert buffer.size_bytes == sum(one.size_bytes for one in kept[count:])


def test_reading_goes_on_after_the_last_message_of_each_partition() -> None:
    done = [message(4, partition=0), message(9, partition=1), message(5, partition=0)]
    assert next_offsets(done) == {TopicPartition("topic", 0): 6, TopicPartition("topic", 1): 10}


def test_a_message_without_value_and_header_value_is_received_with_empty_ones() -> None:
    record = SimpleNamespace(
        topic="topic", partition=1, offset=2, key=None, value=None, headers=[("trace", None)], timestamp=3
    )
    assert Received.of(record) == Received("topic", 1, 2, None, b"", (("trace", b""),), 3)


def test_a_dead_letter_that_was_sent_again_counts_on_and_has_its_headers_once() -> None:
    first = dead_letter(message(trace=b"1"), InvalidInputError("no"), AUTHOR, attempts=2, time_ms=0)
    again = Received("topic", 0, 7, b"key", b"", first.headers, 0)
    second = dead_letter(again, InvalidInputError("still no"), AUTHOR, attempts=1, time_ms=0)
    names = [name for name, _ in second.headers]
    headers = dict(second.headers)
    assert len(names) == len(set(names))
    assert (headers[ATTEMPTS], headers[REASON], headers["trace"]) == (b"3", b"still no", b"1")
    assert headers[TIME] == b"1970-01-01T00:00:00.000+00:00"


def test_the_dead_letter_of_the_largest_message_with_the_longest_reason_fits_its_topic() -> None:
    largest = message(value=bytes(MAX_MESSAGE_BYTES))
    letter = dead_letter(largest, InvalidInputError("字" * DEAD_LETTER_ROOM_BYTES), AUTHOR, 1, 0)
    assert refusal(letter) is None
    assert refusal(Outgoing("topic", "key", letter.value))


def test_the_brake_counts_only_the_last_messages_of_its_topic() -> None:
    brake = Brake(BrakeRules(window=3, most_dead=1))
    error = InvalidInputError("no")
    for is_dead in (True, False, False, True, False):
        brake.record("topic", error if is_dead else None)
    brake.record("other topic", error)
    with pytest.raises(RetriableError, match=r"topic: the topic fails wholesale: 2 of its last 3"):
        brake.record("topic", error)


class _Clock(Clock):
    def __init__(self) -> None:
        self.at_ms = 0

    def now_ms(self) -> int:
        return self.at_ms


def test_waits_double_up_to_the_longest_and_are_cut_by_at_most_a_half() -> None:
    patience = Patience(BackoffRules(first_ms=100, longest_ms=1000, give_up_ms=10), _Clock())
    for full_ms in (100, 200, 400, 800, 1000, 1000):
        assert full_ms / 2 <= patience.failed(RetriableError("away")) <= full_ms


def test_patience_ends_after_its_time_and_begins_anew_after_a_success() -> None:
    clock = _Clock()
    patience = Patience(BackoffRules(give_up_ms=1000), clock)
    patience.failed(RetriableError("away"))
    clock.at_ms = 999
    patience.failed(RetriableError("away"))
    patience.recovered()
    clock.at_ms = 1500
    patience.failed(RetriableError("away"))
    clock.at_ms = 2500
    with pytest.raises(RetriableError, match="gave up after 2 attempts in 1 s: away"):
        patience.failed(RetriableError("away"))


def test_a_wait_ends_when_its_event_is_set() -> None:
    leaving = threading.Event()
    leaving.set()
    assert Clock().wait(leaving, 3_600_000)
