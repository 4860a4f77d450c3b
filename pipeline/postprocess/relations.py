"""The terms of a course as a graph: two terms are neighbours that share a character, a word or a note.

The graph is kept as terms and their traits, with terms and traits as its two sides: an edge between each pair of
10,000 terms would be too many.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.postprocess.term_spans import spotter
from pipeline.postprocess.terms import Term
from pipeline.postprocess.text import HAN

_PART = re.compile(rf"{HAN}|[^\W_]+")


@dataclass(frozen=True, slots=True)
class Relations:
    """``traits`` of each term; ``sharing`` says how many terms have a trait."""

    traits: Mapping[str, Sequence[str]] = field(repr=False)
    sharing: Mapping[str, int] = field(repr=False)

    @property
    def size(self) -> int:
        """The number of terms."""
        return len(self.traits)

    def step(self, source: str, target: str) -> float:
        """The probability that a walk from ``source`` to one of its traits, then to a term with it, is at ``target``.

        A trait that few terms share leads further than one that many share.

        >>> course = relations([Term("直角边"), Term("斜边"), Term("抛物线"), Term("顶点", note="抛物线最高处")])
        >>> course.step("直角边", "斜边") > course.step("直角边", "抛物线"), course.step("抛物线", "顶点") > 0
        (True, True)
        """
        shared = set(self.traits[target])
        traits = self.traits[source]
        return sum(1 / self.sharing[trait] for trait in traits if trait in shared) / len(traits)


def relations(terms: Sequence[Term]) -> Relations:
    """The graph of these terms. A note ties its term to the terms that it names, and to those with the same note."""
    spot = spotter(term.term for term in terms if term.term.strip())
    traits = {term.term: tuple(dict.fromkeys(_traits(term, spot.spans(term.note)))) for term in terms}
    return Relations(traits, Counter(trait for own in traits.values() for trait in own))


def _traits(term: Term, named: Iterable[tuple[int, int]]) -> Iterable[str]:
    yield f"term:{term.term}"
    yield from _PART.findall(term.term.casefold())
    if term.note.strip():
        yield f"note:{term.note.strip()}"
    yield from (f"term:{term.note[start:end]}" for start, end in named)
