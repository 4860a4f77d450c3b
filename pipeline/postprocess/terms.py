"""The values of a glossary: terms, and how they are written where nobody mishears them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.values import Replacement, Word


@dataclass(frozen=True, slots=True)
class Term:
    """A term as it must be written, and the ways it is misheard or miswritten.

    ``language`` is an ISO 639-1 code; an empty one lets the term stand in speech of every language.
    """

    term: str
    aliases: tuple[str, ...] = ()
    language: str = ""
    note: str = ""

    def is_spoken_in(self, language: str) -> bool:
        return self.language in ("", language)


@dataclass(frozen=True, slots=True)
class Glossary:
    """The terms of a course. ``version`` is that of the course's stored glossary; None where it comes from a file."""

    terms: tuple[Term, ...]
    version: int | None = field(default=None, compare=False)

    @staticmethod
    def empty() -> Glossary:
        return Glossary(())

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with every term, alias, language and note, but not with their order."""
        return _fingerprint(self.terms)


@dataclass(frozen=True, slots=True)
class Corrected:
    """Words with the glossary's terms written right.

    ``inside`` holds the index of each word that is followed by more of the same term, however it was
    written before.
    """

    words: tuple[Word, ...]
    replacements: tuple[Replacement, ...] = ()
    inside: frozenset[int] = frozenset()


@lru_cache(maxsize=16)
def _fingerprint(terms: Sequence[Term]) -> str:
    rows = sorted([term.term, term.language, sorted(term.aliases), term.note] for term in terms)
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]
