"""The terms of a glossary, laid out so that each position of a text finds its few candidates at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pipeline.postprocess.relations import Relations, relations
from pipeline.postprocess.sound import by_character, in_context, near
from pipeline.postprocess.terms import Glossary, Term
from pipeline.postprocess.text import is_han

SOUND_MIN_CHARACTERS = 2
ONE_SYLLABLE_MIN_CHARACTERS = 4


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way a term is written. ``letters`` is what must stand there; ``rule`` is empty where it is the
    term.
    """

    letters: str
    rule: str


@dataclass(frozen=True, slots=True)
class SoundTerm:
    """A term with one of its readings."""

    term: str
    syllables: tuple[str, ...]
    near_syllables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChineseIndex:
    """Where to look at a position of a text.

    ``spellings`` by the spelling folded (see ``fold_letters``), ``lengths`` (longest first) by its first
    character; ``sounds`` by the first two folded syllables, ``tails`` by the last two.
    """

    spellings: Mapping[str, Spelling]
    lengths: Mapping[str, tuple[int, ...]]
    sounds: Mapping[tuple[str, ...], tuple[SoundTerm, ...]]
    tails: Mapping[tuple[str, ...], tuple[SoundTerm, ...]]
    relations: Relations


def fold_letters(text: str) -> str:
    """Letters and digits only, lower case: how a spelling is looked up.

    >>> fold_letters("Gram-Schmidt 正交化")
    'gramschmidt正交化'
    """
    return "".join(char.casefold() for char in text if char.isalnum())


@lru_cache(maxsize=16)
def chinese_index(glossary: Glossary, language: str) -> ChineseIndex:
    """The index of the terms that are spoken in ``language``; kept for the last glossaries used."""
    terms = [term for term in glossary.terms if term.is_spoken_in(language)]
    spellings = _spellings(terms)
    lengths: dict[str, set[int]] = defaultdict(set)
    for spelling in spellings:
        lengths[spelling[0]].add(len(spelling))
    sounds = [sound for term in terms if len(term.term) >= SOUND_MIN_CHARACTERS for sound in _sounds(term.term)]
    longer = [sound for sound in sounds if len(sound.term) >= ONE_SYLLABLE_MIN_CHARACTERS]
    return ChineseIndex(
        spellings=spellings,
        lengths={char: tuple(sorted(found, reverse=True)) for char, found in lengths.items()},
        sounds=_grouped((sound.near_syllables[:2], sound) for sound in sounds),
        tails=_grouped((sound.near_syllables[-2:], sound) for sound in longer),
        relations=relations(terms),
    )


def _spellings(terms: Iterable[Term]) -> dict[str, Spelling]:
    """Aliases first, so that a term's own spelling wins over another term's alias."""
    terms = list(terms)
    aliases = {fold_letters(alias): Spelling(term.term, "alias") for term in terms for alias in term.aliases}
    own = {fold_letters(term.term): Spelling(term.term, "") for term in terms}
    return {spelling: found for spelling, found in {**aliases, **own}.items() if spelling}


def _sounds(term: str) -> set[SoundTerm]:
    if not all(is_han(char) for char in term):
        return set()
    readings = {in_context(term), by_character(term)}
    return {SoundTerm(term, reading, tuple(near(syllable) for syllable in reading)) for reading in readings}


def _grouped(pairs: Iterable[tuple[tuple[str, ...], SoundTerm]]) -> dict[tuple[str, ...], tuple[SoundTerm, ...]]:
    groups: dict[tuple[str, ...], list[SoundTerm]] = defaultdict(list)
    for key, sound in pairs:
        groups[key].append(sound)
    return {key: tuple(group) for key, group in groups.items()}
