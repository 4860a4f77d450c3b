"""The slicing tasks of many media at once: keeps the line supplied until it is told that it is enough."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from consumers.patience import BackoffRules, Clock, Patience, persist
from pipeline.broker import Outgoing, Sender
from pipeline.errors import RetriableError
from pipeline.store_line import LineStore
from tests.chaos.lectures import ASR, SLICING, Lecture, Planted, lecture, plant, script

T = TypeVar("T")

CLIENT_ID = "chaos-producer"
OPEN_MEDIA = 6
"""So many media are sent at the same time, a few slices of each in turn."""
FULL_S = 0.5
"""How long to wait where the line has enough to do."""
PATIENCE = BackoffRules(first_ms=200, longest_ms=2000, give_up_ms=300_000)


@dataclass(frozen=True, slots=True)
class Supply:
    """How much is sent."""

    seed: int
    media: int
    """At least so many, and as many more as there is time for."""
    slices: range
    """How many slices a media has."""
    backlog: int
    """No new media is begun while so many are unfinished."""
    planted_share: float = 0.04
    """Of the sends, those that are followed by a planted fault."""


@dataclass(slots=True)
class _Pen:
    lecture: Lecture
    fews: list[list[int]]


@dataclass(slots=True)
class Sent:
    """What went out, in the end or so far."""

    seed: int = 0

    lectures: list[Lecture] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    retries: int = 0


class Producer(threading.Thread):
    """``sent`` is complete, and ``error`` known, when it has ended."""

    def __init__(self, brokers: str, database_url: str, supply: Supply) -> None:
        super().__init__(name="producer")
        self._brokers, self._database_url, self._supply = brokers, database_url, supply
        self._random = Random(f"{supply.seed} producer")
        self._pens: list[_Pen] = []
        self._leaving = threading.Event()
        self.enough = threading.Event()
        """No new media; those that were begun are sent whole."""
        self.sent = Sent(supply.seed)
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with LineStore.open(self._database_url) as store, Sender.open(self._brokers, CLIENT_ID) as sender:
                while self._begin(store) or self._pens:
                    self._send_few(sender)
        except BaseException as error:  # noqa: BLE001 - for the main thread to tell
            self.error = error

    def leave(self) -> None:
        """At once, whatever is half sent."""
        self.enough.set()
        self._leaving.set()
        self.join()

    def _begin(self, store: LineStore) -> bool:
        """Fill up the pens, if that is wanted; whether it is."""
        while not self._leaving.is_set():
            is_enough = self.enough.is_set() and len(self.sent.lectures) >= self._supply.media
            if is_enough or len(self._pens) >= OPEN_MEDIA:
                return not is_enough
            if self._unfinished(store) >= self._supply.backlog:
                if self._pens:
                    return True
                self._leaving.wait(FULL_S)
                continue
            self._begin_one(store)
        return False

    def _unfinished(self, store: LineStore) -> int:
        statuses = self._persist(store.status)
        return sum(one.state != "done" for one in statuses)

    def _begin_one(self, store: LineStore) -> None:
        new = lecture(self._supply.seed, len(self.sent.lectures), self._supply.slices)
        self._persist(lambda: store.begin_slicing(new.media, SLICING, ASR))
        self.sent.lectures.append(new)
        self._pens.append(_Pen(new, script(new.slice_count, self._random)))

    def _send_few(self, sender: Sender) -> None:
        if not self._pens:
            return
        pen = self._random.choice(self._pens)
        few = [pen.lecture.outgoing(at) for at in pen.fews.pop(0)]
        self._persist(lambda: sender.send(few))
        if not pen.fews:
            self._pens.remove(pen)
        if self._random.random() < self._supply.planted_share:
            self._plant(sender)

    def _plant(self, sender: Sender) -> None:
        planted = plant(self._supply.seed, len(self.sent.planted))
        self.sent.planted.append(planted)
        outgoings: list[Outgoing] = list(planted.outgoings)
        self._persist(lambda: sender.send(outgoings))

    def _persist(self, action: Callable[[], T]) -> T:
        return persist(action, Patience(PATIENCE, Clock()), Clock(), self._leaving, self._told)

    def _told(self, *_: RetriableError | int) -> None:
        self.sent.retries += 1
