"""``lecturemill course``: how a course wants its subtitles, for ``run`` and the distributed line alike."""

from __future__ import annotations

from dataclasses import asdict

import typer

from pipeline.assembly import checked_course
from pipeline.cli_common import AsJson, Course, Database, Fillers, Profile, Script, open_store
from pipeline.console import complain, print_json, print_table
from pipeline.errors import UsageError
from pipeline.profile_wishes import Wishes, profile_of

course_app = typer.Typer(help="A course's settings: how its subtitles are made.", no_args_is_help=True)


@course_app.command("set")
def course_set(
    course: Course,
    profile: Profile = None,
    script: Script = None,
    fillers: Fillers = None,
    database: Database = None,
) -> None:
    """Change how the subtitles of a course are made; what is not named stays as it is."""
    course_id, wishes = checked_course(course), Wishes(profile, script, fillers)
    if wishes == Wishes():
        raise UsageError("name what is to change: --profile, --script, --fillers")
    with open_store(database) as store:
        chosen = profile_of(wishes, store.profile(course_id))
        store.record_profile(course_id, chosen)
    said = f"course {course_id}: profile {chosen.name}, script {chosen.script}, fillers {chosen.fillers}"
    complain(f"{said}; media that are done keep their subtitles until backfill_course, or `run`, makes them anew")


@course_app.command("show")
def course_show(course: Course, database: Database = None, as_json: AsJson = False) -> None:
    """How the subtitles of a course are made."""
    with open_store(database) as store:
        profile = store.profile(course)
    if as_json:
        print_json(profile)
        return
    text = [(name, getattr(profile, name), "") for name in ("name", "script", "numbers", "fillers")]
    wide, narrow = asdict(profile.wide), asdict(profile.narrow)
    print_table("", ("setting", "wide", "narrow"), [*text, *((name, wide[name], narrow[name]) for name in wide)])
