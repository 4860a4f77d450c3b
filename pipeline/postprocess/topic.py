"""What a lecture is about at a place: how likely each term of the course is there.

A mixture, as cache and trigger models of language are (Kuhn and De Mori 1990; Lau, Rosenfeld and Roukos 1993): any
term of the course, the terms that this lecture has said elsewhere, and the neighbours, in the course's graph, of the
terms around the place.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable

from pipeline.postprocess.relations import Relations

REACH_CHARACTERS = 150
"""To either side: about half a minute of Mandarin."""
MOST_TERMS = 0.1
"""The share of terms among the words of a stretch that is full of them."""
HALF_FULL_TERMS = 2
"""So many terms around a place make it half as full of terms as it can be."""
_ANY, _SAID, _NEIGHBOUR = 0.3, 0.3, 0.4


class Topic:
    """Built once for a run of words from the terms that surely stand in it, each with its place in characters."""

    def __init__(self, relations: Relations, mentions: Iterable[tuple[int, str]]) -> None:
        self._relations = relations
        self._mentions = sorted(mentions)
        self._places = [place for place, _ in self._mentions]
        self._said = Counter(term for _, term in self._mentions)

    def log_probability(self, term: str, place: int) -> float:
        """Natural logarithm of the probability that a word at ``place`` is ``term``; -inf where no term is near."""
        first = bisect_left(self._places, place - REACH_CHARACTERS)
        last = bisect_right(self._places, place + REACH_CHARACTERS)
        around = [mention for _, mention in self._mentions[first:last]]
        if not around:
            return -math.inf
        neighbour = sum(self._relations.step(one, term) for one in around) / len(around)
        said = self._said[term] / len(self._mentions)
        share = MOST_TERMS * len(around) / (len(around) + HALF_FULL_TERMS)
        return math.log(share * (_ANY / self._relations.size + _SAID * said + _NEIGHBOUR * neighbour))
