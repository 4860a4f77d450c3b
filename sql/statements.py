"""How a migration runs plain SQL."""

from __future__ import annotations

from collections.abc import Mapping

from alembic import op


def execute(script: str) -> None:
    """Run one or more statements as they stand: colons and percent signs are no parameters here."""
    op.get_bind().exec_driver_sql(script, execution_options={"no_parameters": True})


def create_view(view: str, comment: str, columns: Mapping[str, str], query: str) -> None:
    """A view in ``public`` that says what it and each of its columns is."""
    execute(f"create view public.{view} as {query}")
    execute(f"comment on view public.{view} is '{comment}'")
    for column, meaning in columns.items():
        execute(f"comment on column public.{view}.{column} is '{meaning}'")
