"""A program in the background: it outlives the process that started it, and any process can find and end it.

Its folder holds a pid file and a log file. A pid counts only together with the moment its process started,
as pids are used again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import RetriableError

POLL_S = 0.1
STOP_TIMEOUT_S = 30.0
MAX_LOG_BYTES = 1 << 22
START_MARK = "=== deploy.local starts "
"""Begins a line of the log that no program writes: where the output since a start begins."""


@dataclass(frozen=True, slots=True)
class Program:
    """Known by its name and its folder alone, so that any process can ask for it, or end it."""

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def start(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Start it, unless it runs, in a process group of its own; its output is added to the log.

        ``environment`` is all that it gets to see; None stands for this process's.
        """
        if self.pid():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        has_grown = self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES
        with self.log.open("wb" if has_grown else "ab") as log:
            log.write(start_line(self.name).encode())
            log.flush()
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        child.returncode = 0  # it may outlive us: no warning that nobody waits for it
        _write_whole(self.pid_file, f"{child.pid} {_start_ticks(child.pid)}\n")

    def pid(self) -> int:
        """The pid of the running program, else 0."""
        pid, ticks = self._recorded()
        return pid if pid and _start_ticks(pid) == ticks and not _has_ended(pid) else 0

    def stop(self) -> None:
        """SIGTERM by pid, and what is left of its group after a while is killed. Harmless where it does not run."""
        self.end(self.ask_to_stop())

    def ask_to_stop(self) -> int:
        """SIGTERM; the pid that got it, 0 where it does not run."""
        pid = self.pid()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return pid

    def end(self, pid: int, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Wait until ``pid``, which was asked to stop, has ended; kill what is left of its group then.

        Only the group of a program seen alive is killed: any other could be a stranger's under an old number.
        """
        if not pid:
            return
        wait_until(lambda: not self.pid(), timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        wait_until(lambda: not self.pid(), STOP_TIMEOUT_S)
        self.pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """SIGKILL, to its children too; returns when it is gone."""
        self.end(self.pid(), timeout_s=0)

    def await_health(self, is_healthy: Callable[[], bool], timeout_s: float) -> None:
        """Return when ``is_healthy``.

        Raises RetriableError, with the last line of its log, where it ended or is not healthy in time.
        """

        def is_decided() -> bool:
            return not self.pid() or is_healthy()

        if not wait_until(is_decided, timeout_s):
            raise RetriableError(f"{self.name} is not healthy after {timeout_s:.0f} s: {self.complaint()}")
        if not self.pid():
            raise RetriableError(f"{self.name} ended: {self.complaint()}")

    def complaint(self) -> str:
        """The last line of the log, and where the log lies."""
        lines = [line.strip() for line in self.said().splitlines() if line.strip()] or ["it said nothing"]
        return f"{lines[-1]} (log: {self.log})"

    def said(self) -> str:
        """What it wrote since its last start."""
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        return text.rpartition(START_MARK)[2].partition("\n")[2]

    def _recorded(self) -> tuple[int, int]:
        try:
            pid, ticks = self.pid_file.read_text().split()
        except (FileNotFoundError, ValueError):
            return 0, 0
        return int(pid), int(ticks)


def start_line(name: str) -> str:
    """What stands in the log before the output of each start."""
    return f"{START_MARK}{name}\n"


def wait_until(is_so: Callable[[], bool], timeout_s: float) -> bool:
    """Whether it came to be so within ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _write_whole(path: Path, text: str) -> None:
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    aside.write_text(text)
    aside.replace(path)


def _has_ended(pid: int) -> bool:
    """Whether it is a zombie without threads still at work; one of ours is collected."""
    fields = _stat(pid)
    if fields and (fields[0] != "Z" or int(fields[17]) > 1):
        return False
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return True


def _start_ticks(pid: int) -> int:
    """When the process started, in clock ticks since boot (proc(5), stat, field 22); -1 for none."""
    fields = _stat(pid)
    return int(fields[19]) if fields else -1


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on, behind the name in brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
