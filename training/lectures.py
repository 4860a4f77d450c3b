"""The tone that written prose lacks: scripts of lectures that we wrote (``scripts.*.txt``), and lectures made up from
sentence patterns of our own (``patterns.*.txt``) and from pieces of lessons that we wrote (``lessons.*.txt``).
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

Patterns = dict[str, list[str]]
"""The lines of a patterns file by section."""

SLOTS = {"T": "terms", "N": "numbers", "P": "people", "NAME": "names", "C": "courses"}
RUN_TOGETHER = 0.1
"""So many sentences of spoken Chinese are written with a comma before the next one."""
EXCERPTS = 0.6
"""So many lectures hold a piece of a lesson."""
EXCERPT_SENTENCES = 10
HELD_OUT_EVERY = 20
"""Of the scripts one in so many is not learnt from."""

_SLOT = re.compile(r"\{([A-Z]+)\}")
LOOSE = {
    "最后|接下来|今天|下面": 0.7,
    "那么|接着|首先|其次|然后|现在|所以": 0.4,
    "其实|因此|同时|不过|但是|可是|另外|当然": 0.2,
}
"""How often the comma after a connective is left out."""
_CONNECTIVES = {re.compile(f"(?<![^。？！])({words})，"): share for words, share in LOOSE.items()}
_SENTENCE = {"zh": re.compile("[^。？！]+[。？！]"), "en": re.compile(r".+?[.?!](?=\s|$)")}
_OPENING = re.compile("接下来|接着|下面|那么|好|首先|最后|请|现在|为什么|什么|怎")


def read_patterns(language: str) -> Patterns:
    """The sections of ``patterns.<language>.txt``, and the lessons."""
    patterns: Patterns = {"lessons": _lines_of(f"lessons.{language}.txt")}
    for line in _lines_of(f"patterns.{language}.txt"):
        if line.startswith("["):
            lines = patterns.setdefault(line.strip("[]"), [])
        else:
            lines.append(line)
    return patterns


def made_up(language: str, characters: int, seed: int) -> list[str]:
    """Whole lectures and lessons in dialogue, a paragraph each, until there are so many characters."""
    patterns, chance = read_patterns(language), random.Random(seed)
    paragraphs: list[str] = []
    total = 0
    while total < characters:
        lines = [_filled(line, patterns, chance) for line in _lines(patterns, language, chance)]
        paragraphs.append(_as_spoken(lines, chance) if language == "zh" else " ".join(lines))
        total += len(paragraphs[-1])
    return paragraphs


def scripts(language: str, *, is_held_out: bool) -> list[str]:
    """Whole scripts, a paragraph each: those that are learnt from, or the others."""
    lines = _lines_of(f"scripts.{language}.txt")
    return [line for at, line in enumerate(lines) if (at % HELD_OUT_EVERY == 0) is is_held_out]


def _lines_of(name: str) -> list[str]:
    return (Path(__file__).parent / name).read_text("utf-8").splitlines()


def _lines(patterns: Patterns, language: str, chance: random.Random) -> list[str]:
    is_lesson = chance.random() < 0.3
    pool = patterns["body"] + patterns["dialogue"] * 3 if is_lesson else patterns["body"]
    middle = chance.choices(pool, k=chance.randint(8, 24))
    at = chance.randint(0, len(middle))
    if chance.random() < EXCERPTS:
        middle[at:at] = _excerpt(patterns["lessons"], language, chance)
    closings = chance.sample(patterns["closings"], chance.randint(0, 3))
    return [chance.choice(patterns["openings"]), *middle, *closings]


def _excerpt(lessons: Sequence[str], language: str, chance: random.Random) -> list[str]:
    sentences = [one.strip() for one in _SENTENCE[language].findall(chance.choice(lessons))]
    first = chance.randrange(len(sentences))
    return sentences[first : first + chance.randint(2, EXCERPT_SENTENCES)]


def _filled(line: str, patterns: Patterns, chance: random.Random) -> str:
    filled = _SLOT.sub(lambda slot: chance.choice(patterns[SLOTS[slot.group(1)]]), line)
    return filled[0].upper() + filled[1:]


def _as_spoken(lines: list[str], chance: random.Random) -> str:
    """As freely punctuated as lectures are: connectives without a comma, sentences joined by one."""
    loose = [_loosened(line, chance) for line in lines]
    joined = [_joined(line, following, chance) for line, following in pairwise(loose)]
    return "".join([*joined, loose[-1]])


def _loosened(line: str, chance: random.Random) -> str:
    for connective, share in _CONNECTIVES.items():
        if chance.random() < share:
            line = connective.sub(r"\1", line)
    return line


def _joined(line: str, following: str, chance: random.Random) -> str:
    is_joined = line[-1] == "。" and not _OPENING.match(following) and chance.random() < RUN_TOGETHER
    return line[:-1] + "，" if is_joined else line
