"""Spoken English numbers in digits, where a reader of subtitles wants them; everything else stays as it was said.

Numbers from eleven on in digits, one to ten in words (Netflix Timed Text Style Guide, English; BBC Subtitle
Guidelines), but in digits with a unit, a per cent, a sum of money, a decimal point, a sign or a label (chapter six).
A number that begins a sentence stays in words, and so do fractions and names (the Thirty Years' War).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipeline.postprocess.english_numerals import (
    ONES,
    ORDINALS,
    SCALES,
    SMALL,
    english_value,
    in_english_digits,
    ordinal_in_digits,
)
from pipeline.postprocess.english_rows import AFTER, COUNTED, LABEL, NUMBER, ORDINAL, UNIT, WORD, Member, rows
from pipeline.postprocess.english_years import MONTH, OH_AFTER, RULE, is_full_year, years
from pipeline.postprocess.rewriting import Edit, without_overlaps

LEAST_COUNT = 11

_ANY_NUMBER = re.compile(
    rf"(?P<number>{NUMBER})(?: point (?P<part>(?:{'|'.join(ONES[:10])}|oh)(?: (?:{'|'.join(ONES[:10])}|oh))*)\b)?"
    rf"(?:[ -](?P<ordinal>{ORDINAL})\b)?",
    re.IGNORECASE,
)
_LONE_ORDINAL = re.compile(rf"\b(?P<ordinal>{ORDINAL})\b", re.IGNORECASE)
_MONTH_BEFORE = re.compile(rf"\b(?:{MONTH})(?: the)? $", re.IGNORECASE)
_MONTH_AFTER = re.compile(rf" (?:of )?(?:{MONTH})\b", re.IGNORECASE)
_SIGN_BEFORE = re.compile(
    r"\b(?:plus|minus|equals|(?:divided|multiplied) by|to the power of|equal to) $", re.IGNORECASE
)
_SIGN_AFTER = re.compile(r" (?:plus|minus|squared|cubed|divided by|multiplied by)\b")
_CLOCK = re.compile(
    rf"\b(?P<hour>{'|'.join(ONES[1:13])}) "
    rf"(?P<minute>(?:oh )?(?:{WORD})(?:[ -](?:{'|'.join(ONES[1:10])}))?)? ?(?=[ap]\.?m\b)",
    re.IGNORECASE,
)
_DIGIT_PERCENT = re.compile(r"(?<![\d.,$€])\d+(?:[.,]\d+)*(?P<word> per ?cent)\b", re.IGNORECASE)
MEASURED = re.compile(rf"{NUMBER}{COUNTED}?|\d{COUNTED}")
"""A number in words with its unit, or the end of one in digits with its."""
_LEAVES_WORDS = re.compile(
    r"[ -](?:half|halves|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?|something|odd|[a-z]+ties|"
    r"hundreds|thousands|[a-z]+illions)\b"
    rf"| and (?:{ORDINAL})\b| point (?:{'|'.join(ONES[:10])})\b"  # version two point one point three
)
_ABOUT = re.compile(
    r"(?<!hundred )(?<!thousand )(?<!illion )(?<!hundred and )(?<!thousand and )(?<!ty )(?<!ty-)"
    rf"\b(?P<least>{'|'.join(ONES[1:10])}) (?:or|to) $",
    re.IGNORECASE,
)
"""The whole of a number that another follows."""
_DETERMINED = re.compile(
    r"\b(?:the|this|that|a|an|each|every|another|which|what|any|no|some|other|these|those)"
    r"(?: (?!(?:is|was|are|has|as|by|of|and|to|than|plus|minus|times|equals|makes|gives) )[a-z-]+){0,2} $",
    re.IGNORECASE,
)
"""A one behind it is a thing or a person: the other one squared, in this chapter one learns."""
_SECOND_BEFORE = re.compile(rf"\b(?:the|my|your|his|her|its|our|their|{MONTH}) $", re.IGNORECASE)
"""Before the twenty-second; in twenty second intervals it is no ordinal."""
_OF_SEVERAL = re.compile(r" (?:of|another)\b")
_IS_YEAR = re.compile(r"\d{4}")
_SIGNS = {"dollar": "$", "dollars": "$", "euro": "€", "euros": "€"}


def english_edits(text: str, protected: Sequence[tuple[int, int]] = ()) -> list[Edit]:
    """What changes in the joined words of an English run. ``protected`` spans (the terms of a course) do not.

    >>> [edit.text for edit in english_edits("It has twenty five pages, one thousand two hundred grams, two percent.")]
    ['25', '1,200', '2%']
    >>> english_edits("One of the three has two thirds.")
    []
    """
    found = [*_clocks(text), *_percents(text), *_numbers(text), *_dated(text)]
    free = without_overlaps([edit for edit in found if not _touches(edit, protected)])
    return _one_way(text, free, protected)


def _touches(edit: Edit, spans: Sequence[tuple[int, int]]) -> bool:
    return any(edit.start < last and first < edit.end for first, last in spans)


def _numbers(text: str) -> Iterator[Edit]:
    for found in _ANY_NUMBER.finditer(text):
        start, end = found.span()
        before, value = text[max(0, start - 24) : start], english_value(found["number"])
        if (
            _is_name(found.group(), before)
            or _LEAVES_WORDS.match(text, end)
            or before.endswith((" a ", " a dollar ", "-", " oh "))
        ):
            continue
        if found["ordinal"]:
            yield from _compound_ordinal(found, value)
        elif found["part"]:
            yield from _decimals(found, value, before)
        elif oh := OH_AFTER.match(text, end):
            yield from years(text, start, oh.end(), before)
        elif value is None:
            yield from years(text, start, end, before)
        elif _is_about(found.group(), before):
            continue
        elif _SIGN_AFTER.match(text, end) or not _begins_sentence(before):
            yield from _written(text, start, end, value, before)


def _written(text: str, start: int, end: int, value: int, before: str) -> Iterator[Edit]:
    is_pronoun = value == 1 and (_DETERMINED.search(before) or _OF_SEVERAL.match(text, end))
    if value >= LEAST_COUNT or (not is_pronoun and (AFTER.match(text, end) or _is_measured(text, end, before))):
        is_year = is_full_year(value, before) and not UNIT.match(text, end) and not AFTER.match(text, end)
        yield _with_unit(text, start, end, str(value) if is_year else in_english_digits(value))


def _is_about(number: str, before: str) -> bool:
    """Two or three hundred, five to six thousand: the first is short for hundreds, too."""
    least, most, *rest = _ABOUT.search(before), *number.lower().split()
    return bool(
        least and rest and rest[0] in ("hundred", *SCALES) and SMALL[least["least"].lower()] < SMALL.get(most, 0)
    )


def _with_unit(text: str, start: int, end: int, number: str) -> Edit:
    """The number with the sign of what it counts, where it is a share or money."""
    after = AFTER.match(text, end)
    if after and after["percent"]:
        return Edit(start, after.end(), f"{number}%", RULE)
    if after and (written := _money(number, after)):
        return Edit(start, after.end(), written, RULE)
    return Edit(start, end, number, RULE)


def _is_measured(text: str, end: int, before: str) -> bool:
    if LABEL.search(before) or _SIGN_BEFORE.search(before):
        return True
    return bool(UNIT.match(text, end) or _SIGN_AFTER.match(text, end))


def _money(number: str, after: re.Match[str]) -> str:
    cents = english_value(after["cents"]) if after["cents"] else 0
    if cents is None or cents > 99:
        return ""
    return _SIGNS[after["money"]] + number + (f".{cents:02}" if cents else "")


def _decimals(found: re.Match[str], value: int | None, before: str) -> Iterator[Edit]:
    """Not: at one point three students left."""
    end = found.end()
    is_moment = value == 1 and before.lower().endswith("at ") and not UNIT.match(found.string, end)
    if value is not None and (not is_moment or AFTER.match(found.string, end)):
        yield _with_unit(found.string, found.start(), end, _decimal(value, found["part"]))


def _decimal(value: int, part: str) -> str:
    digits = "".join("0" if word == "oh" else str(SMALL[word]) for word in part.lower().split())
    return f"{value:,}.{digits}"


def _compound_ordinal(found: re.Match[str], value: int | None) -> Iterator[Edit]:
    """twenty-first, one hundred and third; not the second half of ten seconds' worth of anything else."""
    last = ORDINALS[found["ordinal"].lower()]
    before, after = found.string[: found.start()], found.string[found.end() :]
    if last == 2 and not (_SECOND_BEFORE.search(before) or after.startswith(" of ")):
        return
    if value is not None and value >= 20 and value % 10 == 0 and last < 10:
        yield Edit(*found.span(), ordinal_in_digits(value + last), RULE)


def _dated(text: str) -> Iterator[Edit]:
    """Ordinals from the eleventh on, and those of a day."""
    for found in _LONE_ORDINAL.finditer(text):
        start, end = found.span()
        before, value = text[max(0, start - 24) : start], ORDINALS[found["ordinal"].lower()]
        is_day = value <= 31 and (
            _MONTH_BEFORE.search(before) or (_MONTH_AFTER.match(text, end) and before.endswith("the "))
        )
        is_fraction = re.search(rf"\b(?:{WORD}|a)[ -]$", before, re.IGNORECASE)
        if (is_day or (value >= LEAST_COUNT and not is_fraction)) and not _is_name(found.group(), before):
            yield Edit(start, end, ordinal_in_digits(value), RULE)


def _clocks(text: str) -> Iterator[Edit]:
    for found in _CLOCK.finditer(text):
        minute = english_value(re.sub(r"^oh ", "", found["minute"])) if found["minute"] else None
        if found["minute"] and (minute is None or minute > 59):
            continue
        hour = str(SMALL[found["hour"].lower()])
        yield Edit(*found.span(), f"{hour}:{minute:02} " if minute is not None else f"{hour} ", RULE)


def _percents(text: str) -> Iterator[Edit]:
    for found in _DIGIT_PERCENT.finditer(text):
        yield Edit(*found.span("word"), "%", RULE)


def _one_way(text: str, edits: Sequence[Edit], protected: Sequence[tuple[int, int]]) -> list[Edit]:
    """Where one number of a row is in digits, the others are, too; in words, where the row begins a sentence."""
    of_place = {place: edit for edit in edits for place in range(edit.start, edit.end)}
    dropped: set[Edit] = set()
    added: list[Edit] = []
    for row in rows(text):
        own = {one: of_place.get(one.start) for one in row}
        said = [one for one in row if one.is_said and not own[one]]
        if all(one.is_said for one in row) and row[0] in said and _begins_sentence(text[: row[0].start][-24:]):
            dropped.update(edit for edit in own.values() if edit)
        elif len(said) < len(row):
            added += _rest_of_row(text, said, [edit for edit in own.values() if edit], protected)
    return without_overlaps([*(edit for edit in edits if edit not in dropped), *added])


def _rest_of_row(
    text: str, said: Sequence[Member], own: Sequence[Edit], protected: Sequence[tuple[int, int]]
) -> list[Edit]:
    """All that is still in words in digits, or nothing; a year has no part in a row."""
    rest = [_as_member(text, one) for one in said]
    written = [edit for edit in rest if edit and not _touches(edit, protected)]
    return written if len(written) == len(said) and not any(_IS_YEAR.fullmatch(edit.text) for edit in own) else []


def _as_member(text: str, one: Member) -> Edit | None:
    before, number = text[max(0, one.start - 24) : one.start], text[one.start : one.end]
    value = english_value(number)
    is_thing = value == 1 and (_DETERMINED.search(before) or _OF_SEVERAL.match(text, one.end))
    if value is None or is_thing or _is_name(number, before) or _LEAVES_WORDS.match(text, one.end):
        return None
    return None if _is_about(number, before) else _with_unit(text, one.start, one.end, in_english_digits(value))


def _begins_sentence(before: str) -> bool:
    return not before.strip() or before.rstrip().endswith((".", "?", "!"))


def _is_name(words: str, before: str) -> bool:
    return words[0].isupper() and not _begins_sentence(before)
