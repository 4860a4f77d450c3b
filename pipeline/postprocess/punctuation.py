"""Step 3, punctuation: Whisper's marks stay; where it set none and the speaker pauses, one is added.

Measured on lectures: marks filled in from anything but pauses lower the F1 of the punctuation. A slice
boundary is therefore no reason for a mark; only the silence there is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from pipeline.postprocess.casing import punctuate_english
from pipeline.postprocess.questions import is_question
from pipeline.postprocess.text import CLOSERS, MARKS, closing_mark, is_han, is_latin, with_texts
from pipeline.values import Word

COMMA_PAUSE_MS = 250
PERIOD_PAUSE_MS = 500

QUESTION_CHARACTERS = 100
"""So much of a sentence is looked at for a question."""

_STRENGTH = {mark: strength for strength, marks in enumerate(("、", "，", "：；", "。", "！", "？")) for mark in marks}
_DOUBLED = re.compile("[、，：；。！？]{2,}")
_SENTENCE_END = frozenset("。？！?!")


def punctuate(
    words: Sequence[Word],
    language: str,
    *,
    inside: AbstractSet[int] = frozenset(),
    next_start_ms: int | None = None,
) -> tuple[Word, ...]:
    """The words of one language with marks at the pauses; ``zh`` and ``en``, other languages pass as they
    are.

    ``inside`` holds the index of each word that is followed by more of the same glossary term: no mark is
    added there. ``next_start_ms`` is where speech in another language goes on, None at the end of the
    media.
    """
    if language == "zh":
        return _punctuate_chinese(words, inside, next_start_ms)
    if language == "en":
        return punctuate_english(words, inside, next_start_ms)
    return tuple(words)


def collapse_marks(text: str) -> str:
    """Each row of Chinese marks as its strongest one.

    >>> collapse_marks("好，。对？！")
    '好。对？'
    """
    return _DOUBLED.sub(lambda row: max(row.group(), key=_STRENGTH.__getitem__), text)


def _punctuate_chinese(words: Sequence[Word], inside: AbstractSet[int], next_start_ms: int | None) -> tuple[Word, ...]:
    texts = _marks_moved_back([word.text for word in words])
    sentence = ""
    for index, text in enumerate(texts):
        if text and (mark := _missing_mark(words, texts, index, index in inside, next_start_ms)):
            is_asked = mark == "。" and is_question((sentence + text).strip())
            texts[index] = text.rstrip() + ("？" if is_asked else mark)
            _strip_next(texts, index)
        sentence = (
            "" if closing_mark(texts[index]) in _SENTENCE_END else (sentence + texts[index])[-QUESTION_CHARACTERS:]
        )
    return with_texts(words, texts)


def _marks_moved_back(texts: list[str]) -> list[str]:
    """Marks that open a word (or are one) go to the word before, where doubled marks collapse."""
    moved = list(texts)
    last = -1
    for index, text in enumerate(texts):
        body = text.lstrip()
        marks = len(body) - len(body.lstrip("，。、；：？！"))
        if marks and last >= 0:
            moved[last] += body[:marks]
            moved[index] = body[marks:]
        if moved[index]:
            last = index
    return [collapse_marks(text) for text in moved]


def _missing_mark(
    words: Sequence[Word], texts: Sequence[str], index: int, is_inside: bool, next_start_ms: int | None
) -> str:
    following = _next_filled(texts, index)
    if following is None:
        return _final_mark(words[index], texts[index], next_start_ms)
    if is_inside or _has_mark_nearby(texts, index, following):
        return ""
    pause_ms = words[following].start_ms - words[index].end_ms
    if is_latin(texts[index][-1]) and is_latin(texts[following].lstrip()[:1]):
        return ""
    if pause_ms >= PERIOD_PAUSE_MS:
        return "。"
    return "，" if pause_ms >= COMMA_PAUSE_MS or _is_clause_space(texts[index], texts[following]) else ""


def _final_mark(word: Word, text: str, next_start_ms: int | None) -> str:
    is_pause = next_start_ms is None or next_start_ms - word.end_ms >= PERIOD_PAUSE_MS
    return "。" if is_pause and not closing_mark(text) else ""


def _has_mark_nearby(texts: Sequence[str], index: int, following: int) -> bool:
    """Whisper's mark may stand one character off the pause that it belongs to."""
    if closing_mark(texts[index]) or texts[following].lstrip()[:1] in MARKS:
        return True
    if len(texts[index].strip()) == 1 and index and closing_mark(texts[index - 1]):
        return True
    return len(_body(texts[following])) == 1 and bool(closing_mark(texts[following]))


def _body(text: str) -> str:
    return "".join(char for char in text if char not in MARKS and char not in CLOSERS and not char.isspace())


def _is_clause_space(text: str, following: str) -> bool:
    is_spaced = text[-1].isspace() or following[0].isspace()
    return is_spaced and is_han(text.rstrip()[-1:]) and is_han(following.lstrip()[:1])


def _next_filled(texts: Sequence[str], index: int) -> int | None:
    return next((later for later in range(index + 1, len(texts)) if texts[later].strip()), None)


def _strip_next(texts: list[str], index: int) -> None:
    following = _next_filled(texts, index)
    if following is not None:
        texts[following] = texts[following].lstrip()
