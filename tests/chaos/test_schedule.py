"""What a schedule promises."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.schedule import DECK, Deed, schedule

SEEDS = st.integers(0, 10_000)


@given(SEEDS)
def test_every_kind_is_among_the_first_nine_and_kills_of_consumers_prevail_in_the_long_run(seed: int) -> None:
    deeds = [action.deed for action in schedule(seed, 9 + 10 * sum(DECK.values()), 600)]
    assert set(deeds[:9]) == set(Deed)
    counts = Counter(deeds)
    assert counts == {deed: 1 + 10 * count for deed, count in DECK.items()}
    assert counts.most_common(1)[0][0] is Deed.KILL_MEMBER


@given(SEEDS, st.integers(0, 60), st.floats(1, 3600))
def test_equal_seeds_make_equal_schedules_within_the_time(seed: int, deeds: int, seconds: float) -> None:
    actions = schedule(seed, deeds, seconds)
    assert actions == schedule(seed, deeds, seconds)
    moments = [action.at_s for action in actions]
    assert moments == sorted(moments)
    assert all(0 < at_s <= seconds * 1.001 for at_s in moments)


def test_another_seed_makes_another_schedule() -> None:
    assert schedule(1, 20, 60) != schedule(2, 20, 60)
