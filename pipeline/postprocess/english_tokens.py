"""English words in parts: what is attached to a word, and its bare letters."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PARTS = re.compile(r"^(\W*)(.*?)(['’]s)?(\W*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A word in parts: what is attached before it, its letters folded, what is attached behind it."""

    before: str
    text: str
    letters: str
    after: str


def split_token(text: str) -> Token:
    """A word in parts; a possessive ending belongs to what is attached.

    >>> split_token(' "Gauss\\'s,')
    Token(before=' "', text='Gauss', letters='gauss', after="'s,")
    """
    match = _PARTS.match(text)
    before, body, possessive, after = match.groups() if match else ("", text, "", "")
    return Token(before, body, fold_letters(body), (possessive or "") + after)


def fold_letters(text: str) -> str:
    """Letters and digits only, lower case.

    >>> fold_letters("Gram-Schmidt")
    'gramschmidt'
    """
    return "".join(char for char in text.casefold() if char.isalnum())
