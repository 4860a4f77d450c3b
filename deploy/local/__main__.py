"""``python -m deploy.local up|down|status [PART...]``: the whole stack on one machine, without Docker."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_data_path

from deploy.local.ports import is_free
from deploy.local.stack import Stack
from pipeline.console import complain, print_table, write_out
from pipeline.errors import LecturemillError, UsageError
from pipeline.stopping import stoppable

PORTS = {"kafka": 9092, "airflow": 8080, "ingest": 9301, "transcribe": 9302, "assemble": 9303}
"""Where people, and deploy/prometheus.yml, look for them; instead of one that is taken, a free one is chosen."""
FAILED, WRONG_USAGE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """0: done, and for ``status`` all is up; 1: a part does not come up, or is not up; 2: wrong usage."""
    options = _options(arguments)
    stack = Stack(_folder(os.environ), ports={part: port for part, port in PORTS.items() if is_free(port)})
    try:
        return COMMANDS[options.command](stack, options.parts)
    except LecturemillError as error:
        complain(error.reason)
        return WRONG_USAGE if isinstance(error, UsageError) else FAILED


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("parts", nargs="*", metavar="PART", help="postgres, kafka, airflow, ...; default: all")
    return parser.parse_args(arguments)


def _folder(environment: Mapping[str, str]) -> Path:
    named = environment.get("LECTUREMILL_STACK")
    return Path(named).expanduser().resolve() if named else user_data_path("lecturemill") / "stack"


def _up(stack: Stack, names: Sequence[str]) -> int:
    try:
        with _alone(stack.folder):
            stack.up(names, complain)
    finally:
        _print_rows(stack)
    write_out((stack.folder / "env").read_text("utf-8"))
    write_out(f"# or: . {stack.folder / 'env'}\n")
    if stack.airflow.address:
        write_out(f"# Airflow, in a browser: {stack.airflow.address}\n")
    return 0


def _down(stack: Stack, names: Sequence[str]) -> int:
    with _alone(stack.folder):
        stack.down(names, complain)
    return 0


def _status(stack: Stack, names: Sequence[str]) -> int:
    if names:
        raise UsageError("status shows every part; name none")
    return 0 if _print_rows(stack) else FAILED


def _print_rows(stack: Stack) -> bool:
    """Whether every part is up."""
    rows = list(stack.rows())
    columns = ("part", "state", "pid", "address", "log")
    print_table("", columns, [(row.program, row.state, row.pid, row.address, row.log) for row in rows])
    return all(row.state == "up" for row in rows)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two of these commands at once would start a part twice: the second waits for the first."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


COMMANDS = {"up": _up, "down": _down, "status": _status}


if __name__ == "__main__":
    stoppable(lambda: sys.exit(main()))
