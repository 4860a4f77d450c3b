"""What somebody asks of the subtitles on a command line, made a profile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.subtitle_profiles import BUILT_IN, SubtitleProfile, profile_from_toml, profile_named

LARGEST_FILE_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Wishes:
    """None leaves a thing as it is."""

    profile: str | None = None
    """The name of one that comes with the project, or a TOML file."""
    script: str | None = None
    fillers: str | None = None


def profile_of(wishes: Wishes, present: SubtitleProfile) -> SubtitleProfile:
    """``present`` with the wishes granted. Raises UsageError where one cannot be."""
    profile = read_profile(wishes.profile) if wishes.profile is not None else present
    if wishes.script is not None:
        profile = replace(profile, script=wishes.script)
    if wishes.fillers is not None:
        profile = replace(profile, fillers=wishes.fillers)
    _ = profile.postprocess  # says what is wrong with either
    return profile


def read_profile(asked: str) -> SubtitleProfile:
    """By its name, or from a file. Raises UsageError, in one line, where there is neither or the file is bad."""
    path = Path(asked)
    try:
        if asked in BUILT_IN or not (path.suffix.lower() == ".toml" or path.is_file()):
            return profile_named(asked)
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise UsageError(f"{path}: a subtitle profile is a short TOML file")
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is no text in UTF-8") from error
    return profile_from_toml(text, path.name)
