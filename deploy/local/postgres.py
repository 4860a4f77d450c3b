"""The embedded PostgreSQL as a part: a process that holds it up, and its URL."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import psycopg
from sqlalchemy import make_url, text

from deploy.local.parts import Part
from deploy.local.processes import Program, wait_until
from pipeline import database, database_folders
from pipeline.database_server import Server
from pipeline.stopping import stoppable

START_TIMEOUT_S = 150.0
"""A little more than the server's own, so that it says itself what is wrong."""
END_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 2
COMMAND = (sys.executable, "-m", "deploy.local.postgres")


class Postgres(Part):
    """The PostgreSQL of ``pipeline.database.embedded`` in the home ``folder``, held up by a process.

    The server itself lives as long as somebody uses the home; here that is a program which does nothing else.
    """

    name = "postgres"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._holder = Program(self.name, folder / "holder")
        self.programs = (self._holder,)

    @property
    def address(self) -> str:
        """Its ``DATABASE_URL``, as psql takes it too: over a unix socket, without a secret."""
        server = self._server()
        return _plain(server.url()) if server else ""

    def start(self) -> None:
        self._holder.start([*COMMAND, self.folder])
        self._holder.await_health(self.is_healthy, START_TIMEOUT_S)
        database.upgrade(self.address)

    def create_database(self, name: str) -> str:
        """The SQLAlchemy URL of another database of the same server, made if there is none yet."""
        engine = database.connect(self.address)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            known = connection.execute(text("select 1 from pg_database where datname = :name"), {"name": name})
            if not known.first():
                connection.execute(text(f'create database "{name}"'))
        engine.dispose()
        url = make_url(self.address).set(drivername="postgresql+psycopg", database=name)
        return url.render_as_string(hide_password=False)

    def is_healthy(self) -> bool:
        server = self._server()
        if not server or not self._holder.pid():
            return False
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.address, connect_timeout=CONNECT_TIMEOUT_S).close()
            return True
        return False

    def kill(self) -> None:
        """``kill -9`` of the server and of its holder; the server's children end as they notice."""
        pid = self.server_pid()
        super().kill()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not self.server_pid(), END_TIMEOUT_S)

    def server_pid(self) -> int:
        """The pid of the server itself, which outlives a holder that is killed; 0 where it does not run."""
        server = self._server()
        return server.pid() if server else 0

    def _server(self) -> Server | None:
        """None before its data folder is there: this process must not make it beside the holder."""
        if not (self.folder / "postgres").exists():
            return None
        return database_folders.locate(self.folder, fsync=True)


def _plain(url: str) -> str:
    return url.replace("postgresql+psycopg:", "postgresql:", 1)


def _hold(home: Path) -> None:
    with database.embedded(home) as url:
        print(url, flush=True)
        signal.pause()


if __name__ == "__main__":
    stoppable(lambda: _hold(Path(sys.argv[1])))
