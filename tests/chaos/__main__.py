"""``python -m tests.chaos --kills 200 --minutes 30 --seed 7``: disturb a whole line, then compare what it made."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.evidence import SHOWN_FAULTS
from tests.chaos.line_under_fire import Report, Trial, run_trial
from tests.chaos.producer import Supply
from tests.chaos.schedule import Deed, schedule

DRAIN_S = 300.0
DELAY_MS = 500
"""Most kills of a transcriber then meet a batch at work."""


def main() -> int:
    """Exit status 0 where nothing is wrong, else 1; then the logs are left where it says."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="kills, stops and restarts (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="to spread them over (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="the schedule's and the supply's (default: a random one)")
    options = parser.parse_args()
    seed = random.randrange(10_000) if options.seed is None else options.seed
    say(f"seed {seed}: {options.kills} kills in {options.minutes:g} minutes")
    seconds = options.minutes * 60
    supply = Supply(seed, media=24, slices=range(12, 100), backlog=12)
    folder = Path(tempfile.mkdtemp(prefix="lecturemill-chaos-", dir="/tmp"))
    folder.chmod(0o755)
    actions = schedule(seed, options.kills, 0.95 * seconds)
    report = run_trial(Trial(supply, actions, seconds, DRAIN_S, DELAY_MS), folder, say)
    for line in lines(report):
        print(line)
    if report.findings.faults:
        print(f"logs: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def lines(report: Report) -> list[str]:
    """For people."""
    sent, findings = report.sent, report.findings
    planted = sum(len(one.dead) for one in sent.planted)
    counted = [f"{report.deeds[deed]:5} {deed.value}" for deed in Deed]
    ends = [f"{count:5} {what}" for what, count in sorted(report.ends.items())]
    twice = [f"{count:5} duplicates in {topic}" for topic, count in findings.duplicates.items()]
    faults = findings.faults
    verdict = f"{len(faults)} FAULTS" if faults else "nothing lost, no row twice, every media in order"
    return [
        f"seed {sent.seed}: {report.deeds.total()} kills in {report.fire_s:.0f} s, drained in {report.drain_s:.0f} s",
        *counted,
        *ends,
        f"{len(sent.lectures)} media, {findings.slices} slices, {planted} planted dead letters; "
        f"the producer tried again {sent.retries} times",
        *twice,
        *faults[:SHOWN_FAULTS],
        verdict,
    ]


if __name__ == "__main__":
    sys.exit(main())
