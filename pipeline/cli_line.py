"""Subcommands for the distributed line: media are handed over to it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.assembly import checked_course, checked_language
from pipeline.cli_common import FAILED, AsJson, AudioTrack, Course, Database, Inputs, Language
from pipeline.cli_run import collect
from pipeline.console import Bars
from pipeline.errors import RetriableError
from pipeline.settings import Settings, settings_from
from pipeline.values import Priority

if TYPE_CHECKING:
    from pipeline.cli_upload import Upload

LOOK_AGAIN = "the media go on; look at them by: lecturemill status"


def upload(
    media: Inputs,
    course: Course,
    priority: Annotated[Priority, typer.Option(help="Which goes first.")] = Priority.NORMAL,
    language: Language = "auto",
    audio_track: AudioTrack = None,
    title: Annotated[str | None, typer.Option(metavar="T", help="Of one media. Default: its file's name.")] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Announce the files where they lie; every machine must see them there.")
    ] = False,
    watch: Annotated[bool, typer.Option(help="Show how far they are until all are done.")] = True,
    brokers: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,…", help="Kafka. Default: $LECTUREMILL_BROKERS, else 127.0.0.1:9092."),
    ] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Hand media to the line that runs on Kafka: store and announce them. Doing it twice is harmless."""
    from pipeline import cli_upload  # the Kafka client takes a quarter of a second to import

    settings = settings_from(os.environ, database)
    settings = replace(settings, brokers=brokers or settings.brokers)
    request = cli_upload.UploadRequest(
        checked_course(course), checked_language(language), priority, audio_track, title, in_place
    )
    files = collect(media)
    cli_upload.check_request(request, files)
    uploads: list[cli_upload.Upload] = []
    began_ms = time.time_ns() // 1_000_000
    try:
        with Bars(quiet=as_json) as bars:
            uploads.extend(cli_upload.announce_all(files, request, settings, bars))
            if watch and any(one.goes_on for one in uploads):
                _follow(uploads, settings, bars, began_ms)
    finally:  # what was announced is reported also where it is stopped half-way
        cli_upload.print_uploads(uploads, as_json=as_json)
    if any(one.state == cli_upload.FAILED for one in uploads):
        raise typer.Exit(FAILED)


def _follow(uploads: list[Upload], settings: Settings, bars: Bars, since_ms: int) -> None:
    from pipeline.cli_upload import follow

    try:
        follow(uploads, settings, bars, since_ms)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped watching; {LOOK_AGAIN}") from None
    except RetriableError as error:
        raise RetriableError(f"announced, and cannot be watched: {error.reason}; {LOOK_AGAIN}") from error
