"""Spoken Chinese numbers in digits, where a reader of subtitles wants them; everything else stays as it was said.

The rules follow GB/T 15835-2011 (General rules for writing numerals in publications): digits for measures,
dates, times, percentages, decimals and counts from ten on, and for all that stands beside a mathematical sign;
characters for counts below ten, approximate numbers (三五个, 十几), fractions, set phrases and names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pipeline.postprocess.chinese_measures import MEASURE_WORDS, MEASURES, UNITS
from pipeline.postprocess.chinese_numerals import DIGIT, NUMERAL, digit_by_digit, in_digits, value_of
from pipeline.postprocess.chinese_rows import rows
from pipeline.postprocess.lexicon import load_lexicon
from pipeline.postprocess.rewriting import Edit, without_overlaps

RULE = "number"
LEAST_COUNT = 10
"""Counts and ordinals below it stay in characters."""


_COUNT = f"{NUMERAL}+"
_SMALL = "[零一二三四五六七八九十]{1,3}"
_DAYTIME = "凌晨|早上|早晨|清晨|上午|中午|下午|傍晚|晚上|今晚|夜里"
_DATE = re.compile(
    f"(?P<month>{_SMALL})月(?P<day>{_SMALL})(?=[日号])|(?P<alone>{_SMALL})(?=月份)|(?<=年)(?P<after>{_SMALL})(?=月)"
)
_YEAR = re.compile(f"(?P<full>{DIGIT}{{4}}|[零〇九]{DIGIT})(?=年(?!级|代|龄))")
_TIME = re.compile(
    f"(?P<daytime>{_DAYTIME})?(?P<hour>{_SMALL})点(?:(?P<minute>零?{_SMALL})(?!刻)(?P<unit>分(?!之|钟))?|(?=(?P<round>整(?![理体个合数])|半(?![导径])|钟|一刻|三刻))|)"
)
_PERCENT = re.compile(rf"百分之(?P<number>{NUMERAL}+(?:点{DIGIT}+)?|\d+(?:\.\d+)?)")
_DECIMAL = re.compile(f"(?<![第这那哪有几])(?P<whole>{_COUNT})点(?P<part>{DIGIT}+)(?![十百千分])")
_RATIO = re.compile(f"({_COUNT})比({_COUNT})")
_ANY_COUNT = re.compile(_COUNT)
_UNIT = re.compile("|".join(UNITS))
_SIGN_BEFORE = re.compile("(?:加上?|减去?|乘以?|除以?|乘上|等于|大于|小于|约为|负|根号|[=+×÷<>])$")
_NO_SIGN = re.compile("(?:增|参|更|附|添|追|强|施|外|倍|冗|消|删|开|清|相|自|搭)[加减乘除]$")
_SIGN_AFTER = re.compile(
    f"(?:的(?:平方|立方|(?:负?{NUMERAL}+|n)次方|相反数|倒数|绝对值|阶乘)|加上?|减去?|乘以?|除以?|等于|大于|小于|[=+×÷<>])"
)
_RELATION_AFTER = re.compile(f"次方(?!程)|[乘除]以|[等大小]于|加{NUMERAL}")
_ABOUT_BEFORE = re.compile(f"(?:[几近好之余多]|{NUMERAL}分).$|(?<!加)[数上][十百千万亿]$")
"""With the first character of the number itself: 数十 and 上百, but 函数三十 and 图上十二."""
_ABOUT_AFTER = re.compile("[几多余来数]|分之|把(?!握)|成[^为]|\\d")
_SET_PHRASES = re.compile(
    "(?<![一二三四五六七八九百])十分(?!之?钟|以|米|的?[满得扣])|[万千]分之|一[度克]|三心二意|一千零一夜|十一(?=黄金周|国庆|长假|假期)|双十一|十二生肖|十二时辰|二十四(?=节气|史|孝)|"
    "三十六计|七十二变|十三经|十八(?=般|大|罗汉|层地狱)|一百单八将|十万个为什么|百年|十字|二百五|"
    "十位(?=[数上的、，。和与是]|百位)|三百六十行(?!代码|数据|文字)|一百零八将|十万八千里|八十一难|三十年河[东西]|[二三四五六七八九十]+进制|一点一[滴点]|一点半点|五十步笑百步|十有八九|二十八宿|八十天环游"
)
MEASURED = re.compile(rf"(?:{NUMERAL}|\d)+(?:{MEASURES})?")
"""A number with what it counts in."""
_COUNTED_IN = re.compile(f"[万亿]?(?:{MEASURES})")
_AFTER_POINT = re.compile(f"{NUMERAL}点$")
_MARKS = re.compile("[^\u3400-\u9fff]+")


def chinese_edits(text: str, protected: Sequence[tuple[int, int]] = ()) -> list[Edit]:
    """What changes in the joined words of a Chinese run. ``protected`` spans (the terms of a course) do not.

    >>> [edit.text for edit in chinese_edits("二零二四年三月五日，十三的平方等于一百六十九。")]
    ['2024', '3月5', '13', '169']
    >>> chinese_edits("一元二次方程有两个根，三心二意十分不好。")
    []
    """
    if not _ANY_COUNT.search(text):
        return []
    fixed = [*protected, *(found.span() for found in _SET_PHRASES.finditer(text))]
    edits: list[Edit] = []
    for find in _FINDERS:
        for edit in find(text):
            if not _touches(edit.start, edit.end, fixed):
                edits.append(edit)
                fixed.append((edit.start, edit.end))
    return without_overlaps([*edits, *_rest_of_rows(text, edits, fixed)])


def _touches(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < last and first < end for first, last in spans)


def _dates(text: str) -> Iterator[Edit]:
    for found in _DATE.finditer(text):
        month, day = value_of(found["month"] or found["alone"] or found["after"]), value_of(found["day"] or "一")
        if month and day and month <= 12 and day <= 31 and not text[: found.start()].endswith(("正", "第")):
            yield Edit(*found.span(), f"{month}月{day}" if found["day"] else str(month), RULE)


def _years(text: str) -> Iterator[Edit]:
    for found in _YEAR.finditer(text):
        if not re.search(f"{NUMERAL}$", text[: found.start()]):
            yield Edit(*found.span(), digit_by_digit(found["full"]), RULE)


def _times(text: str) -> Iterator[Edit]:
    """An hour alone is none (两点 are two points) but after a part of the day."""
    for found in _TIME.finditer(text):
        hour, minute = value_of(found["hour"]), value_of((found["minute"] or "零").lstrip("零") or "零")
        is_time = found["daytime"] or found["round"] or found["unit"] or "十" in (found["minute"] or "")
        if not is_time or hour is None or minute is None or hour > 24 or minute > 59:
            continue
        start = found.start("hour")
        if not text[:start].endswith(("第", "这", "那", "几", "差")):
            written = f"{hour}点" + (f"{minute:02}" if found["minute"] else "") + (found["unit"] or "")
            yield Edit(start, found.end(), written, RULE)


def _percentages(text: str) -> Iterator[Edit]:
    for found in _PERCENT.finditer(text):
        number = found["number"]
        written = number if number[0].isdecimal() else "100" if number == "百" else _decimal(number)
        if written and not re.match("[点秒里几多]", text[found.end() : found.end() + 1]):
            yield Edit(*found.span(), f"{written}%", RULE)


def _ratios(text: str) -> Iterator[Edit]:
    for found in _RATIO.finditer(text):
        left, right = value_of(found[1]), value_of(found[2])
        if left is not None and right is not None and max(left, right) >= LEAST_COUNT:
            yield Edit(*found.span(), f"{in_digits(left)}比{in_digits(right)}", RULE)


def _decimals(text: str) -> Iterator[Edit]:
    for found in _DECIMAL.finditer(text):
        written = _decimal(found.group())
        counted = text[found.end() : found.end() + 1]
        is_beside_sign = _SIGN_AFTER.match(text, found.end())  # 三点五加: 五加 is a plant
        is_whole = is_beside_sign or not _is_inside_word(text, *found.span())
        if written and counted not in ("个", "种", "条") and is_whole:
            yield Edit(*found.span(), written, RULE)


def _decimal(numeral: str) -> str:
    whole, point, part = numeral.partition("点")
    value = value_of(whole)
    return "" if value is None else f"{value}.{digit_by_digit(part)}" if point else in_digits(value)


def _counts(text: str) -> Iterator[Edit]:
    for found in _ANY_COUNT.finditer(text):
        start, end = found.span()
        before, value = text[max(0, start - 4) : start], value_of(found.group())
        if value is None:
            written = "" if text.startswith("几", end) else _spelled_out(found.group(), before)
            if written and not _is_inside_word(text, start, end):
                yield Edit(start, end, written, RULE)
        elif not (_is_about(text, start, end) or _AFTER_POINT.search(before)) and _wants_digits(
            text, start, end, value, before
        ):
            yield Edit(start, end, in_digits(value), RULE)


def _spelled_out(numeral: str, before: str) -> str:
    """Rooms, years and telephone numbers are said digit by digit, with a zero or at length."""
    is_spelled = re.fullmatch("[幺零〇一二三四五六七八九]{3,}", numeral) and (
        len(numeral) >= 7 or re.search("[零〇]", numeral)
    )
    return digit_by_digit(numeral) if is_spelled and not before.endswith(("点", "第")) else ""


def _is_about(text: str, start: int, end: int) -> bool:
    return bool(_ABOUT_BEFORE.search(text[max(0, start - 2) : start + 1]) or _ABOUT_AFTER.match(text, end))


def _wants_digits(text: str, start: int, end: int, value: int, before: str) -> bool:
    unit = _UNIT.match(text, end)
    if unit and not before.endswith("第"):
        is_shortened = re.match(f"{DIGIT}(?![十百千年])", text[unit.end() : unit.end() + 2])  # 一米八
        return not is_shortened and not _is_inside_word(text, start, end)
    if _RELATION_AFTER.match(text, end):
        return not _is_inside_word(text[:end], start, end)
    if (_SIGN_BEFORE.search(before) and not _NO_SIGN.search(before)) or _SIGN_AFTER.match(text, end):
        return not _is_inside_word(text, start, end)
    is_single_ten = end - start == 1
    return (
        value >= LEAST_COUNT
        and not (is_single_ten and _stands_bare(text, end))
        and not _is_inside_word(text, start, end)
    )


def _stands_bare(text: str, end: int) -> bool:
    return not text.startswith(MEASURE_WORDS, end)


def _is_inside_word(text: str, start: int, end: int) -> bool:
    """Whether a word of the dictionary holds more than the number and what it counts (十字, 九牛一毛)."""
    left = max((found.end() for found in _MARKS.finditer(text, max(0, start - 20), start)), default=max(0, start - 20))
    right = next((found.start() for found in _MARKS.finditer(text, end, end + 20)), min(len(text), end + 20))
    at = left
    for word in load_lexicon().cut(text[left:right]):
        first, at = at, at + len(word)
        if first < start < at and not word.startswith(("第", "约", "负")):
            return True
        if first < end < at:
            return _COUNTED_IN.fullmatch(text, end, at) is None
    return False


def _rest_of_rows(text: str, edits: Sequence[Edit], fixed: Sequence[tuple[int, int]]) -> Iterator[Edit]:
    """Where one number of a row is in digits, the others are, too: 三到五厘米, 第三届和第十五届."""
    taken = {place for edit in edits for place in range(edit.start, edit.end)}
    for row in rows(text):
        said = [one for one in row if one.is_said and one.start not in taken]
        if len(said) < len(row) and all(_may_write(text, one.start, one.end, fixed) for one in said):
            yield from (Edit(one.start, one.end, one.written, RULE) for one in said)


def _may_write(text: str, start: int, end: int, fixed: Sequence[tuple[int, int]]) -> bool:
    is_free = value_of(text[start:end]) is not None and not _touches(start, end, fixed)
    return is_free and not _is_about(text, start, end) and not _is_inside_word(text, start, end)


_FINDERS: tuple[Callable[[str], Iterator[Edit]], ...] = (
    _years,
    _dates,
    _times,
    _percentages,
    _ratios,
    _decimals,
    _counts,
)
"""In this order: what an earlier one takes, a later one leaves alone."""
