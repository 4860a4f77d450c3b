"""A consumer that says "later" is started again; one that says anything else is not."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploy.local.again import Again
from deploy.local.processes import Program, wait_until

LATER = os.EX_TEMPFAIL
LONG_S = 30.0


def ends_with(folder: Path, *statuses: int) -> list[str]:
    """A command that ends with the next of ``statuses`` each time it is run."""
    left = folder / "left"
    left.write_text(" ".join(map(str, statuses)))
    code = (
        "import pathlib, sys; left = pathlib.Path(sys.argv[1]); now, _, rest = left.read_text().partition(' '); "
        "left.write_text(rest); sys.exit(int(now))"
    )
    return [sys.executable, "-c", code, str(left)]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program("sample", tmp_path)
    yield made
    made.kill()


def test_a_program_that_says_later_is_run_again_until_it_says_something_else(tmp_path: Path) -> None:
    marks: list[None] = []
    again = Again(ends_with(tmp_path, LATER, LATER, 0), lambda: marks.append(None), pause_s=0)
    assert again.run() == 0
    assert len(marks) == 2


@pytest.mark.parametrize("status", [0, 1, 2])
def test_any_other_status_is_final(tmp_path: Path, status: int) -> None:
    assert Again(ends_with(tmp_path, status, 0), pytest.fail, pause_s=0).run() == status


def test_a_program_that_was_killed_is_not_run_again() -> None:
    dies = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    assert Again(dies, pytest.fail, pause_s=0).run() == 128 + 9


def test_a_stop_ends_the_pause(tmp_path: Path) -> None:
    again = Again(ends_with(tmp_path, LATER, 0), pytest.fail, pause_s=LONG_S)
    statuses: list[int] = []
    running = threading.Thread(target=lambda: statuses.append(again.run()))
    running.start()
    again.stop()
    running.join(LONG_S / 2)
    assert statuses in ([LATER], [128 + 15])


def test_a_stop_is_passed_on_and_the_status_is_the_programs_own(program: Program) -> None:
    code = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('on', flush=True)"
    command = [sys.executable, "-c", f"{code}; signal.pause(); print('after')"]
    program.start([sys.executable, "-m", "deploy.local.again", "sample", *command])
    assert wait_until(lambda: "on" in program.said(), LONG_S)
    (child,) = psutil.Process(program.pid()).children()
    program.stop()
    assert not child.is_running()
    assert "again in" not in program.said()


def test_what_was_said_before_the_last_start_does_not_count_as_healthy(program: Program, tmp_path: Path) -> None:
    once = tmp_path / "once"
    code = (
        "import pathlib, signal, sys; once = pathlib.Path(sys.argv[1]); first = not once.exists(); once.touch(); "
        "print('consumes' if first else 'looks for its broker', flush=True); "
        f"sys.exit({LATER}) if first else signal.pause()"
    )
    program.start([sys.executable, "-m", "deploy.local.again", "sample", sys.executable, "-c", code, str(once)])
    assert wait_until(lambda: "looks" in program.said(), LONG_S)
    assert "consumes" not in program.said()
