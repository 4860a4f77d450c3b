"""What steps 6 to 9 cost: ``python -m bench.postprocessing``.

From stored slice transcripts to cues, ledger and quality, on one core, without the engine: the lectures, Mandarin and
English, with and without their glossary, and an hour made of copies of each language's lectures laid end to end. Each
is run several times, and the least time counts (the machine is shared; a step cannot take less than it needs). Then
each step is timed by itself: functions of ``pipeline.finishing`` and of ``pipeline.postprocess``, each without those
that it calls.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from bench.data import CHECKOUT, load
from bench.machine import describe
from bench.transcripts import Kept, transcripts_of
from pipeline import finishing, postprocess
from pipeline.driver import LineOptions
from pipeline.errors import LecturemillError, UsageError
from pipeline.finishing import Heard, finish
from pipeline.values import Cost, MediaResult, Segment, Slice, SliceTranscript, Span, Word

WANTED_SPEED = 2_000
"""Times real time on one core: then post-processing costs less than a hundredth of what the engine does."""
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is run, and under which name."""

    name: str
    language: str
    glossary: bool
    kept: Kept


def cases() -> Iterator[Case]:
    """Each lecture, a very fast speaker, then an hour of each language, first without and then with its glossary."""
    every = [
        Case(item.name, item.language, with_glossary, transcripts_of(item, with_glossary=with_glossary))
        for name in ("lectures", "derived")
        for item in load(name)
        for with_glossary in ((False, True) if item.glossary else (False,))
    ]
    yield from every
    for item in load("swc"):
        yield Case(item.name, item.language, False, transcripts_of(item, with_glossary=False))
    for language in ("zh", "en"):
        for glossary in (False, True):
            some = [case.kept for case in every if (case.language, case.glossary) == (language, glossary)]
            if some:
                yield Case(f"an hour, {language}", language, glossary, laid_end_to_end(some))


def laid_end_to_end(some: Sequence[Kept]) -> Kept:
    """Copies of lectures one after the other until an hour is full; the glossary of the first."""
    slices: list[Slice] = []
    transcripts: list[SliceTranscript] = []
    index, offset_ms = count(), 0
    while offset_ms < HOUR_MS:
        for kept in some:
            for piece, transcript in zip(kept.slices, kept.transcripts, strict=True):
                number = next(index)
                slices.append(_moved_slice(piece, offset_ms, number))
                segments = tuple(_moved_segment(segment, offset_ms) for segment in transcript.segments)
                transcripts.append(replace(transcript, slice_index=number, segments=segments))
            offset_ms += kept.heard.duration_ms
    return Kept(tuple(slices), tuple(transcripts), Heard(offset_ms, (), ()), some[0].options)


def _moved(span: Span, by_ms: int) -> Span:
    return Span(span.start_ms + by_ms, span.end_ms + by_ms)


def _moved_slice(piece: Slice, by_ms: int, index: int) -> Slice:
    speech = tuple(_moved(span, by_ms) for span in piece.speech)
    return replace(piece, index=index, span=_moved(piece.span, by_ms), speech=speech)


def _moved_segment(segment: Segment, by_ms: int) -> Segment:
    def moved(word: Word) -> Word:
        return replace(word, start_ms=word.start_ms + by_ms, end_ms=word.end_ms + by_ms)

    words = tuple(map(moved, segment.words))
    return replace(segment, words=words, start_ms=segment.start_ms + by_ms, end_ms=segment.end_ms + by_ms)


def run(kept: Kept) -> MediaResult:
    """Steps 6 to 9 on one media."""
    options: LineOptions = kept.options
    text = (options.glossary, options.postprocess)
    return finish("bench", kept.slices, kept.transcripts, kept.heard, *text, Cost(0, 0, 0.0), options.profile)


def seconds(kept: Kept, rounds: int) -> float:
    """The least processor time of several runs; a first one, which loads tables, is not counted."""
    run(kept)
    return min(_timed(lambda: run(kept)) for _ in range(rounds))


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def by_step(kept: Kept) -> dict[str, float]:
    """Processor seconds of each step of one run, without those of the steps that it calls."""
    spent: dict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for module in (finishing, postprocess):
            for name, function in _steps(module):
                stack.enter_context(patch.object(module, name, _watched(name, function, spent)))
        run(kept)
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def _steps(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions of the line that a module calls by name."""
    for name, value in vars(module).items():
        is_function = callable(value) and not isinstance(value, type)
        if is_function and getattr(value, "__module__", "").startswith("pipeline."):
            yield name, value


_OPEN: list[float] = []
"""The time of inner steps, for each step that is running."""


def _watched(name: str, function: Callable[..., Any], spent: dict[str, float]) -> Callable[..., Any]:
    def watched(*arguments: Any, **named: Any) -> Any:
        with _watching(name, spent):
            return function(*arguments, **named)

    return watched


@contextmanager
def _watching(name: str, spent: dict[str, float]) -> Iterator[None]:
    _OPEN.append(0.0)
    started = time.process_time()
    try:
        yield
    finally:
        took = time.process_time() - started
        spent[name] += took - _OPEN.pop()
        if _OPEN:
            _OPEN[-1] += took


def markdown(rounds: int) -> tuple[str, bool]:
    """The report, and whether every media was fast enough."""
    rows, steps, fast = [], [], True
    for case in cases():
        length_s, took_s = case.kept.heard.duration_ms / 1000, seconds(case.kept, rounds)
        fast = fast and length_s / took_s >= WANTED_SPEED
        names = (case.name, "yes" if case.glossary else "no")
        rows.append((*names, f"{length_s:.0f}", f"{1000 * took_s:.1f}", f"{length_s / took_s:.0f}"))
        if case.name.startswith("an hour"):
            spent = by_step(case.kept)
            shares = ", ".join(f"{name} {1000 * part_s:.0f}" for name, part_s in spent.items() if part_s >= 0.001)
            steps.append((*names, shares))
    machine = describe("", threads=1)
    parts = [
        "# Steps 6 to 9 on one core",
        _table(("media", "glossary", "seconds", "ms", "x real time"), rows),
        f"Wanted: {WANTED_SPEED} x real time or more. ms: processor time, the least of {rounds} rounds, after one that "
        "loads dictionaries and models.",
        _table(("media", "glossary", "ms of each step, without the steps that it calls"), steps),
        f"{machine.date}, commit {machine.commit}; {machine.processor}, one core.",
    ]
    return "\n\n".join(parts) + "\n", fast


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, ["---"] * len(columns), *rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 fast enough; 1 not, or not measured; 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m bench.postprocessing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="of which the least time counts (default 15)")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results", help="where the report goes")
    given = parser.parse_args(arguments)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        report, is_fast = markdown(given.rounds)
    except LecturemillError as error:
        print(error.reason, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / f"{describe('', threads=1).date}-postprocessing.md").write_text(report, "utf-8")
    print(report)
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
