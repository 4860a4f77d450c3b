"""Which media of a course are to be taken down the line (again), and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pipeline.admission import media_of
from pipeline.announcements import MediaUploaded
from pipeline.cli_run import looks_like_media
from pipeline.media_store import find
from pipeline.publisher import Present
from pipeline.store_line import Asked
from pipeline.values import Media, Priority


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What was asked for."""

    course_id: str
    source: str
    """The URI of a folder; empty where ``uris`` or, without those too, the course's known media are meant."""
    uris: tuple[str, ...]
    language: str | None
    """For media that are not known yet, like the audio track."""
    audio_track: int | None
    priority: Priority
    forced_version: str
    """Tells the runs of a forced backfill from all others; empty where it is not forced."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with one media."""

    media: Media
    asked: Asked
    is_started: bool
    version: str
    """Of its run's id; empty for the first run of a media."""
    why: str


def candidates(request: BackfillRequest, present: Present) -> tuple[str, ...]:
    """The media in a lasting order: URIs, or the ids of the course's known media.

    Raises InvalidInputError where there is no such folder or it holds no media.
    """
    if request.source:
        return tuple(uri for uri in find(request.source) if looks_like_media(PurePosixPath(uri).name))
    if request.uris:
        return tuple(sorted(set(request.uris)))
    return tuple(sorted(made.media_id for made in present.store.course_media(request.course_id)))


def decide(candidate: str, request: BackfillRequest, present: Present) -> Decision:
    """Raises InvalidInputError where the candidate can be no media of the course."""
    store = present.store
    if request.source or request.uris:
        uploaded = MediaUploaded(request.course_id, candidate, language=request.language)
        media = media_of(uploaded)
    else:
        media = store.media(candidate)
    known = store.status(media.media_id)
    if not known:
        asked = Asked(request.priority, request.audio_track)
        return Decision(media, asked, True, "", "it is not known yet")
    media = store.media(media.media_id)
    asked = replace(store.asked(media.media_id), priority=request.priority)
    is_started, version, why = _decided(media, known[0].state, request, present)
    return Decision(media, asked, is_started, version, why)


def _decided(media: Media, state: str, request: BackfillRequest, present: Present) -> tuple[bool, str, str]:
    if state == "waiting":
        return True, "", "it waits: its run is started, unless it is there"
    if state == "running":
        return False, "", "it is being worked on"
    if request.forced_version:
        return True, request.forced_version, f"it is {state}, and the backfill is forced"
    if state == "failed":
        return False, "", "it failed; only a forced backfill tries it again"
    wanted = present.options(media).result
    if present.store.stored_fingerprint(media.media_id) == wanted:
        return False, "", "its result is up to date"
    return True, wanted, "its result was made with another model, glossary or options"
