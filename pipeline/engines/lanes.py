"""Lanes: the cores of a processor, each at work on slices of its own.

Two cores that decode two halves of a batch are faster than two cores on each product of the whole: they wait for each
other once a batch, not at every product, and one computes while the other chooses texts in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Generic, TypeVar

Runtime = TypeVar("Runtime")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Lanes(Generic[Runtime]):
    """One runtime a lane, each used by one thread at a time."""

    def __init__(self, runtimes: Sequence[Runtime]) -> None:
        self.first = runtimes[0]
        """For work that is not worth sharing, while no other is done."""
        self.count = len(runtimes)
        self._free: SimpleQueue[Runtime] = SimpleQueue()
        for runtime in runtimes:
            self._free.put(runtime)
        self._threads = ThreadPoolExecutor(len(runtimes), thread_name_prefix="lane")

    def each(self, work: Callable[[Runtime, Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work`` done on every item, by whichever lane is free; what it raises comes when all lanes are done."""

        def one(item: Item) -> Result:
            runtime = self._free.get()
            try:
                return work(runtime, item)
            finally:
                self._free.put(runtime)

        running = [self._threads.submit(one, item) for item in items]
        wait(running)
        return [each.result() for each in running]


def even_shares(sizes: Sequence[int], lanes: int) -> list[list[int]]:
    """Which of ``sizes`` each lane takes, so that all have alike many and alike much; empty shares are left out.

    >>> even_shares([10, 30, 20, 40, 25], 2)
    [[0, 2, 3], [1, 4]]
    """
    falling = sorted(range(len(sizes)), key=lambda at: -sizes[at])
    # There and back: who got the largest of a round gets the smallest of the next one.
    turns = [*range(lanes), *reversed(range(lanes))]
    taken = [(turns[place % len(turns)], at) for place, at in enumerate(falling)]
    shares = [sorted(at for lane, at in taken if lane == own) for own in range(lanes)]
    return [share for share in shares if share]
