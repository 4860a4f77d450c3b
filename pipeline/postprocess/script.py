"""Script, first half: one working form of Chinese characters, of digits, letters, marks and spaces. Chinese only.

Whisper answers in simplified or traditional characters as it likes, with half-width marks and stray spaces. All
steps work on simplified characters; ``rendering`` writes the course's script at the end. Everything here but the
spaces keeps the number of characters, so each word keeps its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import opencc

from pipeline.postprocess.text import (
    ABBREVIATIONS,
    CLOSERS,
    closing_mark,
    is_han,
    is_latin,
    split_at,
    with_texts,
)
from pipeline.values import Word

WORKING_SCRIPT = "t2s"
SCRIPTS = ("none", "t2s", "tw2s", "hk2s", "tw2sp", "hk2sp", "s2t", "s2tw", "s2hk", "s2twp", "s2hkp")
"""What a course may ask for, by OpenCC's names: simplified characters (``t2s``, ``tw2s``, ``hk2s``) or traditional
ones (``s2t``), those of Taiwan or Hong Kong (``s2tw``, ``s2hk``); with a ``p`` also the words of the region (軟體 for
软件). ``none`` leaves the text as Whisper wrote it.
"""

CHUNK_WORDS = 200
"""At most so many words are converted at once where no sentence ends."""

CLAUSE_MIN_CHARACTERS = 2
CLAUSE_PAIR_MIN_CHARACTERS = 6
"""A space that Whisper writes instead of a comma has a clause on each side: two such clauses have at least
six characters. Shorter pieces are words or characters that were merely set apart."""

_FULL_WIDTH = {
    code: code - 0xFEE0 for span in ((0xFF10, 0xFF1A), (0xFF21, 0xFF3B), (0xFF41, 0xFF5B)) for code in range(*span)
}
_MARK_OF = {",": "，", ".": "。", "?": "？", "!": "！", ":": "：", ";": "；"}
_HALF_WIDTH_MARK = re.compile(r"[,.?!:;]")
_PIECE = re.compile(r"[^\s，。、；：？！,.;:?!…]+")
_WORD_BEFORE = re.compile(r"[A-Za-z]+$")


def fold_script(words: Sequence[Word], language: str) -> tuple[Word, ...]:
    """The words in the working form, times unchanged; other languages than ``zh`` pass as they are."""
    if language != "zh":
        return tuple(words)
    texts = [text for chunk in chunks([word.text for word in words]) for text in convert_script(chunk, WORKING_SCRIPT)]
    folded = fold_marks(fold_width("".join(texts)))
    return with_texts(words, _without_spaces(split_at(folded, [len(text) for text in texts]), stray_spaces(folded)))


def convert_script(texts: Sequence[str], script: str) -> list[str]:
    """The words of one sentence in another script, converted together so that phrases are seen whole.

    >>> convert_script(["體", "積", "計", "算"], "t2s")
    ['体', '积', '计', '算']
    """
    converter = converter_of(script)
    joined = "".join(texts)
    converted = converter.convert(joined)
    if len(converted) != len(joined):
        return [converter.convert(text) for text in texts]
    return split_at(converted, [len(text) for text in texts])


def fold_width(text: str) -> str:
    """Full-width digits and letters as half-width ones; the marks stay full-width.

    >>> fold_width("第３章，ＤＮＡ")
    '第3章，DNA'
    """
    return text.translate(_FULL_WIDTH)


def fold_marks(text: str) -> str:
    """Half-width marks beside Chinese as full-width ones; not inside numbers, Latin text and rows of dots.

    >>> fold_marks("大家好,圆周率是3.14,对吗?")
    '大家好，圆周率是3.14，对吗？'
    >>> fold_marks("我们用Python, C, 和Dr.王的方法...")
    '我们用Python, C， 和Dr.王的方法...'
    """
    chars = list(text)
    for match in _HALF_WIDTH_MARK.finditer(text):
        if _is_beside_chinese(text, match.start()):
            chars[match.start()] = _MARK_OF[match.group()]
    return "".join(chars)


def stray_spaces(text: str) -> frozenset[int]:
    """Positions of the spaces that say nothing: between Chinese characters, and beside full-width marks.

    A space between two whole clauses is kept: it stands for a comma (see ``punctuation``).

    >>> sorted(stray_spaces("大 家 好"))
    [1, 3]
    >>> stray_spaces("大家好 欢迎来到 Python 课")
    frozenset()
    """
    pieces = [(match.start(), match.end()) for match in _PIECE.finditer(text)]
    kept: set[int] = set()
    for (left_start, left_end), (right_start, right_end) in pairwise(pieces):
        if not text[left_end:right_start].isspace():
            continue
        is_inside_chinese = is_han(text[left_end - 1]) and is_han(text[right_start])
        if not is_inside_chinese or _are_clauses(left_end - left_start, right_end - right_start):
            kept.add(left_end)
    kept.update(match.end() for match in re.finditer(r"[A-Za-z0-9][,.?!:;]+(?=\s)", text))
    return frozenset(match.start() for match in re.finditer(r"\s", text) if match.start() not in kept)


def _are_clauses(left: int, right: int) -> bool:
    return min(left, right) >= CLAUSE_MIN_CHARACTERS and left + right >= CLAUSE_PAIR_MIN_CHARACTERS


def _is_beside_chinese(text: str, position: int) -> bool:
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    is_row_of_dots = text[position] == "." and "." in (before, after)
    if is_row_of_dots or (is_latin(before) and is_latin(after)):
        return False
    spoken_before = text[max(0, position - 4) : position].rstrip()[-1:]
    if is_han(spoken_before) or (spoken_before in CLOSERS and not spoken_before.isascii()):
        return True
    following = text[position + 1 : position + 8].lstrip()[:1]
    return is_han(following) and not (
        text[position] == "." and _keeps_its_period(text[max(0, position - 12) : position])
    )


def _keeps_its_period(before: str) -> bool:
    word = _WORD_BEFORE.search(before)
    return before[-1:].isdigit() or (word is not None and word.group().casefold() in ABBREVIATIONS)


def _without_spaces(texts: Sequence[str], stray: frozenset[int]) -> list[str]:
    if not stray:
        return list(texts)
    result, position = [], 0
    for text in texts:
        has_stray = any(position + offset in stray for offset in range(len(text)))
        kept = [char for offset, char in enumerate(text) if position + offset not in stray]
        result.append("".join(kept) if has_stray else text)
        position += len(text)
    return result


def chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts of words by sentence, or by ``CHUNK_WORDS``: what is converted together."""
    chunk: list[str] = []
    for text in texts:
        chunk.append(text)
        if len(chunk) >= CHUNK_WORDS or closing_mark(text) in ("。", "？", "！", "?", "!"):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


@lru_cache(maxsize=len(SCRIPTS))
def converter_of(script: str) -> opencc.OpenCC:
    """OpenCC's converter of that name, loaded once."""
    return opencc.OpenCC(script)
