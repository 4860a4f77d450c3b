"""Where in the sound each token lies, from the cross-attention of the heads that follow it.

The method is Whisper's own (``whisper/timing.py``): weights normalised over the tokens, smoothed by a median over time,
averaged over the heads, and the cheapest monotone path through them by dynamic time warping.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FRAME_MS = 20
SMOOTHED_FRAMES = 7
_LEAST = np.float32(1e-9)
_TOGETHER = 16
"""Tokens that are smoothed at a time: what the processor's cache holds."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def token_starts(attention: npt.NDArray[np.floating], frames: int) -> Ints:
    """The frame at which each token begins, shape ``(tokens,)``, rising.

    ``attention``: ``(tokens, heads, frames or more)``, each row a distribution; the sound has ``frames`` of 20 ms.
    """
    weights = attention[:, :, :frames].astype(np.float32)
    weights /= np.maximum(weights.sum(axis=-1, keepdims=True), _LEAST)
    weights -= weights.mean(axis=0)
    weights /= np.maximum(np.sqrt(np.einsum("thf,thf->hf", weights, weights) / len(weights)), _LEAST)
    parts = (weights[at : at + _TOGETHER] for at in range(0, len(weights), _TOGETHER))
    return _path_starts(np.concatenate([-_smoothed(part).mean(axis=1) for part in parts]))


def _smoothed(weights: Floats) -> Floats:
    """The median over ``SMOOTHED_FRAMES``, mirrored at the ends.

    Of seven numbers, two triples around one: it is that one, held between the third and the fourth of the other six.
    Neighbours share their triples, so that a sorted triple is made once for each frame.
    """
    reach = SMOOTHED_FRAMES // 2
    if weights.shape[-1] <= reach:
        return weights
    padded = np.pad(weights, ((0, 0), (0, 0), (reach, reach)), mode="reflect")
    triples = _sorted_triples(padded)
    low, middle, high = (one[..., : -reach - 1] for one in triples)
    low_, middle_, high_ = (one[..., reach + 1 :] for one in triples)
    third = np.minimum(np.minimum(high, high_), np.minimum(np.maximum(middle, low_), np.maximum(low, middle_)))
    fourth = np.maximum(np.maximum(low, low_), np.maximum(np.minimum(middle, high_), np.minimum(high, middle_)))
    median: Floats = np.minimum(np.maximum(weights, third), fourth)
    return median


def _sorted_triples(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Each frame and the two after it, from the lowest to the highest."""
    first, second, third = values[..., :-2], values[..., 1:-1], values[..., 2:]
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    return np.minimum(lower, third), np.maximum(lower, np.minimum(upper, third)), np.maximum(upper, third)


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
