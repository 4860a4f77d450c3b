"""How long a consumer tries again while its surroundings are unwell, and how long it waits in between."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pipeline.errors import DeviceLostError, RetriableError

T = TypeVar("T")


class Clock:
    """The real clock; tests give another one."""

    def now_ms(self) -> int:
        """Only its differences mean anything."""
        return time.monotonic_ns() // 1_000_000

    def date_ms(self) -> int:
        """Milliseconds since 1970 (UTC)."""
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, wait_ms: int) -> bool:
        """Wait, or less where the event is set; whether it is."""
        return event.wait(wait_ms / 1000)


@dataclass(frozen=True, slots=True)
class BackoffRules:
    """Waits double from ``first_ms`` to ``longest_ms``; each is cut by a random part of at most a half, so that
    many consumers do not come back at one instant. After ``give_up_ms`` of failures the consumer stops."""

    first_ms: int = 500
    longest_ms: int = 15_000
    give_up_ms: int = 300_000


class Patience:
    """Counts failures of one kind since the last success."""

    def __init__(self, rules: BackoffRules, clock: Clock) -> None:
        self._rules, self._clock = rules, clock
        self._random = random.Random()
        self._since_ms = 0
        self.failures = 0

    def recovered(self) -> None:
        self.failures = 0

    def failed(self, error: RetriableError) -> int:
        """How many milliseconds to wait before the next attempt. Raises RetriableError where it is time to give up."""
        now_ms = self._clock.now_ms()
        self._since_ms = self._since_ms if self.failures else now_ms
        self.failures += 1
        lasted_ms = now_ms - self._since_ms
        if lasted_ms >= self._rules.give_up_ms:
            raise RetriableError(f"gave up after {self.failures} attempts in {lasted_ms // 1000} s: {error.reason}")
        # The exponent is bounded so that days of failures do not make a number of a thousand digits.
        full_ms = min(self._rules.first_ms << min(self.failures - 1, 20), self._rules.longest_ms)
        return round(full_ms * self._random.uniform(0.5, 1))


class InterruptedWaitError(Exception):
    """Whoever waited for a better time is wanted elsewhere: the consumer is leaving."""


def persist(
    action: Callable[[], T],
    patience: Patience,
    clock: Clock,
    leaving: threading.Event,
    tell: Callable[[RetriableError, int, int], None],
) -> T:
    """Do ``action`` until it raises no RetriableError.

    ``tell`` hears of each failure: the error, how many there were, and the wait in ms. Raises RetriableError where
    patience ends, or at once where only another process can work, InterruptedWaitError where ``leaving`` is set while
    it waits.
    """
    while True:
        try:
            return action()
        except DeviceLostError:
            raise
        except RetriableError as error:
            wait_ms = patience.failed(error)
            tell(error, patience.failures, wait_ms)
            if clock.wait(leaving, wait_ms):
                raise InterruptedWaitError from error
