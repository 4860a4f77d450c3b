"""One read-only SQL query over the project's database, for those who have no psql at hand."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from pipeline.database import connect, database_errors
from pipeline.errors import UsageError


def run_query(url: str, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Column names and rows. ``sql`` is the query, or the name of a file that holds it.

    The transaction is read-only, and prepared: PostgreSQL refuses what would write, and a second statement, which
    could end the transaction. Raises UsageError with PostgreSQL's own first line where the query is at fault.
    """
    engine = connect(url)
    try:
        with database_errors(url):
            pooled = engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()  # a pool would try to roll back what a refused COPY has left
        with closing(connection):
            return _answer(connection, _sql_of(sql))
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise UsageError(f"the query failed: {str(error).partition(chr(10))[0]}") from error
    finally:
        engine.dispose()


def _answer(connection: Any, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    connection.read_only = True
    cursor = connection.execute(sql, prepare=True)
    if cursor.description is None:
        raise UsageError("the query failed: it returns no rows")
    return tuple(column.name for column in cursor.description), cursor.fetchall()


def _sql_of(given: str) -> str:
    if not given.endswith(".sql"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{given}: cannot be read: {error}") from error
