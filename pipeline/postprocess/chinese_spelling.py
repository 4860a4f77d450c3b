"""Where a stretch of Chinese holds a term or an alias as it is spelled, whatever its case, spaces and width."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.postprocess.chinese_claims import Hit
from pipeline.postprocess.chinese_index import ChineseIndex
from pipeline.postprocess.stretches import Stretch, allows_breaks
from pipeline.postprocess.text import is_han, is_latin


def spelled(stretch: Stretch, index: ChineseIndex) -> Iterator[Hit]:
    """The terms and aliases that are written in ``stretch``; they may overlap."""
    text = stretch.text.lower()
    for start, char in enumerate(text):
        for length in index.lengths.get(char, ()):
            spelling = index.spellings.get(text[start : start + length])
            if spelling is None or start + length > len(text) or _cuts_latin(stretch, start, start + length):
                continue
            rule = spelling.rule or _own_rule(stretch, start, start + length, spelling.letters)
            if allows_breaks(stretch, start, start + length, rule):
                yield Hit(start, start + length, spelling.letters, rule)


def _own_rule(stretch: Stretch, start: int, end: int, term: str) -> str:
    letters = "".join(char for char in term if char.isalnum())
    if letters != stretch.text[start:end]:
        return "case"
    is_broken = is_han(letters[0]) and any(stretch.breaks[start + 1 : end])
    return "homophone" if is_broken else ""


def _cuts_latin(stretch: Stretch, start: int, end: int) -> bool:
    """Whether a Latin word goes on before or after: ``Java`` is no hit in ``JavaScript``."""
    return any(
        0 < border < len(stretch.text)
        and not stretch.breaks[border]
        and is_latin(stretch.text[border - 1])
        and is_latin(stretch.text[border])
        for border in (start, end)
    )
