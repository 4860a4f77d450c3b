"""``lecturemill glossary``: the terms of a course, in versions, and their way into old lectures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pipeline.assembly import checked_course, read_glossary
from pipeline.cli_common import FAILED, AsJson, Course, Database, open_store, resolve
from pipeline.cli_run import check_formats, export_all
from pipeline.console import clock, complain, print_json, print_table, write_out
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.reapplying import Change, Reapplied, State, reapply
from pipeline.store_line import LineStore
from pipeline.subtitles import FORMATS

glossary_app = typer.Typer(help="A course's glossary: the terms that must be written right.", no_args_is_help=True)

Version = Annotated[int | None, typer.Option(min=1, help="One that was imported before. Default: the newest.")]


@glossary_app.command("import")
def glossary_import(
    file: Annotated[Path, typer.Argument(help="CSV: term,aliases,language,note.", metavar="FILE")],
    course: Course,
    database: Database = None,
) -> None:
    """Make a CSV file the newest glossary of a course. Bad rows refuse it whole; older versions stay."""
    glossary, course_id = read_glossary(file), checked_course(course)
    with open_store(database) as store:
        before = store.glossary(course_id)
        version = store.record_glossary(course_id, glossary, file.name)
    what = f"course {course_id} has {len(glossary.terms)} terms: version {version}"
    if before.version == version:
        complain(f"{what}, which it had already")
    else:
        complain(f"{what}; bring it to old lectures by: lecturemill glossary reapply {course_id}")


@glossary_app.command("show")
def glossary_show(course: Course, version: Version = None, database: Database = None, as_json: AsJson = False) -> None:
    """The glossary of a course."""
    with open_store(database) as store:
        terms = store.glossary(course, version).terms
    if as_json:
        print_json(terms)
        return
    rows = [(one.term, "|".join(one.aliases), one.language, one.note) for one in terms]
    print_table("", ("term", "aliases", "language", "note"), rows)


@glossary_app.command("reapply")
def glossary_reapply(
    names: Annotated[
        list[str], typer.Argument(metavar="COURSE|MEDIA...", help="Courses, and media by id, its beginning, or title.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the subtitles of what changed there.")] = None,
    formats: Annotated[str, typer.Option(help=f"Of the files in --out; any of {','.join(FORMATS)}.")] = "srt,vtt",
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Bring the present glossary to lectures that are done, from their stored transcripts: no model, no GPU."""
    wanted = check_formats(formats)
    done: list[Reapplied] = []
    with open_store(database) as store:
        for media_id in _media_of(names, store):
            try:
                done.append(reapply(media_id, store, is_dry=dry_run))
            except (InvalidInputError, RetriableError) as error:
                complain(f"failed: {error.reason}")
                continue
            if not as_json:
                _show(done[-1])
            if out and not dry_run:
                _export(done[-1], out, wanted)
        failed = len(_media_of(names, store)) - len(done)
    if as_json:
        print_json([_report(one) for one in done])
    else:
        counts = Counter(one.state for one in done)
        said = ", ".join(f"{counts[state]} {state}" for state in State if counts[state]) or "no media"
        complain(f"{'would be: ' if dry_run else ''}{said}{f', {failed} failed' if failed else ''}")
    if failed:
        raise typer.Exit(FAILED)


def _media_of(names: Sequence[str], store: LineStore) -> list[str]:
    """The ids, each once. A name is a course where one has it, else a media. Raises InvalidInputError for neither."""
    found: dict[str, None] = {}
    for name in names:
        of_course = [made.media_id for made in store.course_media(name)]
        found.update(dict.fromkeys(of_course or [resolve(store, name)]))
    return list(found)


def _show(one: Reapplied) -> None:
    if one.changes:
        write_out("".join(f"{line}\n" for line in _lines(one)))


def _lines(one: Reapplied) -> Iterator[str]:
    yield f"{one.media.title} ({one.media.media_id[:8]})"
    for change in one.changes:
        yield f"  {clock(change.start_ms)}"
        yield from (f"  - {line}" for line in change.before)
        yield from (f"  + {line}" for line in change.after)


def _export(one: Reapplied, out: Path, formats: Sequence[str]) -> None:
    if one.result and one.changes:
        export_all(one.media, one.result, out, one.media.title, formats)


def _report(one: Reapplied) -> dict[str, object]:
    return {
        "media_id": one.media.media_id,
        "course_id": one.media.course_id,
        "title": one.media.title,
        "state": one.state,
        "glossary_version": one.glossary_version,
        "changes": [_change(change) for change in one.changes],
    }


def _change(change: Change) -> dict[str, object]:
    return {"start_ms": change.start_ms, "before": change.before, "after": change.after}
