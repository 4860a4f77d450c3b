"""A real PostgreSQL, started once; each test gets a database of its own."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from pipeline.database import connect, embedded, upgrade
from pipeline.store import Store

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def make_home() -> Iterator[Callable[[str], Path]]:
    """Makes homes that any user can reach, as pytest's own are not: the server of root is nobody."""
    root = Path(tempfile.mkdtemp(prefix="lecturemill-test-", dir="/tmp"))
    root.chmod(0o755)

    def make(name: str = "home") -> Path:
        folder = Path(tempfile.mkdtemp(dir=root))
        folder.chmod(0o755)
        return folder / name

    yield make
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def server_url(make_home: Callable[[str], Path]) -> Iterator[str]:
    """The URL of a migrated, empty database: the template of the others. Not to be written to."""
    with embedded(make_home("home"), fsync=False) as url:
        upgrade(url)
        yield url


@contextmanager
def a_database(server_url: str) -> Iterator[str]:
    name = f"test_{next(NUMBERS)}"
    engine = connect(with_database(server_url, "postgres"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"create database {name} template lecturemill"))
        yield with_database(server_url, name)
        connection.execute(text(f"drop database {name} with (force)"))
    engine.dispose()


def with_database(url: str, name: str) -> str:
    return make_url(url).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def fresh_database(server_url: str) -> Callable[[], AbstractContextManager[str]]:
    """Gives the URL of a migrated, empty database, which goes when the context ends."""
    return lambda: a_database(server_url)


@pytest.fixture
def database_url(server_url: str) -> Iterator[str]:
    """The URL of a migrated, empty database."""
    with a_database(server_url) as url:
        yield url


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store.open(database_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_store(server_url: str) -> Iterator[Store]:
    """One store for all examples of a property; they must not mind what is there already."""
    with a_database(server_url) as url, Store.open(url) as opened:
        yield opened
