"""The ladder of precisions and the bound on batches: down when memory or time are short, up when it is calm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.precision import Bounds, Load, Pace, PaceRules, Precision, after_batch, first_pace, ladder, ran_out

RULES = PaceRules(target_ms=1000)
BOUNDS = Bounds(last_rung=2, most_slices=16)
CALM = Load(slices=4, took_ms=100, free=0.5)
LATE = Load(slices=4, took_ms=1500, free=0.5)
SHORT = Load(slices=4, took_ms=100, free=0.05)

LOADS = st.builds(
    Load,
    st.integers(1, 64),
    st.integers(0, 5000),
    st.one_of(st.none(), st.floats(0, 1)),
    st.booleans(),
)
ALL_BOUNDS = st.builds(Bounds, st.integers(0, 3), st.integers(1, 256), st.none() | st.integers(0, 3)).filter(
    lambda bounds: bounds.last_fast_rung is None or bounds.last_fast_rung <= bounds.last_rung
)
ALL_RULES = st.builds(PaceRules, target_ms=st.one_of(st.none(), st.integers(2, 5000)), calm_batches=st.integers(1, 5))


def paced(pace: Pace, *loads: Load, bounds: Bounds = BOUNDS, rules: PaceRules = RULES) -> Pace:
    for load in loads:
        pace, _ = after_batch(pace, load, bounds, rules)
    return pace


def test_the_ladder_begins_at_what_is_wanted_and_holds_what_can_be_done() -> None:
    assert ladder(Precision.FP32, set(Precision)) == tuple(Precision)
    assert ladder(Precision.BF16, {Precision.FP32, Precision.INT8, Precision.BF16}) == (Precision.BF16, Precision.INT8)
    assert ladder(Precision.INT8, set(Precision)) == (Precision.INT8,)


def test_less_than_eight_percent_free_is_one_step_down_at_once() -> None:
    pace, why = after_batch(first_pace(BOUNDS), SHORT, BOUNDS, RULES)
    assert (pace.rung, why) == (1, "5.0 % of the memory free")
    assert paced(first_pace(BOUNDS), replace(SHORT, free=0.08)).rung == 0


def test_two_late_batches_are_borne_and_the_third_in_a_row_is_a_step_down() -> None:
    assert paced(first_pace(BOUNDS), LATE, LATE).rung == 0
    assert paced(first_pace(BOUNDS), LATE, LATE, CALM, LATE, LATE).rung == 0
    assert paced(first_pace(BOUNDS), LATE, LATE, LATE).rung == 1
    pace, why = after_batch(paced(first_pace(BOUNDS), LATE, LATE), LATE, BOUNDS, RULES)
    assert (pace.rung, why) == (1, "3 batches in a row took longer than 1000 ms")


def test_late_batches_are_no_reason_for_a_rung_that_is_not_faster_but_a_lack_of_memory_is() -> None:
    bounds = Bounds(last_rung=1, most_slices=16, last_fast_rung=0)
    late, short = Load(16, 2000, 0.5), Load(16, 10, 0.01)
    assert paced(first_pace(bounds), late, late, late, bounds=bounds).rung == 0
    assert paced(first_pace(bounds), late, late, late, bounds=bounds).memory_slices == 8
    assert paced(first_pace(bounds), short, bounds=bounds).rung == 1


def test_without_a_target_no_batch_is_late() -> None:
    assert paced(first_pace(BOUNDS), *[LATE] * 9, rules=PaceRules()) == replace(first_pace(BOUNDS), calm=9)


def test_at_the_bottom_of_the_ladder_the_batches_are_halved() -> None:
    bottom = replace(first_pace(BOUNDS), rung=2)
    assert [paced(bottom, *[SHORT] * count).memory_slices for count in (1, 2, 4, 9)] == [8, 4, 1, 1]


def test_when_it_has_been_calm_batches_grow_again_first_and_then_the_precision() -> None:
    low = replace(first_pace(BOUNDS), rung=1, memory_slices=8)
    assert paced(low, *[CALM] * (RULES.calm_batches - 1)) == replace(low, calm=RULES.calm_batches - 1)
    grown = paced(low, *[CALM] * RULES.calm_batches)
    assert (grown.rung, grown.memory_slices) == (1, 16)
    assert paced(grown, *[CALM] * RULES.calm_batches).rung == 0


@pytest.mark.parametrize("tense", [replace(CALM, took_ms=501), replace(CALM, free=0.12)])
def test_a_batch_that_is_neither_short_nor_calm_begins_the_count_of_calm_ones_anew(tense: Load) -> None:
    low = replace(first_pace(BOUNDS), rung=1)
    assert paced(low, *[CALM] * 19, tense, *[CALM] * 19).rung == 1


def test_memory_that_ran_out_halves_the_batch_and_is_a_step_down() -> None:
    halved = ran_out(first_pace(BOUNDS), 12)
    assert halved.slices == 6
    assert paced(halved, replace(CALM, ran_out=True)).rung == 1


def test_a_batch_is_bounded_by_what_can_be_done_in_the_target() -> None:
    assert paced(first_pace(BOUNDS), Load(4, 800, 0.5)).slices == 5
    assert paced(first_pace(BOUNDS), Load(4, 9000, 0.5)).slices == 1
    assert paced(first_pace(BOUNDS), Load(4, 100, 0.5)).slices == 16


@given(st.lists(LOADS, max_size=60), ALL_BOUNDS, ALL_RULES)
def test_whatever_happens_the_pace_stays_within_its_bounds_and_takes_one_step_at_a_time(
    loads: list[Load], bounds: Bounds, rules: PaceRules
) -> None:
    pace = first_pace(bounds)
    for load in loads:
        before, (pace, why) = pace, after_batch(pace, load, bounds, rules)
        assert 0 <= pace.rung <= bounds.last_rung
        assert 1 <= pace.slices <= bounds.most_slices
        assert abs(pace.rung - before.rung) <= 1
        has_changed = (pace.rung, pace.memory_slices) != (before.rung, before.memory_slices)
        assert bool(why) == has_changed
        assert pace.rung == before.rung or pace.memory_slices == before.memory_slices


@given(st.lists(LOADS, max_size=40), ALL_BOUNDS, ALL_RULES)
def test_a_long_calm_leads_back_to_what_is_wanted(loads: list[Load], bounds: Bounds, rules: PaceRules) -> None:
    tired = paced(first_pace(bounds), *loads, bounds=bounds, rules=rules)
    calm = Load(slices=10_000, took_ms=1, free=1.0)
    rested = paced(tired, *[calm] * (rules.calm_batches * (bounds.last_rung + 9)), bounds=bounds, rules=rules)
    assert (rested.rung, rested.memory_slices) == (0, bounds.most_slices)


@given(st.integers(1, 300), ALL_BOUNDS)
def test_halving_ends_at_one_slice(tried: int, bounds: Bounds) -> None:
    pace = first_pace(bounds)
    for _ in range(9):
        pace = ran_out(pace, min(tried, pace.slices))
    assert pace.slices == 1
