"""Chinese words as stretches of bare characters, each of which knows its place in the words.

A glossary term is looked for in the bare characters, so that a word's marks and borders do not hide it,
and is written back by place, so that each word keeps its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.postprocess.text import STRONG_MARKS, is_han, is_latin
from pipeline.values import Word

LONGEST_PAUSE_MS = 500
"""No term is heard across a pause in which a sentence may end."""
SPURIOUS_COMMA_MAX_PAUSE_MS = 250
SPURIOUS_COMMA_MIN_CHARACTERS = 3

Place = tuple[int, int]
"""The index of a word, the index of a character in its text."""


@dataclass(slots=True)
class Stretch:
    """A run of characters without a sentence mark or a long pause. Built once, then only read.

    ``breaks[k]`` holds the places of the marks and spaces between character ``k - 1`` and ``k``,
    ``gaps_ms[k]`` the pause there. ``break_texts[k]`` what is written there. ``text`` has one character a
    place.
    """

    text: str = ""
    places: list[Place] = field(default_factory=list)
    breaks: list[tuple[Place, ...]] = field(default_factory=list)
    break_texts: list[str] = field(default_factory=list)
    gaps_ms: list[int] = field(default_factory=list)

    def pieces(self) -> Iterator[tuple[int, str]]:
        """The parts between marks and spaces, each with the position where it begins."""
        borders = [index for index, row in enumerate(self.breaks) if row and index]
        for start, end in zip([0, *borders], [*borders, len(self.text)], strict=True):
            yield start, self.text[start:end]


def stretches(words: Sequence[Word]) -> Iterator[Stretch]:
    """The stretches of ``words``, in order.

    >>> words = [Word("勾", 0, 90, 1), Word("股，", 90, 200, 1), Word("定。", 200, 300, 1)]
    >>> [stretch.text for stretch in stretches(words)]
    ['勾股定']
    """
    builder = _Builder()
    for index, word in enumerate(words):
        if index and word.start_ms - words[index - 1].end_ms >= LONGEST_PAUSE_MS:
            yield from builder.close()
        for offset, char in enumerate(word.text):
            if char.isalpha() or is_latin(char) or is_han(char):
                builder.add(char, (index, offset), words)
            elif char in STRONG_MARKS:
                yield from builder.close()
            else:
                builder.pending.append((index, offset))
    yield from builder.close()


def allows_breaks(stretch: Stretch, start: int, end: int, rule: str) -> bool:
    """Whether characters ``start`` to ``end`` can be one term by ``rule``.

    A space may stand inside a term, a hyphen beside Latin letters; a comma only in a longer term of exactly its
    sound, spoken without a pause.
    """
    for at in range(start + 1, end):
        marks = stretch.break_texts[at]
        if marks and rule in ("one-syllable", "near-homophone"):
            return False
        is_latin_border = is_latin(stretch.text[at - 1]) or is_latin(stretch.text[at])
        if marks in ("", " ") or (is_latin_border and not marks.strip(" -")):
            continue
        is_short = end - start < SPURIOUS_COMMA_MIN_CHARACTERS
        is_pause = stretch.gaps_ms[at] >= SPURIOUS_COMMA_MAX_PAUSE_MS
        if rule != "homophone" or is_short or is_pause or marks.strip() != "，":
            return False
    return True


@dataclass(slots=True)
class _Builder:
    chars: list[str] = field(default_factory=list)
    stretch: Stretch = field(default_factory=Stretch)
    pending: list[Place] = field(default_factory=list)

    def add(self, char: str, place: Place, words: Sequence[Word]) -> None:
        before = self.stretch.places[-1][0] if self.chars else place[0]
        self.stretch.gaps_ms.append(words[place[0]].start_ms - words[before].end_ms if before != place[0] else 0)
        self.stretch.breaks.append(tuple(self.pending))
        self.stretch.break_texts.append("".join([words[word].text[offset] for word, offset in self.pending]))
        self.stretch.places.append(place)
        self.chars.append(char)
        self.pending = []

    def close(self) -> Iterator[Stretch]:
        if self.chars:
            self.stretch.text = "".join(self.chars)
            yield self.stretch
        self.chars, self.stretch, self.pending = [], Stretch(), []
