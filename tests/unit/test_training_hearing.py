"""The regression that weighs what was heard: it finds the weights that the data were drawn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.postprocess.mark_hearing import INPUTS
from training.hearing import Places, fitted, loss

TRUE = np.zeros((INPUTS, 2))
TRUE[0], TRUE[3], TRUE[5] = (-1.0, -2.0), (1.0, 0.0), (0.5, 1.5)


def drawn(count: int, seed: int) -> Places:
    """Places whose marks were drawn by ``TRUE`` from a model that knows nothing."""
    chance = np.random.default_rng(seed)
    evidence = np.concatenate([np.ones((count, 1)), chance.normal(size=(count, INPUTS - 1))], axis=1)
    scores = np.concatenate([np.zeros((count, 1)), evidence @ TRUE], axis=1)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    wanted = np.array([chance.choice(3, p=row) for row in shares])
    return Places(evidence, np.full((count, 3), 1 / 3), wanted, np.ones(count))


def test_the_weights_are_found_again_and_serve_places_that_were_not_seen() -> None:
    weights = fitted([drawn(6_000, 1), drawn(6_000, 2)])
    assert np.abs(weights - TRUE).max() < 0.12
    unseen = drawn(2_000, 3)
    assert loss(unseen, weights) < 0.8 * loss(unseen, np.zeros_like(weights))


def test_places_that_nothing_tells_apart_stay_as_they_are() -> None:
    same = replace(drawn(900, 4), evidence=np.ones((900, INPUTS)), wanted=np.arange(900) % 3)
    assert np.abs(fitted([same])).max() < 1e-6
