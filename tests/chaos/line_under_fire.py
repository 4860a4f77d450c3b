"""One run: a line is set up, supplied, disturbed by a schedule, left to drain, and examined."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.kafka import Broker
from deploy.local.parts import Part
from deploy.local.postgres import Postgres
from pipeline.broker import create_topics
from pipeline.errors import RetriableError
from pipeline.store_line import LineStore
from tests.chaos.crew import MOST, Crew
from tests.chaos.evidence import Findings, examine, offset_faults
from tests.chaos.member import DELAY
from tests.chaos.producer import Producer, Sent, Supply
from tests.chaos.schedule import Action, Deed

PARTITIONS = 6
"""Fewer than courses: some share one."""
TICK_S = 0.1
LONGEST_OUTAGE_S = 5.0
"""Beside the time that the part takes to start."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a run is made of."""

    supply: Supply
    actions: tuple[Action, ...]
    seconds: float
    """No action begins later."""
    drain_s: float
    """How long the line may take to come to rest once all is well again."""
    delay_ms: int
    """What the stub of the engine takes for each batch."""


@dataclass(slots=True)
class Report:
    """What was done and found."""

    deeds: Counter[Deed] = field(default_factory=Counter)
    sent: Sent = field(default_factory=Sent)
    findings: Findings = field(default_factory=Findings)
    ends: Counter[str] = field(default_factory=Counter)
    fire_s: float = 0.0
    drain_s: float = 0.0


def run_trial(trial: Trial, folder: Path, say: Say) -> Report:
    """``folder`` must be empty, and open to every user: PostgreSQL may run as another one."""
    with Postgres(folder / "db") as postgres, Broker(folder / "kafka") as broker:
        create_topics(broker.address, PARTITIONS)
        line = _Line(trial, folder, postgres, broker, say)
        with line.at_work():
            return line.report()


class _Line:
    def __init__(self, trial: Trial, folder: Path, postgres: Postgres, broker: Broker, say: Say) -> None:
        self._trial, self._say = trial, say
        self._brokers, self._database_url = broker.address, postgres.address
        environment = {
            "LECTUREMILL_BROKERS": broker.address,
            "DATABASE_URL": postgres.address,
            "LECTUREMILL_HOME": str(folder / "home"),
            "LECTUREMILL_MEDIA_STORE": (folder / "media").as_uri(),
            DELAY: str(trial.delay_ms),
        }
        self._crew = Crew(folder / "members", environment)
        self._producer = Producer(broker.address, postgres.address, trial.supply)
        self._outages = {Broker.name: _Outages(broker), Postgres.name: _Outages(postgres)}
        self._done: Counter[Deed] = Counter()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        try:
            self._crew.complete()
            self._producer.start()
            yield
        finally:
            self._producer.leave()
            for outages in self._outages.values():
                outages.wait()
            self._crew.end()

    def report(self) -> Report:
        started_s = time.monotonic()
        for action in self._trial.actions:
            if not self._wait(started_s + action.at_s) or time.monotonic() - started_s > self._trial.seconds:
                break
            self._do(action)
        fire_s = time.monotonic() - started_s
        self._producer.enough.set()
        for outages in self._outages.values():
            outages.wait()
        self._crew.complete()
        stuck = self._drain()
        drain_s = time.monotonic() - started_s - fire_s
        self._say(f"drained in {drain_s:.0f} s" if not stuck else f"not drained in {drain_s:.0f} s")
        self._crew.leave()
        with LineStore.open(self._database_url) as store:
            findings = examine(self._brokers, store, self._producer.sent)
        findings.faults = [*stuck, *self._faults(), *findings.faults]
        return Report(self._done, self._producer.sent, findings, self._crew.ends, fire_s, drain_s)

    def _faults(self) -> list[str]:
        broken = [error for outages in self._outages.values() for error in outages.errors]
        if self._producer.error:
            broken.append(f"the producer ended: {self._producer.error!r}")
        return [*broken, *self._crew.faults]

    def _wait(self, until_s: float) -> bool:
        """Whether all goes on as it should until then."""
        while time.monotonic() < until_s and not self._faults():
            self._crew.tick()
            time.sleep(TICK_S)
        return not self._faults()

    def _do(self, action: Action) -> None:
        deed = self._member_deed(action) if "MEMBER" in action.deed.name else self._part_deed(action)
        self._done[deed] += 1
        self._say(f"{sum(self._done.values())} of {len(self._trial.actions)}: {deed.value}, {action.program}")

    def _part_deed(self, action: Action) -> Deed:
        part = Broker.name if "BROKER" in action.deed.name else Postgres.name
        is_kill = action.deed in (Deed.KILL_BROKER, Deed.KILL_POSTGRES)
        self._outages[part].begin(is_kill=is_kill, away_s=action.luck * LONGEST_OUTAGE_S)
        return action.deed

    def _member_deed(self, action: Action) -> Deed:
        """What was done: nobody is added beyond the most, or removed when alone."""
        candidates = self._crew.at_work(action.program)
        if (action.deed is Deed.ADD_MEMBER and len(candidates) < MOST) or not candidates:
            self._crew.start(action.program)
            return Deed.ADD_MEMBER
        member = candidates[int(action.luck * len(candidates))]
        if action.deed in (Deed.ADD_MEMBER, Deed.REMOVE_MEMBER) and len(candidates) > 1:
            self._crew.stop(member, is_replaced=False)
            return Deed.REMOVE_MEMBER
        if action.deed is Deed.FREEZE_MEMBER:
            self._crew.freeze(member, beyond_s=1 + 5 * action.luck)
            return action.deed
        if action.deed is Deed.STOP_MEMBER:
            self._crew.stop(member, is_replaced=True)
            return action.deed
        self._crew.kill(member)
        return Deed.KILL_MEMBER

    def _drain(self) -> list[str]:
        """What is stuck; nothing where the line has come to rest in time."""
        deadline_s = time.monotonic() + self._trial.drain_s
        while stuck := self._unrest():
            if time.monotonic() > deadline_s or not self._wait(time.monotonic() + 1):
                words = [f"  {one.state.value}: {one.last_words}" for one in self._crew.members]
                return [f"stuck: {one}" for one in stuck] + words
        return []

    def _unrest(self) -> list[str]:
        if self._producer.is_alive():
            return ["the producer has not sent everything yet"]
        try:
            with LineStore.open(self._database_url) as store:
                waiting = [one.media_id for one in store.status() if one.state != "done"]
                lacking = [f"{one} lacks {store.missing(one)}" for one in waiting[:5]]
            return lacking + offset_faults(self._brokers)
        except RetriableError as error:
            return [error.reason]


class _Outages:
    """Those of one part, one after the other, beside all else that happens."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._thread: threading.Thread | None = None
        self.errors: list[str] = []

    def begin(self, *, is_kill: bool, away_s: float) -> None:
        """Waits first for the one before."""
        self.wait()
        self._thread = threading.Thread(target=self._suffer, args=(is_kill, away_s))
        self._thread.start()

    def wait(self) -> None:
        if self._thread:
            self._thread.join()

    def _suffer(self, is_kill: bool, away_s: float) -> None:
        try:
            if is_kill:
                self._part.kill()
            else:
                self._part.stop()
            time.sleep(away_s)
            self._part.start()
        except RetriableError as error:
            self.errors.append(f"{self._part.name}: {error.reason}")
