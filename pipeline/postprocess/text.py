"""What the steps share about characters, marks and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pipeline.values import Word

STRONG_MARKS = frozenset("。？！；：?!;:…")
"""Marks that no glossary term reaches across. The half-width period is not here: it also stands in 3.14."""

MARKS = STRONG_MARKS | frozenset("，、,.—")

CLOSERS = frozenset("”’」』》）)]}\"'")
"""What may follow a mark and still belongs to the clause before it."""

_ABBREVIATED = "dr mr mrs ms prof st vs etc fig figs eq eqs sec ch no vol cf approx dept al inc"
ABBREVIATIONS = frozenset(_ABBREVIATED.split())
"""Lower case, without the period that follows them: such a period ends no sentence by itself."""

CHARACTER_LANGUAGES = frozenset({"zh", "yue", "ja"})
"""Languages written without spaces between words, whose sentences end in 。."""

HAN = r"[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
"""A regular expression for one Chinese character."""

_HAN = re.compile(HAN)


def is_han(char: str) -> bool:
    """Whether ``char`` is a Chinese character.

    >>> is_han("力"), is_han("，"), is_han("")
    (True, False, False)
    """
    return _HAN.match(char) is not None


def is_latin(char: str) -> bool:
    """Whether ``char`` is an ASCII letter or digit.

    >>> is_latin("a"), is_latin("3"), is_latin("力"), is_latin("")
    (True, True, False, False)
    """
    return char.isascii() and char.isalnum()


def closing_mark(text: str) -> str:
    """The mark that ends ``text``, looked for behind closing quotes and brackets; empty if there is none.

    >>> closing_mark("好。”"), closing_mark(" yes,"), closing_mark("好")
    ('。', ',', '')
    """
    if text[-1:].isalnum():
        return ""
    position = len(text)
    while position and (text[position - 1] in CLOSERS or text[position - 1].isspace()):
        position -= 1
    return text[position - 1] if position and text[position - 1] in MARKS else ""


def is_abbreviation(word: str) -> bool:
    """Whether the period at the end of ``word`` belongs to an abbreviation or an initial.

    >>> [is_abbreviation(word) for word in (" Dr.", " e.g.", " U.S.", " J.", " I.", " end.", " 3.14.", "...")]
    [True, True, True, True, False, False, False, True]
    """
    body = word.strip(" \"'“”‘’()[]")
    if not body.endswith("."):
        return False
    stem = body[:-1].casefold()
    is_dotted = "." in stem and not any(char.isdigit() for char in stem)
    is_initial = len(stem) == 1 and body[0].isupper() and stem != "i"
    return stem in ABBREVIATIONS or is_dotted or is_initial


def with_texts(words: Sequence[Word], texts: Sequence[str]) -> tuple[Word, ...]:
    """The words with new texts and their old times; a word without text is dropped.

    ``texts`` has one entry a word. Raises ``ValueError`` where the lengths differ.

    >>> [word.text for word in with_texts([Word("购", 0, 200, 0.9), Word("，", 200, 210, 0.4)], ["勾", ""])]
    ['勾']
    """
    return tuple(
        word if word.text == text else replace(word, text=text)
        for word, text in zip(words, texts, strict=True)
        if text.strip()
    )


def split_at(text: str, lengths: Sequence[int]) -> list[str]:
    """``text`` cut into pieces of these lengths.

    >>> split_at("勾股定理", [1, 3])
    ['勾', '股定理']
    """
    pieces, position = [], 0
    for length in lengths:
        pieces.append(text[position : position + length])
        position += length
    return pieces
