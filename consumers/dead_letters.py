"""What becomes of a message that can never be processed: it moves aside, unchanged, and the brake watches how often."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, datetime

from consumers.intake import Received
from pipeline.broker import Outgoing, dead_topic
from pipeline.errors import InvalidInputError, RetriableError

REASON = "lecturemill-reason"
TOPIC = "lecturemill-topic"
PARTITION = "lecturemill-partition"
OFFSET = "lecturemill-offset"
GROUP = "lecturemill-group"
VERSION = "lecturemill-version"
ATTEMPTS = "lecturemill-attempts"
TIME = "lecturemill-time"
HEADERS = (REASON, TOPIC, PARTITION, OFFSET, GROUP, VERSION, ATTEMPTS, TIME)
"""Text in UTF-8; the time is that of the burial, ISO 8601 in UTC."""

LONGEST_REASON_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Author:
    """Who buries: the consumer group and the version of the program."""

    group: str
    version: str


def dead_letter(message: Received, error: InvalidInputError, author: Author, attempts: int, time_ms: int) -> Outgoing:
    """The message for ``<topic>.dead``: key, value and own headers as they came, and ``HEADERS``.

    ``attempts`` adds to what the headers of a message that was buried before and sent again say.
    """
    said = {
        REASON: error.reason.encode()[:LONGEST_REASON_BYTES].decode(errors="ignore"),
        TOPIC: message.topic,
        PARTITION: str(message.partition),
        OFFSET: str(message.offset),
        GROUP: author.group,
        VERSION: author.version,
        ATTEMPTS: str(attempts + attempts_before(message)),
        TIME: datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds"),
    }
    own = tuple(header for header in message.headers if header[0] not in HEADERS)
    ours = tuple((name, text.encode()) for name, text in said.items())
    return Outgoing(dead_topic(message.topic), message.key, message.value, own + ours)


def attempts_before(message: Received) -> int:
    """How often it was tried before it was sent again from the dead letters; 0 for a message that never was there."""
    said = dict(message.headers).get(ATTEMPTS, b"")
    return int(said) if said.isdigit() else 0


@dataclass(frozen=True, slots=True)
class BrakeRules:
    """Of the last ``window`` messages of a topic, at most ``most_dead`` may be dead letters."""

    window: int = 50
    most_dead: int = 20


class Brake:
    """Stops a consumer under which a whole topic fails: then the consumer is at fault, or its producer, not a message.

    Without it, one wrong deployment would empty the topic into the dead letters.
    """

    def __init__(self, rules: BrakeRules) -> None:
        self._rules = rules
        self._were_dead: defaultdict[str, deque[bool]] = defaultdict(lambda: deque(maxlen=rules.window))

    def record(self, topic: str, error: InvalidInputError | None) -> None:
        """Count one message. Raises RetriableError where too many were dead; this one must not be buried then."""
        last = self._were_dead[topic]
        last.append(error is not None)
        if error and sum(last) > self._rules.most_dead:
            raise RetriableError(
                f"{topic}: the topic fails wholesale: {sum(last)} of its last {len(last)} messages could not be "
                f"processed, the last one because: {error.reason}; offsets are kept; see {dead_topic(topic)}"
            )
