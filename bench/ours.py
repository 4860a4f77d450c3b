"""Our line, as the benchmark calls it: the driver in this process, with a database, as ``lecturemill run`` does it.

What is timed runs from the closed file to rows in PostgreSQL: probe, decode, detect, slice, transcribe, judge,
post-process, cue, store. The peers are timed from the closed file to text in memory.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path

from bench.peers import Transcribe
from bench.values import Hypothesis, Request, Timed
from pipeline.assembly import RunRequest, line_options, open_tools
from pipeline.driver import RUN_BATCH_SLICES, run_media
from pipeline.guarding import GuardedEngine
from pipeline.settings import settings_from
from pipeline.transcription import LADDER
from pipeline.values import Media, MediaResult, Word


def load(model: str, threads: int) -> Transcribe:
    """The line, ready to work: models loaded, the embedded database up (its folder is removed at exit)."""
    stack = ExitStack()
    atexit.register(stack.close)
    home = stack.enter_context(tempfile.TemporaryDirectory(prefix="lecturemill-bench-"))
    Path(home).chmod(0o755)  # root's PostgreSQL is nobody: its data stay in this folder, and go with it
    settings = replace(settings_from(os.environ | {"LECTUREMILL_HOME": home}), database_url=None, threads=threads)
    tools = stack.enter_context(open_tools(RunRequest("bench", model=model, device="cpu"), settings, print))
    engine = tools.engine()
    if isinstance(engine, GuardedEngine):
        # What a machine does once, before its first batch of a size, is none of a lecture's time.
        for slices in range(1, RUN_BATCH_SLICES + 1):
            engine.prove(slices, LADDER[0].beam_size)
    runs = count()

    def transcribe(request: Request) -> Hypothesis:
        # A course of its own each time, so that nothing is done before.
        asked = RunRequest(f"bench-{next(runs)}", request.language, _path(request.glossary), model, "cpu")
        finished = run_media(Path(request.path), line_options(asked), tools, _Silent())
        return hypothesis(finished.result)

    return transcribe


def hypothesis(result: MediaResult) -> Hypothesis:
    """What a viewer sees of a result, and its words."""
    cues = tuple(Timed(cue.text, cue.start_ms, cue.end_ms) for cue in result.cues)
    words = tuple(_timed(word) for sentence in result.sentences for word in sentence.words)
    return Hypothesis(cues, words)


class _Silent:
    """No progress: nobody watches."""

    def begin(self, media: Media) -> None: ...

    def advance(self, done_ms: int) -> None: ...

    def say(self, line: str) -> None: ...


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _timed(word: Word) -> Timed:
    return Timed(word.text, word.start_ms, word.end_ms)
