"""How a course wants its subtitles: the rules of its cues, its script, its numbers, its fillers; as data.

Three come with the project (``BUILT_IN``); a school's own is a TOML file::

    base = "netflix"         # whose values hold where this file says nothing
    script = "s2twp"         # see pipeline.postprocess.script.SCRIPTS
    numbers = true           # spoken numbers in digits
    fillers = "clean"        # or "verbatim"

    [wide]                   # cues in Chinese, Japanese, Korean
    max_units_per_line = 18

    [narrow]                 # cues in all other languages
    max_units_per_second = 17
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from pipeline.cue_profiles import BBC_EN, BBC_ZH, EN, ZH_HANS, ZH_HANT, CueProfile, is_wide_language
from pipeline.errors import UsageError
from pipeline.identity import digest
from pipeline.postprocess import PostprocessOptions

MOST_UNITS_PER_LINE, MOST_UNITS_PER_SECOND, MOST_MS = 200, 100, 60_000
"""Beyond these a number is a slip of the pen."""


@dataclass(frozen=True, slots=True)
class SubtitleProfile:
    """What the subtitles of a course are made by."""

    name: str
    wide: CueProfile
    """For languages in full-width characters."""
    narrow: CueProfile
    """For all others."""
    script: str = "t2s"
    numbers: bool = True
    fillers: str = "verbatim"

    def cues_for(self, language: str) -> CueProfile:
        """The rules for the cues in a language (ISO 639 code or BCP 47 tag)."""
        return self.wide if is_wide_language(language) else self.narrow

    @property
    def postprocess(self) -> PostprocessOptions:
        """Raises UsageError where the script or the fillers are unknown."""
        return PostprocessOptions(script=self.script, numbers=self.numbers, fillers=self.fillers)

    @property
    def fingerprint(self) -> str:
        """Changes with everything that cues depend on (the text's part is ``postprocess``'s); empty for Netflix's."""
        return "" if (self.wide, self.narrow) == (ZH_HANS, EN) else digest(self.wide, self.narrow)


NETFLIX = SubtitleProfile("netflix", ZH_HANS, EN)
BUILT_IN = {
    profile.name: profile
    for profile in (
        NETFLIX,
        SubtitleProfile("netflix-zh-hant", ZH_HANT, EN, script="s2twp"),
        SubtitleProfile("bbc", BBC_ZH, BBC_EN),
    )
}


class _Cues(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    max_units_per_line: int | None = None
    max_units_per_second: int | None = None
    max_lines: int | None = None
    min_duration_ms: int | None = None
    max_duration_ms: int | None = None
    min_gap_ms: int | None = None
    closing_gap_ms: int | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    base: str = NETFLIX.name
    script: str | None = None
    numbers: bool | None = None
    fillers: str | None = None
    wide: _Cues = _Cues()
    narrow: _Cues = _Cues()


def profile_named(name: str) -> SubtitleProfile:
    """One that comes with the project. Raises UsageError where there is none of that name."""
    if name not in BUILT_IN:
        raise UsageError(f"there is no subtitle profile {name!r}; choose {', '.join(BUILT_IN)}, or name a .toml file")
    return BUILT_IN[name]


def profile_from_toml(text: str, name: str) -> SubtitleProfile:
    """The profile that a file describes; ``name`` is the file's, for messages. Raises UsageError, in one line."""
    try:
        given = msgspec.convert(tomllib.loads(text), _File)
        base = profile_named(given.base)
        profile = replace(
            base,
            name=name,
            wide=_changed(base.wide, given.wide, "wide"),
            narrow=_changed(base.narrow, given.narrow, "narrow"),
            **_given({"script": given.script, "numbers": given.numbers, "fillers": given.fillers}),
        )
        _ = profile.postprocess
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from error
    except UsageError as error:
        raise UsageError(f"{name}: {error.reason}") from error
    return profile


def _changed(base: CueProfile, given: _Cues, table: str) -> CueProfile:
    values = _given({field: getattr(given, field) for field in given.__struct_fields__})
    for field, value in values.items():
        most = _most(field)
        if not 1 <= value <= most:
            raise ValueError(f"[{table}] {field} must be from 1 to {most}, not {value}")
    try:
        return replace(base, **values)
    except ValueError as error:
        raise ValueError(f"[{table}] {error}") from error


def _most(field: str) -> int:
    by_field = {
        "max_units_per_line": MOST_UNITS_PER_LINE,
        "max_units_per_second": MOST_UNITS_PER_SECOND,
        "max_lines": 2,
    }
    return by_field.get(field, MOST_MS)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def profile_to_json(profile: SubtitleProfile) -> str:
    """As it is kept with its course; ``profile_from_json`` gives the same back."""
    return msgspec.json.encode(profile).decode()


def profile_from_json(raw: str) -> SubtitleProfile:
    return msgspec.json.decode(raw, type=SubtitleProfile)
