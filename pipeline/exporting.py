"""The subtitle files of a finished media in the media store: where each lies, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.media_store import join, path_part, stem_of, write_text
from pipeline.subtitles import document_of, export_path, render
from pipeline.values import Media, MediaResult


def write_subtitles(media: Media, result: MediaResult, media_store: str, formats: Sequence[str]) -> tuple[str, ...]:
    """Write the files, each whole or not at all, over those of an older result; returns their URIs.

    Raises RetriableError where the media store is away, UsageError where it cannot be written or for an unknown format.
    """
    document = document_of(media, result)
    folder = join(media_store, f"subtitles/{path_part(media.course_id)}/{path_part(media.media_id)}")
    files = []
    for name in formats:
        uri = join(folder, export_path(Path(), stem_of(media.uri), document.language, name).name)
        write_text(uri, render(name, media=document))
        files.append(uri)
    return tuple(files)
