"""Whether the brokers answer: kafka-python's ``poll`` does not tell, it only comes back with nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from consumers.membership import Consumer
from consumers.patience import BackoffRules, Clock, Patience
from pipeline.errors import RetriableError

_SILENCE_MS = 10_000
"""After so long without a sign of life the brokers are asked for one."""
_ANSWER_TIMEOUT_MS = 1000
_LONGEST_WAIT_MS = 5000
"""Between two attempts: well below every poll interval."""


class Contact:
    """Asks for a sign of life where there was none for a while, and gives up in the end."""

    def __init__(
        self,
        consumer: Consumer,
        topics: Collection[str],
        backoff: BackoffRules,
        clock: Clock,
        stop: threading.Event,
        tell: Callable[[RetriableError, int, int], None],
    ) -> None:
        """``tell`` hears of each failure: the error, how many there were, and the wait in ms."""
        self._consumer, self._clock, self._stop, self._tell = consumer, clock, stop, tell
        self._asked_for = [TopicPartition(topic, 0) for topic in topics]
        self._patience = Patience(backoff, clock)
        self._heard_ms = clock.now_ms()

    def establish(self, subscribe: Callable[[], None]) -> None:
        """Return when the topics are there and subscribed to, or ``stop`` is set. Raises RetriableError where not.

        A member that joins its group before it knows its topics is given none of their partitions, and has to join
        again when it does; so their metadata are waited for here, both before and after subscribing.
        """
        while not self._stop.is_set():
            if self._ask():
                subscribe()
                if self._tried(self._consumer.topics):
                    return

    def check(self) -> None:
        """To be called at every turn. Raises RetriableError where the brokers were silent for too long."""
        if self._clock.now_ms() - self._heard_ms >= _SILENCE_MS:
            self._ask()

    def heard(self) -> None:
        """The brokers have answered something."""
        self._heard_ms = self._clock.now_ms()
        self._patience.recovered()

    def failed(self, error: KafkaError) -> None:
        """The brokers did not do what they were asked. Returns after a pause, during which ``stop`` counts."""
        topics = ", ".join(place.topic for place in self._asked_for)
        said = RetriableError(
            f"the brokers cannot be reached, or lack one of the topics {topics}: {type(error).__name__}: {error}"
        )
        wait_ms = min(self._patience.failed(said), _LONGEST_WAIT_MS)
        self._tell(said, self._patience.failures, wait_ms)
        self._clock.wait(self._stop, wait_ms)

    def _ask(self) -> bool:
        return self._tried(lambda: self._consumer.end_offsets(self._asked_for, timeout_ms=_ANSWER_TIMEOUT_MS))

    def _tried(self, ask: Callable[[], object]) -> bool:
        try:
            ask()
        except KafkaError as error:
            self.failed(error)
            return False
        self.heard()
        return True
