"""Processor time, by process, out of /proc (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """A line of ``/proc/PID/stat``: ticks of the processor, its own and those of children that have ended."""

    parent: int
    own: int
    reaped: int


def parse_stat(line: str) -> Stat:
    """
    >>> parse_stat("7 (a) b) S 3 7 7 0 -1 0 1 2 3 4 50 6 700 80 20 0 1 0 9")
    Stat(parent=3, own=56, reaped=780)
    """
    fields = line.rpartition(")")[2].split()
    user, system, child_user, child_system = (int(field) for field in fields[11:15])
    return Stat(int(fields[1]), user + system, child_user + child_system)


def parse_busy(text: str) -> int:
    """Ticks of all processors that were neither idle nor waiting, from ``/proc/stat``.

    >>> parse_busy("cpu  100 1 20 5000 300 4 5 6 0 0\\ncpu0 1 1 1 1 1 1 1 1 0 0")
    136
    """
    user, nice, system, _idle, _waiting, *rest = (int(field) for field in text.splitlines()[0].split()[1:9])
    return user + nice + system + sum(rest)


def process_s(pid: int) -> float:
    """Seconds that a process has used, with its children, those that have ended and those that live."""
    stats = dict(_stats())
    family, new = set[int](), {pid} & stats.keys()
    while new:
        family |= new
        new = {child for child, stat in stats.items() if stat.parent in family} - family
    return sum(stats[member].own + stats[member].reaped for member in family) / TICKS_PER_S


def machine_s() -> float:
    """Seconds that all processes of the machine have used, and what other machines took from it."""
    return parse_busy((PROC / "stat").read_text()) / TICKS_PER_S


def _stats() -> Iterator[tuple[int, Stat]]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                yield int(entry.name), parse_stat((entry / "stat").read_text())
