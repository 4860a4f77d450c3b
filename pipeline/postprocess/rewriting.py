"""Changes to the text of a run that keep the times of its words.

A step finds what to change in the joined text of the words, by character; here the words take the changes up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from pipeline.values import Replacement, Word


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The characters ``[start, end)`` of a joined text become ``text``, by the rule of that name."""

    start: int
    end: int
    text: str
    rule: str


def joined(words: Sequence[Word]) -> str:
    """The text in which an edit's characters are counted."""
    return "".join(word.text for word in words)


def without_overlaps(edits: Sequence[Edit]) -> list[Edit]:
    """The edits in order; of two that overlap, the one that begins first (of those, the longer)."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def rewrite(words: Sequence[Word], edits: Sequence[Edit]) -> tuple[tuple[Word, ...], tuple[Replacement, ...]]:
    """The words with the edits made, which must not overlap, and what was replaced, on the media clock.

    Words that share an edit become one, from the start of the first to the end of the last, with the mean of
    their probabilities and what was heard after the last. A word that loses all its text goes, with its time.

    >>> words = (Word("共", 0, 90, 0.9), Word("十", 90, 200, 0.9), Word("三。", 200, 300, 0.7))
    >>> changed, (replacement,) = rewrite(words, [Edit(1, 3, "13", "number")])
    >>> [(word.text, word.start_ms, word.end_ms, word.probability) for word in changed]
    [('共', 0, 90, 0.9), ('13。', 90, 300, 0.8)]
    >>> replacement.before, replacement.after
    ('十三', '13')
    """
    if not edits:
        return tuple(words), ()
    ends = list(accumulate(len(word.text) for word in words))
    changed: list[Word] = []
    replacements: list[Replacement] = []
    done = 0
    for first, last, group in _groups(sorted(edits), ends):
        changed.extend(words[done:first])
        touched = words[first : last + 1]
        offset = ends[first] - len(words[first].text)
        text = joined(touched)
        merged = _merged(touched, _edited(text, offset, group))
        changed.extend([merged] if merged.text.strip() else [])
        replacements.extend(_replacement(words, ends, text, offset, edit) for edit in group)
        done = last + 1
    changed.extend(words[done:])
    return tuple(changed), tuple(replacements)


def _groups(edits: Sequence[Edit], ends: Sequence[int]) -> Iterator[tuple[int, int, list[Edit]]]:
    """Ranges of words (the last one included) with the edits that touch them; no two ranges share a word."""
    group: list[Edit] = []
    first = last = -1
    for edit in edits:
        begin, end = bisect_right(ends, edit.start), bisect_right(ends, edit.end - 1)
        if group and begin > last:
            yield first, last, group
            group = []
        if not group:
            first = begin
        last = end
        group.append(edit)
    yield first, last, group


def _edited(text: str, offset: int, edits: Sequence[Edit]) -> str:
    borders = [0, *(place - offset for edit in edits for place in (edit.start, edit.end)), len(text)]
    kept = [text[start:end] for start, end in list(pairwise(borders))[::2]]
    return "".join(part + new for part, new in zip(kept, [*(edit.text for edit in edits), ""], strict=True))


def _merged(words: Sequence[Word], text: str) -> Word:
    probability = sum(word.probability for word in words) / len(words)
    return replace(words[-1], text=text, start_ms=words[0].start_ms, probability=round(probability, 6))


def _replacement(words: Sequence[Word], ends: Sequence[int], text: str, offset: int, edit: Edit) -> Replacement:
    begin, end = bisect_right(ends, edit.start), bisect_right(ends, edit.end - 1)
    before = text[edit.start - offset : edit.end - offset]
    return Replacement(words[begin].start_ms, words[end].end_ms, before.strip(), edit.text.strip(), edit.rule)
