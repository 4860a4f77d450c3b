"""Which atoms stand in one cue: a dynamic programme that weighs every way of cutting, never greedily.

A cue's start is its first word's, so how long a cue can stay depends only on where it and the next one
begin; each cut can be judged alone. Costs are ordered by magnitude, so that one kind is only ever paid to
save a greater one: a broken rule, then a moved start, then a sentence that shares a cue, then style.

1. Each sentence is cut by itself.
2. Where a rule is still broken, the sentence and its neighbours are cut again and may share cues.
3. Where that was not enough, starts there may also move a little (``EARLY_MS``, ``LATE_MS``).
4. Where even that was not, because the speaker is faster than anybody reads, cues may lag behind (``LAGS_MS``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pipeline.cue_profiles import CueProfile, reading_ms
from pipeline.cue_table import BROKEN, Run, Table, split_of

EARLY_MS = 700
"""How far a cue may start ahead of its first word, into silence: a word of 133 ms can then end the media."""
LATE_MS = 200
"""How far a cue may start behind its first word."""
LAGS_MS = (700, 1500)
"""How far it may lag behind a speaker who is too fast (BBC Subtitle Guidelines: never more than 1.5 s)."""

INFINITE = 10**18
MOVED = 10_000
PER_CUE = 6
PER_LINE = 3
"""What a second line costs."""
OUTLIVED = 8
"""A last word that is spoken beyond the longest duration (a word stretched over silence, as Whisper does)."""
ORPHAN = 6
"""A scrap of a sentence, less than half a line."""
SHORTFALL = 6 * BROKEN
"""Between cuts that all break a rule: several cues a little too fast are better than one that nobody can read."""
REACH = 2
"""How many neighbours on each side help a sentence that breaks a rule."""


def solve(table: Table) -> list[Run]:
    """Cut all atoms of the table into cues; every atom is in exactly one run, in order."""
    bounds = [index for index, opens in enumerate(table.opens) if opens]
    alone: list[tuple[int, list[Run]]] = []
    known: dict[int, list[_Candidate]] = {}
    for first, last in pairwise(bounds):
        candidates = {end: list(_candidates(table, first, end)) for end in range(first + 1, last + 1)}
        alone.append(_cut(table, first, last, None, candidates))
        if alone[-1][0] >= BROKEN:
            known |= candidates
    troubled = [index for index, (cost, _) in enumerate(alone) if cost >= BROKEN]
    runs: list[Run] = []
    done = 0
    for first, last in _regions(troubled, len(alone)):
        runs.extend(run for _, cut in alone[done:first] for run in cut)
        runs.extend(_cut_again(table, bounds[first], bounds[last], known))
        done = last
    runs.extend(run for _, cut in alone[done:] for run in cut)
    return runs


def _cut_again(table: Table, first: int, last: int, known: Mapping[int, Sequence[_Candidate]]) -> list[Run]:
    ends = range(first + 1, last + 1)
    candidates = {end: list(_candidates(table, first, end, known.get(end, ()))) for end in ends}
    runs: list[Run] = []
    for lateness_ms in (None, (LATE_MS,), (LATE_MS, *LAGS_MS)):
        cost, runs = _cut(table, first, last, lateness_ms, candidates)
        if cost < BROKEN:
            break
    return runs


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


_State = tuple[int, int, int, int]
"""The least cost up to an atom, the atom where its last run begins, the state there, the shift of what follows."""


_Candidate = tuple[int, CueProfile, int, int, int]
"""A run that may end at some atom: where it begins, its profile, its cost, the time that it needs on screen, its start
with the gap that must follow the run.
"""


def _cut(
    table: Table,
    first: int,
    last: int,
    lateness_ms: Sequence[int] | None,
    candidates: Mapping[int, Sequence[_Candidate]],
) -> tuple[int, list[Run]]:
    """Return the cost and the runs of the best cut; starts move only where ``lateness_ms`` says how far.

    ``candidates`` are those of each end after ``first``.
    """
    shifts = _shifts(table, first, first, last, lateness_ms)
    best: list[list[_State]] = [
        [(_moving_cost(shift_ms), first, 0, shift_ms) for shift_ms in shifts if shift_ms <= 0],
    ]
    for end in range(first + 1, last + 1):
        shifts = _shifts(table, end, first, last, lateness_ms)
        best.append(_states(table, first, end, shifts, candidates[end], best))
    return best[-1][0][0], _traced(best, first, last)


def _states(
    table: Table,
    first: int,
    end: int,
    shifts: Sequence[int],
    candidates: Sequence[_Candidate],
    best: Sequence[Sequence[_State]],
) -> list[_State]:
    """The states at ``end`` by their shift, those that are cheaper than every earlier start: a later one only loses
    time. So the last is the cheapest, and without its own price a shift costs no more than the one before.
    """
    kept: list[_State] = []
    bound = INFINITE
    for shift_ms in shifts:
        moving = _moving_cost(shift_ms)
        if kept:
            bound = min(bound, kept[-1][0] - moving)
        way = _best_way(first, table.limit_ms(end) + shift_ms, candidates, best, bound)
        if way:
            cost, begin, option = way
            kept.append((cost + moving, begin, option, shift_ms))
            bound = cost + 1
    return kept


def _shifts(table: Table, index: int, first: int, last: int, lateness_ms: Sequence[int] | None) -> tuple[int, ...]:
    """Return how far a cue that begins at this atom may be moved, from the earliest on."""
    if lateness_ms is None or index == last or (index == first and index > 0):
        return (0,)
    early_ms = min(EARLY_MS, table.pause_ms(index))
    late_ms = [late_ms for late_ms in lateness_ms if table.starts[index] + late_ms < table.media_end_ms]
    return (*([-early_ms] if early_ms else []), 0, *late_ms)


def _moving_cost(shift_ms: int) -> int:
    """A lag costs the more the longer it is.

    >>> _moving_cost(0), _moving_cost(-700), _moving_cost(200), _moving_cost(1500)
    (0, 10000, 10000, 70000)
    """
    return MOVED * max(1, shift_ms // LATE_MS) if shift_ms > LATE_MS else MOVED if shift_ms else 0


def _candidates(table: Table, first: int, end: int, known: Sequence[_Candidate] = ()) -> Iterator[_Candidate]:
    """Yield each run that may end before ``end``, the shortest first; ``known`` are the first of them."""
    yield from known
    rank = table.rank(end - len(known), end) if known else 0
    ranks, profiles, starts = table.ranks, table.profiles, table.starts
    spoken_ms, is_last = starts[end - 1], end == len(table.atoms)
    for begin in range(end - 1 - len(known), first - 1, -1):
        if ranks[begin] > rank:
            rank = ranks[begin]
        profile, start_ms = profiles[rank], starts[begin]
        if begin < end - 1 and spoken_ms - start_ms > profile.max_duration_ms:
            return
        width = table.width(begin, end, rank)
        cost = _fixed_cost(table, begin, end, rank, width)
        if cost < 0:
            return
        yield begin, profile, cost, reading_ms(width, profile), start_ms + (0 if is_last else profile.min_gap_ms)


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


def _best_way(
    first: int, limit_ms: int, candidates: Sequence[_Candidate], best: Sequence[Sequence[_State]], bound: int
) -> tuple[int, int, int] | None:
    """The cheapest run that must be gone at ``limit_ms``: its cost, its begin and the state there; None where none
    costs less than ``bound``.
    """
    least, winner = bound, None
    for begin, profile, fixed, need_ms, opens_ms in candidates:
        states = best[begin - first]
        is_short = limit_ms - opens_ms - states[0][3] < need_ms  # from the earliest start, and so from any
        if states[-1][0] + fixed + (BROKEN if is_short else 0) >= least:
            continue
        for option, state in enumerate(states):
            cost = state[0] + fixed
            if cost >= least:
                continue
            shown_ms = min(limit_ms - opens_ms - state[3], profile.max_duration_ms)
            if shown_ms < need_ms:
                cost += _shortfall_cost(shown_ms, need_ms, profile) if cost + BROKEN < least else BROKEN
            if cost < least:
                least, winner = cost, (begin, option)
    return (least, *winner) if winner else None


def _shortfall_cost(shown_ms: int, need_ms: int, profile: CueProfile) -> int:
    if shown_ms <= profile.min_gap_ms:
        return 10 * BROKEN
    return BROKEN + SHORTFALL * (need_ms - shown_ms) ** 2 // need_ms**2


def _traced(best: Sequence[Sequence[_State]], first: int, last: int) -> list[Run]:
    runs: list[Run] = []
    end, option = last, 0
    while end > first:
        _, begin, previous, _ = best[end - first][option]
        runs.append(Run(begin, end, best[begin - first][previous][3]))
        end, option = begin, previous
    runs.reverse()
    return runs
