"""Texts drawn at random: by their probabilities, and the same again for the same slice."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pipeline.engines.beam_search import Step, Text, Tokens
from pipeline.engines.mark_tokens import MarkTokens
from pipeline.engines.sampling import Floats, Sampling, sample

END = 0
SUPPRESSED = 3
SCORES = np.log(np.array([0.1, 0.4, 0.3, 0.15, 0.05], np.float32))
"""Of each next token, whatever came before."""


class Indifferent:
    """A model that always says ``SCORES``. Its states are the slices' numbers."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[int], list[int]]] = []

    def first(self, slices: int) -> Step:
        return self._answer(np.arange(slices))

    def step(self, tokens: Tokens, parents: Tokens, slices: Tokens) -> Step:
        assert len(tokens) == len(parents)
        self.asked.append((parents.tolist(), slices.tolist()))
        return self._answer(slices)

    def logits(self, states: Floats) -> Floats:
        return np.tile(SCORES, (len(states), 1))

    def _answer(self, slices: Tokens) -> Step:
        rows = len(slices)
        attention = np.asarray(slices, np.float32)[:, None, None]
        best, shares = np.tile([7, 9], (rows, 1)), np.tile(np.float32([0.5, 0.25]), (rows, 1))
        return Step(best, np.log(shares), attention, np.zeros((rows, 1)))


def drawn(
    seeds: list[int], temperature: float = 1.0, max_tokens: int = 8, first: tuple[int, ...] = (END,)
) -> tuple[Indifferent, list[Text]]:
    model = Indifferent()
    rules = Sampling(temperature, END, max_tokens, (SUPPRESSED,), first, MarkTokens((9,), (6, 7)))
    return model, sample(model, model.first(len(seeds)), model.logits, rules, seeds)


def test_a_slice_is_drawn_the_same_text_alone_and_among_others() -> None:
    _, together = drawn([5, 6, 7, 8])
    alone = [drawn([seed])[1][0] for seed in (5, 6, 7, 8)]
    assert [text.tokens for text in together] == [text.tokens for text in alone]
    assert len({text.tokens for text in together}) > 1


def test_tokens_are_drawn_by_their_probability_at_the_temperature() -> None:
    for temperature in (1.0, 0.5):
        _, texts = drawn(list(range(4_000)), temperature, max_tokens=1)
        counts = Counter(text.tokens for text in texts)
        powers = np.exp(SCORES[[1, 2, 4]] / temperature)
        for token, share in zip((1, 2, 4), powers / powers.sum(), strict=True):
            assert abs(counts[token,] / 4_000 - share) < 0.03


def test_a_suppressed_token_is_never_drawn_and_some_only_not_first() -> None:
    _, texts = drawn(list(range(500)), max_tokens=4, first=(END, 4))
    assert all(SUPPRESSED not in text.tokens for text in texts)
    assert all(text.tokens and text.tokens[0] != 4 for text in texts)
    assert any(4 in text.tokens for text in texts)


def test_the_log_probability_is_the_models_own_without_suppressed_tokens() -> None:
    _, texts = drawn([1], temperature=0.5, max_tokens=3, first=())
    (text,) = texts
    ended = text.tokens if len(text.tokens) == 3 else (*text.tokens, END)
    allowed = np.exp(SCORES[[0, 1, 2, 4]]).sum()
    assert np.isclose(text.logprob, sum(SCORES[token] - np.log(allowed) for token in ended), rtol=1e-4)
    assert np.allclose(text.probabilities, np.exp(SCORES[list(text.tokens)]) / allowed, rtol=1e-4)


def test_slices_that_are_done_leave_the_batch_and_the_others_keep_their_rows() -> None:
    model, texts = drawn(list(range(20)), max_tokens=6)
    before = list(range(20))
    for parents, slices in model.asked:
        assert [before[row] for row in parents] == slices
        before = slices
    for at, text in enumerate(texts):
        assert set(text.attention.ravel()) == {at}
        assert len(text.attention) == min(6, len(text.tokens) + 1)
        assert np.allclose(text.marks, [(0.25, 0.5)] * len(text.attention))
    assert len({len(text.tokens) for text in texts}) > 2
