"""English years: nineteen oh five, twenty twenty-four, two thousand and nine; only where a year is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.postprocess.english_numerals import ONES, ORDINALS, SMALL, english_value
from pipeline.postprocess.rewriting import Edit

RULE = "number"

_MONTHS = "january february march april may june july august september october november december"
MONTH = re.sub("(?=march|may|august)", "(?-i:(?=[MA]))", _MONTHS).replace(" ", "|")
"""Those that are words of other meanings, too, only with their capital: we may first, they march."""
_ORDINAL = "|".join(sorted(ORDINALS, key=len, reverse=True))
_YEAR_BEFORE = re.compile(
    rf"\b(?:in|since|year|until|till|before|after|between|about|around|of|by|from|to|and|{MONTH}"
    rf"|(?:{_ORDINAL}|\d+(?:st|nd|rd|th)|\d{{1,2}}(?=,)),?) $",
    re.IGNORECASE,
)
_YEAR = re.compile(
    r"(?P<century>[a-z]+)[ -](?:(?P<hundred>hundred)|(?P<oh>oh )?(?P<rest>[a-z]+(?:[ -][a-z]+)?))$", re.IGNORECASE
)
OH_AFTER = re.compile(rf" oh (?:{'|'.join(ONES[1:10])})\b", re.IGNORECASE)
_FULL_YEARS = range(2000, 2100)
"""Said as numbers: two thousand and nine."""


def is_full_year(value: int, before: str) -> bool:
    """In two thousand and nine; the round number only where the word year says so."""
    return value in _FULL_YEARS and bool(_YEAR_BEFORE.search(before)) and (value % 1000 > 0 or before.endswith("year "))


def years(text: str, start: int, end: int, before: str) -> Iterator[Edit]:
    """fourteen sixty-two, twenty twenty-four, nineteen hundred: only where a year is meant."""
    found = _YEAR.match(text[start:end].lower())
    if not found or not _YEAR_BEFORE.search(before):
        return
    century = SMALL.get(found["century"], 0)
    rest = 0 if found["hundred"] else english_value(found["rest"])
    is_year = found["hundred"] or (rest is not None and (rest < 10 if found["oh"] else 10 <= rest <= 99))
    if 11 <= century <= 20 and is_year:
        yield Edit(start, end, f"{century}{rest:02}", RULE)
