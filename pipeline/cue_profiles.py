"""What a readable subtitle is, as data: one profile per writing system and rule book, and how text is measured.

Netflix Timed Text Style Guides (General Requirements; English; Simplified Chinese; Traditional Chinese): at most two
lines, 5/6 s to 7 s a cue, two frames between cues, gaps below half a second closed to that; 42 characters a line and
20 a second in English, 16 and 9 in Chinese, where a half-width character takes half the room of a full-width one.

BBC Subtitle Guidelines: at most two lines of 37 characters, 160 to 180 words a minute (17 characters a second at the
5.7 of an English word and its space), at least a second on screen; a gap is a second or longer, or none.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

WIDE_LANGUAGES = frozenset({"zh", "cmn", "zho", "chi", "yue", "wuu", "nan", "ja", "jpn", "ko", "kor"})
"""Languages written in full-width characters; all others are measured as English is."""


@dataclass(frozen=True, slots=True)
class CueProfile:
    """The limits that every cue of one writing system keeps. Durations in milliseconds, lengths in units."""

    name: str
    max_units_per_line: int
    max_units_per_second: int
    is_wide: bool
    """True: a full-width character is one unit and a half-width one half. False: each character is one."""
    max_lines: int = 2
    min_duration_ms: int = 833
    max_duration_ms: int = 7000
    min_gap_ms: int = 83
    """Two frames at 24 frames a second. Every two cues keep it, also where a gap is closed."""
    closing_gap_ms: int = 500
    """Gaps below it are closed to ``min_gap_ms``; with ``min_gap_ms`` itself, every gap is kept."""

    def __post_init__(self) -> None:
        if self.max_lines not in (1, 2):
            raise ValueError(f"a cue has one line or two, not {self.max_lines}")
        if self.max_units_per_line < 1 or self.max_units_per_second < 1:
            raise ValueError("a cue profile needs room for one unit in a line and in a second")
        if not 0 < self.min_duration_ms <= self.max_duration_ms:
            raise ValueError("min_duration_ms must be above 0 and at most max_duration_ms")
        if not 1 <= self.min_gap_ms <= self.closing_gap_ms:
            raise ValueError("min_gap_ms must be at least 1 and at most closing_gap_ms")


ZH_HANS = CueProfile("netflix-zh-hans", max_units_per_line=16, max_units_per_second=9, is_wide=True)
ZH_HANT = CueProfile("netflix-zh-hant", max_units_per_line=16, max_units_per_second=9, is_wide=True)
EN = CueProfile("netflix-en", max_units_per_line=42, max_units_per_second=20, is_wide=False)
_BBC = {"min_duration_ms": 1000, "max_duration_ms": 8000, "min_gap_ms": 40, "closing_gap_ms": 1000}
"""One frame at 25 frames a second; the BBC sets no longest duration, 8 s are ours."""
BBC_EN = CueProfile("bbc-en", max_units_per_line=37, max_units_per_second=17, is_wide=False, **_BBC)
BBC_ZH = CueProfile("bbc-zh", max_units_per_line=16, max_units_per_second=9, is_wide=True, **_BBC)
"""The BBC has no rules for Chinese: its timing, and the room that Chinese needs elsewhere."""


def profile_for(language: str) -> CueProfile:
    """Netflix's profile of an ISO 639 code or BCP 47 tag, in any case; unknown ones get English's.

    >>> [profile_for(language).name for language in ("zh-CN", "ja", "de", "")]
    ['netflix-zh-hans', 'netflix-zh-hans', 'netflix-en', 'netflix-en']
    """
    return ZH_HANS if is_wide_language(language) else EN


def is_wide_language(language: str) -> bool:
    """Whether a language (ISO 639 code or BCP 47 tag) is written in full-width characters.

    >>> is_wide_language("zh_Hant-TW"), is_wide_language("en")
    (True, False)
    """
    return base_language(language) in WIDE_LANGUAGES


def base_language(language: str) -> str:
    """Return the language part of a tag, in lower case.

    >>> base_language("zh_Hant-TW")
    'zh'
    """
    return language.replace("_", "-").partition("-")[0].strip().lower()


def half_units(text: str, profile: CueProfile) -> int:
    """Measure one line of text in halves of a unit (so that it stays an integer).

    >>> half_units("我用 Go", ZH_HANS), half_units("Go on", EN)
    (7, 10)
    """
    if not profile.is_wide:
        return 2 * len(text)
    return sum(map(_half_units_of, text))


@cache
def _half_units_of(character: str) -> int:
    # "Ambiguous" covers “ ” … — ·, which Chinese fonts draw full-width.
    return 2 if unicodedata.east_asian_width(character) in "WFA" else 1


def reading_ms(halves: int, profile: CueProfile) -> int:
    """Return the least time, in milliseconds, in which so much text (in half units) may be shown.

    >>> reading_ms(36, ZH_HANS)
    2000
    """
    return max(profile.min_duration_ms, -(-halves * 500 // profile.max_units_per_second))
