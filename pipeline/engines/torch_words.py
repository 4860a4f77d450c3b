"""Tokens to words, by the rules of faster-whisper's tokenizer, in a tenth of its time.

The tokenizer decodes each token by itself, which takes longer than a GPU takes for all the rest.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
"""Languages whose words are split at each character, as in the tokenizer."""


class Splitter:
    """Splits texts of one model into words."""

    def __init__(self, tokenizer: Any, end: int) -> None:
        """``tokenizer`` is the model's, of the ``tokenizers`` package; text tokens lie below ``end``."""
        bytes_of = _bytes_of_letters()
        self._bytes = [_token_bytes(tokenizer.id_to_token(token), bytes_of) for token in range(end)]

    def text(self, tokens: Sequence[int]) -> str:
        return b"".join(self._bytes[token] for token in tokens).decode("utf-8", "replace")

    def words(self, tokens: Sequence[int], language: str) -> list[tuple[str, int]] | None:
        """The words, each with its number of tokens; None for a text that is no whole number of characters."""
        pieces = self._pieces(tokens)
        return pieces if pieces is None or language in _UNSPACED else _joined(pieces)

    def _pieces(self, tokens: Sequence[int]) -> list[tuple[str, int]] | None:
        """The shortest runs of tokens that are whole characters."""
        pieces: list[tuple[str, int]] = []
        waiting, count = b"", 0
        for token in tokens:
            waiting, count = waiting + self._bytes[token], count + 1
            try:
                pieces.append((waiting.decode(), count))
            except UnicodeDecodeError:
                continue
            waiting, count = b"", 0
        return None if waiting else pieces


def _joined(pieces: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Pieces to words: one begins at a space or a punctuation mark."""
    words: list[tuple[str, int]] = []
    for text, count in pieces:
        if not words or text.startswith(" ") or text.strip() in string.punctuation:
            words.append((text, count))
        else:
            before, counted = words[-1]
            words[-1] = (before + text, counted + count)
    return words


def _token_bytes(token: str | None, bytes_of: dict[str, int]) -> bytes:
    return bytes(bytes_of[letter] for letter in token) if token else b""


def _bytes_of_letters() -> dict[str, int]:
    """GPT-2's letters for bytes: printable ones stand for themselves, the others follow from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(0x100 + at): byte for at, byte in enumerate(others)}
