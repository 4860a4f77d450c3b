"""The Chinese dictionary with word frequencies that ships with jieba, loaded once and on first use."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Known words and how likely each is (a unigram model)."""

    frequencies: Mapping[str, int] = field(repr=False)
    total: int
    tokenizer: Any = field(repr=False)

    def is_word(self, text: str) -> bool:
        """Whether ``text`` is an entry of the dictionary (prefixes of entries are in it with frequency 0)."""
        return self.frequencies.get(text, 0) > 0

    def cut(self, text: str) -> list[str]:
        """``text`` in its likeliest words; characters that form no known word stand alone."""
        return list(self.tokenizer.cut(text, HMM=False))

    def log_probability(self, words: Sequence[str]) -> float:
        """Natural logarithm of the words' joint probability; an unknown word counts as seen once."""
        return sum(math.log((self.frequencies.get(word) or 1) / self.total) for word in words)


@lru_cache(maxsize=1)
def load_lexicon() -> Lexicon:
    """The dictionary, in about a second and 60 MB.

    jieba's own loading would write and trust a cache file in the folder for temporary files; this does not.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pkg_resources, and invalid escapes on the first compilation
        import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return Lexicon(tokenizer.FREQ, tokenizer.total, tokenizer)
