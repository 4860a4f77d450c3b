"""The values of the benchmark. All frozen; times are integer milliseconds on the media clock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Timed:
    """A piece of text with its time: a cue (lines parted by ``\\n``), segment, word, sentence."""

    text: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Item:
    """One file with its reference."""

    name: str
    path: Path
    language: str
    """``zh`` or ``en``; every system is told it."""
    duration_ms: int
    text: str
    is_punctuated: bool
    """False where the reference has no marks to compare with (read-speech corpora)."""
    sentences: tuple[Timed, ...] = ()
    """Reference sentences with times; empty where only the text is known."""
    glossary: Path | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a worker is asked to do. ``with_words`` asks for word times where they cost extra."""

    path: str
    language: str
    glossary: str | None
    with_words: bool


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a system heard: what a viewer would see (cues or segments), and words where it has them."""

    cues: tuple[Timed, ...]
    words: tuple[Timed, ...]
    """``"".join`` of their texts is the whole text; empty where the system was not asked for words."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A worker's answer: the result, the seconds it took, and the peak memory of its process so far.

    ``problem`` is the one line that says why there is no result; then all else is empty.
    """

    hypothesis: Hypothesis
    seconds: float
    peak_bytes: int
    problem: str = ""
