"""Where in the sound each token lies, from the cross-attention of the heads that follow it.

The method is Whisper's own (``whisper/timing.py``): weights normalised over the tokens, smoothed by a median over time,
averaged over the heads, and the cheapest monotone path through them by dynamic time warping.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FRAME_MS = 20
SMOOTHED_FRAMES = 7

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def token_starts(attention: npt.NDArray[np.floating], frames: int) -> Ints:
    """The frame at which each token begins, shape ``(tokens,)``, rising.

    ``attention``: ``(tokens, heads, frames or more)``, each row a distribution; the sound has ``frames`` of 20 ms.
    """
    weights = attention[:, :, :frames].astype(np.float32)
    weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-9)
    deviation = np.maximum(weights.std(axis=0, keepdims=True), 1e-9)
    normal = (weights - weights.mean(axis=0, keepdims=True)) / deviation
    return _path_starts(-_smoothed(normal).mean(axis=1))


def _smoothed(weights: Floats) -> Floats:
    """The median over ``SMOOTHED_FRAMES``, mirrored at the ends."""
    reach = SMOOTHED_FRAMES // 2
    if weights.shape[-1] <= reach:
        return weights
    padded = np.pad(weights, ((0, 0), (0, 0), (reach, reach)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED_FRAMES, axis=-1)
    median: Floats = np.partition(windows, reach, axis=-1)[..., reach]
    return median


def _path_starts(cost: Floats) -> Ints:
    """Where the cheapest path from the first cell to the last enters each row.

    A path goes one frame on, one token on, or both. With the sums S of a row's costs, the cheapest way to frame c of it
    costs S[c] + min over b <= c of (enter[b] - S[b - 1]): a row is a few operations over arrays.
    """
    tokens, frames = cost.shape
    total = np.full((tokens + 1, frames + 1), np.inf)
    total[0, 0] = 0.0
    for row in range(tokens):
        enter = np.minimum(total[row, :-1], total[row, 1:])
        sums = np.cumsum(cost[row], dtype=np.float64)
        total[row + 1, 1:] = sums + np.minimum.accumulate(enter - (sums - cost[row]))
    return _walk_back(total)


def _walk_back(total: npt.NDArray[np.float64]) -> Ints:
    row, column = total.shape[0] - 1, total.shape[1] - 1
    starts = np.zeros(row, np.int64)
    while row > 0 and column > 0:
        starts[row - 1] = column - 1
        both, token, frame = total[row - 1, column - 1], total[row - 1, column], total[row, column - 1]
        is_token, is_frame = token < both and token <= frame, frame < both and frame < token
        row, column = row - (not is_frame), column - (not is_token)
    return starts
