"""Alembic's entry: migrates over the connection, and inside the transaction, that the caller gives."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text


def migrate(connection: Connection) -> None:
    connection.execute(text("create schema if not exists lecturemill"))
    context.configure(connection=connection, version_table_schema="lecturemill")
    with context.begin_transaction():
        context.run_migrations()


migrate(context.config.attributes["connection"])
