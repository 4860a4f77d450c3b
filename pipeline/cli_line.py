"""Subcommands for the distributed line: media are handed over to it, and a course's glossary is given to it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.assembly import checked_course, checked_language, read_glossary
from pipeline.cli_common import FAILED, AsJson, AudioTrack, Course, Database, Inputs, Language, open_store
from pipeline.cli_run import collect
from pipeline.console import Bars, complain, print_json, print_table
from pipeline.errors import RetriableError
from pipeline.settings import Settings, settings_from
from pipeline.values import Priority

if TYPE_CHECKING:
    from pipeline.cli_upload import Upload

LOOK_AGAIN = "the media go on; look at them by: lecturemill status"

glossary_app = typer.Typer(help="A course's glossary: the terms that must be written right.", no_args_is_help=True)


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
    try:
        with Bars(quiet=as_json) as bars:
            uploads.extend(cli_upload.announce_all(files, request, settings, bars))
            if watch and any(one.goes_on for one in uploads):
                _follow(uploads, settings, bars)
    finally:  # what was announced is reported also where it is stopped half-way
        cli_upload.print_uploads(uploads, as_json=as_json)
    if any(one.state == cli_upload.FAILED for one in uploads):
        raise typer.Exit(FAILED)


def _follow(uploads: list[Upload], settings: Settings, bars: Bars) -> None:
    from pipeline.cli_upload import follow

    try:
        follow(uploads, settings, bars)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped watching; {LOOK_AGAIN}") from None
    except RetriableError as error:
        raise RetriableError(f"announced, and cannot be watched: {error.reason}; {LOOK_AGAIN}") from error


@glossary_app.command("import")
def glossary_import(
    file: Annotated[Path, typer.Argument(help="CSV: term,aliases,language,note.", metavar="FILE")],
    course: Course,
    database: Database = None,
) -> None:
    """Make a CSV file the glossary of a course, in place of the one before; a bad row refuses it whole."""
    glossary, course_id = read_glossary(file), checked_course(course)
    with open_store(database) as store:
        store.record_glossary(course_id, glossary)
    terms = f"course {course_id} has {len(glossary.terms)} terms"
    complain(f"{terms}; media that are done keep their text until backfill_course, or `run`, makes them anew")


@glossary_app.command("show")
def glossary_show(course: Course, database: Database = None, as_json: AsJson = False) -> None:
    """The glossary of a course."""
    with open_store(database) as store:
        terms = store.glossary(course).terms
    if as_json:
        print_json(terms)
        return
    rows = [(one.term, "|".join(one.aliases), one.language, one.note) for one in terms]
    print_table("", ("term", "aliases", "language", "note"), rows)
