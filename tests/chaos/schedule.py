"""What happens when, and to whom: it follows from the seed alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, islice
from random import Random

from tests.chaos.member import PROGRAMS


class Deed(StrEnum):
    """What is done to the line."""

    KILL_MEMBER = "kill -9 of a consumer"
    STOP_MEMBER = "SIGTERM to a consumer, started again"
    ADD_MEMBER = "consumer added"
    REMOVE_MEMBER = "consumer removed by SIGTERM"
    FREEZE_MEMBER = "SIGSTOP of a consumer beyond its session, then SIGCONT"
    KILL_BROKER = "kill -9 of the broker"
    RESTART_BROKER = "orderly restart of the broker"
    KILL_POSTGRES = "kill -9 of PostgreSQL"
    RESTART_POSTGRES = "fast restart of PostgreSQL"


DECK = {
    Deed.KILL_MEMBER: 8,
    Deed.STOP_MEMBER: 2,
    Deed.ADD_MEMBER: 2,
    Deed.REMOVE_MEMBER: 2,
    Deed.FREEZE_MEMBER: 2,
    Deed.KILL_BROKER: 1,
    Deed.RESTART_BROKER: 1,
    Deed.KILL_POSTGRES: 1,
    Deed.RESTART_POSTGRES: 1,
}
"""How often each comes in so many deeds."""


@dataclass(frozen=True, slots=True)
class Action:
    """One deed."""

    at_s: float
    """Not before; a late one pushes the later ones on."""
    deed: Deed
    program: str
    """Whose consumer, where it is one."""
    luck: float
    """From 0 to 1: which one, and how long it is away."""


def schedule(seed: int, deeds: int, seconds: float) -> tuple[Action, ...]:
    """``deeds`` actions within ``seconds``; every kind is among the first nine, in any order."""
    random = Random(f"{seed} schedule")
    gaps = [random.uniform(0.2, 1.8) for _ in range(deeds)]
    moments = accumulate(gap * seconds / max(1.0, sum(gaps)) for gap in gaps)
    kinds = islice(_kinds(random), deeds)
    return tuple(
        Action(at_s, deed, random.choice(PROGRAMS), random.random()) for at_s, deed in zip(moments, kinds, strict=True)
    )


def _kinds(random: Random) -> Iterator[Deed]:
    yield from random.sample(list(Deed), len(Deed))
    while True:
        yield from random.sample(list(DECK), sum(DECK.values()), counts=list(DECK.values()))
