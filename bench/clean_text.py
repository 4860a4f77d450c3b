"""Chinese text without errors, under a free licence, to count false replacements on; downloaded, never committed.

Both are prose on the subjects of glossaries in ``bench.fields``, which is where a replacement is likeliest to be false.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from pipeline.errors import RetriableError
from pipeline.postprocess.text import HAN
from pipeline.values import Word

CHARACTER_MS = 200
"""A lecturer says about five characters a second."""
COMMA_MS, LINE_MS = 250, 700
MIN_HAN = 8
"""A line with less Chinese is a heading, a formula or code."""
LECTURE_CHARACTERS = 3_000
"""Ten minutes of speech: what is corrected at once."""

_MARKS = frozenset("，。、！？；：“”（）《》「」,.!?;:()…—·")
_CODE = re.compile(r"```.*?```|\$\$.*?\$\$", re.DOTALL)
_INLINE = re.compile(r"`[^`]*`|\$[^$]*\$|<[^>]*>|!\[[^\]]*\]\([^)]*\)|:\w+:|\*\*")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_BULLET = re.compile(r"^[#>*\-+|=: 0-9.]+", re.MULTILINE)
_HAN = re.compile(HAN)


@dataclass(frozen=True, slots=True)
class Source:
    """A public repository of prose: its licence, and where its text lies."""

    name: str
    url: str
    licence: str
    folder: str = ""


SOURCES = {
    "machine learning": Source("d2l-zh", "https://github.com/d2l-ai/d2l-zh", "CC BY-SA 4.0"),
    "algorithms": Source("oi-wiki", "https://github.com/OI-wiki/OI-wiki", "CC BY-SA 4.0", "docs"),
}
"""By field."""


def fetch(source: Source, url: str = "") -> Path:
    """The folder of the source's text, cloned into the user's cache where it is not there yet; ``url`` is another copy.

    Raises RetriableError where it cannot be had.
    """
    target = user_cache_path("lecturemill") / "texts" / source.name
    if not target.is_dir():
        command = ["git", "clone", "--quiet", "--depth", "1", url or source.url, str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise RetriableError(f"{source.url}: cannot be cloned ({' '.join(said.split())})") from error
    return target / source.folder


def lectures(folder: Path, most_characters: int) -> Iterator[str]:
    """The prose of a folder's Markdown and text files in pieces of about ten minutes of speech."""
    piece, total = "", 0
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".md", ".txt")):
        for line in prose(path.read_text("utf-8", errors="ignore")):
            piece += line + "\n"
            total += len(line)
            if len(piece) >= LECTURE_CHARACTERS:
                yield piece
                piece = ""
            if total >= most_characters:
                return
    if piece:
        yield piece


def prose(markdown: str) -> Iterator[str]:
    """The lines of running Chinese text, in simplified characters.

    >>> list(prose("# 标题\\n`x` 是一个實數，它的平方不小於零。"))
    ['是一个实数，它的平方不小于零。']
    """
    plain = _LINK.sub(r"\1", _INLINE.sub("", _CODE.sub("", markdown)))
    for line in _BULLET.sub("", plain).splitlines():
        if len(_HAN.findall(line)) >= MIN_HAN:
            yield str(_to_simplified().convert(line.strip()))


def spoken(text: str) -> tuple[Word, ...]:
    """``text`` as if it were spoken: a word a character, marks attached, a pause at commas and line ends."""
    words: list[Word] = []
    now_ms = 0
    for char in text:
        if char in _MARKS or char.isspace():
            if words and char != "\n":
                last = words[-1]
                words[-1] = Word(last.text + char, last.start_ms, last.end_ms, last.probability)
            now_ms += LINE_MS if char == "\n" else COMMA_MS if char in "，。！？；" else 0
        else:
            words.append(Word(char, now_ms, now_ms + CHARACTER_MS, 1.0))
            now_ms += CHARACTER_MS
    return tuple(words)


@cache
def _to_simplified() -> Any:
    import opencc

    return opencc.OpenCC("t2s")
