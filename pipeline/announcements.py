"""The messages that other systems write and read, in JSON: docs/contracts.md is their contract."""

from __future__ import annotations

import msgspec

from pipeline.message_checks import (
    SCHEMA_VERSION,
    Whole,
    check_audio_track,
    check_key,
    check_language,
    check_uri,
)
from pipeline.values import Priority


class MediaUploaded(msgspec.Struct, frozen=True):
    """Somebody put a media where ``uri`` says. Written by strangers; ``language`` auto is None here."""

    course_id: str
    uri: str
    media_id: str | None = None
    title: str | None = None
    language: str | None = None
    priority: Priority = Priority.NORMAL
    audio_track: int | None = None
    """Counted from 1."""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        if self.language == "auto":
            msgspec.structs.force_setattr(self, "language", None)
        check_key("course_id", self.course_id)
        check_uri("uri", self.uri)
        if self.media_id is not None:
            check_key("media_id", self.media_id)
        check_language("language", self.language)
        check_audio_track("audio_track", self.audio_track)


class TranscriptsCompleted(msgspec.Struct, frozen=True):
    """A media is done: the counts of what was made, and where the files are."""

    course_id: str
    media_id: str
    title: str
    language: str
    """The language of most of the speech; empty where there is none."""
    duration_ms: Whole
    speech_ms: Whole
    cues: Whole
    violations: Whole
    filtered_ms: Whole
    failed_ms: Whole
    files: tuple[str, ...]
    """The URIs of the subtitle files."""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        check_key("course_id", self.course_id)
        check_key("media_id", self.media_id)
