"""How long it is quiet around the end of each word: pauses that are too short for the speech detector.

A speaker who stops for a tenth of a second at a comma is not heard to stop by a detector, and the path of an alignment
draws the words on both sides over such a pause. The sound itself shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.values import SAMPLES_PER_MS, Samples

FRAME_MS = 10
QUIET_DB = 30.0
"""So much below the level of the speech it is quiet."""
LEVEL_SHARE = 0.8
"""So many of the frames that hold any sound are below that level."""
SOUND_DB = 60.0
"""Frames that are so much below the loudest one hold none."""


def quiet_after_ms(samples: Samples, middles_ms: Sequence[float]) -> list[int]:
    """For each word the longest quiet stretch from its middle to that of the next one, the last one's to the end.

    ``middles_ms`` count from the start of ``samples`` and rise. Multiples of ``FRAME_MS``.
    """
    count = len(samples) // (FRAME_MS * SAMPLES_PER_MS)
    if not count or not middles_ms:
        return [0] * len(middles_ms)
    frames = samples[: count * FRAME_MS * SAMPLES_PER_MS].reshape(count, -1)
    power = np.vecdot(frames, frames)
    sounding = power[power > power.max() * 10 ** (-SOUND_DB / 10)]
    place = int(LEVEL_SHARE * len(sounding))
    level = np.partition(sounding, place)[place] if len(sounding) else 0.0
    begins = np.clip(np.maximum.accumulate(np.asarray(middles_ms, np.float64) // FRAME_MS), 0, count - 1).astype(int)
    # A stretch begins after a frame that is loud, and anew at each word.
    at = np.arange(count)
    before = np.where(power < level * 10 ** (-QUIET_DB / 10), -1, at)
    before[begins] = np.maximum(before[begins], begins - 1)
    lasting = at - np.maximum.accumulate(before)
    found: list[int] = (np.maximum.reduceat(lasting, begins) * FRAME_MS).tolist()
    return found
