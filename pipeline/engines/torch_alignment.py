"""Where in the sound the tokens of many texts lie; the method is that of ``alignment``, for a batch at once."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from pipeline.engines.alignment import SMOOTHED_FRAMES
from pipeline.engines.torch_decoder import Ops

Tensor = Any


def starts(scores: Tensor, rows: Tensor, frames: Tensor, ops: Ops) -> Tensor:
    """The frame at which each row of each slice begins, ``(slices, longest)``, rising up to a slice's last row.

    ``scores (slices, heads, longest, frames)``: what the heads that follow the sound say, before their softmax;
    ``rows (slices,)`` and ``frames (slices,)`` are those of each slice, what lies behind is padding.
    """
    return path(costs(scores, rows, frames, ops), rows, frames)


def costs(scores: Tensor, rows: Tensor, frames: Tensor, ops: Ops) -> Tensor:
    """What it costs to say a token in a frame, ``(slices, longest, frames)``."""
    longest, width = scores.shape[2:]
    is_sound = torch.arange(width, device=scores.device) < frames[:, None]
    # A softmax over the sound alone is the one over the whole window, divided by the share of the sound.
    weights = scores.masked_fill(~is_sound[:, None, None], -torch.inf).softmax(-1)
    is_row = (torch.arange(longest, device=scores.device) < rows[:, None])[:, None, :, None]
    count = rows[:, None, None, None]
    mean = weights.masked_fill(~is_row, 0.0).sum(2, keepdim=True) / count
    apart = (weights - mean).masked_fill(~is_row, 0.0)
    deviation = (apart.square().sum(2, keepdim=True) / count).sqrt()
    return -ops.smoothed_mean(apart / deviation.clamp(min=1e-9), frames, SMOOTHED_FRAMES // 2)


def path(cost: Tensor, rows: Tensor, frames: Tensor) -> Tensor:
    """Where the cheapest path enters each row; ``cost (slices, longest, frames)``.

    With the sums S of a row's costs, the cheapest way to frame c costs S[c] + min over b <= c of (enter[b] - S[b - 1]):
    a row of all slices is a few operations.
    """
    slices, longest, width = cost.shape
    cost = cost.double()
    sums = cost.cumsum(-1)
    before = sums - cost
    entered = torch.empty(longest, slices, width, dtype=torch.int64, device=cost.device)
    is_both = torch.empty(longest, slices, width, dtype=torch.bool, device=cost.device)
    # One column more, in front: no path comes from there, but the first.
    total = torch.full((slices, width + 1), torch.inf, dtype=torch.float64, device=cost.device)
    total[:, 0] = 0.0
    for row in range(longest):
        both, token = total[:, :-1], total[:, 1:]
        torch.le(both, token, out=is_both[row])
        least, entered[row] = (torch.minimum(both, token) - before[:, row]).cummin(-1)
        total = functional.pad(sums[:, row] + least, (1, 0), value=torch.inf)
    return _walk_back(entered, is_both, rows, frames)


def _walk_back(entered: Tensor, is_both: Tensor, rows: Tensor, frames: Tensor) -> Tensor:
    """The frames at which the rows were entered; ``is_both`` where the path came from the frame before."""
    longest, slices, _ = entered.shape
    found = torch.zeros(slices, longest, dtype=torch.int64, device=rows.device)
    at = (frames.long() - 1)[:, None]
    for row in range(longest - 1, -1, -1):
        came = entered[row].gather(1, at)
        is_in = (row < rows)[:, None]
        found[:, row] = torch.where(is_in, came, 0)[:, 0]
        at = torch.where(is_in, (came - is_both[row].gather(1, came).long()).clamp(min=0), at)
    return found
