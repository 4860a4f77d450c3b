"""Glossary: the terms of a course written right, each change recorded.

It runs before punctuation, so that no mark is put inside a term.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.postprocess.chinese_terms import correct_chinese
from pipeline.postprocess.english_terms import correct_english
from pipeline.postprocess.terms import Corrected, Glossary
from pipeline.values import Word


def correct_terms(words: Sequence[Word], language: str, glossary: Glossary) -> Corrected:
    """The words of one language with the glossary's terms; by pinyin in ``zh``, by letters and sound elsewhere.

    A replacement's rule is one of ``case``, ``alias``, ``homophone``, ``near-homophone``, ``one-syllable`` (Chinese),
    ``fuzzy`` and ``sound``.
    """
    if not glossary.terms or not words:
        return Corrected(tuple(words))
    if language == "zh":
        return correct_chinese(words, glossary)
    return correct_english(words, language, glossary)
