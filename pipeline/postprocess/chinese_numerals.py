"""Chinese numerals as values, and values as a Chinese text writes them in digits."""

from __future__ import annotations

import re

DIGITS = {"零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
DIGIT = "[零〇一二三四五六七八九]"
NUMERAL = "[零〇幺一二两三四五六七八九十百千万亿]"

_BELOW_TEN_THOUSAND = re.compile(
    "(?:(?P<thousands>[一二两三四五六七八九])千)?"
    "(?:(?P<hundreds>[一二两三四五六七八九])百)?"
    "(?:(?P<zero_tens>零)?(?P<tens>[一二三四五六七八九])?(?P<ten>十))?"
    "(?:(?P<zero_ones>零)?(?P<ones>[一二三四五六七八九]))?"
)
_DIGIT_OF = str.maketrans("零〇幺一二三四五六七八九", "001123456789")


def value_of(numeral: str) -> int | None:
    """The value of a well-formed numeral; None for anything else, what is only said, not written, included.

    >>> [value_of(text) for text in ("十三", "一百零五", "两万五千", "一亿零三百", "零")]
    [13, 105, 25000, 100000300, 0]
    >>> [value_of(text) for text in ("三五", "一百五", "百", "二两", "")]
    [None, None, None, None, None]
    """
    if numeral in ("零", "〇"):
        return 0
    high, has_high, low = numeral.rpartition("亿")
    middle, has_middle, low = low.rpartition("万")
    hundred_millions = _multiplier(high) if has_high else 0
    ten_thousands = _multiplier(middle.removeprefix("零") if has_high else middle) if has_middle else 0
    if hundred_millions is None or ten_thousands is None:
        return None
    return _with_rest(hundred_millions * 100_000_000 + ten_thousands * 10_000, low)


def _multiplier(numeral: str) -> int | None:
    return 2 if numeral == "两" else _below_ten_thousand(numeral) or None


def _with_rest(total: int, rest: str) -> int | None:
    if not rest:
        return total or None
    value = _below_ten_thousand(rest.removeprefix("零") if total else rest)
    if not value:
        return None
    # 三万五 is said for 35,000: what follows without a 零 must reach the place below.
    is_short = total and value < 1_000 and not rest.startswith("零")
    return None if is_short else total + value


def _below_ten_thousand(numeral: str) -> int | None:
    found = _BELOW_TEN_THOUSAND.fullmatch(numeral)
    if not numeral or not found:
        return None
    thousands, hundreds, tens, ones = (found[name] for name in ("thousands", "hundreds", "tens", "ones"))
    has_ten = bool(found["ten"])
    # A 零 stands for exactly the places that are left out between two others.
    leaves_out_hundreds = bool(thousands and not hundreds)
    is_spelt = bool(found["zero_tens"]) == (has_ten and leaves_out_hundreds) and bool(found["zero_ones"]) == bool(
        ones and not has_ten and (thousands or hundreds)
    )
    if not is_spelt:
        return None
    value = 1_000 * DIGITS.get(thousands or "零", 0) + 100 * DIGITS.get(hundreds or "零", 0)
    return value + (10 * DIGITS.get(tens or "一", 1) if has_ten else 0) + DIGITS.get(ones or "零", 0)


def digit_by_digit(numeral: str) -> str:
    """A numeral that is said figure by figure.

    >>> digit_by_digit("二零二四")
    '2024'
    """
    return numeral.translate(_DIGIT_OF)


def in_digits(value: int) -> str:
    """As GB/T 15835-2011 lets large round numbers be written: with 万 and 亿 where nothing is below them.

    >>> [in_digits(value) for value in (144, 35000, 120000, 150000000)]
    ['144', '35000', '12万', '1亿5000万']
    """
    if value < 10_000 or value % 10_000:
        return str(value)
    hundred_millions, rest = divmod(value // 10_000, 10_000)
    return (f"{hundred_millions}亿" if hundred_millions else "") + (f"{rest}万" if rest else "")
