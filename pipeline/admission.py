"""How a media enters the line: recorded as waiting, then opened; a file at fault is recorded, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.announcements import MediaUploaded
from pipeline.errors import InvalidInputError
from pipeline.identity import media_id_of
from pipeline.ledger import failed_ledger
from pipeline.media import probe, shown
from pipeline.media_store import local_copy, stem_of
from pipeline.store import MediaStatus
from pipeline.store_line import LineStore
from pipeline.values import Media, MediaInfo


@dataclass(frozen=True, slots=True)
class Opened:
    """A media whose file is at hand."""

    path: Path
    media: Media
    """With what probing found."""
    info: MediaInfo


def media_of(uploaded: MediaUploaded) -> Media:
    """The media that is announced, before anybody has looked into its file."""
    media_id = uploaded.media_id or media_id_of(uploaded.course_id, uploaded.uri)
    title = uploaded.title or shown(Path(stem_of(uploaded.uri)))
    return Media(media_id, uploaded.course_id, uploaded.uri, title, "", None, uploaded.language)


def admit(uploaded: MediaUploaded, store: LineStore) -> Media:
    """Record the media as waiting, unless it is known. Raises InvalidInputError where it belongs to another course."""
    media = media_of(uploaded)
    store.announce(media, uploaded.priority, uploaded.audio_track)
    return media


def had_failed(status: MediaStatus, at_ms: int) -> bool:
    """Whether the media had failed before ``at_ms`` (milliseconds since 1970), and has not been begun again."""
    return status.state == "failed" and status.finished_at is not None and status.finished_at.timestamp() * 1000 < at_ms


@contextmanager
def opened(media: Media, store: LineStore) -> Iterator[Opened]:
    """The file of a recorded media, probed, for as long as the context lasts.

    An InvalidInputError, from in here or from the context, is recorded as the media's failure before it goes on.
    A file that is merely gone does not cost the media the result that it has.
    """
    is_at_hand = False
    try:
        with local_copy(media.uri) as path:
            is_at_hand = True
            info = probe(path)
            media = replace(media, content_fingerprint=info.content_fingerprint, duration_ms=info.duration_ms)
            yield Opened(path, media, info)
    except InvalidInputError as error:
        if is_at_hand or not store.stored_fingerprint(media.media_id):
            store.record_media(media)
            store.record_failure(media.media_id, error.reason, failed_ledger(media.duration_ms, error.reason))
        raise
