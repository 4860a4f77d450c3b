"""The atoms of one media as columns, and how a run of them stands in one line or two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pipeline.cue_breaking import Atom
from pipeline.cue_profiles import CueProfile, half_units

SHARING_PAUSE_MS = 1500
"""Sentences this far apart never share a cue."""
FELT_PAUSE_MS = 500
"""Inside a cue, pauses from here on cost the more the longer they are."""

BROKEN = 1_000_000
"""What a broken rule costs; all that follows is style and never adds up to it."""
HOPELESS = 100 * BROKEN
SHARED = 1_000
"""A sentence that begins inside a cue."""
LONG_PAUSE = 40
"""A long pause inside a cue."""
UNEVEN = 6
"""What two lines cost where one of them is empty; 0 where they are equally long."""


@dataclass(frozen=True, slots=True)
class Run:
    """The atoms ``[first, last)`` that stand in one cue, and how far its start is moved."""

    first: int
    last: int
    shift_ms: int


class Table:
    """The atoms of one media as columns, with the prefix sums that make a cut cheap to judge. Read-only."""

    def __init__(self, atoms: Sequence[Atom], media_end_ms: int) -> None:
        self.atoms = atoms
        self.media_end_ms = media_end_ms
        self.starts = [atom.start_ms for atom in atoms]
        self.ends = list(accumulate((atom.end_ms for atom in atoms), max))
        self.opens = [atom.opens_sentence for atom in atoms] + [True]
        self.break_costs = [atom.break_cost for atom in atoms] + [0]
        self.leads = [atom.text[0] == " " for atom in atoms]
        self.profiles = sorted({atom.profile for atom in atoms}, key=_laxness, reverse=True)
        self.ranks = [self.profiles.index(atom.profile) for atom in atoms]
        self.widths = [self._widths(profile) for profile in self.profiles]
        self.line_starts = list(map(self._line_starts, self.widths, self.profiles))
        self.sharing = list(accumulate(map(self._sharing_cost, range(len(atoms))), initial=0))

    def _widths(self, profile: CueProfile) -> list[int]:
        return list(accumulate((half_units(atom.text, profile) for atom in self.atoms), initial=0))

    def _line_starts(self, widths: Sequence[int], profile: CueProfile) -> list[int]:
        """Where a line that begins with an atom begins among the widths: behind the atom's space."""
        space = half_units(" ", profile)
        return [width + space * lead for width, lead in zip(widths, self.leads, strict=False)]

    def _sharing_cost(self, index: int) -> int:
        pause_ms = self.pause_ms(index)
        if index and self.atoms[index].speaker != self.atoms[index - 1].speaker:
            return HOPELESS
        if self.atoms[index].opens_sentence:
            return SHARED if pause_ms < SHARING_PAUSE_MS else HOPELESS
        if pause_ms >= SHARING_PAUSE_MS:
            return LONG_PAUSE
        return pause_ms // 100 if pause_ms >= FELT_PAUSE_MS else 0

    def pause_ms(self, index: int) -> int:
        """Return the silence before an atom; the time from 0 for the first one."""
        before_ms = self.ends[index - 1] if index else 0
        return max(0, self.starts[index] - before_ms)

    def limit_ms(self, index: int) -> int:
        """Return when the cue that ends before atom ``index`` must be gone, the gap not yet counted."""
        return self.starts[index] if index < len(self.atoms) else self.media_end_ms

    def width(self, first: int, last: int, rank: int) -> int:
        """Return the width of ``[first, last)`` as one line, in half units of the profile ``rank``."""
        return self.widths[rank][last] - self.line_starts[rank][first]

    def rank(self, first: int, last: int) -> int:
        """Return the index of the strictest profile among the atoms ``[first, last)``."""
        return max(self.ranks[first:last])


def _laxness(profile: CueProfile) -> tuple[int, int, str]:
    return profile.max_units_per_line, profile.max_units_per_second, profile.name


def split_of(table: Table, begin: int, end: int, rank: int) -> tuple[int, int] | None:
    """Return cost and place of the best break into two lines, or None where the run does not fit two."""
    profile = table.profiles[rank]
    if profile.max_lines == 1:
        return None
    widths, starts, room = table.widths[rank], table.line_starts[rank], 2 * profile.max_units_per_line
    base, whole, costs = starts[begin], widths[end], table.break_costs
    least, best = HOPELESS, 0
    for middle in range(min(bisect_right(widths, base + room, begin, end + 1) - 1, end - 1), begin, -1):
        right = whole - starts[middle]
        if right > room:
            break
        cost = costs[middle] // 2 + UNEVEN * abs(widths[middle] - base - right) // room
        if cost < least:
            least, best = cost, middle
    return (least, best) if best else None


def lines_of(table: Table, run: Run) -> tuple[str, ...]:
    """Lay out a run: one line where it fits, else the best two, more where nothing else is left."""
    rank = table.rank(run.first, run.last)
    profile = table.profiles[rank]
    if run.last - run.first == 1 or table.width(run.first, run.last, rank) <= 2 * profile.max_units_per_line:
        return (_text(table, run.first, run.last),)
    split = split_of(table, run.first, run.last, rank)
    if split:
        return _text(table, run.first, split[1]), _text(table, split[1], run.last)
    return tuple(_filled(table, run, rank))


def _filled(table: Table, run: Run, rank: int) -> Iterator[str]:
    begin, room = run.first, 2 * table.profiles[rank].max_units_per_line
    for end in range(run.first + 1, run.last + 1):
        if end == run.last or table.width(begin, end + 1, rank) > room:
            yield _text(table, begin, end)
            begin = end


def _text(table: Table, first: int, last: int) -> str:
    return "".join(atom.text for atom in table.atoms[first:last]).strip()
