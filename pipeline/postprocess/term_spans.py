"""Where the terms of a course stand in a text: no step changes anything inside one, and no cue breaks there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.postprocess.text import is_latin


@dataclass(frozen=True, slots=True)
class TermSpotter:
    """Terms by their first two characters; finding them costs the same for ten and for ten thousand."""

    by_head: Mapping[str, tuple[str, ...]] = field(repr=False)
    _first: frozenset[str] = field(init=False, repr=False, compare=False)
    """The characters that a term begins with."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_first", frozenset(head[0] for head in self.by_head))

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """The half-open spans of the terms in ``text``, from the left, the longest where several begin.

        >>> spotter(("二次函数", "函数", "Go")).spans("讲二次函数和函数，Google 用 Go。")
        ((1, 5), (6, 8), (18, 20))
        """
        found: list[tuple[int, int]] = []
        end = 0
        for at, char in enumerate(text):
            if at >= end and char in self._first and (term := self._term_at(text, at)):
                end = at + len(term)
                found.append((at, end))
        return tuple(found)

    def _term_at(self, text: str, at: int) -> str:
        candidates = self.by_head.get(text[at : at + 2]) or self.by_head.get(text[at], ())
        return next((one for one in candidates if text.startswith(one, at) and _stands_alone(text, at, one)), "")


NO_TERMS = TermSpotter({})


def spotter(terms: Iterable[str]) -> TermSpotter:
    """A spotter for these terms, as they are written in the text; a blank one is no term."""
    return _spotter(tuple(terms))


@lru_cache(maxsize=64)
def _spotter(terms: Sequence[str]) -> TermSpotter:
    by_head: defaultdict[str, set[str]] = defaultdict(set)
    for term in terms:
        if len(stripped := term.strip()) > 1:
            by_head[stripped[:2]].add(stripped)
        elif stripped:
            by_head[stripped].add(stripped)
    return TermSpotter(
        {head: tuple(sorted(group, key=lambda one: (-len(one), one))) for head, group in by_head.items()}
    )


def _stands_alone(text: str, at: int, term: str) -> bool:
    """A Latin term is no part of a longer word; Chinese has no such borders."""
    before, after = text[at - 1 : at] if at else "", text[at + len(term) : at + len(term) + 1]
    return not (is_latin(term[0]) and is_latin(before)) and not (is_latin(term[-1]) and is_latin(after))
