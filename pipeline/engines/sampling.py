"""Texts drawn at random, each token by its probability: the last resort for a slice whose likeliest text is bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.engines.beam_search import Step, Stepper, Text
from pipeline.engines.mark_tokens import NO_MARKS, MarkTokens

Floats = npt.NDArray[np.float32]


Logits = Callable[[Floats], Floats]
"""Of all tokens ``(rows, vocabulary)``, from a step's states."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a text is drawn; ``end`` is the token that ends one."""

    temperature: float
    end: int
    max_tokens: int
    suppressed: Sequence[int]
    suppressed_first: Sequence[int]
    marks: MarkTokens = NO_MARKS


def sample(stepper: Stepper, first: Step, logits_of: Logits, rules: Sampling, seeds: Sequence[int]) -> list[Text]:
    """One text for each slice; ``first`` is the step over the prompts, one row a slice.

    Each slice draws from a generator of its own, seeded by ``seeds``, so that its text does not depend on the others.
    """
    drawn = [_Drawn(np.random.default_rng(seed), [], [], [], []) for seed in seeds]
    running, step = list(range(len(drawn))), first
    while running:
        logits = logits_of(step.states)
        logits[:, list(rules.suppressed)] = -np.inf
        if step is first:
            logits[:, list(rules.suppressed_first)] = -np.inf
        marks = rules.marks.chances(step.best, step.logprobs)
        for row, at in enumerate(running):
            drawn[at].draw(logits[row], step.attention[row], rules)
            drawn[at].marks.append(marks[row])
        rows = [row for row, at in enumerate(running) if not drawn[at].is_done(rules)]
        running = [running[row] for row in rows]
        if running:
            tokens = np.array([drawn[at].tokens[-1] for at in running])
            step = stepper.step(tokens, np.array(rows), np.array(running))
    return [one.text(rules) for one in drawn]


@dataclass(slots=True)
class _Drawn:
    generator: np.random.Generator
    tokens: list[int]
    logprobs: list[float]
    attention: list[npt.NDArray[np.floating]]
    marks: list[tuple[float, float]]

    def draw(self, logits: Floats, attention: npt.NDArray[np.floating], rules: Sampling) -> None:
        # The one with the highest sum of logit and Gumbel noise is drawn with its softmax probability.
        noise = self.generator.gumbel(size=logits.shape)
        token = int((logits / rules.temperature + noise).argmax())
        highest = logits.max()
        self.tokens.append(token)
        self.logprobs.append(float(logits[token] - highest - np.log(np.exp(logits - highest).sum())))
        self.attention.append(attention)

    def is_done(self, rules: Sampling) -> bool:
        return self.tokens[-1] == rules.end or len(self.tokens) >= rules.max_tokens

    def text(self, rules: Sampling) -> Text:
        written = len(self.tokens) - (self.tokens[-1] == rules.end)
        probabilities = tuple(float(np.exp(logprob)) for logprob in self.logprobs[:written])
        frames = min(one.shape[-1] for one in self.attention)
        attention = np.stack([one[:, :frames] for one in self.attention])
        return Text(tuple(self.tokens[:written]), probabilities, sum(self.logprobs), attention, tuple(self.marks))
