"""``python -m consumers.redrive TOPIC``: send the dead letters of a topic back to it, once the fault is repaired.

Each goes back as it first came, with one header more that says how often it was tried. Those of which the reason does
not match go back to the end of the dead letters. What becomes a dead letter meanwhile is left for the next time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from consumers.dead_letters import ATTEMPTS, HEADERS, REASON
from consumers.draining import drain
from consumers.intake import Received
from consumers.wiring import EXIT_DONE, EXIT_RETRIABLE, EXIT_USAGE
from pipeline.broker import Outgoing, Sender, dead_topic
from pipeline.console import complain, printable, write_out
from pipeline.errors import RetriableError, UsageError
from pipeline.settings import settings_from

GROUP = "redrive"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dead letters."""

    topic: str
    """The one they came from."""
    limit: int | None = None
    reason: str = ""
    """Part of the reason, whatever its case."""

    def matches(self, message: Received) -> bool:
        return self.reason.casefold() in reason_of(message).casefold()


def redrive(brokers: str, wanted: Wanted) -> int:
    """How many were sent back. Raises UsageError where there is no such topic, RetriableError where brokers are away.

    A message is committed after it was delivered: whenever this is killed, none is lost, and some may be sent twice.
    """

    def send(messages: Sequence[Received]) -> int:
        sender.send([_returned(one, wanted.topic) if wanted.matches(one) else _kept(one) for one in messages])
        return sum(wanted.matches(one) for one in messages)

    with Sender.open(brokers, f"lecturemill-{GROUP}") as sender:
        return drain(brokers, dead_topic(wanted.topic), GROUP, send, limit=wanted.limit)


def show(brokers: str, wanted: Wanted, say: Callable[[str], None]) -> int:
    """Say what ``redrive`` would send back, and how many those are; nothing is sent or moved. Raises as ``redrive``."""

    def say_all(messages: Sequence[Received]) -> int:
        matching = [one for one in messages if wanted.matches(one)]
        for one in matching:
            say(_line(one))
        return len(matching)

    return drain(brokers, dead_topic(wanted.topic), GROUP, say_all, limit=wanted.limit, keeps_place=True)


def reason_of(message: Received) -> str:
    return dict(message.headers).get(REASON, b"").decode(errors="replace")


def _returned(message: Received, topic: str) -> Outgoing:
    """The header that stays is added to by whoever buries the message again."""
    headers = tuple(header for header in message.headers if header[0] == ATTEMPTS or header[0] not in HEADERS)
    return Outgoing(topic, message.key, message.value, headers)


def _kept(message: Received) -> Outgoing:
    """Offsets know no gaps: what stays is written anew, so that the next time finds it."""
    return Outgoing(message.topic, message.key, message.value, message.headers)


def _line(message: Received) -> str:
    key = (message.key or b"").decode(errors="replace")
    fields = (message.partition, message.offset, key, reason_of(message))
    return "\t".join(printable(" ".join(str(field).split())) for field in fields)


def _print(line: str) -> None:
    write_out(f"{line}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, 2 where there is no such topic, 75 where the brokers are away."""
    parser = argparse.ArgumentParser(prog="python -m consumers.redrive", description=__doc__)
    parser.add_argument("topic", help="where the dead letters came from, e.g. media.uploaded")
    parser.add_argument("--limit", type=_count, metavar="N", help="send back at most N (default: all)")
    parser.add_argument("--reason", default="", metavar="TEXT", help="only those of which the reason holds TEXT")
    parser.add_argument(
        "--dry-run", action="store_true", help="list them: partition, offset, key, reason; send nothing"
    )
    options = parser.parse_args(arguments)
    wanted = Wanted(options.topic, options.limit, options.reason)
    brokers = settings_from(os.environ).brokers
    try:
        if options.dry_run:
            complain(f"{show(brokers, wanted, _print)} messages would be sent back to {wanted.topic}")
        else:
            complain(f"{redrive(brokers, wanted)} messages sent back to {wanted.topic}")
    except (RetriableError, UsageError) as error:
        complain(error.reason)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_RETRIABLE
    return EXIT_DONE


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"takes a number from 1, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
