"""Beam search over many slices at once, whatever computes the steps.

The rules are CTranslate2's, so that texts can be compared: twice the beam of candidates a step, a text that ends counts
only among the first ``beam``, a slice is done when ``beam`` texts have ended, and the best is the one with the highest
log-probability per token.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step gave, for rows that lie slice by slice. ``k`` is twice the beam or more."""

    best: Tokens
    """The likeliest tokens of each row, the first one first, ``(rows, k)``."""
    logprobs: Floats
    """Their log-probabilities, ``(rows, k)``."""
    attention: npt.NDArray[np.floating]
    """Of the token to come, by the heads that follow the sound: ``(rows, heads, frames)``."""


class Stepper(Protocol):
    """The model with the sound of the slices in it."""

    def step(self, tokens: Tokens, parents: Tokens, slices: Tokens) -> Step:
        """Go on with ``tokens (rows,)``, each after the text of row ``parents`` of the step before.

        ``slices`` are the places, in the batch as it began, of the slices that the rows belong to, in rising order.
        """


@dataclass(frozen=True, slots=True)
class Rules:
    """How the text is searched for; ``end`` is the token that ends one."""

    beam: int
    end: int
    max_tokens: int
    no_repeat_ngram_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """The best text of a slice. ``logprob`` is the sum over its tokens and the end."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]
    logprob: float
    attention: npt.NDArray[np.floating]
    """``(tokens + 1, heads, frames)``; the last row is the end's."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A token in the tree of texts."""

    before: _Node | None
    token: int
    logprob: float
    total: float
    attention: npt.NDArray[np.floating]
    length: int

    def back(self) -> Iterator[_Node]:
        node: _Node | None = self
        while node:
            yield node
            node = node.before


@dataclass(slots=True)
class _Slice:
    """The texts of one slice that are still open, and those that have ended."""

    at: int
    open: list[_Node]
    ended: list[_Node]
    rows: list[int]
    """For each open text, the row whose text it goes on with."""

    def take(self, candidates: Sequence[tuple[_Node, int]], rules: Rules) -> None:
        """The best candidates of a step: ends among the first ``beam`` are kept, the first ``beam`` others go on."""
        self.open, self.rows = [], []
        for rank, (node, row) in enumerate(candidates):
            if node.token == rules.end:
                self.ended += [node] if rank < rules.beam else []
            elif len(self.open) < rules.beam:
                self.open.append(node)
                self.rows.append(row)

    def is_done(self, rules: Rules) -> bool:
        return len(self.ended) >= rules.beam or not self.open or self.open[0].length >= rules.max_tokens

    def best(self, rules: Rules) -> Text:
        """An open text is taken only where none has ended."""
        winner = max(self.ended or self.open, key=lambda node: node.total / max(1, _written(node, rules)))
        nodes = list(winner.back())[::-1]
        tokens = [node for node in nodes if node.token != rules.end]
        # Frames after those of the longest slice at hand are padding.
        frames = min(node.attention.shape[-1] for node in nodes)
        return Text(
            tokens=tuple(node.token for node in tokens),
            probabilities=tuple(math.exp(node.logprob) for node in tokens),
            logprob=winner.total,
            attention=np.stack([node.attention[:, :frames] for node in nodes]),
        )


def _written(node: _Node, rules: Rules) -> int:
    return node.length - (node.token == rules.end)


def search(stepper: Stepper, first: Step, rules: Rules) -> list[Text]:
    """The best text of each slice; ``first`` is the step over the prompts, one row a slice."""
    slices = [_Slice(at, [], [], []) for at in range(len(first.best))]
    for one in slices:
        one.take(_candidates(first, one.at, one.at + 1, [None], rules), rules)
    running = slices
    while running := [one for one in running if not one.is_done(rules)]:
        counts = [len(one.open) for one in running]
        tokens, parents = (
            np.array(list(itertools.chain.from_iterable(column)), np.int64)
            for column in ([[node.token for node in one.open] for one in running], [one.rows for one in running])
        )
        step = stepper.step(tokens, parents, np.repeat([one.at for one in running], counts))
        for one, end in zip(running, itertools.accumulate(counts), strict=True):
            one.take(_candidates(step, end - len(one.open), end, one.open, rules), rules)
    return [one.best(rules) for one in slices]


def _candidates(
    step: Step, first_row: int, end_row: int, texts: Sequence[_Node | None], rules: Rules
) -> list[tuple[_Node, int]]:
    """The ``2 * beam`` likeliest texts that go on from ``texts``, which are those of the rows, with their rows."""
    totals = np.array([text.total if text else 0.0 for text in texts], np.float64)
    scores = step.logprobs[first_row:end_row].astype(np.float64) + totals[:, None]
    order = np.argsort(-scores, axis=None, kind="stable")
    found: list[tuple[_Node, int]] = []
    for row, place in zip(*np.unravel_index(order, scores.shape), strict=True):
        text, token = texts[row], int(step.best[first_row + row, place])
        if _repeats(text, token, rules):
            continue
        logprob = float(step.logprobs[first_row + row, place])
        attention, length = step.attention[first_row + row], text.length if text else 0
        found.append(
            (_Node(text, token, logprob, float(scores[row, place]), attention, length + 1), first_row + int(row))
        )
        if len(found) == 2 * rules.beam:
            break
    return found


def _repeats(text: _Node | None, token: int, rules: Rules) -> bool:
    """Whether ``token`` would complete a run of tokens that the text has already."""
    size = rules.no_repeat_ngram_tokens
    if not size or text is None or text.length < size or token == rules.end:
        return False
    tokens = [node.token for node in text.back()][::-1]
    run = [*tokens[len(tokens) - size + 1 :], token]
    return any(tokens[at : at + size] == run for at in range(len(tokens) - size + 1))
