"""What several subcommands share: options, the opened store, a media by its id or title."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import InvalidInputError
from pipeline.postprocess.script import SCRIPTS
from pipeline.settings import open_database, settings_from
from pipeline.store import MediaStatus, Store
from pipeline.store_line import LineStore
from pipeline.subtitle_profiles import BUILT_IN

FAILED, WRONG_USAGE = 1, 2
"""Exit statuses."""

Inputs = Annotated[
    list[Path], typer.Argument(help="Video or audio files, and folders that hold some.", metavar="MEDIA")
]
Course = Annotated[str, typer.Option(metavar="ID", help="The course that the media belong to.")]
Language = Annotated[str, typer.Option(help="zh, en, … or auto: detected in each slice.")]
AudioTrack = Annotated[int | None, typer.Option(min=1, help="Counted from 1. Default: chosen by policy.")]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help=f"How subtitles are made: {', '.join(BUILT_IN)}, or a .toml file. Default: the course's.",
    ),
]
Script = Annotated[str | None, typer.Option(help=f"Chinese characters: {', '.join(SCRIPTS)}. Default: the profile's.")]
Fillers = Annotated[
    str | None, typer.Option(help="verbatim, or clean: without um, uh, 嗯 and stutters. Default: the profile's.")
]
Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="PostgreSQL 15 or later. Default: $DATABASE_URL, else an embedded one."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, for machines.")]


@contextmanager
def open_store(database_url: str | None) -> Iterator[LineStore]:
    with open_database(settings_from(os.environ, database_url)) as url, LineStore.open(url) as store:
        yield store


def resolve(store: Store, given: str) -> str:
    """The one media whose id begins with ``given``, or whose title it is."""
    found = [one.media_id for one in store.status() if one.media_id.startswith(given) or one.title == given]
    exact = [media_id for media_id in found if media_id == given]
    if len(exact or found) == 1:
        return (exact or found)[0]
    what = "no media" if not found else f"{len(found)} media"
    raise InvalidInputError(f"{what} with this id or title; see: lecturemill status", source=given)


def slices_of(one: MediaStatus) -> str:
    """How many slices are transcribed, of how many; empty where it says nothing that the state does not."""
    if one.state != "running":
        return ""
    return f"{one.slices_done} of {'?' if one.slices_planned is None else one.slices_planned}"
