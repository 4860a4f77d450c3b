"""Numbers: what was said in words, in digits, where a reader of subtitles wants them (inverse normalisation).

The rules are those of each language (``chinese_numbers``, ``english_numbers``); in doubt a number stays as it was
said. It runs behind punctuation, whose marks end a number and begin a sentence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from pipeline.postprocess import chinese_numbers, english_numbers
from pipeline.postprocess.rewriting import joined, rewrite
from pipeline.postprocess.term_spans import TermSpotter
from pipeline.values import Replacement, Word


def inside_numbers(words: Sequence[Word], language: str) -> frozenset[int]:
    """The index of each word that is followed by more of the same number, or by its unit: no mark belongs there.

    >>> sorted(inside_numbers([Word(text, 0, 0, 1.0) for text in "长十三厘米"], "zh"))
    [1, 2, 3]
    """
    pattern = {"zh": chinese_numbers.MEASURED, "en": english_numbers.MEASURED}.get(language)
    if pattern is None:
        return frozenset()
    ends = list(accumulate(len(word.text) for word in words))
    inside: set[int] = set()
    for found in pattern.finditer(joined(words)):
        inside.update(range(bisect_right(ends, found.start()), bisect_right(ends, found.end() - 1)))
    return frozenset(inside)


def write_numbers(
    words: Sequence[Word], language: str, terms: TermSpotter
) -> tuple[tuple[Word, ...], tuple[Replacement, ...]]:
    """The words of a run in ``zh`` or ``en`` with their numbers in digits, and every change; others pass as they are.

    A number of several words becomes one word, from the start of its first to the end of its last. Nothing inside
    one of the ``terms`` changes.
    """
    edits_of = {"zh": chinese_numbers.chinese_edits, "en": english_numbers.english_edits}.get(language)
    if edits_of is None:
        return tuple(words), ()
    text = joined(words)
    return rewrite(words, edits_of(text, terms.spans(text)))
