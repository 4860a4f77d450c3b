"""Punctuation, for English: marks by the model, capitals at the start of a sentence, I."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from pipeline.postprocess.mark_choice import THRESHOLDS, Chances, Thresholds, chances_after, choose, own_mark, with_mark
from pipeline.postprocess.text import closing_mark, is_abbreviation, with_texts
from pipeline.values import Word

PERIOD_PAUSE_MS = 700
"""Where speech in another language goes on sooner, a run need not end in a period."""

NEAR_WORDS = 12
SURE = Thresholds(0.8, 0.9, 0.75)
"""Counts within so many words of a mark of Whisper's."""

_LONE_I = re.compile(r"^(\W*)i(?=$|['’]|[,?!;:]|\.$)")
_DOUBLED = re.compile(r"[,;:?!][,.;:?!]+")
_STRENGTH = {mark: strength for strength, mark in enumerate(",;:.!?")}
_ENDS = tuple(".?!")
_GLUED = re.compile(r"\w[,.'’%-]|\d\d")
"""The end of a word and the start of the next one that are one to the eye: 3,000 and 20."""
_LETTERS = re.compile(r"[^\W\d_]+")
_SMALL = (
    "a after all also although an and any are as at be because before both but by can could did do does each even "
    "every for from had has have he her his how if in into is it its just may might more most must no nor not now "
    "of on once only or other our over she should since so some such than that the their them then there these "
    "they this those though through to until we were what when where whether which while who whose why will with "
    "within without would yet you your"
)
_SMALL_WORDS = frozenset(_SMALL.split())
"""Words that are no names: a capital on one of them comes from the sentence that begins there."""


def punctuate_english(words: Sequence[Word], inside: AbstractSet[int], next_start_ms: int | None) -> tuple[Word, ...]:
    """English words with their marks, a period at the end, and sentence case."""
    texts = tidied_english([word.text for word in words])
    chances = chances_after(words, texts, "en", next_start_ms)
    written = [index for index, text in enumerate(texts) if own_mark(text, "en")]
    for index, (text, following) in enumerate(pairwise(list(texts))):
        heard = Heard(following, chances[index], _least(index, written), index in inside)
        texts[index], texts[index + 1] = _joined(text, texts[index + 1], heard)
    if words and _lacks_end(words[-1], texts[-1], next_start_ms):
        texts[-1] = _ended(texts[-1], chances[-1])
    return with_texts(words, sentence_case(texts))


def tidied_english(texts: Sequence[str]) -> list[str]:
    """The texts of words with one mark each, and with I as a capital."""
    return [_LONE_I.sub(r"\1I", collapse_marks(text)) for text in texts]


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


@dataclass(frozen=True, slots=True)
class Heard:
    """What decides about the mark between two words: the next word as Whisper wrote it, and how likely each mark is."""

    following: str
    chances: Chances | None
    least: Thresholds
    is_inside_term: bool


def _least(index: int, written: Sequence[int]) -> Thresholds:
    """``written`` are the words after which Whisper set a mark: near one, what it left out is hardly ever missing."""
    at = bisect_left(written, index)
    is_near = any(abs(place - index) <= NEAR_WORDS for place in written[max(0, at - 1) : at + 1])
    return SURE if is_near else THRESHOLDS["en"]


def _joined(text: str, following: str, heard: Heard) -> tuple[str, str]:
    """A word with the mark after it, and the next word, in small letters where it begins a sentence no more.

    Whisper's end of a sentence stays where its capital would be left over.
    """
    own = own_mark(text, "en")
    is_known = bool(own) or not closing_mark(text)
    if heard.chances is None or not is_known or _GLUED.match(text[-1:] + heard.following[:2]):
        return text, following
    mark = choose(heard.chances, own, heard.least)
    if mark == own or (mark and heard.is_inside_term):
        return text, following
    if own in _ENDS and mark not in _ENDS:
        small = _small(heard.following)
        return (text, following) if small is None else (with_mark(text, mark), small)
    return with_mark(text, mark), following


def _small(text: str) -> str | None:
    """The word without the capital that a new sentence gave it; None where it may be a name."""
    letters = _LETTERS.search(text)
    if letters is None or letters.group()[0].islower():
        return text
    word = letters.group()
    return text.replace(word, word.lower(), 1) if word.lower() in _SMALL_WORDS else None


def _ended(text: str, chances: Chances | None) -> str:
    if closing_mark(text) and not own_mark(text, "en"):
        return text.rstrip() + "."
    return with_mark(text, chances.likeliest(is_end=True) if chances else ".")


def _lacks_end(word: Word, text: str, next_start_ms: int | None) -> bool:
    is_pause = next_start_ms is None or next_start_ms - word.end_ms >= PERIOD_PAUSE_MS
    return is_pause and closing_mark(text) not in (*_ENDS, "…", "—")


def _capitalised(text: str) -> str:
    """A first letter in upper case, but for words that carry capitals further on, such as iPhone or pH."""
    position = next((index for index, char in enumerate(text) if char.isalnum()), None)
    if position is None or any(char.isupper() for char in text[position:]):
        return text
    return text[:position] + text[position].upper() + text[position + 1 :]


def _ends_sentence(text: str) -> bool:
    return text.rstrip()[-1:] in _ENDS and not is_abbreviation(text)
