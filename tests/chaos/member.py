"""``python -m tests.chaos.member transcribe|assemble``: a consumer as it is, but that its group misses it sooner.

Sooner even than it hands partitions over, at times: that must do no harm.

The assembler is ``python -m consumers.assemble``; the transcriber is wired like ``consumers.transcribe``, with a stub
for its engine that takes ``CHAOS_DELAY_MS`` for each batch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from consumers import assemble, wiring
from consumers.loop import LoopRules
from consumers.membership import MemberRules, open_consumer
from consumers.priorities import BY_URGENCY
from consumers.transcribe import NamedEngine, TranscribeStep, topics_of
from consumers.wiring import Surroundings, Wired, run_program
from tests.chaos.engine import OPTIONS, ScriptedEngine

SESSION_TIMEOUT_MS = 6000
"""The shortest that a broker takes by default."""
DELAY = "CHAOS_DELAY_MS"
MAX_BATCH = 8
PROGRAMS = ("transcribe", "assemble")


def main(program: str) -> int:
    place: Any = wiring
    rules = MemberRules(SESSION_TIMEOUT_MS, heartbeat_interval_ms=1000)
    place.open_consumer = partial(open_consumer, rules=rules)
    return assemble.main([]) if program == "assemble" else run_program("transcribe", _wired)


@contextmanager
def _wired(around: Surroundings) -> Iterator[Wired]:
    named = NamedEngine(ScriptedEngine(int(os.environ[DELAY]) / 1000), "a stub")
    step = TranscribeStep(lambda _: named, OPTIONS, around.metrics, around.tracing)
    yield step, LoopRules("transcribe", topics_of(",".join(BY_URGENCY)), max_batch=MAX_BATCH)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
