"""The entry point of ``lecturemill``: stoppable from its first moment, before the heavy imports are done."""

from __future__ import annotations

from pipeline.stopping import stoppable


def main() -> None:
    """Run the command; its exit status is the process's."""
    stoppable(_command)


def _command() -> None:
    from pipeline.cli import app

    app()
