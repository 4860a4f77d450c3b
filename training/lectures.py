"""Lectures made up from sentence patterns of our own (``patterns.*.txt``): the tone that written prose lacks."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

Patterns = dict[str, list[str]]
"""The lines of a patterns file by section."""

SLOTS = {"T": "terms", "N": "numbers", "P": "people", "NAME": "names", "C": "courses"}
RUN_TOGETHER = 0.1
"""So many sentences of spoken Chinese are written with a comma before the next one."""
LOOSE = 0.6
"""So often the comma after a connective is left out."""

_SLOT = re.compile(r"\{([A-Z]+)\}")
_CONNECTIVES = (
    "那么|最后|其实|接下来|首先|其次|然后|所以|因此|同时|例如|比如|现在|今天|不过|但是|另外|好|对|很好|老师|注意|当然"
)
_CONNECTIVE = re.compile(f"(?<![^。？！])({_CONNECTIVES})，")
_OPENING = re.compile("接下来|接着|下面|那么|好|首先|最后|请|现在|为什么|什么|怎")


def read_patterns(language: str) -> Patterns:
    """The sections of ``patterns.<language>.txt``."""
    patterns: Patterns = {}
    for line in (Path(__file__).parent / f"patterns.{language}.txt").read_text("utf-8").splitlines():
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
        lines = [_filled(line, patterns, chance) for line in _lines(patterns, chance)]
        paragraphs.append(_as_spoken(lines, chance) if language == "zh" else " ".join(lines))
        total += len(paragraphs[-1])
    return paragraphs


def _lines(patterns: Patterns, chance: random.Random) -> list[str]:
    is_lesson = chance.random() < 0.3
    pool = patterns["body"] + patterns["dialogue"] * 3 if is_lesson else patterns["body"]
    middle = chance.choices(pool, k=chance.randint(8, 24))
    closings = chance.sample(patterns["closings"], chance.randint(0, 3))
    return [chance.choice(patterns["openings"]), *middle, *closings]


def _filled(line: str, patterns: Patterns, chance: random.Random) -> str:
    filled = _SLOT.sub(lambda slot: chance.choice(patterns[SLOTS[slot.group(1)]]), line)
    return filled[0].upper() + filled[1:]


def _as_spoken(lines: list[str], chance: random.Random) -> str:
    """As freely punctuated as lectures are: connectives without a comma, sentences joined by one."""
    loose = [_CONNECTIVE.sub(lambda found: found[1] if chance.random() < LOOSE else found[0], line) for line in lines]
    joined = [_joined(line, following, chance) for line, following in pairwise(loose)]
    return "".join([*joined, loose[-1]])


def _joined(line: str, following: str, chance: random.Random) -> str:
    is_joined = line[-1] == "。" and not _OPENING.match(following) and chance.random() < RUN_TOGETHER
    return line[:-1] + "，" if is_joined else line
