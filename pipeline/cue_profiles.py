"""What a readable subtitle is, as data: one profile per writing system, and how its text is measured.

The numbers are those of the Netflix Timed Text Style Guides (General Requirements; English; Simplified
Chinese): at most two lines, 5/6 s to 7 s a cue, two frames between cues; 42 characters a line and 20 a
second in English, 16 and 9 in Chinese, where a half-width character takes half the room of a full-width one.
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
    """Two frames at 24 frames a second."""

    def __post_init__(self) -> None:
        if self.max_lines not in (1, 2):
            raise ValueError(f"a cue has one line or two, not {self.max_lines}")
        if self.max_units_per_line < 1 or self.max_units_per_second < 1:
            raise ValueError("a cue profile needs room for one unit in a line and in a second")


ZH = CueProfile(name="zh", max_units_per_line=16, max_units_per_second=9, is_wide=True)
EN = CueProfile(name="en", max_units_per_line=42, max_units_per_second=20, is_wide=False)


def profile_for(language: str) -> CueProfile:
    """Return the profile of an ISO 639 code or BCP 47 tag, in any case; unknown ones get English's.

    >>> profile_for("zh-CN").name, profile_for("ja").name, profile_for("de").name, profile_for("").name
    ('zh', 'zh', 'en', 'en')
    """
    return ZH if base_language(language) in WIDE_LANGUAGES else EN


def base_language(language: str) -> str:
    """Return the language part of a tag, in lower case.

    >>> base_language("zh_Hant-TW")
    'zh'
    """
    return language.replace("_", "-").partition("-")[0].strip().lower()


def half_units(text: str, profile: CueProfile) -> int:
    """Measure one line of text in halves of a unit (so that it stays an integer).

    >>> half_units("我用 Go", ZH), half_units("Go on", EN)
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

    >>> reading_ms(36, ZH)
    2000
    """
    return max(profile.min_duration_ms, -(-halves * 500 // profile.max_units_per_second))
