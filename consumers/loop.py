"""All that a consumer of the line promises: nothing lost, nothing left half done, the order of each key kept.

The protocol, numbered as in the code:

1. **Poll** into a bounded buffer for each topic. A topic whose buffer is full is paused.
2. **Prepare** (decode) what the next batch will hold, in threads, while the step works on the batch before.
3. **Handle** a batch in the step's own thread. It is taken as soon as the step is free and never waits to fill.
   The main thread goes on polling, so that no batch is too long for the group and rebalances are taken part in.
4. **Send** the results, and the dead letters, in the order of the batch.
5. **Wait for every delivery.**
6. **Commit** for each partition the offset after its last finished message, if the partition is still ours.

Whatever dies between two steps, a message comes again unless it was committed, and it was committed only after its
results were delivered. So results may come twice, and whoever reads them upserts on natural keys. There is one batch
at a time and buffers are first in, first out: the messages of a partition are handled, sent and committed in order.
In the results each message of a key comes for the first time after those before it; what comes again, because a
member died or was taken for dead, comes in order too, but may come later than it should.

Partitions move cooperatively: a member keeps what it has while others come and go. One that is revoked remains ours
until we have answered; until then the batch in flight may finish and be committed, for a bounded time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kafka.errors import KafkaError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata, TopicPartition

from consumers.contact import Contact
from consumers.dead_letters import Author, BrakeRules
from consumers.handling import Handling, Hooks, Preparer, Sends, Step, Taken
from consumers.intake import Intake, Received, next_offsets
from consumers.membership import Consumer, Membership, Places, is_joining
from consumers.patience import BackoffRules, Clock, InterruptedWaitError, Patience
from consumers.priorities import Credit, Pick, pick
from pipeline.errors import RetriableError
from pipeline.values import Priority

T = TypeVar("T")

_IDLE_POLL_MS = 100
"""The longest that the stop event goes unseen."""
_BUSY_WAIT_S = 0.02
"""Between polls that bring nothing while the step works; its end is seen at once."""
_JOINING_POLL_MS = 500
_COMMIT_TIMEOUT_MS = 2000
_LEAVE_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class LoopRules:
    """How one kind of consumer works."""

    group: str
    topics: Mapping[Priority, str]
    """A consumer of one topic gives it any priority."""
    version: str = ""
    """Of the program, for the headers of dead letters."""
    max_batch: int = 16
    room: Callable[[], int] | None = None
    """Where the step has not always room for so many: how many it takes at most now. Asked from the main thread."""
    buffer_messages: int = 64
    """For each topic; where so many wait, no more are fetched."""
    buffer_bytes: int = 64 * 1024 * 1024
    """For each topic, likewise. The poll that fills a buffer may bring ``FETCH_BYTES`` too many."""
    prepare_threads: int = 2
    revoke_wait_ms: int = 10_000
    """How long a partition to be given up waits for the batch in flight; must be below the session timeout."""
    backoff: BackoffRules = field(default_factory=BackoffRules)
    brake: BrakeRules = field(default_factory=BrakeRules)


@dataclass(slots=True)
class _Flight:
    """The batch that the step works on."""

    batch: list[Received]
    future: Future[None]
    lost: set[TopicPartition] = field(default_factory=set)
    """Partitions that were ours when it was taken, and are not any more."""

    @property
    def places(self) -> set[TopicPartition]:
        return {message.place for message in self.batch}

    def offsets(self) -> dict[TopicPartition, int]:
        """What can be committed of it: nothing before it has landed, nor where it failed, nor what was lost."""
        if not self.future.done() or self.future.exception():
            return {}
        return next_offsets(message for message in self.batch if message.place not in self.lost)


def run(
    step: Step[T],
    consumer: Consumer,
    sender: Sends,
    rules: LoopRules,
    hooks: Hooks | None = None,
    stop: threading.Event | None = None,
    clock: Clock | None = None,
) -> None:
    """Consume until ``stop`` is set; then the batch in flight is finished and committed, and the group left.

    ``consumer`` is one that ``open_consumer`` made, not yet subscribed; it is closed in the end, whatever happens.
    ``sender`` remains the caller's. Raises RetriableError where the brokers, or what the step needs, stay away for
    longer than ``rules.backoff.give_up_ms``, and where a topic fails wholesale; and whatever the step raises
    unexpectedly. Then the batch in flight is not committed.
    """
    loop = _Loop(step, consumer, sender, rules, hooks or Hooks(), stop or threading.Event(), clock or Clock())
    try:
        loop.work()
        loop.finish()
    finally:
        loop.close()


class _Loop(Generic[T]):
    def __init__(
        self,
        step: Step[T],
        consumer: Consumer,
        sender: Sends,
        rules: LoopRules,
        hooks: Hooks,
        stop: threading.Event,
        clock: Clock,
    ) -> None:
        self._consumer, self._rules, self._hooks, self._stop, self._clock = consumer, rules, hooks, stop, clock
        author = Author(rules.group, rules.version)
        self._handling = Handling(step, sender, author, rules.backoff, rules.brake, hooks, clock)
        self._preparer = Preparer(step, rules.prepare_threads)
        self._thread = ThreadPoolExecutor(1, "step")
        self._landed = threading.Event()
        self._is_closing = False
        self._flight: _Flight | None = None
        self._intake = Intake(consumer, rules.topics, rules.buffer_messages, rules.buffer_bytes)
        self._credit = Credit()
        self._finished: dict[TopicPartition, int] = {}
        self._contact = Contact(consumer, rules.topics.values(), rules.backoff, clock, stop, hooks.retry)
        self._commits = Patience(rules.backoff, clock)

    def work(self) -> None:
        self._contact.establish(self._subscribe)
        while not self._stop.is_set():
            self._poll()
            self._land()
            self._take()
            self._commit()
            self._look_ahead()

    def finish(self) -> None:
        """No new batch; the one in flight lands and is committed, if the group lets it within a bounded time."""
        self._handling.leaving.set()
        self._intake.close()
        while self._flight:
            self._poll()
            with suppress(InterruptedWaitError):
                self._land()
        deadline_ms = self._clock.now_ms() + _LEAVE_TIMEOUT_MS
        self._commit()
        while self._finished and self._clock.now_ms() < deadline_ms:
            self._poll()
            self._commit()

    def close(self) -> None:
        """Leave the group first, so that others go on at once, then wait for what the step is still at."""
        self._is_closing = True
        self._handling.leaving.set()
        with suppress(KafkaError):
            self._consumer.close(autocommit=False, timeout_ms=_LEAVE_TIMEOUT_MS)
        self._preparer.close()
        self._thread.shutdown(wait=True, cancel_futures=True)

    # 1. Poll.

    def _subscribe(self) -> None:
        listener = Membership(self._intake.assign, self._revoked, self._lost)
        self._consumer.subscribe(list(self._rules.topics.values()), listener=listener)

    def _poll(self) -> None:
        self._contact.check()
        try:
            polled = self._consumer.poll(timeout_ms=self._poll_ms())
        except KafkaError as error:
            self._contact.failed(error)
            return
        self._intake.put(polled)
        if polled:
            self._contact.heard()
        elif self._flight and not is_joining(self._consumer):
            self._landed.wait(_BUSY_WAIT_S)

    def _poll_ms(self) -> int:
        if is_joining(self._consumer):
            return _JOINING_POLL_MS
        return 0 if self._flight else _IDLE_POLL_MS

    # 2. Prepare.

    def _look_ahead(self) -> None:
        """Prepare what the next batch would hold if it were taken now. Bounded: a slice is 2 MB when decoded."""
        if len(self._preparer) < 2 * self._rules.max_batch:
            self._preparer.look_at(self._intake.first(self._next().counts))

    def _next(self) -> Pick:
        most = self._rules.max_batch
        return pick(self._intake.waiting, min(most, self._rules.room()) if self._rules.room else most, self._credit)

    # 3. Handle, 4. send and 5. wait for every delivery (handling.py, in the step's thread).

    def _take(self) -> None:
        picked = self._next()
        if self._flight or self._stop.is_set() or not any(picked.counts.values()):
            return
        self._credit = picked.credit
        batch = self._intake.take(picked.counts)
        self._hooks.taken(self._taken(batch))
        self._landed.clear()
        future = self._thread.submit(self._handling.work, batch, self._preparer.take(batch))
        future.add_done_callback(lambda _: self._landed.set())
        self._flight = _Flight(batch, future)

    def _taken(self, batch: list[Received]) -> Taken:
        waited_ms = self._clock.date_ms() - min(message.timestamp_ms for message in batch)
        nexts = next_offsets(batch)
        ends = {place: self._consumer.highwater(place) for place in nexts}
        return Taken(batch, max(0, waited_ms), {at: max(0, end - nexts[at]) for at, end in ends.items() if end})

    def _land(self) -> None:
        """Raises what went wrong in flight."""
        if not self._flight or not self._flight.future.done():
            return
        flight, self._flight = self._flight, None
        flight.future.result()
        self._finished.update(flight.offsets())

    # 6. Commit.

    def _commit(self) -> None:
        """Where it fails it is tried again at the next turn."""
        if not self._finished:
            return
        try:
            self._consumer.commit(_to_commit(self._finished), timeout_ms=_COMMIT_TIMEOUT_MS)
        except KafkaError as error:
            self._not_committed(error)
        else:
            self._finished.clear()
            self._commits.recovered()
            self._contact.heard()

    def _not_committed(self, error: KafkaError) -> None:
        said = RetriableError(f"offsets cannot be committed: {type(error).__name__}: {error}")
        wait_ms = self._commits.failed(said)
        # A rebalance forbids it until all members are there, a dead one for as long as its session: nothing to tell.
        if not isinstance(error, RebalanceInProgressError):
            self._hooks.retry(said, self._commits.failures, wait_ms)

    # When partitions move (in kafka-python's network thread, while the main thread waits in its poll).

    def _revoked(self, places: Places) -> None:
        """Until this returns nobody else has them: time for the batch in flight to be finished and committed."""
        if self._is_closing:
            return
        if self._flight and self._flight.places & places:
            self._landed.wait(self._rules.revoke_wait_ms / 1000)
        offsets = self._finished | (self._flight.offsets() if self._flight else {})
        if offsets := {place: offset for place, offset in offsets.items() if place in places}:
            self._consumer.commit_async(_to_commit(offsets))
        self._lost(places)

    def _lost(self, places: Places) -> None:
        """From now on nothing of them is handled or committed here."""
        self._intake.drop(places)
        self._preparer.drop(places)
        for place in places:
            self._finished.pop(place, None)
        if self._flight:
            self._flight.lost |= places


def _to_commit(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {place: OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
