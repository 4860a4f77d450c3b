"""The command ``lecturemill``. Each subcommand is thin: it resolves options, calls the line and says what came out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipeline.assembly import RunRequest, line_options, open_tools, with_stored_glossary, with_stored_profile
from pipeline.cli_common import (
    FAILED,
    WRONG_USAGE,
    AsJson,
    AudioTrack,
    Course,
    Database,
    Fillers,
    Inputs,
    Language,
    Profile,
    Script,
    open_store,
    resolve,
    slices_of,
)
from pipeline.cli_course import course_app
from pipeline.cli_glossary import glossary_app
from pipeline.cli_line import upload
from pipeline.cli_machine import db_app, doctor_command, models_app
from pipeline.cli_run import Report, check_formats, check_targets, collect, document_of, print_reports, run_all
from pipeline.console import Bars, clock, complain, print_json, print_table, write_out
from pipeline.errors import LecturemillError, UsageError
from pipeline.profile_wishes import Wishes
from pipeline.settings import settings_from
from pipeline.stopping import INTERRUPTED
from pipeline.store import MediaStatus
from pipeline.subtitles import FORMATS, export_path, render, write_whole


class _Lecturemill(TyperGroup):
    """Every error that we raise becomes one line and an exit status; Typer does so for wrong usage."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            complain(str(stop) or "stopped; the same command goes on where it was")
            raise typer.Exit(INTERRUPTED) from None
        except LecturemillError as error:
            for line in error.reason.split("\n"):
                complain(line)
            raise typer.Exit(WRONG_USAGE if isinstance(error, UsageError) else FAILED) from error


app = typer.Typer(
    cls=_Lecturemill,
    help="Lecture videos in; subtitles, a searchable transcript and an account of every second out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(glossary_app, name="glossary")
app.add_typer(course_app, name="course")
app.add_typer(models_app, name="models")
app.add_typer(db_app, name="db")


@app.command()
def run(
    media: Inputs,
    course: Course,
    language: Language = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the files go. Default: beside each media.")
    ] = None,
    formats: Annotated[str, typer.Option(help=f"Any of {','.join(FORMATS)}.")] = "srt,vtt",
    glossary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV: term,aliases,language,note. Default: the one imported for the course."),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME|DIR", help="A Whisper model in CTranslate2 format.")] = "base",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:N, GPU-<uuid>, MIG-<uuid>.")] = "auto",
    engine: Annotated[str, typer.Option(envvar="LECTUREMILL_ENGINE", help="auto, faster-whisper or fused.")] = "auto",
    vad: Annotated[str, typer.Option(help="silero, or pyannote (extra 'diarization').")] = "silero",
    audio_track: AudioTrack = None,
    speakers: Annotated[
        bool, typer.Option("--speakers", help="Tell teacher and students apart (extra 'diarization').")
    ] = False,
    profile: Profile = None,
    script: Script = None,
    fillers: Fillers = None,
    usd_per_hour: Annotated[
        float, typer.Option(min=0, envvar="LECTUREMILL_USD_PER_HOUR", help="What an hour of this machine costs.")
    ] = 0.10,
    database: Database = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but failures.")] = False,
) -> None:
    """Turn media into subtitles: transcribe, store and export. Stopped anywhere, the same command goes on there."""
    wishes = Wishes(profile, script, fillers)
    request = RunRequest(
        course, language, glossary, model, device, vad, audio_track, usd_per_hour, engine, wishes, speakers
    )
    wanted, files = check_formats(formats), collect(media)
    options, settings = line_options(request), settings_from(os.environ, database)
    check_targets(files, out)
    reports: list[Report] = []
    try:
        with Bars(quiet=quiet or as_json) as bars, open_tools(request, settings, bars.say) as tools:
            if glossary is None:
                options = with_stored_glossary(options, tools.store)
            options = with_stored_profile(options, request, tools.store)
            reports.extend(run_all(files, options, tools, bars, out, wanted))
    finally:  # what was done is reported also where the run is stopped half-way
        print_reports(reports, as_json=as_json, quiet=quiet)
    if any(report.state != "done" for report in reports):
        raise typer.Exit(FAILED)


app.command()(upload)


@app.command()
def status(
    media_id: Annotated[str | None, typer.Argument(help="A media id, or its beginning.")] = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """How far every media is, or one."""
    with open_store(database) as store:
        found = store.status(resolve(store, media_id) if media_id else None)
    if as_json:
        print_json(found)
        return
    times = ("duration", "cues", "violations", "filtered", "failed")
    columns = ("media", "course", "title", "state", "slices", *times, "reason")
    print_table("", columns, [_status_row(one) for one in found])


@app.command()
def ledger(
    media_id: Annotated[str, typer.Argument(help="A media id, or its beginning.")],
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """What became of every second of one media."""
    with open_store(database) as store:
        spans = store.ledger(resolve(store, media_id))
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
    with open_store(database) as store:
        full_id = resolve(store, media_id)
        media, result = store.media(full_id), store.result(full_id)
    document = document_of(media, result)
    text = render(wanted, media=document)
    if out is None:
        write_out(text)
        return
    path = export_path(out, media.title, document.language, wanted)
    write_whole(path, text)
    write_out(f"{path}\n")


def _status_row(one: MediaStatus) -> tuple[object, ...]:
    times = (clock(one.duration_ms), one.cues, one.violations, clock(one.filtered_ms), clock(one.failed_ms))
    return (one.media_id, one.course_id, one.title, one.state, slices_of(one), *times, one.reason)


app.command("doctor")(doctor_command)
