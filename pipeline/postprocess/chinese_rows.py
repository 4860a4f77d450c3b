"""Rows of Chinese numbers, which are written one way: ranges, lists, and the ordinals of a sentence.

GB/T 15835-2011: numbers of one kind that appear together have one form (3岁到15岁, 第3届和第15届).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.postprocess.chinese_measures import MEASURES
from pipeline.postprocess.chinese_numerals import NUMERAL, in_digits, value_of

_PERCENT, _ORDINAL = "百分之", "第"
_ITEM = re.compile(f"(?P<prefix>{_PERCENT}|{_ORDINAL}|)(?P<number>{NUMERAL}+|\\d+)(?P<measure>{MEASURES}|)")
_BARE_ITEM = re.sub(r"[?]P<[a-z]+>", "?:", _ITEM.pattern)
_RANGE = re.compile(f"{_BARE_ITEM}[到至或]{_BARE_ITEM}")
_LIST = re.compile(f"{_BARE_ITEM}(?:[、和]{_BARE_ITEM})+")
_SENTENCE = re.compile("[^。？！；]+")
_SHORTEST_BARE_LIST = 3


@dataclass(frozen=True, slots=True)
class Member:
    """A number of a row; ``start`` and ``end`` are those of the numeral alone."""

    start: int
    end: int
    number: str
    prefix: str
    measure: str
    is_percent: bool = False
    """A percentage by its neighbour: 百分之五到十."""

    @property
    def is_said(self) -> bool:
        """Whether it stands in characters."""
        return not self.number.isdecimal()

    @property
    def written(self) -> str:
        """In digits; for numbers that have a value."""
        return in_digits(value_of(self.number) or 0) + "%" * self.is_percent


def rows(text: str) -> Iterator[Sequence[Member]]:
    """The numbers in ``text`` that belong together, two or more a row; a number may be in several.

    >>> [[one.number for one in row] for row in rows("三到五厘米，第一、第二、第十三题，一个和十二年。")]
    [['三', '五'], ['一', '二', '十三']]
    >>> [[one.written for one in row] for row in rows("百分之五到十")]
    [['5', '10%']]
    """
    for found in _RANGE.finditer(text):
        yield from _range(_members(text, found.start(), found.end()))
    for found in _LIST.finditer(text):
        members = _members(text, found.start(), found.end())
        if _is_list(members):
            yield members
    for sentence in _SENTENCE.finditer(text):
        yield from _ordinals(_members(text, sentence.start(), sentence.end()))


def _members(text: str, start: int, end: int) -> list[Member]:
    found = _ITEM.finditer(text, start, end)
    return [Member(*one.span("number"), one["number"], one["prefix"], one["measure"]) for one in found]


def _range(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    """Both ends, of which the first may leave out what it counts in (三到五厘米), and either what it is a share of."""
    prefixes, measures = {one.prefix for one in members}, {one.measure for one in members}
    if len(prefixes) == 1 and len(measures - {""}) < 2:
        yield members
    elif prefixes == {_PERCENT, ""} and measures == {""}:
        yield [replace(one, is_percent=not one.prefix) for one in members]


def _is_list(members: Sequence[Member]) -> bool:
    """Whether numbers with 、 and 和 between them count one thing; in 一、十五个学生 the first is a heading's."""
    *before, last = members
    if len({one.prefix for one in members}) > 1:
        return False
    if all(one.measure == last.measure for one in before):
        return True
    return not any(one.measure for one in before) and (last.prefix == _ORDINAL or len(members) >= _SHORTEST_BARE_LIST)


def _ordinals(members: Sequence[Member]) -> Iterator[Sequence[Member]]:
    """Those of one sentence that count in one measure: 第一届在雅典，第五十届在这里."""
    by_measure: defaultdict[str, list[Member]] = defaultdict(list)
    for one in members:
        if one.prefix == _ORDINAL and one.measure:
            by_measure[one.measure].append(one)
    yield from (row for row in by_measure.values() if len(row) > 1)
