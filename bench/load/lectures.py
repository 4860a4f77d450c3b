"""Simulated lectures: when their slices are due. Pure; the audio is in ``audio.py``."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from random import Random
from statistics import NormalDist

MEAN_TURN_MS = 26_000
SPREAD = 0.2
"""Sigma of the logarithm: seven turns of ten last 21 to 31 s."""
MAX_SLICE_MS = 30_000


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch of a lecture: speech, which becomes one slice, then silence, which becomes none."""

    speech_ms: int
    whole_ms: int


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """A slice that is to be handed over ``at_ms`` after the measurement began: as its speech ends."""

    at_ms: int
    course: int
    index: int
    start_ms: int
    """On the media clock of the course."""
    turn: int
    """Which of the turns it is."""


def turns(count: int, random: Random) -> list[Turn]:
    """``count`` turns in any order, lognormal with a mean of 26 s; of long ones, the end is silence.

    Their lengths are the quantiles of the distribution, so that few of them have its mean, too.

    >>> sorted(turn.whole_ms for turn in turns(3, Random(1)))
    [21002, 25485, 30925]
    """
    median_ms, normal = MEAN_TURN_MS / math.exp(SPREAD**2 / 2), NormalDist(0, SPREAD)
    wholes = [round(median_ms * math.exp(normal.inv_cdf((at + 0.5) / count))) for at in range(count)]
    random.shuffle(wholes)
    return [Turn(min(whole_ms, MAX_SLICE_MS), whole_ms) for whole_ms in wholes]


def live(courses: int, duration_ms: int, choice: Sequence[Turn], random: Random) -> list[Due]:
    """The slices of ``courses`` lectures that all run for ``duration_ms``, each found somewhere in a turn; by time."""
    lectures = [_lecture(course, choice, random) for course in range(courses)]
    return list(takewhile(lambda due: due.at_ms < duration_ms, heapq.merge(*lectures)))


def _lecture(course: int, choice: Sequence[Turn], random: Random) -> Iterator[Due]:
    """Without end. What ended before the measurement began is left out."""
    own = Random(random.random())
    # Whoever comes in at any moment finds a long turn more often than a short one.
    (turn,) = own.choices(range(len(choice)), [one.whole_ms for one in choice])
    began_ms, start_ms, index = -own.randrange(choice[turn].whole_ms), 0, 0
    while True:
        at_ms = began_ms + choice[turn].speech_ms
        if at_ms >= 0:
            yield Due(at_ms, course, index, start_ms, turn)
            index += 1
        began_ms += choice[turn].whole_ms
        start_ms += choice[turn].whole_ms
        turn = own.randrange(len(choice))


def flat_out(courses: int, slices: int, choice: Sequence[Turn]) -> list[Due]:
    """``slices`` that are all due at once, of the courses in turn.

    >>> [(due.course, due.index, due.start_ms) for due in flat_out(2, 4, [Turn(20_000, 21_000)])]
    [(0, 0, 0), (1, 0, 0), (0, 1, 21000), (1, 1, 21000)]
    """
    dues, ends_ms = [], [0] * courses
    for number in range(slices):
        course, turn = number % courses, number % len(choice)
        dues.append(Due(0, course, number // courses, ends_ms[course], turn))
        ends_ms[course] += choice[turn].whole_ms
    return dues
