"""Texts made comparable: which tokens count, which marks stand after them, in which piece of text they began.

Mandarin is compared by characters, folded to simplified script (OpenCC ``t2s``) and NFKC; English by words,
in lower case, apostrophes dropped. In both, digits become the number's words, and punctuation becomes a mark
of the token before it. Signs that are said (``%``, ``=``, ``+``) become their words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

from bench.numerals import NUMBER, en_ordinal, readings
from bench.values import Timed


class Mark(IntEnum):
    """The class of the punctuation after a token; where several marks stand together, the highest counts."""

    NONE = 0
    COMMA = 1
    END = 2
    QUESTION = 3


_MARKS = {
    **dict.fromkeys(",、;:，；：", Mark.COMMA),
    **dict.fromkeys("。.!！｡", Mark.END),
    **dict.fromkeys("?？", Mark.QUESTION),
}
_SIGNS = str.maketrans("，；：。｡！？", ",;:..!?")
_SAID = {
    "zh": {"=": "等于", "+": "加", "×": "乘以", "÷": "除以"},
    "en": {"%": "percent", "=": "equals", "+": "plus", "×": "times", "&": "and"},
}
_SUPERSCRIPTS = {
    "zh": {"²": "的平方", "³": "的立方"},
    "en": {"²": " squared ", "³": " cubed "},
}
"""Said before NFKC makes plain digits of them."""
_PATTERNS = {
    "zh": re.compile(rf"(?P<number>{NUMBER})(?P<suffix>%?)|(?P<plain>\w)|(?P<other>\S)"),
    "en": re.compile(
        rf"(?P<number>{NUMBER})(?P<suffix>(?:st|nd|rd|th)\b|%?)|(?P<plain>[^\W\d_]+(?:'[^\W\d_]+)*)|(?P<other>\S)"
    ),
}


@dataclass(frozen=True, slots=True)
class Token:
    """One unit of comparison: a character (zh) or a word (en)."""

    text: str
    mark: Mark
    piece: int
    """Index of the piece of text in which it began."""
    sign: str = ""
    """The mark itself, half-width but for ``、``; empty where there is none."""


@dataclass(frozen=True, slots=True)
class _Found:
    match: re.Match[str]
    piece: int


def tokens_of(pieces: Sequence[Timed], language: str, *, joint: str = "", context: str = "") -> tuple[Token, ...]:
    """The tokens of ``pieces`` laid end to end with ``joint`` between them.

    ``context`` is ``plain_text`` of the text that they will be compared with: of a number's readings the one
    is taken that stands there too.

    >>> [token.text for token in tokens_of([Timed("勾股，定理3", 0, 1)], "zh")]
    ['勾', '股', '定', '理', '三']
    >>> tokens_of([Timed("It's 2.5?", 0, 1)], "en")[-1]
    Token(text='five', mark=<Mark.QUESTION: 3>, piece=0, sign='?')
    """
    text, owners = _laid_out(pieces, language, joint)
    tokens: list[Token] = []
    found = [_Found(match, owners[match.start()]) for match in _PATTERNS[language].finditer(text)]
    for index, one in enumerate(found):
        following = found[index + 1].match["plain"] if index + 1 < len(found) else None
        before = tokens[-1].text if tokens else ""
        said = _said(one.match, language, before, following or "", context)
        tokens.extend(Token(word, Mark.NONE, one.piece) for word in said)
        mark = _MARKS.get(one.match["other"] or "", Mark.NONE)
        if tokens and mark > tokens[-1].mark:
            sign = one.match["other"].translate(_SIGNS)
            tokens[-1] = Token(tokens[-1].text, mark, tokens[-1].piece, sign)
    return tuple(tokens)


def plain_text(tokens: Sequence[Token], language: str) -> str:
    """The tokens as one string: unbroken in Mandarin, each word between spaces in English."""
    if language == "zh":
        return "".join(token.text for token in tokens)
    return " " + " ".join(token.text for token in tokens) + " "


def _laid_out(pieces: Sequence[Timed], language: str, joint: str) -> tuple[str, list[int]]:
    """The folded text and, for each of its characters, the index of its piece."""
    text, owners = "", []
    for index, piece in enumerate(pieces):
        folded = _folded(piece.text, language) + joint
        text += folded
        owners += [index] * len(folded)
    return text, owners


def _folded(text: str, language: str) -> str:
    for sign, said in _SUPERSCRIPTS[language].items():
        text = text.replace(sign, said)
    compatible = "".join(map(_compatible, text)).lower()
    if language == "zh":
        return str(_to_simplified().convert(compatible))
    return compatible.replace("’", "'").replace("‘", "'")


def _compatible(character: str) -> str:
    # "…" would become three full stops: a hesitation is no end of a sentence.
    return character if character == "…" else unicodedata.normalize("NFKC", character)


@cache
def _to_simplified() -> Any:
    import opencc

    return opencc.OpenCC("t2s")


def _said(match: re.Match[str], language: str, before: str, following: str, context: str) -> Iterator[str]:
    if match["number"]:
        say = _number(match, language, before, following, context)
    elif match["plain"]:
        say = match["plain"].replace("'", "")
    else:
        say = _SAID[language].get(match["other"], "")
    return iter(say if language == "zh" else say.split())


def _number(match: re.Match[str], language: str, before: str, following: str, context: str) -> str:
    says = [_with_suffix(say, match["suffix"] or "", language) for say in readings(match["number"], language)]
    return max(says, key=lambda say: _likeness(say, language, before, following, context))


def _with_suffix(say: str, suffix: str, language: str) -> str:
    if language == "zh":
        return ("百分之" if suffix else "") + say
    if suffix == "%":
        return f"{say} percent"
    return en_ordinal(say) if suffix else say


def _likeness(say: str, language: str, before: str, following: str, context: str) -> int:
    """How much of ``say`` and its neighbours stands in ``context``: 0 none of it .. 4 all."""
    gap = "" if language == "zh" else " "
    whole = f"{gap}{say}{gap}"
    with_before = f"{gap}{before}{whole}" if before else whole
    with_following = f"{whole}{following}{gap}" if following else whole
    both = f"{with_before}{following}{gap}" if following else with_before
    return (both in context) + (with_before in context) + (with_following in context) + (whole in context)
