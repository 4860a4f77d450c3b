"""Which waiting messages make the next batch: urgent ones first, and yet none waits for ever. Pure.

Bulk has an eighth of all batches and normal a quarter, where they have so much waiting; what one does not use goes to
the most urgent that can. Where a share is less than a whole message (an eighth of a batch of 4), it is saved up from
batch to batch, so that a batch now and then takes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.values import Priority

EIGHTHS = {Priority.NORMAL: 2, Priority.BULK: 1}
"""The share of each priority that must not starve, in eighths of a batch. Urgent needs none: it goes first."""
BY_URGENCY = (Priority.URGENT, Priority.NORMAL, Priority.BULK)


@dataclass(frozen=True, slots=True)
class Credit:
    """What the reserved shares have saved up, in eighths of a message."""

    normal: int = 0
    bulk: int = 0

    def of(self, priority: Priority) -> int:
        return {Priority.NORMAL: self.normal, Priority.BULK: self.bulk}.get(priority, 0)


@dataclass(frozen=True, slots=True)
class Pick:
    """How many messages of each priority the next batch takes, and the credit after it."""

    counts: Mapping[Priority, int]
    credit: Credit


def pick(waiting: Mapping[Priority, int], max_batch: int, credit: Credit) -> Pick:
    """Fill a batch of at most ``max_batch`` messages from those that are waiting.

    >>> everything = {Priority.URGENT: 99, Priority.NORMAL: 99, Priority.BULK: 99}
    >>> [pick(everything, 16, Credit()).counts[one] for one in BY_URGENCY]
    [10, 4, 2]
    """
    earned = {one: credit.of(one) + EIGHTHS.get(one, 0) * max_batch for one in BY_URGENCY}
    counts = dict.fromkeys(BY_URGENCY, 0)
    # Least urgent first: where a small batch cannot hold every reserved message, it is bulk that waited longest.
    for one in reversed(BY_URGENCY):
        counts[one] = min(waiting.get(one, 0), earned[one] // 8, max_batch - sum(counts.values()))
    for one in BY_URGENCY:
        counts[one] += min(waiting.get(one, 0) - counts[one], max_batch - sum(counts.values()))
    saved = {one: _saved(one, waiting, counts[one], earned[one], max_batch) for one in BY_URGENCY}
    return Pick(counts, Credit(saved[Priority.NORMAL], saved[Priority.BULK]))


def _saved(one: Priority, waiting: Mapping[Priority, int], count: int, earned: int, max_batch: int) -> int:
    """What was not used. Nobody saves while nothing of it waits, nor more than one batch."""
    if waiting.get(one, 0) == count:
        return 0
    return min(max(earned - 8 * count, 0), 8 * max_batch)
