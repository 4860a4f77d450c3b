"""What happens to one batch in the step's own thread: prepared, handled, sent, delivered. It knows no offsets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from kafka.structs import TopicPartition

from consumers.dead_letters import Author, Brake, BrakeRules, dead_letter
from consumers.intake import Received
from consumers.patience import BackoffRules, Clock, Patience, persist
from pipeline.broker import Outgoing, refusal
from pipeline.errors import InvalidInputError, RetriableError

T = TypeVar("T")
R = TypeVar("R")

Answer = Sequence[Outgoing] | InvalidInputError


class Step(Protocol[T]):
    """What a consumer does to its messages. It knows no Kafka."""

    def prepare(self, message: Received) -> T:
        """Decode. Called in other threads, ahead, while ``handle`` works on the messages before.

        Raises InvalidInputError for a message that is none: it becomes a dead letter. Anything else ends the consumer.
        """

    def handle(self, batch: Sequence[T]) -> Sequence[Answer]:
        """One answer for each, in order: the messages to send, or why it can never be processed.

        Raises RetriableError where the surroundings are unwell: the same batch comes again after a while. Every
        batch can come again, also after it was handled and sent. Any other exception ends the consumer.
        """


class Sends(Protocol):
    """``pipeline.broker.Sender``."""

    def send(self, outgoings: Sequence[Outgoing]) -> None: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch, as it goes to work."""

    messages: Sequence[Received]
    waited_ms: int
    """How long its oldest message has waited since it was written."""
    lag: dict[TopicPartition, int]
    """For each of its partitions, how many messages lie behind the batch."""


class Hooks:
    """Told what happens, for metrics and traces; each method does nothing here. Two threads call them."""

    def taken(self, taken: Taken) -> None:
        """A batch goes to work; called in the polling thread."""

    def handled(self, messages: int, took_ms: int) -> None:
        """The step has answered for so many messages (called in the step's thread, as are those below)."""

    def dead(self, message: Received, error: InvalidInputError) -> None:
        """A message lies with the dead letters now."""

    def retry(self, error: RetriableError, failures: int, wait_ms: int) -> None:
        """Something failed for the ``failures``-th time in a row; called in either thread."""

    def carried_on(self, message: Received) -> tuple[tuple[str, bytes], ...]:  # noqa: ARG002
        """Headers for each message that is sent because of ``message``: its trace, carried on. No step need know."""
        return ()


class Preparer(Generic[T]):
    """Prepares messages ahead of the batch that they will be in. Only the polling thread calls it."""

    def __init__(self, step: Step[T], threads: int) -> None:
        self._step = step
        self._pool = ThreadPoolExecutor(threads, "prepare")
        self._ahead: dict[tuple[TopicPartition, int], Future[T]] = {}

    def __len__(self) -> int:
        return len(self._ahead)

    def look_at(self, messages: Iterable[Received]) -> None:
        """Begin, where it has not begun."""
        for message in messages:
            self._future(message)

    def take(self, messages: Iterable[Received]) -> list[Future[T]]:
        """Hand out what became of ``messages``, or will."""
        futures = [self._future(message) for message in messages]
        for message in messages:
            del self._ahead[message.place, message.offset]
        return futures

    def drop(self, places: Iterable[TopicPartition]) -> None:
        gone = set(places)
        for at in [at for at in self._ahead if at[0] in gone]:
            self._ahead.pop(at).cancel()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _future(self, message: Received) -> Future[T]:
        at = (message.place, message.offset)
        if at not in self._ahead:
            self._ahead[at] = self._pool.submit(self._step.prepare, message)
        return self._ahead[at]


class Handling(Generic[T]):
    """Takes one batch after the other to its delivered results."""

    def __init__(
        self,
        step: Step[T],
        sender: Sends,
        author: Author,
        backoff: BackoffRules,
        brake: BrakeRules,
        hooks: Hooks,
        clock: Clock,
    ) -> None:
        self._step, self._sender, self._author = step, sender, author
        self._backoff, self._hooks, self._clock = backoff, hooks, clock
        self._brake = Brake(brake)
        self.leaving = threading.Event()
        """Set from outside where the consumer leaves: nothing is tried again any more."""

    def work(self, batch: Sequence[Received], prepared: Sequence[Future[T]]) -> None:
        """Return when every result, and every dead letter, of the batch is delivered, in the order of the batch.

        Raises RetriableError where the surroundings stay unwell or the brake stops it, InterruptedWaitError where the
        consumer leaves meanwhile, and whatever the step raises unexpectedly. The batch is not done then.
        """
        patience = Patience(self._backoff, self._clock)
        answered = list(zip(batch, self._answers(prepared, patience), strict=True))
        dead = [(message, answer) for message, answer in answered if isinstance(answer, InvalidInputError)]
        for message, answer in answered:
            self._brake.record(message.topic, answer if isinstance(answer, InvalidInputError) else None)
        tried = patience.failures + 1
        self._deliver([out for message, answer in answered for out in self._sent(message, answer, tried)])
        for message, error in dead:
            self._hooks.dead(message, error)

    def _answers(self, prepared: Sequence[Future[T]], patience: Patience) -> list[Answer]:
        errors = [_invalid(future) for future in prepared]
        good = [future.result() for future, error in zip(prepared, errors, strict=True) if not error]
        answers = iter(self._persist(lambda: self._handled(good), patience) if good else ())
        return [error or _sendable(next(answers)) for error in errors]

    def _handled(self, good: Sequence[T]) -> Sequence[Answer]:
        started_ms = self._clock.now_ms()
        answers = self._step.handle(good)
        if len(answers) != len(good):
            raise ValueError(f"the step gave {len(answers)} answers to {len(good)} messages")
        self._hooks.handled(len(good), self._clock.now_ms() - started_ms)
        return answers

    def _sent(self, message: Received, answer: Answer, tried: int) -> Sequence[Outgoing]:
        if isinstance(answer, InvalidInputError):
            return [dead_letter(message, answer, self._author, tried, self._clock.date_ms())]
        carried_on = self._hooks.carried_on(message) if answer else ()
        return [replace(one, headers=one.headers + carried_on) for one in answer]

    def _deliver(self, outgoings: Sequence[Outgoing]) -> None:
        """The step is not asked again where only the sending fails."""
        if outgoings:
            self._persist(lambda: self._sender.send(outgoings), Patience(self._backoff, self._clock))

    def _persist(self, action: Callable[[], R], patience: Patience) -> R:
        return persist(action, patience, self._clock, self.leaving, self._hooks.retry)


def _invalid(future: Future[T]) -> InvalidInputError | None:
    """What preparing found wrong with the message. Raises anything else that it raised."""
    error = future.exception()
    if error is None or isinstance(error, InvalidInputError):
        return error
    raise error


def _sendable(answer: Answer) -> Answer:
    """A result that is too large to be sent can never be: its message is at fault."""
    if isinstance(answer, InvalidInputError):
        return answer
    return next((refused for one in answer if (refused := refusal(one))), answer)
