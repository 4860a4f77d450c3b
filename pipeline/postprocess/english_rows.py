"""English numbers with what they count in, and rows of them, which are written one way: five to ten percent,
chapters one, two and three (The Chicago Manual of Style 9.7: numbers of one category in one passage are alike).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.postprocess.english_numerals import NUMBER_WORDS, ORDINALS, SMALL

WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
ORDINAL = "|".join(sorted(ORDINALS, key=len, reverse=True))
_TOKEN = rf"(?:hundred|thousand|[mbtr]+illion) and(?= (?:{'|'.join(SMALL)})\b)|{WORD}"
NUMBER = rf"\b(?:{_TOKEN})(?:[ -](?:{_TOKEN}))*\b"
LABEL = re.compile(
    r"\b(?:chapters?|pages?|figures?|fig\.|equations?|sections?|problems?|exercises?|lectures?|lessons?|units?|"
    r"questions?|tables?|theorems?|volumes?|rooms?|versions?|slides?|parts?|steps?|grades?) $",
    re.IGNORECASE,
)
UNIT = re.compile(
    r"[ -](?:(?:kilo|milli|centi|nano|micro|square |cubic )?(?:met(?:er|re)|gram|lit(?:er|re)|second|watt|volt|joule|"
    r"newton|hertz|amp|pascal|byte|bit|mole)s?|degrees?|miles? per hour|kg|km|cm|mm|bits?|megabytes?|gigabytes?)\b"
)
AFTER = re.compile(
    r" (?P<percent>percent|per cent)\b| (?P<money>dollars?|euros?)\b(?: and (?P<cents>[a-z -]+?) cents?\b)?"
)
COUNTED = f"(?:{UNIT.pattern}|{re.sub('[?]P<[a-z]+>', '?:', AFTER.pattern)})"

_ITEM = rf"(?:{NUMBER}(?![ -](?:{ORDINAL})\b)|[$€]?\b\d[\d,]*(?:\.\d+)?%?){COUNTED}?"
_ROW = re.compile(
    rf"{_ITEM}(?:(?:, {_ITEM})+,? (?:and|or) {_ITEM}| (?P<joint>and|or) {_ITEM}|(?: (?:to|through) |-to-){_ITEM})",
    re.IGNORECASE,
)
_MEMBER = re.compile(rf"(?P<said>{NUMBER})|\d[\d,.]*", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:and|or) $", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Member:
    """A number of a row, without what it counts in."""

    start: int
    end: int
    is_said: bool
    """Whether it stands in words."""


def rows(text: str) -> Iterator[list[Member]]:
    """The numbers in ``text`` that belong together, two or more a row, in order.

    >>> said = "chapters one, two and three, page one and two students, a minute or two and ten of them"
    >>> [[said[one.start : one.end] for one in row] for row in rows(said)]
    [['one', 'two', 'three']]
    """
    for found in _ROW.finditer(text):
        before = text[max(0, found.start() - 24) : found.start()]
        if not found["joint"] or _is_pair(text, found.end(), before, found["joint"]):
            members = _MEMBER.finditer(text, found.start(), found.end())
            yield [Member(*one.span(), bool(one["said"])) for one in members]


def _is_pair(text: str, end: int, before: str, joint: str) -> bool:
    """Not a minute or two and ten of them, nor page one and two students."""
    label = LABEL.search(before)
    is_of_one_label = joint == "and" and label is not None and not label.group().endswith("s ")
    return not _OPEN.search(before) and not (is_of_one_label and re.match(r" [a-z]", text[end : end + 2]))
