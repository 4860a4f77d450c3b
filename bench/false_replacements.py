"""What glossaries change in text that is right, and what they mend in text that is not.

``python -m bench.false_replacements`` prints three tables, and writes them into ``bench/results/<date>-glossary.md``:
changes that clean text suffers, by rule, for the glossaries of the lectures, of the texts' own fields, and for large
ones; terms made to be misheard that come back, and changes elsewhere in the same text; and how fast the whole
post-processing is with glossaries of 10 to 10,000 terms, on one core.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.clean_text import SOURCES, fetch, lectures, spoken
from bench.data import CHECKOUT, DEMO, SHARED_DATA
from bench.fields import FIELDS, field_glossary, lecture_glossaries, nouns
from bench.machine import describe
from bench.misheard import garble, sentences_with
from bench.report import grid
from pipeline.errors import LecturemillError
from pipeline.postprocess import Glossary, PostprocessOptions, postprocess
from pipeline.postprocess.glossary import correct_terms
from pipeline.values import Outcome, Replacement, Segment, SliceTranscript, Word

LARGE = (1_000, 10_000)
SPEEDS = (10, 100, 1_000, 10_000)
SHARE = 0.3
"""Of the terms in a text that are made to be misheard."""
SPELLED = ("case", "alias")
"""Rules that do what the editor of the glossary asked for: never false."""
SLICE_WORDS = 120


@dataclass
class Tally:
    """What happened in one text with one glossary."""

    characters: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    examples: Counter[str] = field(default_factory=Counter)

    def add(self, words: Sequence[Word], changes: Iterable[Replacement]) -> None:
        self.characters += len(words)
        for change in changes:
            if change.rule not in SPELLED:
                self.rules[change.rule] += 1
                self.examples[f"{change.before} → {change.after}"] += 1


@dataclass
class Mended:
    """Of the terms that were misheard, how many came back; what else was changed."""

    misheard: Counter[bool] = field(default_factory=Counter)
    """By whether the term has two characters only."""
    right: Counter[bool] = field(default_factory=Counter)
    wrong: int = 0


def count_false(pieces: Iterable[str], glossary: Glossary) -> Tally:
    """The replacements in text that has no error."""
    tally = Tally()
    for piece in pieces:
        words = spoken(piece)
        tally.add(words, correct_terms(words, "zh", glossary).replacements)
    return tally


def count_mended(pieces: Iterable[str], glossary: Glossary, seed: int = 1) -> Mended:
    """Terms made to be misheard, and which of them the glossary puts right."""
    rng, mended = random.Random(seed), Mended()
    for piece in pieces:
        garbled = garble(piece, glossary, SHARE, rng)
        wanted = Counter(garbled.pairs)
        changes = correct_terms(spoken(garbled.text), "zh", glossary).replacements
        made = Counter((one.before, one.after) for one in changes if one.rule not in SPELLED)
        for pair, number in wanted.items():
            mended.misheard[len(pair[1]) == 2] += number
            mended.right[len(pair[1]) == 2] += min(number, made[pair])
        mended.wrong += (made - wanted).total()
    return mended


def speed(piece: Sequence[Word], glossary: Glossary) -> float:
    """Times real time of the whole post-processing of these words, by processor time."""
    slices = [_slice(at, piece[at : at + SLICE_WORDS]) for at in range(0, len(piece), SLICE_WORDS)]
    postprocess(slices[:1], glossary, PostprocessOptions())  # dictionaries and the index are loaded once
    began_s = time.process_time()
    postprocess(slices, glossary, PostprocessOptions())
    return (piece[-1].end_ms - piece[0].start_ms) / 1000 / (time.process_time() - began_s)


def _slice(index: int, words: Sequence[Word]) -> SliceTranscript:
    start_ms, end_ms, text = words[0].start_ms, words[-1].end_ms, "".join(word.text for word in words)
    segment = Segment(start_ms, end_ms, text, tuple(words), -0.1, 0.0, 1.0, 0.0)
    return SliceTranscript("bench", index, "zh", 1.0, (segment,), Outcome.TRANSCRIBED, "", 1, 0)


def false_table(texts: Mapping[str, Sequence[str]]) -> str:
    """Glossaries against every text."""
    glossaries = {
        **lecture_glossaries(DEMO),
        **(lecture_glossaries(SHARED_DATA / "lectures") if SHARED_DATA.is_dir() else {}),
        **{name: field_glossary(name) for name in FIELDS},
        **{f"{count:,} nouns": nouns(count) for count in LARGE},
    }
    rows = []
    for name, glossary in glossaries.items():
        for text, pieces in texts.items():
            _say(f"false replacements: {name} on {text}")
            tally = count_false(pieces, glossary)
            total = tally.rules.total()
            rules = ", ".join(f"{rule} {number}" for rule, number in sorted(tally.rules.items())) or "none"
            examples = "; ".join(example for example, _ in tally.examples.most_common(4))
            million = f"{total / tally.characters * 1e6:.1f}"
            rows.append([name, str(len(glossary.terms)), text, f"{tally.characters:,}", million, rules, examples])
    head = ("glossary", "terms", "text", "characters", "false in a million", "by rule", "examples")
    return grid(head, rows)


def mended_table(texts: Mapping[str, Sequence[str]]) -> str:
    """Each field's glossary on its own text; where there is none, on invented sentences."""
    rows = []
    for name in FIELDS:
        _say(f"misheard terms: {name}")
        glossary = field_glossary(name)
        terms = [term.term for term in glossary.terms]
        rng = random.Random(2)
        invented = ["\n".join(sentences_with(terms, rng)) for _ in range(4)]
        mended = count_mended(texts.get(name, invented), glossary)
        shares = [_share(mended.right[short], mended.misheard[short]) for short in (True, False)]
        kind = "textbook" if name in texts else "invented sentences"
        rows.append([name, kind, str(mended.misheard.total()), *shares, str(mended.wrong)])
    head = ("field", "text", "misheard", "two characters: right again %", "longer: right again %", "changed elsewhere")
    return grid(head, rows)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def speed_table(pieces: Sequence[str]) -> str:
    words = spoken("".join(pieces))
    rows = []
    for count in SPEEDS:
        _say(f"speed: {count} terms")
        rows.append([f"{count:,}", f"{speed(words, nouns(count)):,.0f}"])
    return grid(("terms", "post-processing, x real time on one core"), rows)


def report(texts: Mapping[str, Sequence[str]]) -> str:
    """The three tables, with where and when they were made."""
    machine = describe("base", 1)
    said = ", ".join(f"{source.name} ({source.licence}, {source.url})" for source in SOURCES.values())
    return "\n\n".join(
        (
            "# Glossary: false replacements, misheard terms, speed",
            "## Changes in clean text",
            false_table(texts),
            "## Terms made to be misheard",
            mended_table(texts),
            "## Speed",
            speed_table(next(iter(texts.values()))[:40]),
            f"{machine.date}, commit {machine.commit}; {machine.processor}. Texts: {said}.\n",
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 measured; 1 the texts cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m bench.false_replacements", description=__doc__)
    parser.add_argument("--characters", type=int, default=500_000, help="of each text, at most")
    parser.add_argument("--copy", action="append", default=[], metavar="NAME=URL", help="clone a text from there")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results")
    given = parser.parse_args(arguments)
    copies = dict(pair.split("=", 1) for pair in given.copy)
    try:
        texts = {
            name: list(lectures(fetch(source, copies.get(source.name, "")), given.characters))
            for name, source in SOURCES.items()
        }
    except LecturemillError as error:
        _say(error.reason)
        return 1
    text = report(texts)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / f"{describe('base', 1).date}-glossary.md").write_text(text, "utf-8")
    print(text)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
