"""How good the marks are, file by file and mark by mark: ``python -m bench.punctuation [--sets lectures]``.

Works on transcripts that were heard once (``bench/transcripts.py``), so that a rule can be judged in seconds. A file
that has a glossary is finished without it and with it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from bench.data import SETS, load
from bench.scoring import Score, score
from bench.transcripts import Kept, transcripts_of
from bench.values import Hypothesis, Item, Timed
from pipeline.postprocess import Postprocessed, PostprocessOptions, postprocess
from pipeline.stitching import stitch

COLUMNS = ("file", "glossary", "F1", "F1 with the step off", "F1 of questions")


@dataclass(frozen=True, slots=True)
class Row:
    """One file, finished with or without its glossary; ``bare`` is the score with the step switched off."""

    item: Item
    with_glossary: bool
    score: Score
    bare: Score


def rows(items: Sequence[Item]) -> Iterator[Row]:
    """Every file that has marks to compare with, without and with its glossary."""
    for item in items:
        for with_glossary in (False, True) if item.glossary else (False,):
            if item.is_punctuated:
                yield _row(item, with_glossary, transcripts_of(item, with_glossary=with_glossary))


def _row(item: Item, with_glossary: bool, kept: Kept) -> Row:
    options = kept.options.postprocess
    scores = [_score(item, _finished(kept, replace(options, punctuation=is_on))) for is_on in (True, False)]
    return Row(item, with_glossary, *scores)


def _finished(kept: Kept, options: PostprocessOptions) -> Postprocessed:
    stitched = stitch(kept.slices, kept.transcripts)
    return postprocess([transcript for _, transcript in stitched], kept.options.glossary, options)


def _score(item: Item, done: Postprocessed) -> Score:
    shown = tuple(Timed(sentence.text, sentence.start_ms, sentence.end_ms) for sentence in done.sentences)
    hypothesis = Hypothesis(shown, ())
    return score(item, hypothesis, hypothesis)


def report(done: Sequence[Row]) -> str:
    """A table of the files, and a line for each mark of each language."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *(_line(row) for row in done)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    languages = dict.fromkeys(row.item.language for row in done)
    return "\n\n".join([table, *(_by_mark(language, done) for language in languages)])


def _line(row: Row) -> tuple[str, ...]:
    figures = row.score.marks.f1, row.bare.marks.f1, row.score.questions.f1
    return row.item.name, "yes" if row.with_glossary else "no", *(f"{figure:.3f}" for figure in figures)


def _by_mark(language: str, done: Sequence[Row]) -> str:
    total = reduce(add, (row.score for row in done if row.item.language == language), Score())
    marks = ", ".join(f"{sign} {count.f1:.2f} of {count.expected}" for sign, count in total.by_mark.items())
    return f"{language}: F1 {total.marks.f1:.3f}; by mark: {marks}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report of the sets."""
    parser = argparse.ArgumentParser(prog="python -m bench.punctuation", description="Measure the punctuation.")
    parser.add_argument("--sets", default="demo,lectures", help=f"comma-separated: {', '.join(SETS)}")
    given = parser.parse_args(arguments)
    print(report([row for name in given.sets.split(",") for row in rows(load(name))]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
