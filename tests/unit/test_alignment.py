"""Token times: the cheapest path through the attention, and attention that plainly follows the sound."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.alignment import token_starts


def attention(starts: list[int], frames: int, heads: int = 2) -> np.ndarray:
    """Each token looks at the frames from its start to the next token's, and a little everywhere."""
    weights = np.full((len(starts), heads, frames), 0.01)
    for token, (start, end) in enumerate(zip(starts, [*starts[1:], frames], strict=True)):
        weights[token, :, start:end] += 1.0
    return weights / weights.sum(axis=-1, keepdims=True)


@given(st.lists(st.integers(8, 40), min_size=1, max_size=12), st.integers(8, 40))
def test_tokens_begin_where_their_attention_begins(lengths: list[int], last: int) -> None:
    starts = [0, *np.cumsum(lengths).tolist()]
    assert token_starts(attention(starts, starts[-1] + last), starts[-1] + last).tolist() == starts


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_what_lies_after_the_sound_does_not_count(kind: type) -> None:
    starts = [0, 20, 50, 90]
    padded = np.concatenate([attention(starts, 120), np.random.default_rng(1).random((4, 2, 80)) * 0.05], axis=-1)
    assert token_starts(padded.astype(kind), 120).tolist() == starts


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 999))
def test_starts_rise_and_lie_in_the_sound(tokens: int, frames: int, seed: int) -> None:
    starts = token_starts(np.random.default_rng(seed).random((tokens, 3, frames)), frames)
    assert len(starts) == tokens
    assert (np.diff(starts) >= 0).all()
    assert 0 <= starts[0] <= starts[-1] < frames


@given(st.integers(2, 6), st.integers(1, 6), st.integers(0, 999))
@settings(max_examples=50)
def test_the_path_is_the_cheapest_there_is(tokens: int, frames: int, seed: int) -> None:
    """Sounds too short to be smoothed, so that every path can be tried."""
    frames = min(frames, 3)
    weights = np.random.default_rng(seed).random((tokens, 1, frames)).astype(np.float32)
    shares = weights / weights.sum(axis=-1, keepdims=True)
    normal = (shares - shares.mean(axis=0)) / np.maximum(shares.std(axis=0), 1e-9)
    cost = -normal[:, 0]
    assert cost_of(token_starts(weights, frames).tolist(), cost) == pytest.approx(cheapest(cost), abs=1e-4)


def cheapest(cost: np.ndarray) -> float:
    @cache
    def best(token: int, frame: int) -> float:
        if token < 0 or frame < 0:
            return 0.0 if token == frame == -1 else np.inf
        return cost[token, frame] + min(best(token - 1, frame - 1), best(token - 1, frame), best(token, frame - 1))

    return float(best(cost.shape[0] - 1, cost.shape[1] - 1))


def cost_of(starts: list[int], cost: np.ndarray) -> float:
    """Of the best path that enters its rows at ``starts``: it leaves a row a frame before the next start, or in it."""
    last = len(cost[0]) - 1
    total = float(cost[-1, starts[-1] : last + 1].sum())
    for token, (start, following) in enumerate(pairwise(starts)):
        total += min(float(cost[token, start : end + 1].sum()) for end in (following - 1, following) if end >= start)
    return total
