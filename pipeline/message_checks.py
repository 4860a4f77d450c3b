"""What the fields of a message may hold. Every check raises InvalidInputError in one line that names the field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, TypeAlias

import msgspec

from pipeline.errors import InvalidInputError
from pipeline.glossary_file import LANGUAGES
from pipeline.values import Priority

SCHEMA_VERSION = 1
MAX_KEY_CHARACTERS = 200
SHOWN = 40
"""So many characters of a wrong value are shown: errors travel in message headers."""
MAX_SLICE_MS = 30_000
MAX_WHOLE = 2**53 - 1
"""What every JSON reader holds exactly; PostgreSQL's bigint holds more."""

Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_WHOLE)]
"""Milliseconds, an index or a count."""
Spans: TypeAlias = tuple[tuple[Whole, Whole], ...]
"""Start and end of half-open stretches of the media clock, in milliseconds."""

HINTS: Mapping[str, str] = MappingProxyType(
    {
        "course_id": "a text of 1 to 200 characters",
        "uri": "where the media lies, e.g. file:///lectures/1.mp4",
        "media_id": "a text of 1 to 200 characters, or nothing",
        "title": "a text, or nothing",
        "language": "zh, en, another ISO 639-1 code, or auto",
        "priority": ", ".join(Priority),
        "audio_track": "a number, counted from 1, or nothing",
        "schema_version": "a number",
    }
)
"""What a field of ``media.uploaded`` may hold, told to those who wrote something else."""


def check_key(field: str, text: str) -> None:
    """An id: it becomes a message key, a database key, a part of names and log lines."""
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        raise InvalidInputError(f"{field}: has {len(text)} characters; give 1 to {MAX_KEY_CHARACTERS}")
    odd = [character for character in text if not character.isprintable()]
    if odd:
        raise InvalidInputError(f"{field}: holds {odd[0]!a}; give printable characters and plain spaces only")


def check_uri(field: str, uri: str) -> None:
    if not uri.strip():
        raise InvalidInputError(f"{field}: is empty; say {HINTS['uri']}")


def check_language(field: str, code: str | None) -> None:
    if code is not None and code not in LANGUAGES:
        raise InvalidInputError(f"{field}: {code[:SHOWN]!a} is no language that Whisper knows; use {HINTS['language']}")


def check_audio_track(field: str, number: int | None) -> None:
    if number is not None and not 1 <= number <= MAX_WHOLE:
        raise InvalidInputError(f"{field}: {number} is no audio track; count from 1")


def check_forward(field: str, spans: Iterable[tuple[int, int]]) -> None:
    for start_ms, end_ms in spans:
        if not 0 <= start_ms <= end_ms <= MAX_WHOLE:
            raise InvalidInputError(f"{field}: {start_ms}..{end_ms} ms does not run forward from 0 ms or later")


def check_slice(start_ms: int, end_ms: int, speech: Iterable[tuple[int, int]]) -> None:
    """At most 30 s, and the speech inside."""
    check_forward("start_ms, end_ms", [(start_ms, end_ms)])
    if end_ms - start_ms > MAX_SLICE_MS:
        raise InvalidInputError(f"end_ms: the slice takes {end_ms - start_ms} ms; {MAX_SLICE_MS} ms is the longest")
    check_forward("speech", speech)
    for first_ms, last_ms in speech:
        if not start_ms <= first_ms <= last_ms <= end_ms:
            raise InvalidInputError(f"speech: {first_ms}..{last_ms} ms lies outside {start_ms}..{end_ms} ms, the slice")
