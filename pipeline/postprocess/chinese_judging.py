"""Whether a term was said where something else is written: the words there weighed against the term."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pipeline.postprocess.lexicon import Lexicon
from pipeline.postprocess.sound import tones
from pipeline.postprocess.stretches import Stretch

TONE_EVIDENCE = 1.0
"""Natural logarithm. Where Whisper writes a wrong character of the same syllable, its tone is right about three times
in four; in a chance likeness, one time in four."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How much likelier, as a natural logarithm, a term is than what is written.

    ``alone`` knows the dictionary only; ``in_context`` also what the lecture is about at this place.
    """

    alone: float
    in_context: float


class Judge:
    """Weighs what was heard against a term, by the words of the stretch; they are cut once."""

    def __init__(self, stretch: Stretch, lexicon: Lexicon) -> None:
        self._text = stretch.text
        self._lexicon = lexicon
        self._words = [word for _, piece in stretch.pieces() for word in lexicon.cut(piece)]
        self._ends = list(accumulate(len(word) for word in self._words))

    def is_word(self, start: int, end: int) -> bool:
        return self._lexicon.is_word(self._text[start:end])

    def verdict(self, start: int, end: int, term: str, log_topic: float) -> Verdict:
        """Characters ``start`` to ``end`` against ``term``, whose probability here has the logarithm ``log_topic``.

        The words that they touch begin and end on word boundaries; where the heard string cuts through words, what
        is left of them counts against the term. So 是能 in 重点是能看懂 stays, though it sounds like 势能.
        """
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, end)
        words = self._words[first : last + 1]
        rest = [*self._cut(self._ends[first] - len(words[0]), start), *self._cut(end, self._ends[last])]
        lexicon = self._lexicon
        evidence = lexicon.log_probability(rest) - lexicon.log_probability(words) + _tones(self._text[start:end], term)
        log_alone = lexicon.log_probability([term])
        return Verdict(evidence + log_alone, evidence + _log_sum(log_alone, log_topic))

    def _cut(self, start: int, end: int) -> Sequence[str]:
        return self._lexicon.cut(self._text[start:end]) if start < end else []


def _tones(heard: str, term: str) -> float:
    """For each other character of the same syllable, whether it has the same tone."""
    evidence = 0.0
    for char, own in zip(heard, term, strict=True):
        if char != own:
            evidence += TONE_EVIDENCE if tones(char) & tones(own) else -TONE_EVIDENCE
    return evidence


def _log_sum(one: float, other: float) -> float:
    high = max(one, other)
    return high + math.log(math.exp(one - high) + math.exp(other - high))
