"""Which messages make the next batch: properties that hold for any backlog."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from consumers.priorities import BY_URGENCY, Credit, pick
from pipeline.values import Priority

backlogs = st.fixed_dictionaries(
    {}, optional={priority: st.integers(min_value=0, max_value=200) for priority in BY_URGENCY}
)
batch_sizes = st.integers(min_value=1, max_value=64)
FLOOD = dict.fromkeys(BY_URGENCY, 10_000)


def batches(waiting: Mapping[Priority, int], max_batch: int, count: int) -> list[Mapping[Priority, int]]:
    credit, counts = Credit(), []
    for _ in range(count):
        picked = pick(waiting, max_batch, credit)
        credit = picked.credit
        counts.append(picked.counts)
    return counts


@given(st.lists(backlogs, min_size=1, max_size=20), batch_sizes)
def test_a_batch_is_as_full_as_it_can_be_and_takes_nothing_that_is_not_there(
    seen: list[Mapping[Priority, int]], max_batch: int
) -> None:
    credit = Credit()
    for waiting in seen:
        counts, credit = (picked := pick(waiting, max_batch, credit)).counts, picked.credit
        assert sum(counts.values()) == min(max_batch, sum(waiting.values()))
        assert all(0 <= counts[one] <= waiting.get(one, 0) for one in BY_URGENCY)


@given(batch_sizes)
def test_in_a_flood_each_priority_gets_its_share_in_the_long_run(max_batch: int) -> None:
    taken = batches(FLOOD, max_batch, 64)
    totals = {one: sum(counts[one] for counts in taken) for one in BY_URGENCY}
    shares = {Priority.URGENT: 40 * max_batch, Priority.NORMAL: 16 * max_batch, Priority.BULK: 8 * max_batch}
    assert all(abs(totals[one] - shares[one]) <= 1 for one in BY_URGENCY)


@given(batch_sizes)
def test_bulk_never_waits_longer_than_eight_batches(max_batch: int) -> None:
    taken = batches(FLOOD, max_batch, 40)
    assert all(sum(counts[Priority.BULK] for counts in taken[at : at + 8]) for at in range(32))


@given(st.lists(backlogs, max_size=20), batch_sizes)
def test_urgent_messages_have_at_least_half_of_a_batch_whatever_came_before(
    seen: list[Mapping[Priority, int]], max_batch: int
) -> None:
    credit = Credit()
    for waiting in seen:
        credit = pick(waiting, max_batch, credit).credit
    assert pick(FLOOD, max_batch, credit).counts[Priority.URGENT] >= (max_batch - 2) // 2


def test_without_others_the_bulk_fills_the_batch() -> None:
    assert pick({Priority.BULK: 100}, 16, Credit()).counts[Priority.BULK] == 16


def test_a_share_of_less_than_a_message_is_saved_up() -> None:
    bulk = [counts[Priority.BULK] for counts in batches(FLOOD, 2, 8)]
    assert bulk == [0, 0, 0, 1, 0, 0, 0, 1]


def test_nobody_saves_while_nothing_of_it_waits() -> None:
    idle = {Priority.URGENT: 10_000}
    credit = Credit()
    for _ in range(100):
        credit = pick(idle, 16, credit).credit
    assert credit == Credit()
