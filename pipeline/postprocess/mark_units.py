"""Text as the units that the mark model counts in: Chinese characters, runs of letters and digits, English words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from pipeline.postprocess.text import HAN

ZH_MARKS = ("", "，", "、", "。", "？", "！", "：", "；")
EN_MARKS = ("", ",", ":", ".", "?", "!", ";")
"""The classes of the model, in its order; the first is no mark."""

PAD, UNKNOWN, NUMBER, LETTER, LATIN = range(5)
SPECIAL_UNITS = ("<pad>", "<unknown>", "<number>", "<letter>", "<latin>")
ENDINGS = 1024
"""Buckets for the last three letters of an English word."""

_PATTERNS = {
    "zh": re.compile(
        rf"(?P<unit>{HAN}|[A-Za-z0-9]+(?:[.'’%][A-Za-z0-9]+)*)|(?P<mark>[，、。？！：；,?!:;]|\.(?=\s|$))"
    ),
    "en": re.compile(r"(?P<unit>[^\W_]+(?:[.'’\-/%][^\W_]+)*)|(?P<mark>[,.?!:;])"),
}
_FULL_WIDTH = {",": "，", ".": "。", "?": "？", "!": "！", ":": "：", ";": "；"}


def units_of(text: str, language: str) -> Iterator[tuple[str, str]]:
    """The units of ``text``, each with the first mark that follows it, empty if none does.

    >>> list(units_of("用Python，好吗？", "zh"))
    [('用', ''), ('Python', '，'), ('好', ''), ('吗', '？')]
    >>> list(units_of("It's 3.5, isn't it?", "en"))
    [("It's", ''), ('3.5', ','), ("isn't", ''), ('it', '?')]
    """
    unit, mark = "", ""
    for match in _PATTERNS[language].finditer(text):
        if match["unit"]:
            if unit:
                yield unit, mark
            unit, mark = match["unit"], ""
        elif not mark:
            mark = _FULL_WIDTH.get(match["mark"], match["mark"]) if language == "zh" else match["mark"]
    if unit:
        yield unit, mark


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The units that have a vector of their own, by number; the first five stand for all others."""

    units: tuple[str, ...]
    _numbers: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_numbers", {unit: number for number, unit in enumerate(self.units)})

    @classmethod
    def of(cls, counts: Counter[str], size: int, least: int) -> Vocabulary:
        """The ``size`` commonest units that occur ``least`` times or more."""
        kept = [unit for unit, count in counts.most_common(size) if count >= least]
        return cls((*SPECIAL_UNITS, *kept))

    def number(self, unit: str) -> int:
        """Digits have one number together; letters and Latin words that are not known, one each."""
        folded = unit.casefold()
        if folded in self._numbers:
            return self._numbers[folded]
        if folded[0].isdigit():
            return NUMBER
        if folded.isascii():
            return LETTER if len(folded) == 1 else LATIN
        return UNKNOWN

    def numbers(self, units: Sequence[str]) -> list[int]:
        return [self.number(unit) for unit in units]

    @staticmethod
    def shape(unit: str) -> tuple[int, int, int]:
        """Its length, its ending's bucket, and whether it opens with a capital."""
        return min(len(unit), 20), crc32(unit.casefold()[-3:].encode()) % ENDINGS, int(unit[0].isupper())
