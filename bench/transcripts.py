"""What the engine heard, kept: the slices of a file with their transcripts, made once by the driver itself.

Steps 6 to 9 are measured and tuned on these without an engine. The files lie in ``bench/.transcripts`` (not in
git); remove it to have them made anew.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import cast

from bench.data import CHECKOUT
from bench.values import Item
from pipeline.assembly import RunRequest, line_options, open_tools
from pipeline.driver import LineOptions, run_media
from pipeline.finishing import Heard
from pipeline.settings import settings_from
from pipeline.store_line import LineStore
from pipeline.values import Media, Segment, Slice, SliceTranscript, Word

FOLDER = CHECKOUT / "bench" / ".transcripts"


@dataclass(frozen=True, slots=True)
class Kept:
    """One file as steps 6 to 9 get it."""

    slices: tuple[Slice, ...]
    transcripts: tuple[SliceTranscript, ...]
    heard: Heard
    options: LineOptions


def transcripts_of(item: Item, *, with_glossary: bool, folder: Path = FOLDER) -> Kept:
    """The transcripts of one file, from ``folder`` or, the first time, from the engine."""
    request = _request(item, with_glossary)
    options = line_options(request)
    path = folder / f"{item.name}-{_digest(item, options)}.pickle"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(_heard(item, request, options)))
    slices, transcripts, heard = pickle.loads(path.read_bytes())
    return Kept(slices, transcripts, heard, options)


def _request(item: Item, with_glossary: bool) -> RunRequest:
    return RunRequest("bench", item.language, item.glossary if with_glossary else None, device="cpu")


def _digest(item: Item, options: LineOptions) -> str:
    shape = [[one.name for one in fields(kind)] for kind in (Slice, SliceTranscript, Segment, Word)]
    stated = (item.path.stat().st_size, sorted(options.prompts.items()), options.transcription, shape)
    return hashlib.sha256(repr(stated).encode()).hexdigest()[:12]


def _heard(
    item: Item, request: RunRequest, options: LineOptions
) -> tuple[tuple[Slice, ...], tuple[SliceTranscript, ...], Heard]:
    notes = _Notebook()
    with tempfile.TemporaryDirectory(prefix="lecturemill-bench-") as home:
        Path(home).chmod(0o755)  # root's PostgreSQL is nobody
        settings = replace(settings_from(os.environ | {"LECTUREMILL_HOME": home}), database_url=None)
        with open_tools(request, settings, print) as tools:
            noting = replace(tools, store=cast(LineStore, notes))
            result = run_media(item.path, options, noting, _Silent()).result
    slices, transcripts = zip(*notes.pairs, strict=True) if notes.pairs else ((), ())
    return slices, transcripts, Heard(result.duration_ms, (), tuple(result.warnings))


class _Notebook:
    """A store that knows nothing and notes what the driver gives it."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Slice, SliceTranscript]] = []

    def record_media(self, *_: object) -> None: ...

    def finished(self, *_: object) -> None:
        return None

    def slice_transcripts(self, *_: object) -> tuple[SliceTranscript, ...]:
        return ()

    def record_slices(
        self, _media: str, _slicing: str, _asr: str, pairs: Sequence[tuple[Slice, SliceTranscript]], _engine: str = ""
    ) -> None:
        self.pairs += pairs

    def record_result(self, *_: object, **__: object) -> None: ...


class _Silent:
    def begin(self, media: Media) -> None: ...

    def advance(self, done_ms: int) -> None: ...

    def say(self, line: str) -> None: ...
