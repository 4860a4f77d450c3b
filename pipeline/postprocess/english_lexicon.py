"""The English words with frequencies that ship with symspellpy, loaded once and on first use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

_FILE = "frequency_dictionary_en_82_765.txt"
_RAREST = 1_000
"""What a word counts that is not in the list, whose rarest are as common."""


@dataclass(frozen=True, slots=True)
class EnglishLexicon:
    """Known words, lower case, and how likely each is."""

    frequencies: Mapping[str, int] = field(repr=False)
    total: int

    def is_word(self, letters: str) -> bool:
        return letters in self.frequencies

    def log_probability(self, words: Sequence[str]) -> float:
        """Natural logarithm of the words' joint probability (a unigram model)."""
        return sum(math.log(self.frequencies.get(word, _RAREST) / self.total) for word in words)


@lru_cache(maxsize=1)
def load_english_lexicon() -> EnglishLexicon:
    """The 83,000 words, in a tenth of a second and 10 MB."""
    lines = files("symspellpy").joinpath(_FILE).read_text("utf-8-sig").splitlines()
    frequencies = {word: int(count) for word, count in (line.split() for line in lines)}
    return EnglishLexicon(frequencies, sum(frequencies.values()))
