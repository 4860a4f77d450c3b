"""Beam search over many slices at once, whatever computes the steps.

The rules are CTranslate2's, so that texts can be compared: twice the beam of candidates a step; a text that ends counts
only among the first ``beam``; a slice is done when ``beam`` texts have ended or when the longest allowed is reached,
where those first ``beam`` count as they are; the best has the highest log-probability per token, without its end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline.engines.mark_tokens import NO_MARKS, MarkTokens

Floats = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]

CANDIDATES = 10
"""The likeliest tokens that a step tells of each row: twice a beam of 5, as each of its texts may end."""

_LEAST = 1e-6
"""Probability that is left at least when tokens are forbidden; float32 says no more."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step gave, for rows that lie slice by slice. ``k`` is twice the beam or more."""

    best: Tokens
    """The likeliest tokens of each row, the first one first, ``(rows, k)``."""
    logprobs: Floats
    """Their log-probabilities, ``(rows, k)``."""
    attention: npt.NDArray[np.floating]
    """For the token to come, by the heads that follow the sound: ``(rows, heads, frames)``."""
    states: Floats
    """The decoder's last, ``(rows, width)``, of which logits are made where more than the best are wanted."""


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
    marks: MarkTokens = NO_MARKS


@dataclass(frozen=True, slots=True)
class Text:
    """The best text of a slice. ``logprob`` is the sum over its tokens and the end."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]
    logprob: float
    attention: npt.NDArray[np.floating]
    """``(tokens + 1, heads, frames)``; the last row is the end's, which a text that was cut lacks."""
    marks: tuple[tuple[float, float], ...]
    """For each of these rows, how likely a mark inside the sentence was instead, and its end (``MarkTokens``)."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A token in the tree of texts."""

    before: _Node | None
    token: int
    logprob: float
    total: float
    attention: npt.NDArray[np.floating]
    marks: tuple[float, float]
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
        first = [node for node, _ in candidates[: rules.beam]]
        others = [(node, row) for node, row in candidates if node.token != rules.end][: rules.beam]
        if first[0].length >= rules.max_tokens:
            self.ended, others = self.ended + first, []
        else:
            self.ended = self.ended + [node for node in first if node.token == rules.end]
        self.open, self.rows = [node for node, _ in others], [row for _, row in others]

    def is_done(self, rules: Rules) -> bool:
        return len(self.ended) >= rules.beam or not self.open

    def best(self, rules: Rules) -> Text:
        winner = max(self.ended, key=lambda node: _score(node, rules))
        nodes = list(winner.back())[::-1]
        tokens = [node for node in nodes if node.token != rules.end]
        # Frames after those of the longest slice at hand are padding.
        frames = min(node.attention.shape[-1] for node in nodes)
        return Text(
            tokens=tuple(node.token for node in tokens),
            probabilities=tuple(math.exp(node.logprob) for node in tokens),
            logprob=winner.total,
            attention=np.stack([node.attention[:, :frames] for node in nodes]),
            marks=tuple(node.marks for node in nodes),
        )


def _score(node: _Node, rules: Rules) -> float:
    """An empty text has no mean: it is the best only where there is no other."""
    written = node.length - (node.token == rules.end)
    return node.total / written if written else -math.inf


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
    best, logprobs = step.best[first_row:end_row], step.logprobs[first_row:end_row].astype(np.float64)
    marks = rules.marks.chances(best, logprobs)
    if rules.no_repeat_ngram_tokens:
        logprobs = np.stack([_without(*row, rules) for row in zip(texts, best, logprobs, strict=True)])
    scores = logprobs + np.array([[text.total if text else 0.0] for text in texts])
    likeliest = np.argsort(-scores, axis=None, kind="stable")[: 2 * rules.beam]
    rows, places = np.unravel_index(likeliest, scores.shape)
    # A copy for each row: the array of the step would stay as long as one of its texts lives.
    attention = {row: step.attention[first_row + row].copy() for row in set(rows.tolist())}
    return [
        (
            _node(texts[row], int(best[row, place]), float(logprobs[row, place]), attention[row], marks[row]),
            first_row + row,
        )
        for row, place in zip(rows.tolist(), places.tolist(), strict=True)
    ]


def _node(
    text: _Node | None, token: int, logprob: float, attention: npt.NDArray[np.floating], marks: tuple[float, float]
) -> _Node:
    total, length = (text.total, text.length) if text else (0.0, 0)
    return _Node(text, token, logprob, total + logprob, attention, marks, length + 1)


def _without(
    text: _Node | None, best: Tokens, logprobs: npt.NDArray[np.float64], rules: Rules
) -> npt.NDArray[np.float64]:
    """The log-probabilities of ``best`` where tokens that would repeat a run of the text have none."""
    forbidden = np.isin(best, list(_repeating(text, rules.no_repeat_ngram_tokens)))
    left = max(1.0 - float(np.exp(logprobs[forbidden]).sum()), _LEAST)
    return np.where(forbidden, -np.inf, np.minimum(logprobs - math.log(left), 0.0))


def _repeating(text: _Node | None, size: int) -> set[int]:
    """The tokens that would complete a run of ``size`` tokens that the text has already."""
    tokens = [node.token for node in text.back()][::-1] if text else []
    run = tokens[len(tokens) - size + 1 :]
    return {tokens[at + size - 1] for at in range(len(tokens) - size + 1) if tokens[at : at + size - 1] == run}
