"""Our line, as the benchmark calls it.

PLUG IN HERE: the in-process driver. Until it is there, ``load`` runs the command line once a file, so its
seconds hold the start of Python and the loading of the model, which the peers' do not: such seconds are
comparable only after ``load`` opens the engine once and ``transcribe`` calls the driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.peers import Transcribe
from bench.values import Hypothesis, Request, Timed
from pipeline.errors import LecturemillError, UsageError

TIMEOUT_S = 1800


class _Row(msgspec.Struct, frozen=True):
    """A cue (lines parted by ``\\n``) or a word of the JSON file."""

    start_ms: int
    end_ms: int
    text: str


class _File(msgspec.Struct, frozen=True):
    """``{"media": {...}, "cues": [...], "words": [...]}``, as ``--formats json`` writes it."""

    cues: tuple[_Row, ...]
    words: tuple[_Row, ...]


def load(model: str, threads: int) -> Transcribe:
    """The line, ready to work; UsageError where its command is not installed beside this Python."""
    command = Path(sys.executable).with_name("lecturemill")
    if not command.is_file():
        raise UsageError(f"{command} is not there: install this project into this environment")

    def transcribe(request: Request) -> Hypothesis:
        with tempfile.TemporaryDirectory(prefix="lecturemill-bench-") as out:
            _run([str(command), *arguments(request, model, out)], threads)
            return read(next(iter(Path(out).glob("*.json"))).read_bytes())

    return transcribe


def arguments(request: Request, model: str, out: str) -> list[str]:
    """The command line after the program's name."""
    given = ["run", request.path, "--course", "bench", "--language", request.language, "--model", model]
    given += ["--out", out, "--formats", "json", "--json"]
    return [*given, "--glossary", request.glossary] if request.glossary else given


def read(raw: bytes) -> Hypothesis:
    """The cues and words of a JSON subtitle file of ours."""
    file = msgspec.json.decode(raw, type=_File)
    return Hypothesis(tuple(map(_timed, file.cues)), tuple(map(_timed, file.words)))


def _timed(row: _Row) -> Timed:
    return Timed(row.text, row.start_ms, row.end_ms)


def _run(command: list[str], threads: int) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise LecturemillError(f"lecturemill run ended with {done.returncode}: {last}")
