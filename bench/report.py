"""Tables out of measurements: one row a system, all on the same files in the same run. Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from bench.machine import Machine
from bench.scoring import MarkCount, Score, StartErrors, percentile

MIB = 1024 * 1024
COLUMNS = (
    "system",
    "x real time",
    "speed ratio",
    "peak MiB",
    "error %",
    "terms right %",
    "punct. F1",
    "question F1",
    "word start ms, median / p90",
    "cue start ms, median / p90",
    "cues",
    "violations",
)
LEGEND = (
    "error: characters (zh) or words (en). Starts: distance of each reference sentence from the word, or "
    "cue, that holds its first token; (n missed) are sentences not found. Violations: rules broken by cues; "
    "one cue may break several. Terms right: of the glossary's terms in the reference, those heard at their "
    "place. Speed ratio: median over the rounds of the first system's seconds by this one's. –: not measured "
    "or nothing to compare with."
)


@dataclass(frozen=True, slots=True)
class FileResult:
    """One system on one file: the seconds of each round, and the score."""

    system: str
    item: str
    language: str
    duration_ms: int
    seconds: tuple[float, ...]
    score: Score


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system on one set; ``problem`` says why it has no files."""

    system: str
    peak_bytes: int
    files: tuple[FileResult, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SetResult:
    """Everything measured on one set."""

    name: str
    rounds: int
    machine: Machine
    systems: tuple[SystemResult, ...]


def markdown(result: SetResult) -> str:
    """The whole report of a set: a table for each language, one of single files, the machine."""
    languages = dict.fromkeys(file.language for system in result.systems for file in system.files)
    parts = [f"# {result.name}"]
    for language in languages:
        parts += [f"## {result.name}, {language}", table(result, language), marks_table(result, language)]
    parts += [LEGEND, *_problems(result), "## Single files", _single_files(result), _facts(result)]
    return "\n\n".join(parts) + "\n"


def table(result: SetResult, language: str) -> str:
    """One side-by-side table; the first system that has files is what speeds are divided by."""
    chosen = [(system, _of_language(system.files, language)) for system in result.systems]
    shown = [(system, files) for system, files in chosen if files]
    base = round_seconds(shown[0][1]) if shown else ()
    return grid(COLUMNS, [_row(system, files, base) for system, files in shown])


def marks_table(result: SetResult, language: str) -> str:
    """F1 of each mark by itself, and how many of it the references have; a row a system."""
    totals = {system.system: total(_of_language(system.files, language)).by_mark for system in result.systems}
    signs = sorted({sign for marks in totals.values() for sign, count in marks.items() if count.expected})
    rows = [
        [name, *(_sign_f1(marks.get(sign, MarkCount())) for sign in signs)] for name, marks in totals.items() if marks
    ]
    return grid(("F1 by mark (in the references)", *signs), rows) if signs else "No marks to compare with."


def _sign_f1(count: MarkCount) -> str:
    return f"{_number(count.f1, 2)} ({count.expected})"


def round_seconds(files: Sequence[FileResult]) -> tuple[float, ...]:
    """The seconds of each round over all files."""
    return tuple(map(sum, zip(*(file.seconds for file in files), strict=True)))


def speed_ratio(base: Sequence[float], seconds: Sequence[float]) -> float:
    """How many times as fast as ``base``: the median over rounds, since both took turns in each of them.

    >>> speed_ratio([10.0, 12.0, 11.0], [5.0, 4.0, 5.5])
    2.0
    """
    return statistics.median(a / b for a, b in zip(base, seconds, strict=True))


def real_time(files: Sequence[FileResult]) -> float:
    """Seconds of media by seconds of work, each file by the median of its rounds."""
    worked = sum(statistics.median(file.seconds) for file in files)
    return sum(file.duration_ms for file in files) / 1000 / worked if worked else math.nan


def _row(system: SystemResult, files: Sequence[FileResult], base: Sequence[float]) -> list[str]:
    score = total(files)
    return [
        system.system,
        _number(real_time(files), 1),
        _ratio(base, files),
        str(round(system.peak_bytes / MIB)),
        _number(score.error.rate * 100, 1),
        _terms(score),
        _number(score.marks.f1, 2),
        _number(score.questions.f1, 2),
        _starts(score.word_starts),
        _starts(score.cue_starts),
        str(score.cues),
        str(len(score.violations)),
    ]


def total(files: Iterable[FileResult]) -> Score:
    """The scores of several files as one: counts added, starts pooled."""
    return reduce(add, (file.score for file in files), Score())


def _ratio(base: Sequence[float], files: Sequence[FileResult]) -> str:
    seconds = round_seconds(files)
    return _number(speed_ratio(base, seconds), 2) if len(base) == len(seconds) else "–"


def _of_language(files: Sequence[FileResult], language: str) -> list[FileResult]:
    return [file for file in files if file.language == language]


def _starts(starts: StartErrors) -> str:
    if not starts.errors_ms and not starts.missed:
        return "–"
    missed = f" ({starts.missed} missed)" if starts.missed else ""
    return " / ".join(_number(percentile(starts.errors_ms, p), 0) for p in (50, 90)) + missed


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _single_files(result: SetResult) -> str:
    rows = [
        [
            file.item,
            file.system,
            _number(real_time([file]), 1),
            _number(file.score.error.rate * 100, 1),
            _terms(file.score),
            _number(file.score.marks.f1, 2),
            _rules(file.score),
        ]
        for system in result.systems
        for file in system.files
    ]
    return grid(("file", "system", "x real time", "error %", "terms right %", "punct. F1", "violations"), sorted(rows))


def _terms(score: Score) -> str:
    return _number(100 * score.terms.right / score.terms.expected, 1) if score.terms.expected else "–"


def _rules(score: Score) -> str:
    return ", ".join(f"{rule} {count}" for rule, count in sorted(Counter(score.violations).items())) or "none"


def _problems(result: SetResult) -> list[str]:
    return [f"{system.system}: not measured: {system.problem}" for system in result.systems if system.problem]


def _facts(result: SetResult) -> str:
    machine = result.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    return (
        f"{machine.date}, commit {machine.commit}; {machine.processor}, {machine.cores} cores, "
        f"{machine.threads} threads; model {machine.model}; {result.rounds} round(s), systems in turn on "
        f"each file; {versions}."
    )


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
