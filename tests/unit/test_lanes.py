"""Lanes: work shared among runtimes, each used by one thread at a time, and shares that are alike."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.lanes import Lanes, even_shares


class Runtime:
    """It notices when two threads use it at once."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self.done: list[int] = []

    def double(self, number: int) -> int:
        assert self._one_at_a_time.acquire(blocking=False), "two threads at once"
        self.done.append(number)
        self._one_at_a_time.release()
        return 2 * number


@given(st.lists(st.integers(), max_size=12), st.integers(1, 4))
def test_every_item_is_done_once_and_answers_keep_their_order(items: Sequence[int], count: int) -> None:
    runtimes = [Runtime() for _ in range(count)]
    assert Lanes(runtimes).each(Runtime.double, items) == [2 * item for item in items]
    assert sorted(item for runtime in runtimes for item in runtime.done) == sorted(items)


def test_two_lanes_work_at_the_same_time() -> None:
    both = threading.Barrier(2)
    # A barrier breaks, and raises, unless both lanes come to it.
    assert len(Lanes([1, 2]).each(lambda lane, _: both.wait(timeout=60) + lane, "ab")) == 2


def test_an_error_comes_when_all_lanes_are_done_and_they_serve_again() -> None:
    lanes, done = Lanes([1, 2]), []

    def work(_: int, item: int) -> int:
        if item == 0:
            raise RuntimeError("out of memory")
        done.append(item)
        return item

    with pytest.raises(RuntimeError, match="out of memory"):
        lanes.each(work, range(6))
    assert sorted(done) == [1, 2, 3, 4, 5]
    assert lanes.each(work, [7, 8]) == [7, 8]


@given(st.lists(st.integers(1, 30_000), max_size=40), st.integers(1, 5))
def test_shares_hold_every_slice_once_and_are_alike(sizes: Sequence[int], lanes: int) -> None:
    shares = even_shares(sizes, lanes)
    assert sorted(at for share in shares for at in share) == list(range(len(sizes)))
    assert all(share == sorted(share) for share in shares)
    if len(shares) > 1:
        counts, loads = [len(share) for share in shares], [sum(sizes[at] for at in share) for share in shares]
        assert max(counts) - min(counts) <= 1
        # Dealt out in falling order, no lane is ahead by more than the largest slice.
        assert max(loads) - min(loads) <= max(sizes) * (1 if len(shares) == lanes else lanes)
