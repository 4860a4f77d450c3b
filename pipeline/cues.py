"""Cues: the sentences of a transcript as timed subtitles that a person can read in the time given.

Rules and limits: ``cue_profiles``. Where text may break: ``cue_breaking``. Which words share a cue:
``cue_solving``. Here: when each cue comes and goes, and the judge that knows nothing of how it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.cue_breaking import atoms_of
from pipeline.cue_profiles import CueProfile, half_units, profile_for, reading_ms
from pipeline.cue_solving import solve
from pipeline.cue_table import Run, Table, lines_of
from pipeline.postprocess.term_spans import NO_TERMS, TermSpotter
from pipeline.values import Cue, Sentence, Violation

__all__ = ["CueProfile", "CueSheet", "check_cues", "lay_out", "make_cues", "profile_for"]

LINGER_MS = 300
"""How long a cue stays after it is read and spoken, where there is room."""


@dataclass(frozen=True, slots=True)
class CueSheet:
    """The cues of a media, every rule that could not be kept, and how many words stand in each cue."""

    cues: tuple[Cue, ...]
    violations: tuple[Violation, ...]
    word_counts: tuple[int, ...]
    """They add up to the words of all sentences that are not blank."""


def make_cues(
    sentences: Sequence[Sentence],
    profile_of: Callable[[str], CueProfile],
    media_end_ms: int,
    terms: TermSpotter = NO_TERMS,
) -> tuple[tuple[Cue, ...], tuple[Violation, ...]]:
    """The cues of ``lay_out``, and every rule that could not be kept."""
    sheet = lay_out(sentences, profile_of, media_end_ms, terms)
    return sheet.cues, sheet.violations


def lay_out(
    sentences: Sequence[Sentence],
    profile_of: Callable[[str], CueProfile],
    media_end_ms: int,
    terms: TermSpotter = NO_TERMS,
) -> CueSheet:
    """Cut sentences into cues and time them; also return every rule that could not be kept.

    A cue starts with its first word. Only where a rule would be broken do sentences share a cue, and only
    where that does not help does a start move: at most 700 ms ahead, into silence, or 200 ms back. Words
    that share one time (which no rule can serve) divide the time until the next ones, or one cue.

    ``profile_of`` maps a sentence's language to its profile; ``media_end_ms`` is where the media ends, and
    no cue outlasts it; no cue or line breaks inside one of ``terms``, unless it is longer than a line. A change of
    speaker begins a cue, with a dash.
    Every word is in exactly one cue, in order; no words, no cues.
    """
    table = Table(atoms_of(sentences, profile_of, media_end_ms, terms), max(1, media_end_ms))
    runs = solve(table)
    runs, starts = _parted(table, runs, _starts(table, runs))
    ends = _ends(table, runs, starts)
    cues = tuple(
        Cue(start, end, lines_of(table, run), table.atoms[run.first].speaker)
        for run, start, end in zip(runs, starts, ends, strict=True)
    )
    violations = check_cues(cues, [_profile(table, run) for run in runs], media_end_ms=media_end_ms)
    counts = tuple(sum(atom.word_count for atom in table.atoms[run.first : run.last]) for run in runs)
    return CueSheet(cues, violations, counts)


def _profile(table: Table, run: Run) -> CueProfile:
    return table.profiles[table.rank(run.first, run.last)]


def _need_ms(table: Table, run: Run) -> int:
    rank = table.rank(run.first, run.last)
    return reading_ms(table.width(run.first, run.last, rank), table.profiles[rank])


def _starts(table: Table, runs: Sequence[Run]) -> list[int]:
    """Return when each cue starts, moving a start no further than its cue or the one before it needs."""
    starts = [table.starts[run.first] + run.shift_ms for run in runs]
    for index, run in enumerate(runs):
        spoken_ms = table.starts[run.first]
        if run.shift_ms < 0:
            latest_ms = _latest_end_ms(table, runs, starts, index) - _need_ms(table, run)
            starts[index] = max(starts[index], min(spoken_ms, latest_ms))
        elif run.shift_ms > 0 and index:
            before = runs[index - 1]
            free_ms = starts[index - 1] + _need_ms(table, before) + _profile(table, before).min_gap_ms
            starts[index] = min(starts[index], max(spoken_ms, free_ms))
    return starts


def _latest_end_ms(table: Table, runs: Sequence[Run], starts: Sequence[int], index: int) -> int:
    if index + 1 == len(runs):
        return table.media_end_ms
    return starts[index + 1] - _profile(table, runs[index]).min_gap_ms


def _parted(table: Table, runs: list[Run], starts: list[int]) -> tuple[list[Run], list[int]]:
    """Give cues that start at (nearly) one time a time each, or make them one where there is none to give."""
    parted_runs: list[Run] = []
    parted_starts: list[int] = []
    for group in _crowds(table, runs, starts):
        first, last = group
        end_ms = starts[last] if last < len(runs) else table.media_end_ms
        share_ms = (end_ms - starts[first]) // (last - first)
        if last - first == 1 or share_ms >= 2 * _profile(table, runs[first]).min_gap_ms:
            parted_runs.extend(runs[first:last])
            parted_starts.extend(starts[first] + share_ms * index for index in range(last - first))
        else:
            parted_runs.append(Run(runs[first].first, runs[last - 1].last, 0))
            parted_starts.append(starts[first])
    return parted_runs, parted_starts


def _crowds(table: Table, runs: Sequence[Run], starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield index ranges of cues; those whose starts leave no time for the gap between them come together."""
    first, latest_ms = 0, 0
    for index in range(1, len(runs) + 1):
        gap_ms = 2 * _profile(table, runs[index - 1]).min_gap_ms
        latest_ms = max(latest_ms, starts[index - 1])
        if index == len(runs) or starts[index] - latest_ms >= gap_ms:
            yield first, index
            first = index


def _ends(table: Table, runs: Sequence[Run], starts: Sequence[int]) -> list[int]:
    return [_end_ms(table, runs, starts, index) for index in range(len(runs))]


def _end_ms(table: Table, runs: Sequence[Run], starts: Sequence[int], index: int) -> int:
    """Return when a cue goes: when spoken and read, then a little later where there is room."""
    run, profile = runs[index], _profile(table, runs[index])
    limit_ms = min(starts[index] + profile.max_duration_ms, _latest_end_ms(table, runs, starts, index))
    needed_ms = max(table.ends[run.last - 1], starts[index] + _need_ms(table, run))
    end_ms = min(needed_ms + LINGER_MS, limit_ms)
    if index + 1 < len(runs) and starts[index + 1] - end_ms < profile.closing_gap_ms:
        return limit_ms
    return end_ms


def check_cues(
    cues: Sequence[Cue],
    profiles: CueProfile | Sequence[CueProfile],
    *,
    media_end_ms: int | None = None,
) -> tuple[Violation, ...]:
    """Judge finished cues, however they were made, by one profile or by one each.

    The rules: ``line_too_long``, ``too_many_lines``, ``empty`` (a cue or a line without text), ``too_fast``,
    ``too_short``, ``too_long``, ``overlap``, ``gap_too_small``, ``past_media_end``. Lengths in units, speed
    in units a second over the text without its line breaks, times in milliseconds.
    """
    each = [profiles] * len(cues) if isinstance(profiles, CueProfile) else profiles
    violations: list[Violation] = []
    for index, (cue, profile) in enumerate(zip(cues, each, strict=True)):
        violations.extend(_text_violations(index, cue, profile))
        violations.extend(_time_violations(index, cue, profile, media_end_ms))
    for index, (cue, following) in enumerate(pairwise(cues)):
        violations.extend(_gap_violations(index, cue, following, each[index]))
    return tuple(sorted(violations, key=lambda violation: violation.cue_index))


def _text_violations(index: int, cue: Cue, profile: CueProfile) -> Iterator[Violation]:
    if not cue.lines or not all(line.strip() for line in cue.lines):
        yield Violation(index, "empty", 0, 1)
    if len(cue.lines) > profile.max_lines:
        yield Violation(index, "too_many_lines", len(cue.lines), profile.max_lines)
    longest = max((half_units(line, profile) / 2 for line in cue.lines), default=0)
    if longest > profile.max_units_per_line:
        yield Violation(index, "line_too_long", longest, profile.max_units_per_line)


def _time_violations(index: int, cue: Cue, profile: CueProfile, media_end_ms: int | None) -> Iterator[Violation]:
    shown_ms = cue.end_ms - cue.start_ms
    units = sum(half_units(line, profile) for line in cue.lines) / 2
    if units * 1000 > profile.max_units_per_second * shown_ms:
        speed = units * 1000 / shown_ms if shown_ms > 0 else float("inf")
        yield Violation(index, "too_fast", speed, profile.max_units_per_second)
    if shown_ms < profile.min_duration_ms:
        yield Violation(index, "too_short", shown_ms, profile.min_duration_ms)
    if shown_ms > profile.max_duration_ms:
        yield Violation(index, "too_long", shown_ms, profile.max_duration_ms)
    if media_end_ms is not None and cue.end_ms > media_end_ms:
        yield Violation(index, "past_media_end", cue.end_ms, media_end_ms)


def _gap_violations(index: int, cue: Cue, following: Cue, profile: CueProfile) -> Iterator[Violation]:
    gap_ms = following.start_ms - cue.end_ms
    if gap_ms < 0:
        yield Violation(index, "overlap", gap_ms, 0)
    elif gap_ms < profile.min_gap_ms:
        yield Violation(index, "gap_too_small", gap_ms, profile.min_gap_ms)
