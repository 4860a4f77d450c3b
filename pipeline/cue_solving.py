"""Which atoms stand in one cue: a dynamic programme that weighs every way of cutting, never greedily.

A cue's start is its first word's, so how long a cue can stay depends only on where it and the next one
begin; each cut can be judged alone. Costs are ordered by magnitude, so that one kind is only ever paid to
save a greater one: a broken rule, then a moved start, then a sentence that shares a cue, then style.

1. Each sentence is cut by itself.
2. Where a rule is still broken, the sentence and its neighbours are cut again and may share cues.
3. Where that was not enough, starts there may also move a little (``EARLY_MS``, ``LATE_MS``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pipeline.cue_profiles import CueProfile, reading_ms
from pipeline.cue_table import BROKEN, Run, Table, split_of

EARLY_MS = 700
"""How far a cue may start ahead of its first word, into silence: a word of 133 ms can then end the media."""
LATE_MS = 200
"""How far a cue may start behind its first word."""

MOVED = 10_000
PER_CUE = 6
PER_LINE = 3
"""What a second line costs."""
OUTLIVED = 8
"""A last word that is spoken beyond the longest duration (a word stretched over silence, as Whisper does)."""
ORPHAN = 6
"""A scrap of a sentence, less than half a line."""
SHORTFALL = 200
"""Between cuts that all break a rule, how much worse it is to break it further."""
REACH = 2
"""How many neighbours on each side help a sentence that breaks a rule."""


def solve(table: Table) -> list[Run]:
    """Cut all atoms of the table into cues; every atom is in exactly one run, in order."""
    bounds = [index for index, opens in enumerate(table.opens) if opens]
    alone = [_cut(table, first, last, may_move=False) for first, last in pairwise(bounds)]
    troubled = [index for index, (cost, _) in enumerate(alone) if cost >= BROKEN]
    runs: list[Run] = []
    done = 0
    for first, last in _regions(troubled, len(alone)):
        runs.extend(run for _, cut in alone[done:first] for run in cut)
        runs.extend(_cut_again(table, bounds[first], bounds[last]))
        done = last
    runs.extend(run for _, cut in alone[done:] for run in cut)
    return runs


def _cut_again(table: Table, first: int, last: int) -> list[Run]:
    cost, runs = _cut(table, first, last, may_move=False)
    return runs if cost < BROKEN else _cut(table, first, last, may_move=True)[1]


def _regions(troubled: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Widen each troubled sentence by its neighbours and join what then touches.

    >>> list(_regions([1, 4, 20], 21))
    [(0, 7), (18, 21)]
    """
    region: tuple[int, int] | None = None
    for index in troubled:
        first, last = max(0, index - REACH), min(count, index + REACH + 1)
        if region and first <= region[1]:
            region = region[0], last
            continue
        if region:
            yield region
        region = first, last
    if region:
        yield region


_State = tuple[int, int, int]
"""The least cost up to an atom, the atom where its last run begins, the option of shift that run takes."""


def _cut(table: Table, first: int, last: int, *, may_move: bool) -> tuple[int, list[Run]]:
    options = [_shifts(table, index, first, last) if may_move else (0,) for index in range(first, last + 1)]
    best: list[list[_State]] = [[(0 if shift == 0 else MOVED, first, 0) for shift in options[0]]]
    for end in range(first + 1, last + 1):
        candidates = list(_candidates(table, first, end))
        best.append(
            [_best_state(table, first, end, shift, candidates, options, best) for shift in options[end - first]]
        )
    return best[-1][0][0], _traced(options, best, first, last)


def _shifts(table: Table, index: int, first: int, last: int) -> tuple[int, ...]:
    """Return how far a cue that begins at this atom may be moved; 0 always comes first."""
    if index == last or (index == first and index > 0):
        return (0,)
    early_ms = min(EARLY_MS, table.pause_ms(index))
    late_ms = LATE_MS if table.starts[index] + LATE_MS < table.media_end_ms else 0
    return (0, *(shift_ms for shift_ms in (-early_ms, late_ms) if shift_ms))


def _candidates(table: Table, first: int, end: int) -> Iterator[tuple[int, CueProfile, int, int]]:
    """Yield each run that may end before ``end``: its beginning, its profile, its cost, the time it needs."""
    rank, spoken_ms = 0, table.starts[end - 1]
    for begin in range(end - 1, first - 1, -1):
        rank = max(rank, table.ranks[begin])
        profile = table.profiles[rank]
        width = table.width(begin, end, rank)
        cost = _fixed_cost(table, begin, end, rank, width)
        if cost < 0 or (begin < end - 1 and spoken_ms - table.starts[begin] > profile.max_duration_ms):
            return
        yield begin, profile, cost, reading_ms(width, profile)


def _fixed_cost(table: Table, begin: int, end: int, rank: int, width: int) -> int:
    """Judge a run by everything but its time on screen; -1 where it does not fit its lines."""
    profile = table.profiles[rank]
    room = 2 * profile.max_units_per_line
    cost = PER_CUE + table.break_costs[end] + table.sharing[end] - table.sharing[begin + 1]
    if table.ends[end - 1] - table.starts[begin] > profile.max_duration_ms:
        cost += OUTLIVED
    if width <= room:
        return cost + _orphan_cost(table, begin, end, room, width)
    if end - begin == 1:
        return cost + BROKEN
    split = split_of(table, begin, end, rank)
    return cost + PER_LINE + split[0] if split else -1


def _orphan_cost(table: Table, begin: int, end: int, room: int, width: int) -> int:
    if 2 * width >= room or (table.opens[begin] and table.opens[end]):
        return 0
    return ORPHAN * (room - 2 * width) // room


def _best_state(
    table: Table,
    first: int,
    end: int,
    shift_ms: int,
    candidates: Sequence[tuple[int, CueProfile, int, int]],
    options: Sequence[tuple[int, ...]],
    best: Sequence[Sequence[_State]],
) -> _State:
    limit_ms = table.limit_ms(end) + shift_ms
    winner: _State | None = None
    for begin, profile, fixed, need_ms in candidates:
        gone_ms = limit_ms - profile.min_gap_ms if end < len(table.atoms) else limit_ms
        for option, moved_ms in enumerate(options[begin - first]):
            shown_ms = min(gone_ms - table.starts[begin] - moved_ms, profile.max_duration_ms)
            cost = best[begin - first][option][0] + fixed
            if shown_ms < need_ms:
                cost += _shortfall_cost(shown_ms, need_ms, profile)
            if winner is None or cost < winner[0]:
                winner = cost, begin, option
    assert winner is not None  # a single atom always is a candidate
    return winner[0] + (MOVED if shift_ms else 0), winner[1], winner[2]


def _shortfall_cost(shown_ms: int, need_ms: int, profile: CueProfile) -> int:
    if shown_ms <= profile.min_gap_ms:
        return 10 * BROKEN
    return BROKEN + SHORTFALL * (need_ms - shown_ms) // need_ms


def _traced(options: Sequence[tuple[int, ...]], best: Sequence[Sequence[_State]], first: int, last: int) -> list[Run]:
    runs: list[Run] = []
    end, option = last, 0
    while end > first:
        _, begin, previous = best[end - first][option]
        runs.append(Run(begin, end, options[begin - first][previous]))
        end, option = begin, previous
    runs.reverse()
    return runs
