"""Which mark stands after a word: Whisper's own, unless the model is sure that it is wrong, or the model's.

The thresholds were chosen on lectures of our own that are in no benchmark set (``training/README.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipeline.postprocess.mark_hearing import ENDS, weighed
from pipeline.postprocess.mark_model import MARKS, HeardUnit, load_marks
from pipeline.postprocess.mark_units import units_of
from pipeline.postprocess.text import CLOSERS, closing_mark, is_abbreviation
from pipeline.values import Word

PREFER = 2.0
"""Between marks of one kind, such as a period and a question mark, Whisper's gives way to one so many times as
likely."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How likely something must be before Whisper's text is changed."""

    add: float
    """Any mark, where Whisper set none."""
    drop: float
    """No mark, where it set one."""
    exchange: float
    """The end of a sentence where it set a comma, or the other way round."""


THRESHOLDS = {"zh": Thresholds(0.4, 0.5, 0.5), "en": Thresholds(0.6, 0.9, 0.75)}
"""Whisper's own marks are right more often in English."""

LAST_PAUSE_MS = 3000
"""What stands for the silence after the last word of a media."""

_HALF_TO_FULL = {",": "，", ".": "。", "?": "？", "!": "！", ":": "：", ";": "；"}
_FULL_TO_HALF = {full: half for half, full in _HALF_TO_FULL.items()}


@dataclass(frozen=True, slots=True)
class Chances:
    """The chance of each mark after one word, by mark; ``""`` is no mark."""

    by_mark: dict[str, float]

    @property
    def none(self) -> float:
        return self.by_mark[""]

    def of_kind(self, *, is_end: bool) -> float:
        """Of the end of a sentence, or of a mark inside it."""
        return sum(chance for mark, chance in self.by_mark.items() if mark and (mark in ENDS) is is_end)

    def likeliest(self, *, is_end: bool, own: str = "") -> str:
        """The mark of that kind; ``own`` where it is of the kind and no other is clearly likelier."""
        kind = {mark: chance for mark, chance in self.by_mark.items() if mark and (mark in ENDS) is is_end}
        best = max(kind, key=kind.__getitem__)
        return own if own in kind and kind[own] * PREFER >= kind[best] else best


def choose(chances: Chances, own: str, least: Thresholds) -> str:
    """The mark after a word, empty for none; ``own`` is Whisper's.

    >>> sure = Chances({"": 0.05, "，": 0.15, "。": 0.7, "？": 0.1})
    >>> unsure = Chances({"": 0.45, "，": 0.3, "。": 0.25})
    >>> choose(sure, "", THRESHOLDS["zh"]), choose(sure, "，", THRESHOLDS["zh"]), choose(unsure, "。", THRESHOLDS["zh"])
    ('。', '。', '。')
    """
    end, pause = chances.of_kind(is_end=True), chances.of_kind(is_end=False)
    if not own:
        return chances.likeliest(is_end=end > pause) if end + pause >= least.add else ""
    if chances.none >= least.drop:
        return ""
    is_end = own in ENDS
    if (pause if is_end else end) >= least.exchange:
        is_end = not is_end
    return chances.likeliest(is_end=is_end, own=own)


def chances_after(
    words: Sequence[Word], texts: Sequence[str], language: str, next_start_ms: int | None
) -> list[Chances | None]:
    """What is likely after each word by the model and by what was heard, None for words without a letter.

    ``texts`` are as they are by now.
    """
    units, places = _heard(words, texts, language, next_start_ms)
    lettered = [index for index, at in enumerate(places) if at is not None]
    rows = load_marks(language).chances(units)[np.array([places[index] for index in lettered], np.int64)]
    owns = [own_mark(texts[index], language) for index in lettered]
    rows = weighed(rows, [words[index].ending for index in lettered], owns, language)
    found = (Chances(dict(zip(MARKS[language], row, strict=True))) for row in rows.tolist())
    return [None if at is None else next(found) for at in places]


def own_mark(text: str, language: str) -> str:
    """Whisper's mark at the end of a word in the form of the language; not the period of an abbreviation.

    >>> own_mark("好,", "zh"), own_mark(" yes，", "en"), own_mark(" Dr.", "en"), own_mark(" well…", "en")
    ('，', ',', '', '')
    """
    mark = closing_mark(text)
    if language == "en":
        mark = "" if mark == "." and is_abbreviation(text) else _FULL_TO_HALF.get(mark, mark)
    else:
        mark = _HALF_TO_FULL.get(mark, mark)
    return mark if mark in MARKS[language] else ""


def with_mark(text: str, mark: str) -> str:
    """``text`` with ``mark`` instead of the one that it ends in, inside closing quotes and brackets as before.

    >>> with_mark("好，", "。"), with_mark(' end"', "."), with_mark("好。”", ""), with_mark("好 ", "，")
    ('好。', ' end."', '好”', '好，')
    """
    body = text.rstrip()
    closers = len(body) - len(body.rstrip("".join(CLOSERS)))
    stem, tail = body[: len(body) - closers], body[len(body) - closers :]
    bare = stem[:-1] if closing_mark(stem) else stem
    return bare + mark + tail + ("" if mark else text[len(body) :])


def _heard(
    words: Sequence[Word], texts: Sequence[str], language: str, next_start_ms: int | None
) -> tuple[list[HeardUnit], list[int | None]]:
    """The units of all words, and for each word the index of its last one."""
    units: list[HeardUnit] = []
    places: list[int | None] = []
    ends = [index for index, text in enumerate(texts) if text.strip()]
    following = dict(pairwise(ends))
    for index, (word, text) in enumerate(zip(words, texts, strict=True)):
        parts = [unit for unit, _ in units_of(text, language)]
        after = words[following[index]].start_ms if index in following else next_start_ms
        pause_ms = LAST_PAUSE_MS if after is None else max(0, after - word.end_ms)
        units += _units_of_word(parts, word, pause_ms, own_mark(text, language))
        places.append(len(units) - 1 if parts else None)
    return units, places


def _units_of_word(parts: Sequence[str], word: Word, pause_ms: int, mark: str) -> list[HeardUnit]:
    share_ms = (word.end_ms - word.start_ms) / max(1, len(parts))
    heard = _HALF_TO_FULL.get(mark, mark)
    last = len(parts) - 1
    return [
        HeardUnit(part, share_ms, pause_ms if at == last else 0, heard if at == last else "")
        for at, part in enumerate(parts)
    ]
