"""English numbers in words as values, and values as an English text writes them in digits."""

from __future__ import annotations

import re

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SMALL = {word: value for value, word in enumerate(ONES)} | {word: 20 + 10 * at for at, word in enumerate(_TENS)}
SCALES = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 1_000_000_000_000}
ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
    "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90, "hundredth": 100,
} | {f"{word}th": value for word, value in SMALL.items() if 13 <= value <= 19}  # fmt: skip

NUMBER_WORDS = frozenset([*SMALL, *SCALES, "hundred"])


def english_value(words: str) -> int | None:
    """The value of a number in words; None where they are no single number.

    >>> english_value("one hundred and five"), english_value("two million three thousand"), english_value("forty-two")
    (105, 2003000, 42)
    >>> english_value("twenty twenty"), english_value("one two three"), english_value("hundred")
    (None, None, None)
    """
    if words.lower().startswith("and"):
        return None
    total = group = 0
    room, scale_room = 1_000, 10**15
    for word in re.split(r"[ -]", words.lower()):
        if word == "and":
            continue
        if word in SMALL:
            value = SMALL[word]
            if value >= room or (group and not value):
                return None
            group, room = group + value, 10 if value >= 20 else 0
        elif word == "hundred" and 0 < group < 10:
            group, room = group * 100, 100
        elif word in SCALES and group and SCALES[word] < scale_room:
            scale_room = SCALES[word]
            total, group, room = total + group * scale_room, 0, 1_000
        else:
            return None
    return total + group


def in_english_digits(value: int) -> str:
    """Digits with commas; a round number of millions keeps its last word.

    >>> in_english_digits(1200), in_english_digits(3_000_000), in_english_digits(42)
    ('1,200', '3 million', '42')
    """
    for word in ("trillion", "billion", "million"):
        if value >= SCALES[word] and value % SCALES[word] == 0:
            return f"{value // SCALES[word]:,} {word}"
    return f"{value:,}"


def ordinal_in_digits(value: int) -> str:
    """The ordinal with its ending.

    >>> [ordinal_in_digits(value) for value in (1, 12, 22, 113)]
    ['1st', '12th', '22nd', '113th']
    """
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value:,}{ending}"
