"""Step 6, who talks when inside a slice: the windows of a segmentation model as runs of one voice each.

The model names up to three speakers, in every window anew. Overlapping windows are brought to one naming; a voice's
activity is then cut at the pauses into runs: what the model takes for one speaker may be two with a pause between, and
it bridges pauses of 300 ms that the detector hears.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

Activity = npt.NDArray[np.bool_]
"""Which of the local speakers talk, shape ``(frames, 3)``."""

LOCAL_SPEAKERS = 3
BRIDGED_FRAMES = 6
"""A gap of up to 100 ms is inside a run (a plosive's closure); a longer one may be a change of speaker."""
MIN_RUN_FRAMES = 6
"""A shorter run, of less than 100 ms, is a slip of the model."""


@dataclass(frozen=True, slots=True)
class Run:
    """Frames ``[first, last)`` in which one voice of the slice talks; ``track`` is its number there."""

    track: int
    first: int
    last: int


def joined(windows: Sequence[Activity], step_frames: int, frames: int) -> Activity:
    """The activity of a whole slice, shape ``(frames, 3)``, from windows that begin every ``step_frames``.

    Of the six namings of a window the one is taken that agrees best with the windows before it; where two windows
    overlap, the earlier one counts up to the middle of the overlap.
    """
    whole = np.zeros((frames, LOCAL_SPEAKERS), np.bool_)
    heard_to = 0
    for number, window in enumerate(windows):
        start = number * step_frames
        overlap = max(0, min(heard_to - start, len(window)))
        named = _named(window, whole[start : start + overlap])
        kept_from = overlap // 2
        end = min(start + len(window), frames)
        whole[start + kept_from : end] = named[kept_from : end - start]
        heard_to = end
    return whole


def _named(window: Activity, before: Activity) -> Activity:
    def agreement(order: tuple[int, ...]) -> int:
        return int((window[: len(before), order] & before).sum())

    return window[:, max(permutations(range(LOCAL_SPEAKERS)), key=agreement)]


def runs_of(activity: Activity) -> tuple[Run, ...]:
    """The runs of all voices of a slice by their beginnings; they overlap where two talk at once."""
    runs = [run for track in range(activity.shape[1]) for run in _runs(activity, track)]
    return tuple(sorted(runs, key=lambda run: (run.first, run.track)))


def _runs(activity: Activity, track: int) -> Iterator[Run]:
    own = activity[:, track]
    others = activity.any(axis=1) & ~own
    edges = np.flatnonzero(np.diff(np.pad(own.astype(np.int8), 1)))
    first: int | None = None
    for at, (start, end) in enumerate(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)):
        first = start if first is None else first
        following = int(edges[2 * at + 2]) if 2 * at + 2 < len(edges) else None
        if following is not None and following - end <= BRIDGED_FRAMES and not others[end:following].any():
            continue
        if end - first >= MIN_RUN_FRAMES:
            yield Run(track, first, end)
        first = None


def clean_frames(activity: Activity, run: Run) -> npt.NDArray[np.bool_]:
    """The frames of a run in which its voice talks and no other, shape ``(run.last - run.first,)``."""
    part = activity[run.first : run.last]
    return np.asarray(part[:, run.track] & (part.sum(axis=1) == 1))
