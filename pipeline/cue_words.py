"""Words that a break must not part, or goes well before: what leans on its neighbour, what opens a phrase.

All by the words alone, in Chinese (simplified and traditional) and English; ``cue_breaking`` weighs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pipeline.postprocess.chinese_measures import MEASURE_WORDS, UNITS
from pipeline.postprocess.english_numerals import NUMBER_WORDS
from pipeline.postprocess.english_rows import LABEL, UNIT
from pipeline.postprocess.script import WORKING_SCRIPT, converter_of

DIGITS = frozenset("0123456789零〇一二三四五六七八九十百千万亿萬億两兩点點")
"""What a number is written with; a break never parts two of them."""


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ZH_LEANS_BACK = _listed("的 了 吗 呢 吧 啊 呀 嘛 着 过 得 地 们 之 等 里 上 中 下 时 者")
_ZH_LEANS_ON = _listed(
    "和 与 跟 或 及 而 在 把 被 从 对 向 给 让 为 以 用 由 于 将 比 因为 所以 但是 如果 而且 或者 "
    "不 很 更 最 就 也 都 这 那 这个 那个 这些 那些 这种 那种 一个 一种 一些 每 每个 第 某个"
)
_ZH_OPENS = _listed(
    "和 与 跟 或 及 而 在 把 被 从 对 向 为 以 用 由 比 当 因为 所以 但是 但 如果 而且 或者 并且 并 以及 那么 然后 "
    "因此 由于 为了 关于 对于 根据 通过 按照 只有 只要 除了 其中 其实 例如 比如 也就是说"
)
_EN_LEANS_ON = _listed(
    "a an the of in on at to for with from by into onto over under about as than through between "
    "without within during before after against among and or but nor so yet if that because while "
    "although when where which who whose whether until unless since my your his her its our their "
    "this these those very no not i we you he she they it is are was were be am will would can could "
    "should must may might have has had do does did dr. mr. mrs. ms. prof. st. fig."
)
_EN_OPENS = _listed(
    "of in on at to for with from by into onto over under about as than through between without within during "
    "before after against among and or but nor so yet if that because while although when where which who whose "
    "whether until unless since"
)
_COUNTED = re.compile(f"(?:[0-9零〇一二三四五六七八九十百千万亿两几每这那])(?:{'|'.join(MEASURE_WORDS)})$")
_MEASURE = re.compile("|".join(sorted({*MEASURE_WORDS, *UNITS}, key=len, reverse=True)))
_LONGEST_MEASURE = 4
_LAST_WORD = re.compile(r"([A-Za-z]+)(?: and)?$")
_NEXT_WORD = re.compile(r"[ -]?([A-Za-z]+)")
_SCALE = re.compile(r" (?:percent|per cent|hundred|thousand|million|billion|trillion|[ap]\.?m\.?)\b")
_REACH_CHARACTERS = 24
_LETTER_NAME = re.compile(
    "(?:(?<![A-Za-z])[A-Za-z]{1,3} ?|[艾爱埃诶哎])克[斯司]|达[不布]溜|[艾爱埃][弗福夫尺勒姆斯]|阿[尔耳]?法|贝塔|"
    "[伽嘎]马|德[尔耳]塔|[艾伊]普西[隆龙]|[西塞]塔|[兰拉][姆布]达|西格[玛马]|欧[米麦]伽"
)
"""Of x, w, f, h, l, m, s and the Greek ones, as Whisper writes them."""


@lru_cache(maxsize=65_536)
def _simplified(word: str) -> str:
    return word if word.isascii() else str(converter_of(WORKING_SCRIPT).convert(word))


def letter_names(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the names of letters that Chinese writes with several characters; ``text`` is simplified.

    >>> list(letter_names("等于Ai克斯的平方")), list(letter_names("阿尔法角"))
    ([(2, 6)], [(0, 3)])
    """
    return (found.span() for found in _LETTER_NAME.finditer(text))


def leans_on(word: str) -> bool:
    """Whether a word belongs to what follows it, so that no line ends with it.

    >>> leans_on("the"), leans_on("與"), leans_on("三角形")
    (True, True, False)
    """
    return word.lower() in _EN_LEANS_ON or _simplified(word) in _ZH_LEANS_ON


def leans_back(word: str) -> bool:
    """Whether a word belongs to what is before it, so that no line begins with it."""
    return _simplified(word) in _ZH_LEANS_BACK


def opens_phrase(word: str) -> bool:
    """Whether a phrase begins with this word: a conjunction or a preposition."""
    return word.lower() in _EN_OPENS or _simplified(word) in _ZH_OPENS


def is_label(word: str) -> bool:
    """Whether a number after this word is its own: chapter 6, page 42."""
    return bool(LABEL.search(f"{word} "))


def counts_before(text: str) -> bool:
    """Whether a text ends in a number and a measure word, so that what is counted follows.

    >>> counts_before("三个"), counts_before("12條"), counts_before("个")
    (True, True, False)
    """
    return bool(_COUNTED.search(_simplified(text[-_LONGEST_MEASURE - 1 :])))


def measure_length(text: str, offset: int) -> int:
    """How many characters of a measure word or a unit stand at a place; 0 where none begins.

    >>> measure_length("三个苹果", 1), measure_length("5厘米", 1), measure_length("三角", 1)
    (1, 2, 1)
    """
    found = _MEASURE.match(_simplified(text[offset : offset + _LONGEST_MEASURE]))
    return found.end() if found else 0


def holds_number(text: str, offset: int) -> bool:
    """Whether a place lies inside a number: between its words, before its unit, inside a date.

    >>> holds_number("in two hundred cases", 6), holds_number("25 percent", 2), holds_number("3月5日", 2)
    (True, True, True)
    >>> holds_number("two cases", 3)
    False
    """
    last = text[offset - 1]
    if last.isdigit():
        return bool(_SCALE.match(text, offset) or UNIT.match(text, offset))
    if last in "年月" and text[offset].isdigit():
        return True
    before = _LAST_WORD.search(text[max(0, offset - _REACH_CHARACTERS) : offset]) if last.isascii() else None
    if not before or before[1].lower() not in NUMBER_WORDS:
        return False
    following = _NEXT_WORD.match(text, offset)
    is_joint = following is not None and following[1].lower() in {*NUMBER_WORDS, "and", "percent", "point"}
    return is_joint and not text[:offset].endswith(",")
