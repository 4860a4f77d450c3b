"""Terms as they might be misheard: other characters of the same syllables, or of syllables that are confused."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pipeline.postprocess.lexicon import load_lexicon
from pipeline.postprocess.sound import by_character, near, tones
from pipeline.postprocess.terms import Glossary
from pipeline.postprocess.text import is_han

SAME_TONE = 0.7
"""Share of wrong characters that have the tone of the right one, and so on; about what Whisper base does."""
KEPT_IN_LONGER = 0.35
NEAR = 0.2
MIN_FREQUENCY = 200
"""Of a character as a word, in jieba's dictionary: Whisper writes no rarer ones for a sound."""


@dataclass(frozen=True, slots=True)
class Garbled:
    """A text with some of its terms misheard: what was written for what, in order."""

    text: str
    pairs: tuple[tuple[str, str], ...]
    """(misheard, term)"""


def garble(text: str, glossary: Glossary, share: float, rng: random.Random) -> Garbled:
    """``text`` with that share of its Chinese terms misheard."""
    terms = sorted((term.term for term in glossary.terms if _is_chinese(term.term)), key=lambda term: -len(term))
    pairs: list[tuple[str, str]] = []

    def misheard(found: re.Match[str]) -> str:
        heard = mishear(found[0], rng) if rng.random() < share else found[0]
        if heard != found[0]:
            pairs.append((heard, found[0]))
        return heard

    return Garbled(re.sub("|".join(map(re.escape, terms)), misheard, text), tuple(pairs))


def mishear(term: str, rng: random.Random) -> str:
    """The term with one character or more replaced by others that sound alike; unchanged where there are none."""
    for _ in range(20):
        heard = "".join(_other(char, rng) if len(term) < 3 or rng.random() > KEPT_IN_LONGER else char for char in term)
        if heard != term:
            return heard
    return term


def _other(char: str, rng: random.Random) -> str:
    (syllable,) = by_character(char)
    characters = _characters()
    if rng.random() < NEAR:
        syllable = rng.choice([one for one in characters if near(one) == near(syllable)] or [syllable])
    wants_tone = rng.random() < SAME_TONE
    choices = [one for one in characters.get(syllable, {}) if bool(tones(one) & tones(char)) == wants_tone]
    return rng.choices(choices, [characters[syllable][one] ** 0.5 for one in choices])[0] if choices else char


def _is_chinese(term: str) -> bool:
    return len(term) > 1 and all(is_han(char) for char in term)


@cache
def _characters() -> Mapping[str, Mapping[str, int]]:
    """Syllable -> characters, with how common each is."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for char, frequency in load_lexicon().frequencies.items():
        if len(char) == 1 and is_han(char) and frequency >= MIN_FREQUENCY:
            found[by_character(char)[0]][char] = frequency
    return found


def sentences_with(terms: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Invented lecture sentences that hold the terms, for fields of which there is no text."""
    frames = (
        "我们先来看{0}，它和{1}有什么关系呢？",
        "{0}是这一章的重点。",
        "请大家注意，{0}不同于{1}。",
        "接下来讲{0}的例子。",
    )
    for frame in rng.choices(frames, k=3 * len(terms)):
        yield frame.format(*rng.choices(terms, k=2))
