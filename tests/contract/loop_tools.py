"""What the tests of the loop are made of: a step that can be held up, members in threads, and spies between them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from kafka.structs import TopicPartition

from consumers.handling import Answer, Hooks, Sends, Taken
from consumers.intake import Received
from consumers.loop import LoopRules, run
from consumers.membership import Membership
from consumers.patience import Clock
from pipeline.broker import Outgoing
from pipeline.errors import InvalidInputError, RetriableError

LONGEST_S = 30.0
"""Where a test waits so long for something, it has failed."""


_CHANGED = threading.Condition()


class Noted:
    """What one thread notes and another waits for; all share a condition, so that a test may wait for several."""

    def note(self, change: Callable[[], object]) -> None:
        with _CHANGED:
            change()
            _CHANGED.notify_all()

    def until(self, is_so: Callable[[], bool]) -> None:
        with _CHANGED:
            assert _CHANGED.wait_for(is_so, LONGEST_S), "the test waited in vain"


class Copy(Noted):
    """A step that sends each value on to ``target``. ``bad`` values cannot be prepared, ``odd`` ones not handled."""

    def __init__(self, target: str, hold_s: float = 0.0) -> None:
        self.target = target
        self.gate = threading.Event()
        self.gate.set()
        self.hold_s = hold_s
        self.prepared: list[bytes] = []
        self.begun: list[list[bytes]] = []
        self.handled: list[bytes] = []
        self.failures: list[Exception] = []

    def prepare(self, message: Received) -> Received:
        if message.value.startswith(b"bad"):
            raise InvalidInputError("these bytes are no message")
        self.note(lambda: self.prepared.append(message.value))
        return message

    def handle(self, batch: Sequence[Received]) -> Sequence[Answer]:
        values = [message.value for message in batch]
        self.note(lambda: self.begun.append(values))
        threading.Event().wait(self.hold_s)
        assert self.gate.wait(LONGEST_S)
        if self.failures:
            raise self.failures.pop(0)
        self.note(lambda: self.handled.extend(values))
        return [self._answer(message) for message in batch]

    def await_handled(self, count: int) -> None:
        self.until(lambda: len(self.handled) >= count)

    def await_begun(self, batches: int) -> None:
        self.until(lambda: len(self.begun) >= batches)

    def _answer(self, message: Received) -> Answer:
        if message.value.startswith(b"odd"):
            return InvalidInputError("its media is not known")
        return [Outgoing(self.target, message.key, message.value)]


class SpiedConsumer(Noted):
    """A consumer that notes what it is told and gives out, and can die instead of committing."""

    def __init__(self, consumer: Any, dies_at_commit: int = 0) -> None:
        self._consumer = consumer
        self._dies_at_commit = dies_at_commit
        self.polled = 0
        self.paused: set[TopicPartition] = set()
        self.changes: list[str] = []
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def subscribe(self, topics: Sequence[str], *, listener: Membership) -> None:
        self._consumer.subscribe(topics, listener=_SpiedMembership(self, listener))

    def poll(self, timeout_ms: int) -> Mapping[TopicPartition, Sequence[Any]]:
        polled: Mapping[TopicPartition, Sequence[Any]] = self._consumer.poll(timeout_ms=timeout_ms)
        self.note(lambda: setattr(self, "polled", self.polled + sum(map(len, polled.values()))))
        return polled

    def pause(self, *places: TopicPartition) -> None:
        self._consumer.pause(*places)
        self.note(lambda: self.paused.update(places))

    def commit(self, offsets: Mapping[TopicPartition, Any], timeout_ms: int) -> None:
        if self.commits + 1 == self._dies_at_commit:
            raise KilledError
        self._consumer.commit(offsets, timeout_ms=timeout_ms)
        self.note(lambda: setattr(self, "commits", self.commits + 1))


class KilledError(Exception):
    """Nothing in the project knows this exception: it stands for the end of the process."""


class _SpiedMembership(Membership):
    def __init__(self, spy: SpiedConsumer, listener: Membership) -> None:
        self._spy, self._listener = spy, listener

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._spy.note(lambda: self._spy.changes.append("assigned"))
        self._listener.on_partitions_assigned(assigned)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._spy.note(lambda: self._spy.changes.append("revoked"))
        self._listener.on_partitions_revoked(revoked)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._spy.note(lambda: self._spy.changes.append("lost"))
        self._listener.on_partitions_lost(lost)


class GatedSender:
    """Holds up every delivery until its gate opens, and fails as often as it is told."""

    def __init__(self, sender: Sends, failures: int = 0) -> None:
        self._sender, self._failures = sender, failures
        self.entered, self.gate = threading.Event(), threading.Event()

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        self.entered.set()
        assert self.gate.wait(LONGEST_S)
        if self._failures:
            self._failures -= 1
            raise RetriableError("the broker is away")
        self._sender.send(outgoings)


class Recorder(Hooks, Noted):
    """Notes what the loop tells."""

    def __init__(self, on_retry: Callable[[], object] = lambda: None) -> None:
        self.taken_batches: list[Taken] = []
        self.handled_messages: list[int] = []
        self.dead_letters: list[Received] = []
        self.retries: list[RetriableError] = []
        self._on_retry = on_retry

    def taken(self, taken: Taken) -> None:
        self.note(lambda: self.taken_batches.append(taken))

    def handled(self, messages: int, took_ms: int) -> None:
        assert took_ms >= 0
        self.note(lambda: self.handled_messages.append(messages))

    def dead(self, message: Received, error: InvalidInputError) -> None:
        assert error.reason
        self.note(lambda: self.dead_letters.append(message))

    def retry(self, error: RetriableError, failures: int, wait_ms: int) -> None:
        assert failures
        assert wait_ms >= 0
        self._on_retry()
        self.note(lambda: self.retries.append(error))


class QuickClock(Clock):
    """Waits for nothing, and every look at it is half a second later."""

    def __init__(self) -> None:
        self._now_ms = 0

    def now_ms(self) -> int:
        self._now_ms += 500
        return self._now_ms

    def wait(self, event: threading.Event, wait_ms: int) -> bool:
        self._now_ms += wait_ms
        return event.is_set()


class Member:
    """A loop in a thread of its own. As a context it is stopped in the end; what it raised is raised there."""

    def __init__(
        self,
        step: Any,
        consumer: Any,
        sender: Sends,
        rules: LoopRules,
        hooks: Hooks | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(step, consumer, sender, rules, hooks, self.stop, clock), daemon=True
        )

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def ended(self) -> BaseException | None:
        """Wait until it ends by itself; with which error."""
        self._thread.join(LONGEST_S)
        assert not self.is_running, "the loop does not end"
        return self._error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        if (own := self.ended()) and error is None:
            raise own

    def _run(self, *arguments: Any) -> None:
        try:
            run(*arguments)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the test's own thread
            self._error = error
