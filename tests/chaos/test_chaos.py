"""A dozen disturbances of a whole line, at least one of each kind; ``make chaos`` does it with many."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.__main__ import lines, say
from tests.chaos.line_under_fire import Trial, run_trial
from tests.chaos.producer import Supply
from tests.chaos.schedule import Deed, schedule

SEED = 11
DEEDS = 12


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that PostgreSQL's own user can reach, as pytest's are not."""
    made = Path(tempfile.mkdtemp(prefix="lecturemill-chaos-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_a_line_of_which_every_part_is_killed_and_restarted_makes_what_an_undisturbed_one_makes(folder: Path) -> None:
    supply = Supply(SEED, media=8, slices=range(10, 40), backlog=6, planted_share=0.15)
    trial = Trial(supply, schedule(SEED, DEEDS, 30), seconds=300, drain_s=180, delay_ms=150)
    report = run_trial(trial, folder, say)
    assert report.findings.faults == [], "\n".join(lines(report))
    assert report.deeds.total() == DEEDS
    assert {Deed.KILL_BROKER, Deed.KILL_POSTGRES, Deed.KILL_MEMBER, Deed.FREEZE_MEMBER} <= set(report.deeds)
    assert report.sent.planted
