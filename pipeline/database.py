"""Which database: an embedded PostgreSQL under the home or one named by URL; and its schema."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import psycopg.errors
from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, IntegrityError, InterfaceError, OperationalError

import sql
from pipeline import database_folders
from pipeline.errors import InvalidInputError, RetriableError, UsageError

CONNECT_TIMEOUT_S = 10
MIGRATION_LOCK = 0x6C656374
"""The key of the advisory lock under which one process at a time migrates ("lect" in ASCII)."""


@contextmanager
def embedded(home: Path, *, fsync: bool = True) -> Iterator[str]:
    """The SQLAlchemy URL of the PostgreSQL that lives in ``home``, for as long as the context lasts.

    1. The first process starts the server; later ones share it; the last one out stops it.
    2. Who uses it is known by a shared lock on ``home/postgres.users``, who starts or stops it by an
       exclusive lock on ``home/postgres.lock``. The kernel releases both when a process dies, so a kill
       leaves no false count, only a server that the next process finds and shares.
    3. The server runs in its own session: Ctrl-C does not reach it. It listens on a unix socket that only its
       user (and root) can open, and on no port.
    4. As root it runs as ``nobody``; where that user cannot reach ``home`` (it lies under /root), the data
       lie in /var/lib/lecturemill and ``home/postgres`` is a link to them.

    ``fsync=False`` is for tests only. Raises UsageError where the home cannot be used, RetriableError where
    the server does not start.
    """
    with _open_lock(home, "postgres.users") as users:
        with _alone(home):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = database_folders.locate(home, fsync=fsync)
            server.start()
        try:
            yield server.url()
        finally:
            with _alone(home):
                if _is_last(users):
                    server.stop()


def _open_lock(home: Path, name: str) -> BinaryIO:
    try:
        home.mkdir(parents=True, exist_ok=True)
        return (home / name).open("ab")
    except OSError as error:
        raise UsageError(f"{home}: cannot be written ({error.strerror}); name another LECTUREMILL_HOME") from error


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    with _open_lock(home, "postgres.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_last(users: BinaryIO) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def connect(url: str) -> Engine:
    """An engine for ``url``; connects when it is used. Raises UsageError where it is no PostgreSQL URL."""
    return create_engine(
        _parsed(url),
        # A connection that died while it lay idle is replaced instead of failing the next statement.
        pool_pre_ping=True,
        # Transcripts do not belong in error messages.
        hide_parameters=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "lecturemill"},
    )


@contextmanager
def database_errors(url: str) -> Iterator[None]:
    """The one border where the database's exceptions become ours.

    Unreachable, shutting down, full, deadlocked: RetriableError. A row of a media that is not recorded:
    InvalidInputError. Neither ever shows the password.
    """
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        cause = str(error.orig).partition("\n")[0]
        raise RetriableError(
            f"database {_place(url)}: {cause}; check that it runs and can be reached, then try again"
        ) from error
    except IntegrityError as error:
        if not isinstance(error.orig, psycopg.errors.ForeignKeyViolation):
            raise
        raise InvalidInputError(f"not recorded: {error.orig.diag.message_detail}") from error


def upgrade(url: str) -> None:
    """Bring the schema of the database up to date; harmless where it is, and where two processes do it.

    Raises RetriableError where the database cannot be reached, UsageError where ``url`` is not PostgreSQL's.
    """
    engine = connect(url)
    try:
        with database_errors(url), engine.begin() as connection:
            connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            config = migrations()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def server_time_s(url: str) -> float:
    """The server's clock, in seconds since 1970. Raises RetriableError where it cannot be reached."""
    engine = connect(url)
    try:
        with database_errors(url), engine.connect() as connection:
            return float(connection.execute(text("select extract(epoch from clock_timestamp())")).scalar_one())
    finally:
        engine.dispose()


def migrations() -> Config:
    """Alembic's configuration; ``attributes["connection"]`` must be given the connection to migrate over."""
    config = Config()
    # A percent sign is Alembic's own placeholder.
    config.set_main_option("script_location", str(Path(sql.__path__[0])).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _parsed(url: str) -> URL:
    # Hosting services hand out postgres://, which SQLAlchemy does not know.
    scheme, _, rest = url.partition("://")
    try:
        parsed = make_url(f"postgresql://{rest}" if scheme == "postgres" else url)
    except (ArgumentError, ValueError) as error:
        raise UsageError("the database URL cannot be read; write postgresql://USER:PASSWORD@HOST/NAME") from error
    if parsed.drivername not in ("postgresql", "postgresql+psycopg"):
        raise UsageError(f"the database must be PostgreSQL (postgresql://...), not {parsed.drivername}")
    return parsed.set(drivername="postgresql+psycopg")


def _place(url: str) -> str:
    parsed = _parsed(url)
    host = parsed.host or parsed.query.get("host") or "(local socket)"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{host}{port}/{parsed.database or ''}"
