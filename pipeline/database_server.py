"""The embedded PostgreSQL server of one home: how it is started, found and stopped.

Nothing here locks: ``pipeline.database.embedded`` decides who may start and stop, one at a time.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import psycopg
from sqlalchemy import URL

from pipeline.errors import RetriableError

NAME = "lecturemill"
"""The database and its owner inside the embedded server."""
SERVER_USER = "nobody"
"""PostgreSQL refuses to run as root; then it runs as this user."""
SOCKET_NAME = ".s.PGSQL.5432"
START_TIMEOUT_S = 120.0
"""Long enough for the recovery after a crash."""
STOP_TIMEOUT_S = 60.0
MAX_LAUNCHES = 40
"""After a crash the old server's children may be at work for a moment, and until then a start fails."""
PASSING_TROUBLE = ("still in use", "already exists")
"""What it says then, of shared memory and of lock files."""
RETRY_S = 0.25
POLL_S = 0.05
NOBODYS_PID = 1 << 22
"""Linux gives out smaller ones (proc(5), pid_max)."""
MAX_LOG_BYTES = 1 << 20
LAUNCH_SCRIPT = '"$@" </dev/null >&2 & echo $!'
"""The shell leaves at once, so that the server is nobody's child and outlives the process that started it."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server: its programs, its data folder (a real path), its socket folder and its log."""

    binaries: Path
    data: Path
    sockets: Path
    log: Path
    fsync: bool

    def url(self, database: str = NAME) -> str:
        """A SQLAlchemy URL over the unix socket; it holds no secret."""
        query = {"host": str(self.sockets)}
        url = URL.create("postgresql+psycopg", username=NAME, database=database, query=query)
        return url.render_as_string(hide_password=False)

    def start(self) -> None:
        """Return when the server accepts connections, started here or found running.

        Raises RetriableError, with the last line of the server's log, where it does not come up. Then it is left to
        itself, as a long recovery would begin anew. Where this process is told to stop meanwhile, that ends it.
        """
        launched, launches = 0, 0
        deadline = time.monotonic() + START_TIMEOUT_S
        try:
            while not self._accepts():
                if not self._runs(launched) and not self.pid():
                    self._check_worth_another(launches)
                    launched, launches = self._launch(), launches + 1
                elif time.monotonic() > deadline:
                    self._fail()
                time.sleep(POLL_S)
            self._create_database()
        except (KeyboardInterrupt, SystemExit):
            self._end(launched, signal.SIGINT)
            raise

    def _check_worth_another(self, launches: int) -> None:
        if launches:
            if launches > MAX_LAUNCHES or not any(word in last_line(self.log) for word in PASSING_TROUBLE):
                self._fail()
            time.sleep(RETRY_S)

    def _fail(self) -> NoReturn:
        raise RetriableError(f"{self.data}: PostgreSQL does not start: {last_line(self.log)} (all of it: {self.log})")

    def stop(self) -> None:
        """Fast shutdown (SIGINT) by the server's own pid; after a minute, immediate (SIGQUIT, recovers)."""
        for kind in (signal.SIGINT, signal.SIGQUIT):
            self._end(self.pid(), kind)
        if self.sockets != self.data:
            shutil.rmtree(self.sockets, ignore_errors=True)

    def _end(self, pid: int, kind: signal.Signals) -> None:
        deadline = time.monotonic() + STOP_TIMEOUT_S
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
        while self._runs(pid) and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(host=str(self.sockets), user=NAME, dbname="postgres", autocommit=True, connect_timeout=5)

    def _accepts(self) -> bool:
        if not (self.sockets / SOCKET_NAME).exists():
            return False
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _create_database(self) -> None:
        with self._connect() as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", (NAME,)).fetchone()
            if not known:
                connection.execute("create database lecturemill")

    def pid(self) -> int:
        """The pid in ``postmaster.pid`` if a server of this folder runs under it, else 0."""
        pid = _recorded_pid(self.data / "postmaster.pid")
        return pid if self._runs(pid) else 0

    def _disown_stale_locks(self) -> None:
        """PostgreSQL only asks whether the pid in its lock files is alive, and then refuses to start.

        After a restart of a container another program has that pid almost always, and a killed server may
        stay a zombie. The files get a pid that nobody has; they are not removed, for they also name the
        shared memory by which PostgreSQL notices that children of a killed server are still at work.
        """
        for file in (self.data / "postmaster.pid", self.sockets / f"{SOCKET_NAME}.lock"):
            pid = _recorded_pid(file)
            if pid and not self._runs(pid):
                _, _, rest = file.read_text().partition("\n")
                file.write_text(f"{NOBODYS_PID}\n{rest}")

    def _runs(self, pid: int) -> bool:
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return os.fsencode(self.data) in command.split(b"\0")

    def _launch(self) -> int:
        self._disown_stale_locks()
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "log_checkpoints": "off",
            **({} if self.fsync else {"fsync": "off", "full_page_writes": "off"}),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        program = [str(self.binaries / "postgres"), "-D", str(self.data), *options]
        grown = self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES
        with self.log.open("wb" if grown else "ab") as log:
            shell = subprocess.run(
                ["/bin/sh", "-c", LAUNCH_SCRIPT, "postgres", *program],
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                check=True,
                **as_server_user(),
            )
        return int(shell.stdout)


def _recorded_pid(lock: Path) -> int:
    try:
        return int(lock.read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return 0


def last_line(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").split("\n") if log.exists() else []
    telling = [line for line in lines if "FATAL" in line or "PANIC" in line] or [line for line in lines if line]
    return telling[-1] if telling else "no reason given"


def is_root() -> bool:
    return os.geteuid() == 0


def server_uid() -> int:
    return pwd.getpwnam(SERVER_USER).pw_uid if is_root() else os.geteuid()


def as_server_user() -> dict[str, Any]:
    """Arguments of ``subprocess.run``: the server's user, a folder and a locale that always exist."""
    common: dict[str, Any] = {"cwd": "/", "env": {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}}
    if not is_root():
        return common
    user = pwd.getpwnam(SERVER_USER)
    return {**common, "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
