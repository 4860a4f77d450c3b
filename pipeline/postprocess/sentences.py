"""Sentences: the words of a run regrouped at its sentence marks and longest pauses."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from pipeline.postprocess.text import ABBREVIATIONS, CHARACTER_LANGUAGES, closing_mark
from pipeline.values import Sentence, Word

SENTENCE_PAUSE_MS = 2_000
LONGEST_SENTENCE_MS = 60_000

_CHINESE_MARKS = ["。", "！", "？", "!", "?", "｡"]
_SMALL_LETTER = re.compile(r"[a-z]\.$")
"""Elsewhere an abbreviation; at the end of a lecture's sentence a variable or a unit."""

_LAST_WORD = re.compile(r"(\w+)\.$")
_LEADING_MARKS = re.compile(r"^(\s*)(?:[，。、；：？！,;:?!”」』》）)\]]|\.(?![\d.]))+\s*")


def split_sentences(words: Sequence[Word], language: str) -> tuple[Sentence, ...]:
    """The sentences of a run of one language: every word in one of them, in order, but marks that begin a sentence.

    They end at 。？！?! and at a period that is no part of a number or an abbreviation (spaCy's rule-based
    ``sentencizer``), at a pause of 2 s, and before they grow longer than 60 s.
    """
    parts = (
        _without_leading_marks(part)
        for piece in _split_at_pauses(words)
        for group in _split_at_marks(piece, language)
        for part in _split_to_length(group)
    )
    return tuple(_sentence(part, language) for part in parts if part)


def _without_leading_marks(words: Sequence[Word]) -> Sequence[Word]:
    """A mark belongs to what is before it; three dots may begin a sentence.

    >>> [word.text for word in _without_leading_marks([Word("，", 0, 9, 0.9), Word("？好。", 9, 200, 0.9)])]
    ['好。']
    """
    for at, word in enumerate(words):
        text = _LEADING_MARKS.sub(r"\1", word.text)
        if text.strip():
            return words[at:] if text == word.text else (replace(word, text=text), *words[at + 1 :])
    return ()


def _sentence(words: Sequence[Word], language: str) -> Sentence:
    text = "".join(word.text for word in words).strip()
    return Sentence(words[0].start_ms, words[-1].end_ms, text, language, tuple(words))


def _split_at_pauses(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    pairs = enumerate(pairwise(words), start=1)
    cuts = [at for at, (before, after) in pairs if after.start_ms - before.end_ms >= SENTENCE_PAUSE_MS]
    yield from _cut(words, cuts)


def _split_at_marks(words: Sequence[Word], language: str) -> Iterator[Sequence[Word]]:
    text = "".join(word.text for word in words)
    ends = list(accumulate(len(word.text) for word in words))
    starts = [start for start in sentence_starts(text, language) if start]
    yield from _cut(words, sorted({_word_at(text, ends, start) for start in starts} - {0, len(words)}))


def _word_at(text: str, ends: Sequence[int], start: int) -> int:
    """The word that a sentence begins with: the one that holds its first character, or, where that word
    belongs to the sentence before, the next one."""
    word = bisect_right(ends, start)
    head = text[ends[word - 1] if word else 0 : start]
    return word if not any(char.isalnum() for char in head) else word + 1


def sentence_starts(text: str, language: str) -> list[int]:
    """Positions in ``text`` where a sentence begins.

    >>> sentence_starts("今天讲圆周率3.14。对吗？", "zh")
    [0, 11]
    >>> sentence_starts("See Dr. Wu, Fig. 2, at 3.5 m. Then go.", "en")
    [0, 30]
    """
    doc = _pipeline(language)(text)
    starts = [sentence.start_char for sentence in doc.sents]
    return [
        start
        for start in starts
        if not start or _is_start(text[max(0, start - 40) : start].rstrip(), text[start : start + 40])
    ]


def _is_start(before: str, after: str) -> bool:
    """Not after an abbreviation that a number or a small letter follows, nor after a quotation that goes
    on.
    """
    follows = after.lstrip()[:1]
    word = _LAST_WORD.search(before[-20:])
    is_abbreviated = word is not None and word.group(1).casefold() in ABBREVIATIONS
    if is_abbreviated and (follows.isdigit() or follows.islower()):
        return False
    return not (follows.islower() and closing_mark(before) != before[-1:])


def _split_to_length(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Cut before 60 s are over, after the last mark that leaves both parts a fair length, else at the
    widest pause.
    """
    while len(words) > 1 and words[-1].end_ms - words[0].start_ms > LONGEST_SENTENCE_MS:
        limit_ms = words[0].start_ms + LONGEST_SENTENCE_MS
        last = min(bisect_right(words, limit_ms, key=_end_ms), len(words) - 1)
        first = min(bisect_left(words, limit_ms - LONGEST_SENTENCE_MS // 2, key=_end_ms) + 1, last)
        late = range(max(first, 1), max(last, 1) + 1)
        marked = [at for at in late if closing_mark(words[at - 1].text)]
        pauses = {at: words[at].start_ms - words[at - 1].end_ms for at in late}
        cut = marked[-1] if marked else max(late, key=lambda at: (pauses[at], at))
        yield words[:cut]
        words = words[cut:]
    yield words


def _end_ms(word: Word) -> int:
    return word.end_ms


def _cut(words: Sequence[Word], cuts: Sequence[int]) -> Iterator[Sequence[Word]]:
    for start, end in zip([0, *cuts], [*cuts, len(words)], strict=True):
        if start < end:
            yield words[start:end]


@lru_cache(maxsize=32)
def _pipeline(language: str) -> Any:
    """spaCy's blank pipeline of a language with its sentencizer; for a language it lacks, the multilingual
    one.

    A Chinese text is taken by characters, so a period inside it is no end: those beside Chinese are 。 by
    now.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside spaCy's own dependencies
        import spacy

    if language in CHARACTER_LANGUAGES:
        nlp = spacy.blank("zh", config={"nlp": {"tokenizer": {"segmenter": "char"}}})
        nlp.add_pipe("sentencizer", config={"punct_chars": _CHINESE_MARKS})
    else:
        nlp = _blank(spacy, language)
        nlp.add_pipe("sentencizer")
        nlp.tokenizer.rules = {
            text: rule for text, rule in nlp.tokenizer.rules.items() if not _SMALL_LETTER.match(text)
        }
    nlp.max_length = 100_000_000  # the default guards the memory of a parser, which is not here
    return nlp


def _blank(spacy: Any, language: str) -> Any:
    try:
        return spacy.blank(language)
    except ImportError:
        return spacy.blank("xx")
