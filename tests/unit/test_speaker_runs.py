"""Who talks when inside a slice: windows are brought to one naming, activity is cut into runs."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.speaker_runs import BRIDGED_FRAMES, MIN_RUN_FRAMES, Activity, Run, clean_frames, joined, runs_of

WINDOW, STEP = 40, 20


def talking(frames: int, *talks: tuple[int, int, int]) -> Activity:
    """Activity with (track, first, last) set."""
    activity = np.zeros((frames, 3), np.bool_)
    for track, first, last in talks:
        activity[first:last, track] = True
    return activity


def windows_of(whole: Activity, orders: list[tuple[int, ...]]) -> list[Activity]:
    """The windows that a perfect model would give, each with its own naming."""
    padded = np.pad(whole, ((0, WINDOW), (0, 0)))
    starts = range(0, max(1, len(whole) - WINDOW + STEP), STEP)
    return [padded[start : start + WINDOW, orders[at % len(orders)]] for at, start in enumerate(starts)]


@given(st.lists(st.sampled_from(list(permutations(range(3)))), min_size=1, max_size=8))
def test_whatever_a_window_calls_its_speakers_they_keep_one_name_in_the_slice(orders: list[tuple[int, ...]]) -> None:
    """Each of the three talks in every overlap: one who is silent there cannot be recognised."""
    words = [(track, at, at + 4 + track) for at in range(0, 156, 12) for track in range(3)]
    whole = talking(160, *((track, first + 2 * track, last + track) for track, first, last in words))
    heard = joined(windows_of(whole, orders), STEP, len(whole))
    columns = {column.tobytes() for column in heard.T}
    assert columns == {column.tobytes() for column in whole.T}


def test_a_slice_shorter_than_a_window_has_its_own_length() -> None:
    assert joined([talking(WINDOW, (1, 2, 30))], STEP, 25).shape == (25, 3)


def test_a_short_gap_is_inside_a_run_and_a_longer_one_parts_two() -> None:
    near, far = (
        talking(60, (0, 0, 20), (0, 20 + BRIDGED_FRAMES, 50)),
        talking(60, (0, 0, 20), (0, 21 + BRIDGED_FRAMES, 50)),
    )
    assert runs_of(near) == (Run(0, 0, 50),)
    assert runs_of(far) == (Run(0, 0, 20), Run(0, 21 + BRIDGED_FRAMES, 50))


def test_a_gap_in_which_another_talks_parts_two_runs() -> None:
    heard = talking(60, (0, 0, 20), (1, 20, 23), (0, 23, 50))
    assert [run for run in runs_of(heard) if run.track == 0] == [Run(0, 0, 20), Run(0, 23, 50)]


def test_a_slip_of_the_model_is_no_run() -> None:
    assert runs_of(talking(60, (2, 10, 10 + MIN_RUN_FRAMES - 1))) == ()


def test_only_the_frames_of_one_voice_alone_are_clean() -> None:
    heard = talking(60, (0, 0, 40), (1, 30, 60))
    assert clean_frames(heard, Run(0, 0, 40)).sum() == 30
    assert clean_frames(heard, Run(1, 30, 60)).sum() == 20


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=80))
def test_runs_are_in_order_and_begin_and_end_with_their_own_voice(drawn: list[list[bool]]) -> None:
    activity = np.array(drawn, np.bool_).reshape(-1, 3)
    runs = runs_of(activity)
    assert list(runs) == sorted(runs, key=lambda run: run.first)
    for run in runs:
        assert activity[run.first, run.track]
        assert activity[run.last - 1, run.track]
        assert run.last - run.first >= MIN_RUN_FRAMES
