"""A term at its place in a stretch, and which place belongs to which term."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

RULES = ("", "case", "alias", "homophone", "near-homophone", "one-syllable")
"""The surest first."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Characters ``start`` to ``end`` of a stretch that are the term ``term``; ``rule`` is empty where
    they are right.
    """

    start: int
    end: int
    term: str
    rule: str
    score: float = 1.0
    """How sure it is, 0 to 1; 1 for all that is spelled."""

    def covers(self, other: Hit) -> bool:
        return self.start <= other.start and other.end <= self.end


class Claims:
    """Which hit each character of a stretch belongs to."""

    def __init__(self, size: int) -> None:
        self._owners: list[Hit | None] = [None] * size

    def hits(self) -> list[Hit]:
        return list(dict.fromkeys(owner for owner in self._owners if owner))

    def admit_all(self, hits: Iterable[Hit]) -> None:
        """Spelled ones: the longest first, and an alias only where no term is written right."""
        for hit in sorted(hits, key=lambda hit: (hit.rule == "alias", hit.start - hit.end, hit.start)):
            self.admit(hit)

    def admit(self, hit: Hit) -> None:
        """Add a hit unless it cuts into another one; right spellings that lie inside it are swallowed."""
        if all(hit.covers(other) and other.rule == "" and hit.rule != "" for other in self._touched(hit)):
            self._owners[hit.start : hit.end] = [hit] * (hit.end - hit.start)

    def leave_room(self, hit: Hit) -> bool:
        """Whether what is heard cuts no other hit, and a term that stands inside it stands in it at the same place."""
        return all(
            hit.covers(other)
            and other.rule == ""
            and hit.term[other.start - hit.start : other.end - hit.start] == other.term
            for other in self._touched(hit)
        )

    def _touched(self, hit: Hit) -> set[Hit]:
        return {owner for owner in self._owners[hit.start : hit.end] if owner}
