"""Step 3 for English: periods at long pauses, capitals at the start of a sentence, I."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from pipeline.postprocess.text import closing_mark, is_abbreviation, with_texts
from pipeline.values import Word

PERIOD_PAUSE_MS = 700

_LONE_I = re.compile(r"^(\W*)i(?=$|['’]|[,?!;:]|\.$)")
_DOUBLED = re.compile(r"[,;:?!][,.;:?!]+")
_STRENGTH = {mark: strength for strength, mark in enumerate(",;:.!?")}


def punctuate_english(words: Sequence[Word], inside: AbstractSet[int], next_start_ms: int | None) -> tuple[Word, ...]:
    """English words with a period before a pause and a capital, at the end, and with sentence case."""
    texts = [_LONE_I.sub(r"\1I", collapse_marks(word.text)) for word in words]
    for index in range(len(texts)):
        if index not in inside and _lacks_period(words, texts, index, next_start_ms):
            texts[index] = texts[index].rstrip() + "."
    return with_texts(words, sentence_case(texts))


def collapse_marks(text: str) -> str:
    """A row of marks as its strongest one; a row that begins with a period is an abbreviation or an ellipsis.

    >>> collapse_marks(" so?."), collapse_marks(" etc.,"), collapse_marks(" well...")
    (' so?', ' etc.,', ' well...')
    """
    return _DOUBLED.sub(lambda row: max(row.group(), key=_STRENGTH.__getitem__), text)


def sentence_case(texts: Sequence[str]) -> list[str]:
    """The words with a capital at the start of each sentence.

    >>> sentence_case(["hello", " there.", " see", " e.g.", " this."])
    ['Hello', ' there.', ' See', ' e.g.', ' this.']
    """
    cased, is_start = [], True
    for text in texts:
        cased.append(_capitalised(text) if is_start else text)
        is_start = _ends_sentence(text)
    return cased


def _capitalised(text: str) -> str:
    """A first letter in upper case, but for words that carry capitals further on, such as iPhone or pH."""
    position = next((index for index, char in enumerate(text) if char.isalnum()), None)
    if position is None or any(char.isupper() for char in text[position:]):
        return text
    return text[:position] + text[position].upper() + text[position + 1 :]


def _ends_sentence(text: str) -> bool:
    return text.rstrip()[-1:] in tuple(".?!") and not is_abbreviation(text)


def _lacks_period(words: Sequence[Word], texts: Sequence[str], index: int, next_start_ms: int | None) -> bool:
    if closing_mark(texts[index]):
        return False
    if index + 1 == len(words):
        return next_start_ms is None or next_start_ms - words[index].end_ms >= PERIOD_PAUSE_MS
    pause_ms = words[index + 1].start_ms - words[index].end_ms
    return pause_ms >= PERIOD_PAUSE_MS and _opens_with_capital(texts[index + 1])


def _opens_with_capital(text: str) -> bool:
    letters = text.strip(" \"'“‘(")
    return letters[:1].isupper() and re.split(r"\W", letters, maxsplit=1)[0] != "I"
