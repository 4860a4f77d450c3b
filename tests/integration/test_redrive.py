"""Dead letters on their way back, over a real broker."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from consumers import redrive as program
from consumers.dead_letters import ATTEMPTS, Author, attempts_before, dead_letter
from consumers.draining import drain
from consumers.intake import Received
from consumers.redrive import Wanted, main, redrive, show
from pipeline.broker import Outgoing, Sender, Topic, create_topics, dead_topic
from pipeline.errors import InvalidInputError, RetriableError, UsageError

NUMBERS = itertools.count()
OWN_HEADERS = (("traceparent", b"00-1-2-01"), ("lecturemill-kept", b"\xff"))


@dataclass(frozen=True)
class Topics:
    """A topic of three partitions and its dead letters, on a broker of many tests."""

    brokers: str
    name: str

    def bury(self, *values: bytes, reason: str = "garbage", key: bytes | None = b"geometry") -> None:
        messages = [Received(self.name, 1, at, key, value, OWN_HEADERS, 0) for at, value in enumerate(values)]
        error, author = InvalidInputError(reason), Author("assemble", "1")
        with Sender.open(self.brokers, "test") as sender:
            sender.send([dead_letter(one, error, author, 2, 0) for one in messages])

    def messages(self) -> list[Received]:
        """All that was ever sent to the topic."""
        found: list[Received] = []
        drain(self.brokers, self.name, f"reader-{next(NUMBERS)}", counting(found), keeps_place=True)
        return found

    def values(self) -> list[bytes]:
        return sorted(one.value for one in self.messages())

    def redrive(self, limit: int | None = None, reason: str = "") -> int:
        return redrive(self.brokers, Wanted(self.name, limit, reason))


def counting(found: list[Received]):  # type: ignore[no-untyped-def]
    def handle(batch: Sequence[Received]) -> int:
        found.extend(batch)
        return len(batch)

    return handle


@pytest.fixture
def topics(kafka: str) -> Topics:
    name = f"test.redrive.{next(NUMBERS)}"
    create_topics(kafka, 3, topics=[Topic(one, 3_600_000) for one in (name, dead_topic(name))])
    return Topics(kafka, name)


def test_a_dead_letter_goes_back_as_it_came_but_for_the_count_of_attempts(topics: Topics) -> None:
    topics.bury(b"\x00one")
    assert topics.redrive() == 1
    (message,) = topics.messages()
    assert (message.key, message.value) == (b"geometry", b"\x00one")
    assert message.headers == (*OWN_HEADERS, (ATTEMPTS, b"2"))


def test_a_key_that_is_none_stays_none(topics: Topics) -> None:
    topics.bury(b"one", key=None)
    topics.redrive()
    assert [one.key for one in topics.messages()] == [None]


def test_the_count_of_attempts_grows_with_every_burial(topics: Topics) -> None:
    topics.bury(b"one")
    for attempts in (2, 3, 4):
        topics.redrive()
        last = max(topics.messages(), key=attempts_before)
        assert attempts_before(last) == attempts
        with Sender.open(topics.brokers, "test") as sender:
            sender.send([dead_letter(last, InvalidInputError("again"), Author("assemble", "1"), 1, 0)])


def test_the_messages_of_a_key_go_back_in_their_order(topics: Topics) -> None:
    values = [b"%d" % number for number in range(100)]
    topics.bury(*values)
    assert topics.redrive() == 100
    assert [one.value for one in topics.messages()] == values


def test_what_was_sent_back_is_not_sent_again(topics: Topics) -> None:
    topics.bury(b"one")
    assert [topics.redrive(), topics.redrive()] == [1, 0]
    topics.bury(b"two")
    assert topics.redrive() == 1
    assert topics.values() == [b"one", b"two"]


def test_a_limit_leaves_the_rest_for_the_next_time(topics: Topics) -> None:
    for number in range(5):
        topics.bury(b"%d" % number, key=b"course-%d" % number)
    assert [topics.redrive(limit=2), topics.redrive(limit=2), topics.redrive(limit=2)] == [2, 2, 1]
    assert topics.values() == [b"0", b"1", b"2", b"3", b"4"]


def test_only_those_with_the_reason_go_back_and_the_others_are_found_again(topics: Topics) -> None:
    topics.bury(b"one", b"two", reason="unknown media")
    topics.bury(b"three", reason="Bad Bytes")
    assert topics.redrive(reason="bad bytes") == 1
    assert topics.values() == [b"three"]
    assert topics.redrive() == 2
    assert topics.values() == [b"one", b"three", b"two"]


def test_a_dry_run_lists_and_moves_nothing(topics: Topics) -> None:
    topics.bury(b"one", b"two", reason="bad\tbytes")
    topics.bury(b"three", reason="another")
    lines: list[str] = []
    assert show(topics.brokers, Wanted(topics.name, None, "bytes"), lines.append) == 2
    assert [line.split("\t")[1:] for line in lines] == [["0", "geometry", "bad bytes"], ["1", "geometry", "bad bytes"]]
    assert topics.messages() == []
    assert topics.redrive() == 3


def test_what_dies_meanwhile_is_left_for_the_next_time(topics: Topics) -> None:
    topics.bury(b"one", b"two")
    seen: list[bytes] = []

    def die_again(batch: Sequence[Received]) -> int:
        seen.extend(one.value for one in batch)
        topics.bury(*(one.value + b" again" for one in batch))
        return len(batch)

    drain(topics.brokers, dead_topic(topics.name), "redrive", die_again)
    assert seen == [b"one", b"two"]
    assert topics.redrive() == 2
    assert topics.values() == [b"one again", b"two again"]


def test_what_was_not_delivered_when_it_was_killed_is_sent_the_next_time(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.bury(b"one", b"two")

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Sender, "send", killed)
        with pytest.raises(SystemExit):
            topics.redrive()
    assert topics.redrive() == 2
    assert topics.values() == [b"one", b"two"]


def test_what_was_delivered_but_not_committed_when_it_was_killed_is_sent_twice_and_not_lost(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.bury(b"one")
    send = Sender.send

    def killed_after(sender: Sender, outgoings: Sequence[Outgoing]) -> None:
        send(sender, outgoings)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Sender, "send", killed_after)
        with pytest.raises(SystemExit):
            topics.redrive()
    topics.redrive()
    assert topics.values() == [b"one", b"one"]


def test_a_topic_without_dead_letters_is_wrong_usage(kafka: str) -> None:
    with pytest.raises(UsageError, match=r"no topic test\.nowhere\.dead"):
        redrive(kafka, Wanted("test.nowhere"))


def test_the_command_lists_sends_and_counts(
    topics: Topics, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(os, "environ", {"LECTUREMILL_BROKERS": topics.brokers})
    topics.bury(b"one", reason="没有")
    assert main([topics.name, "--dry-run"]) == 0
    out, _ = capfdbinary.readouterr()
    assert out.decode().rstrip("\n").split("\t")[1:] == ["0", "geometry", "没有"]
    assert main([topics.name, "--limit", "5"]) == 0
    assert topics.values() == [b"one"]
    assert main(["test.nowhere"]) == 2


def test_brokers_that_are_away_are_an_exit_status_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> int:
        raise RetriableError("no broker answers")

    monkeypatch.setattr(program, "redrive", away)
    assert main(["media.uploaded"]) == 75


@pytest.mark.parametrize("limit", ["0", "-1", "x", ""])
def test_a_limit_that_is_no_number_is_wrong_usage(limit: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["media.uploaded", "--limit", limit])
