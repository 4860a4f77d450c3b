"""How good whole subtitles are, beside faster-whisper's segments: ``python -m bench.subtitles`` (extra ``bench``).

SubER (Wilken, Georgakopoulou and Matusov, IWSLT 2022): the share of words, line breaks and cue breaks that an editor
would have to change, words counting as right only where the cues that hold them overlap in time; 0 is best. Two
references, both of the exact sentences: a cue for each sentence, however long; and the same cut to two lines (42
letters, 16 Chinese characters) after marks where it can be, in a way of its own that is not ours.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pysubs2

from bench import peers
from bench.data import CHECKOUT, load
from bench.machine import describe
from bench.ours import hypothesis
from bench.postprocessing import run
from bench.transcripts import FOLDER, transcripts_of
from bench.values import Hypothesis, Item, Request, Timed
from pipeline.errors import LecturemillError, RetriableError, UsageError
from pipeline.models import default_cache, find_model

SETS = ("lectures", "demo", "derived")
PEERS = {"sequential": peers.load_sequential, "batched": peers.load_batched}
LINE = {"zh": 16, "en": 42}
COLUMNS = ("file", "ours", "ours with glossary", "faster-whisper sequential", "faster-whisper batched")


def srt_of(cues: Sequence[Timed]) -> str:
    """Cues as an SRT file."""
    subtitles = pysubs2.SSAFile()
    subtitles.events = [pysubs2.SSAEvent(cue.start_ms, cue.end_ms, cue.text.replace("\n", r"\N")) for cue in cues]
    return subtitles.to_string("srt")


def readable(sentence: Timed, language: str) -> Iterator[Timed]:
    """A sentence as cues of two lines at most; time is divided by characters."""
    limit, joint = LINE[language], " " if language == "en" else ""
    parts: list[str] = []
    for clause in re.findall(r".*?(?:[，。？！；：、]|[,.;:?!](?= |$)|$)\s*", sentence.text):
        if parts and len((parts[-1] + clause).strip()) <= 2 * limit - 4:
            parts[-1] += joint + clause.strip()
        elif clause.strip():
            parts.extend(_wrapped(clause.strip(), 2 * limit - 4, language))
    whole, at = sum(map(len, parts)), 0
    for part in parts:
        start_ms, end_ms = (
            sentence.start_ms + (sentence.end_ms - sentence.start_ms) * place // whole for place in (at, at + len(part))
        )
        at += len(part)
        lines = [part.strip()] if len(part.strip()) <= limit else _wrapped(part.strip(), limit, language)
        yield Timed("\n".join(lines), start_ms, end_ms)


def _wrapped(text: str, width: int, language: str) -> list[str]:
    """Pieces of about equal length."""
    count = -(-len(text) // width)
    room = min(width, -(-len(text) // count) + (0 if language == "zh" else 6))
    if language == "en":
        return textwrap.wrap(text, room)
    return [text[at : at + room] for at in range(0, len(text), room)]


def suber(cues: Sequence[Timed], reference: Sequence[Timed], language: str) -> float:
    """The score of one file, in percent. Raises RetriableError where the tool fails."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("hypothesis.srt", "reference.srt")]
        for path, shown in zip(paths, (cues, reference), strict=True):
            path.write_text(srt_of(shown), "utf-8")
        command = [sys.executable, "-m", "suber", "-H", str(paths[0]), "-R", str(paths[1])]
        command += ["--language", "zh"] if language == "zh" else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RetriableError(f"suber: {done.stderr.strip().splitlines()[-1]}")
    return float(json.loads(done.stdout)["SubER"])


def peer(name: str, item: Item) -> Hypothesis:
    """faster-whisper's segments of one file, without a glossary; kept beside our transcripts."""
    path = FOLDER / f"{item.name}-{name}.pickle"
    if not path.is_file():
        model = find_model("base", default_cache()).folder
        heard = PEERS[name](str(model), os.cpu_count() or 1)(Request(str(item.path), item.language, None, False))
        path.write_bytes(pickle.dumps(heard))
    kept: Hypothesis = pickle.loads(path.read_bytes())
    return kept


def row(item: Item) -> tuple[str, ...]:
    """One line of the table: the scores by sentences and by cues of two lines."""
    systems = [
        hypothesis(run(transcripts_of(item, with_glossary=with_glossary))).cues
        if item.glossary or not with_glossary
        else ()
        for with_glossary in (False, True)
    ]
    systems += [peer(name, item).cues for name in PEERS]
    cut = [cue for sentence in item.sentences for cue in readable(sentence, item.language)]

    def both(cues: Sequence[Timed]) -> str:
        return " / ".join(f"{suber(cues, reference, item.language):.1f}" for reference in (item.sentences, cut))

    return item.name, *(both(cues) if cues else "–" for cues in systems)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 measured; 1 could not be; 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m bench.subtitles", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results", help="where the report goes")
    out: Path = parser.parse_args(arguments).out
    try:
        if find_spec("suber") is None:
            raise UsageError("bench.subtitles needs the extra 'bench': pip install 'lecturemill[bench]'")
        rows = [row(item) for name in SETS for item in load(name)]
    except LecturemillError as error:
        print(error.reason, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    table = "\n".join("| " + " | ".join(line) + " |" for line in (COLUMNS, ["---"] * len(COLUMNS), *rows))
    machine = describe("base", threads=os.cpu_count() or 1)
    facts = f"{machine.date}, commit {machine.commit}; model base; subtitle-edit-rate 0.4.0."
    report = (
        "\n\n".join(
            [
                "# SubER, %: by sentences / by cues of two lines (0 is best)",
                table,
                (__doc__ or "").split("\n\n", 1)[1].strip(),
                facts,
            ]
        )
        + "\n"
    )
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{machine.date}-subtitles.md").write_text(report, "utf-8")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
