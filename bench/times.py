"""When sentences start, word by word: ``python -m bench.times``.

Every file with exact times, its transcripts made once by the line's own engine: how far the first word and the first
cue of each reference sentence are off; the sentences within a second of a seam between two slices apart from the rest;
and what no word may be: in silence, without time, or before the word ahead of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench.data import CHECKOUT, load
from bench.detectors import blocks_of
from bench.machine import describe
from bench.ours import hypothesis
from bench.postprocessing import run
from bench.scoring import StartErrors, percentile, start_errors
from bench.transcripts import Kept, transcripts_of
from bench.values import Item, Timed
from pipeline.errors import LecturemillError, UsageError
from pipeline.stitching import stitch
from pipeline.values import SAMPLES_PER_MS, MediaResult, Samples, Span, Word

SETS = ("lectures", "demo", "derived")
SEAM_MS = 1_000
FRAME_MS = 10
HELD_FRAMES = 3
"""A sound is held for 30 ms, a click is not."""
LEADING_SILENCE = frozenset({"zh_aishell_long"})
"""References that count a recording from where its file begins, some 0.5 s before anything is said."""
COLUMNS = (
    "file",
    "sentences",
    "word start ms, median / p90 / most",
    "cue start ms, median / p90",
    "near seams: sentences",
    "word start ms, median / most",
    "words",
    "in silence",
    "without time",
    "backwards",
)
LEGEND = (
    "Start: distance of a reference sentence's start from the word, or cue, that holds its first token. Near seams: "
    f"within {SEAM_MS} ms of a seam between two slices. In silence: no part of the word is in speech that the detector "
    "heard. Files with (sound): their references count from where each recording begins, some 0.5 s before anything is "
    "said; there the start is where the level first rises half-way (in dB) from the recording's quiet to its loud, for "
    "30 ms."
)


@dataclass(frozen=True, slots=True)
class WordFaults:
    """Words that lie where none may."""

    words: int
    in_silence: int
    without_time: int
    backwards: int


def faults(kept: Kept) -> WordFaults:
    """Counted after stitching: later steps change texts, not times."""
    spoken = [
        (word, piece.speech)
        for piece, transcript in stitch(kept.slices, kept.transcripts)
        for segment in transcript.segments
        for word in segment.words
    ]
    words = [word for word, _ in spoken]
    return WordFaults(
        len(words),
        sum(not any(_touches(word, span) for span in speech) for word, speech in spoken),
        sum(word.start_ms >= word.end_ms for word in words),
        sum(before.end_ms > after.start_ms for before, after in pairwise(words)),
    )


def _touches(word: Word, span: Span) -> bool:
    return word.start_ms < span.end_ms and span.start_ms < word.end_ms


def near_seams(sentences: Sequence[Timed], kept: Kept) -> tuple[Timed, ...]:
    """The sentences that start within a second of where one slice ends and the next begins."""
    seams = [piece.span.start_ms for piece in kept.slices[1:]] + [piece.span.end_ms for piece in kept.slices[:-1]]
    return tuple(one for one in sentences if any(abs(one.start_ms - seam) <= SEAM_MS for seam in seams))


def from_first_sound(sentences: Sequence[Timed], samples: Samples) -> tuple[Timed, ...]:
    """The sentences with the starts of what is heard of them, by the sound's level alone."""
    return tuple(Timed(one.text, one.start_ms + _rise_ms(samples, one), one.end_ms) for one in sentences)


def _rise_ms(samples: Samples, sentence: Timed) -> int:
    part = samples[sentence.start_ms * SAMPLES_PER_MS : sentence.end_ms * SAMPLES_PER_MS]
    size = FRAME_MS * SAMPLES_PER_MS
    frames = part[: part.size // size * size].reshape(-1, size)
    level_db = 10 * np.log10(np.mean(np.square(frames), axis=1) + 1e-10)
    quiet_db, loud_db = np.percentile(level_db, (5, 95))
    loud = level_db > (quiet_db + loud_db) / 2
    held = np.convolve(loud, np.ones(HELD_FRAMES), "valid") == HELD_FRAMES
    return int(held.argmax()) * FRAME_MS


def row(item: Item) -> tuple[str, ...]:
    """One line of the table."""
    kept = transcripts_of(item, with_glossary=item.glossary is not None)
    result: MediaResult = run(kept)
    sentences, name = item.sentences, item.name
    if name in LEADING_SILENCE:
        sound = np.concatenate([block.samples for block in blocks_of(item.path)])
        sentences, name = from_first_sound(sentences, sound), f"{name} (sound)"
    shown = hypothesis(result)
    words = start_errors(sentences, shown.words, item.language, joint="")
    cues = start_errors(sentences, shown.cues, item.language, joint="\n")
    seams = _only(words, sentences, near_seams(sentences, kept))
    found = faults(kept)
    return (
        name,
        str(len(sentences)) + (f" ({words.missed} missed)" if words.missed else ""),
        _spread(words.errors_ms, 50, 90, 100),
        _spread(cues.errors_ms, 50, 90),
        str(len(seams)),
        _spread(seams, 50, 100),
        *map(str, (found.words, found.in_silence, found.without_time, found.backwards)),
    )


def _only(errors: StartErrors, sentences: Sequence[Timed], chosen: Sequence[Timed]) -> tuple[int, ...]:
    """The errors of the chosen sentences; where some sentence was missed, errors cannot be told apart: none."""
    if errors.missed:
        return ()
    return tuple(error for error, sentence in zip(errors.errors_ms, sentences, strict=True) if sentence in chosen)


def _spread(errors_ms: Sequence[int], *percents: int) -> str:
    return " / ".join(f"{percentile(errors_ms, percent):.0f}" for percent in percents) if errors_ms else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 measured; 1 could not be; 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m bench.times", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results", help="where the report goes")
    out: Path = parser.parse_args(arguments).out
    try:
        rows = [row(item) for name in SETS for item in load(name)]
    except LecturemillError as error:
        print(error.reason, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    machine = describe("base", threads=1)
    table = "\n".join("| " + " | ".join(line) + " |" for line in (COLUMNS, ["---"] * len(COLUMNS), *rows))
    facts = f"{machine.date}, commit {machine.commit}; model base; each Mandarin lecture with its glossary."
    report = "\n\n".join(["# When sentences start", table, LEGEND, facts]) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{machine.date}-times.md").write_text(report, "utf-8")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
