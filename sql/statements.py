"""How a migration runs plain SQL."""

from __future__ import annotations

from alembic import op


def execute(script: str) -> None:
    """Run one or more statements as they stand: colons and percent signs are no parameters here."""
    op.get_bind().exec_driver_sql(script, execution_options={"no_parameters": True})
