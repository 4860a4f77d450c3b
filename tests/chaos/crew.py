"""The consumers of a run: each a real process, watched, and started again when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from consumers.wiring import EXIT_DONE, EXIT_RETRIABLE
from deploy.local.consumer import CONSUMES
from tests.chaos.member import PROGRAMS, SESSION_TIMEOUT_MS

ROOT = Path(__file__).parents[2]
LEAVE_TIMEOUT_S = 90.0
"""A consumer that is told to stop may be in the middle of a delivery, which ends after 35 s at the latest."""
WANTED, MOST = 2, 3
"""Members of each program: when nothing was added or removed, and at most."""


class State(Enum):
    """What a member was last told."""

    AT_WORK = "at work"
    FROZEN = "frozen"
    LEAVING = "leaving"
    KILLED = "killed"


@dataclass(slots=True)
class Member:
    """One process. ``due_s`` is when a frozen one goes on, and when a leaving one should have ended."""

    program: str
    process: subprocess.Popen[bytes]
    log: Path
    state: State = State.AT_WORK
    due_s: float = 0.0
    is_replaced: bool = True
    """Whether another one comes when it has ended."""

    def signal(self, number: signal.Signals, state: State, for_s: float = 0.0) -> None:
        self.process.send_signal(number)
        self.state, self.due_s = state, time.monotonic() + for_s

    @property
    def last_words(self) -> str:
        lines = self.log.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"]
        return f"{self.log.name}: {lines[-1]}"

    def is_fine(self, status: int) -> bool:
        """Whether it may end so. Brokers or a database away at its start end it with 75, whatever it is told."""
        if status == EXIT_RETRIABLE:
            return True
        if self.state is State.KILLED:
            return status == -signal.SIGKILL
        # SIGTERM before its handler is there ends it, too.
        is_early = status == -signal.SIGTERM and CONSUMES not in self.log.read_text("utf-8", "replace")
        return self.state is State.LEAVING and (status == EXIT_DONE or is_early)


class Crew:
    """Every method returns at once; ``tick`` is to be called often."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir()
        self._folder, self._environment = folder, {**os.environ, **environment}
        self._started = 0
        self.members: list[Member] = []
        self.ends: Counter[str] = Counter()
        self.faults: list[str] = []

    def start(self, program: str) -> None:
        self._started += 1
        log = self._folder / f"{program}-{self._started}.log"
        command = [sys.executable, "-m", "tests.chaos.member", program]
        with log.open("ab") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        self.members.append(Member(program, process, log))

    def at_work(self, program: str) -> list[Member]:
        return [one for one in self.members if one.program == program and one.state is State.AT_WORK]

    def kill(self, member: Member) -> None:
        member.signal(signal.SIGKILL, State.KILLED)

    def stop(self, member: Member, *, is_replaced: bool) -> None:
        member.is_replaced = is_replaced
        member.signal(signal.SIGTERM, State.LEAVING, LEAVE_TIMEOUT_S)

    def freeze(self, member: Member, beyond_s: float) -> None:
        """Until its session is over, and ``beyond_s`` more."""
        member.signal(signal.SIGSTOP, State.FROZEN, SESSION_TIMEOUT_MS / 1000 + beyond_s)

    def tick(self) -> None:
        for member in list(self.members):
            status = member.process.poll()
            if status is not None:
                self._ended(member, status)
            elif member.state is State.FROZEN and time.monotonic() > member.due_s:
                member.signal(signal.SIGCONT, State.AT_WORK)
            elif member.state is State.LEAVING and time.monotonic() > member.due_s:
                self.faults.append(f"does not end after SIGTERM: {member.last_words}")
                self.kill(member)

    def complete(self) -> None:
        """Nobody frozen, and as many as in the beginning."""
        for member in self.members:
            if member.state is State.FROZEN:
                member.signal(signal.SIGCONT, State.AT_WORK)
        for program in PROGRAMS:
            coming = [one for one in self.members if one.program == program and one.is_replaced]
            for _ in range(WANTED - len(coming)):
                self.start(program)

    def leave(self) -> None:
        """All of them, in order; returns when they have ended."""
        self.complete()
        for member in self.members:
            self.stop(member, is_replaced=False)
        while self.members:
            self.tick()
            time.sleep(0.1)

    def end(self) -> None:
        """All of them, at once, whatever state they are in."""
        for member in self.members:
            member.process.kill()
            member.process.wait()

    def _ended(self, member: Member, status: int) -> None:
        self.members.remove(member)
        if not member.is_fine(status):
            self.faults.append(f"ended with status {status} while {member.state.value}: {member.last_words}")
        if member.state is State.AT_WORK:
            self.ends[f"{member.program} ended by itself with status {status}"] += 1
        if member.is_replaced:
            self.start(member.program)
