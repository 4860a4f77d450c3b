"""One read-only SQL query over the project's database, for those who have no psql at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, ResourceClosedError

from pipeline.database import connect, database_errors
from pipeline.errors import UsageError


def run_query(url: str, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Column names and rows. ``sql`` is the query, or the name of a file that holds it.

    The transaction is read-only: what would write is refused by PostgreSQL. Raises UsageError with PostgreSQL's
    own first line where the query is at fault.
    """
    engine = connect(url)
    try:
        with database_errors(url), engine.connect() as connection:
            connection.execute(text("SET TRANSACTION READ ONLY"))
            result = connection.execute(text(_sql_of(sql).replace(":", r"\:")))
            return tuple(result.keys()), [tuple(row) for row in result]
    except (DBAPIError, ResourceClosedError) as error:
        reason = str(getattr(error, "orig", None) or "it returns no rows")
        raise UsageError(f"the query failed: {reason.splitlines()[0]}") from error
    finally:
        engine.dispose()


def _sql_of(given: str) -> str:
    if not given.endswith(".sql"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{given}: cannot be read: {error}") from error
