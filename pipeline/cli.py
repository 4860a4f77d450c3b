"""The command ``lecturemill``. Each subcommand is thin: it resolves options, calls the line and says what came out."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipeline import doctor
from pipeline.assembly import RunRequest, line_options, open_tools
from pipeline.cli_run import Report, check_formats, check_targets, collect, document_of, print_reports, run_all
from pipeline.console import Bars, clock, complain, print_json, print_table, write_out
from pipeline.database import connect
from pipeline.errors import InvalidInputError, LecturemillError, UsageError
from pipeline.models import fetch_model, list_models
from pipeline.query import run_query
from pipeline.settings import open_database, settings_from
from pipeline.stopping import INTERRUPTED
from pipeline.store import MediaStatus, Store
from pipeline.subtitles import FORMATS, export_path, render, write_whole

FAILED, WRONG_USAGE = 1, 2


class _Lecturemill(TyperGroup):
    """Every error that we raise becomes one line and an exit status; Typer does so for wrong usage."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("stopped; the same command goes on where it was")
            raise typer.Exit(INTERRUPTED) from None
        except LecturemillError as error:
            complain(str(error))
            raise typer.Exit(WRONG_USAGE if isinstance(error, UsageError) else FAILED) from error


app = typer.Typer(
    cls=_Lecturemill,
    help="Lecture videos in; subtitles, a searchable transcript and an account of every second out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
models_app = typer.Typer(help="The models: which there are, and fetching them.", no_args_is_help=True)
db_app = typer.Typer(help="The database: its tables, and SQL over it.", no_args_is_help=True)
app.add_typer(models_app, name="models")
app.add_typer(db_app, name="db")

Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="PostgreSQL 15 or later. Default: $DATABASE_URL, else an embedded one."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for machines.")]


@app.command()
def run(
    media: Annotated[
        list[Path], typer.Argument(help="Video or audio files, and folders that hold some.", metavar="MEDIA")
    ],
    course: Annotated[str, typer.Option(metavar="ID", help="The course that the media belong to.")],
    language: Annotated[str, typer.Option(help="zh, en, … or auto: detected in each slice.")] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the files go. Default: beside each media.")
    ] = None,
    formats: Annotated[str, typer.Option(help=f"Any of {','.join(FORMATS)}.")] = "srt,vtt",
    glossary: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV: term,aliases,language,note.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME|DIR", help="A Whisper model in CTranslate2 format.")] = "base",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    vad: Annotated[str, typer.Option(help="silero, or pyannote (extra 'diarization').")] = "silero",
    audio_track: Annotated[int | None, typer.Option(min=1, help="Counted from 1. Default: chosen by policy.")] = None,
    usd_per_hour: Annotated[
        float, typer.Option(min=0, envvar="LECTUREMILL_USD_PER_HOUR", help="What an hour of this machine costs.")
    ] = 0.10,
    database: Database = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but failures.")] = False,
) -> None:
    """Turn media into subtitles: transcribe, store and export. Stopped anywhere, the same command goes on there."""
    request = RunRequest(course, language, glossary, model, device, vad, audio_track, usd_per_hour)
    wanted, files = check_formats(formats), collect(media)
    options, settings = line_options(request), settings_from(os.environ, database)
    check_targets(files, out)
    reports: list[Report] = []
    try:
        with Bars(quiet=quiet or as_json) as bars, open_tools(request, settings, bars.say) as tools:
            reports.extend(run_all(files, options, tools, bars, out, wanted))
    finally:  # what was done is reported also where the run is stopped half-way
        print_reports(reports, as_json=as_json, quiet=quiet)
    if any(report.state == "failed" for report in reports):
        raise typer.Exit(FAILED)


@app.command()
def status(
    media_id: Annotated[str | None, typer.Argument(help="A media id, or its beginning.")] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """How far every media is, or one."""
    with _store(database) as store:
        found = store.status(_resolve(store, media_id) if media_id else None)
    if as_json:
        print_json(found)
        return
    columns = ("media", "course", "title", "state", "duration", "cues", "violations", "filtered", "failed", "reason")
    print_table("", columns, [_status_row(one) for one in found])


@app.command()
def ledger(
    media_id: Annotated[str, typer.Argument(help="A media id, or its beginning.")],
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """What became of every second of one media."""
    with _store(database) as store:
        spans = store.ledger(_resolve(store, media_id))
    if as_json:
        print_json(spans)
        return
    rows = [
        (clock(s.start_ms), clock(s.end_ms), (s.end_ms - s.start_ms) / 1000, s.outcome.value, s.reason) for s in spans
    ]
    print_table("", ("from", "to", "seconds", "outcome", "reason"), rows)


@app.command()
def export(
    media_id: Annotated[str, typer.Argument(help="A media id, or its beginning.")],
    format: Annotated[str, typer.Option(help=f"One of {','.join(FORMATS)}.")] = "srt",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a file there instead of printing.")] = None,
    database: Database = None,
) -> None:
    """Subtitles of a finished media from the database, printed or written to a file."""
    (wanted,) = check_formats(format) if "," not in format else ("",)
    if not wanted:
        raise UsageError(f"--format takes one of {','.join(FORMATS)}")
    with _store(database) as store:
        full_id = _resolve(store, media_id)
        media, result = store.media(full_id), store.result(full_id)
    document = document_of(media, result)
    text = render(wanted, media=document)
    if out is None:
        write_out(text)
        return
    path = export_path(out, media.title, document.language, wanted)
    write_whole(path, text)
    write_out(f"{path}\n")


@models_app.command("list")
def models_list(as_json: AsJson = False) -> None:
    """Models that can be fetched by name; any CTranslate2 Whisper folder works as well."""
    found = list_models(settings_from(os.environ).models)
    if as_json:
        print_json(found)
        return
    rows = [(m.name, "here" if m.is_present else "", round(m.size_bytes / 1e6), m.licence, m.purpose) for m in found]
    print_table("", ("name", "", "MB", "licence", "purpose"), rows)


@models_app.command("fetch")
def models_fetch(name: Annotated[str, typer.Argument(help="See: lecturemill models list.")]) -> None:
    """Fetch a model into the cache; every file is checked against its sha256."""
    model = fetch_model(name, settings_from(os.environ).models, complain)
    write_out(f"{model.folder}\n")


@db_app.command("upgrade")
def db_upgrade(database: Database = None) -> None:
    """Create or upgrade the tables and views."""
    with open_database(settings_from(os.environ, database)):
        typer.echo("the database is up to date")


@db_app.command("query")
def db_query(
    sql: Annotated[str, typer.Argument(help="SQL text, or a file that holds it.")],
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Answer one SQL query over the views transcripts, cues, words, ledger, cost; read-only."""
    with open_database(settings_from(os.environ, database)) as url:
        columns, rows = run_query(url, sql)
    if as_json:
        if len(set(columns)) < len(columns):
            raise UsageError("two columns have one name; tell them apart by AS")
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    print_table("", columns, rows)


@db_app.command("serve")
def db_serve() -> None:
    """Keep the embedded database up for psql and other programs, until Ctrl-C."""
    settings = settings_from(os.environ)
    if settings.database_url:
        raise UsageError("DATABASE_URL is set: that database needs no serving")
    with open_database(settings) as url:
        typer.echo(connect(url).url.render_as_string(hide_password=False).replace("+psycopg", ""))
        complain("the database is up until Ctrl-C")
        signal.pause()


@app.command("doctor")
def doctor_command(database: Database = None, as_json: AsJson = False) -> None:
    """Check everything that the line needs; each finding comes with its remedy."""
    findings = list(doctor.examine(settings_from(os.environ, database)))
    if as_json:
        print_json(findings)
    else:
        rows = [("ok" if f.is_ok else "PROBLEM", f.what, f.detail, f.remedy) for f in findings]
        print_table("", ("", "what", "found", "remedy"), rows)
    if not all(finding.is_ok for finding in findings):
        raise typer.Exit(FAILED)


@contextmanager
def _store(database_url: str | None) -> Iterator[Store]:
    with open_database(settings_from(os.environ, database_url)) as url, Store.open(url) as store:
        yield store


def _resolve(store: Store, given: str) -> str:
    """The one media whose id begins with ``given``, or whose title it is."""
    found = [one.media_id for one in store.status() if one.media_id.startswith(given) or one.title == given]
    exact = [media_id for media_id in found if media_id == given]
    if len(exact or found) == 1:
        return (exact or found)[0]
    what = "no media" if not found else f"{len(found)} media"
    raise InvalidInputError(f"{what} with this id or title; see: lecturemill status", source=given)


def _status_row(one: MediaStatus) -> tuple[object, ...]:
    times = (clock(one.duration_ms), one.cues, one.violations, clock(one.filtered_ms), clock(one.failed_ms))
    return (one.media_id, one.course_id, one.title, one.state, *times, one.reason)
