"""The command ``lecturemill`` over made-up sound: ``python -m tests.integration.speaking_command run ...``.

Everything is real but the detector, the engine and the size of a batch (two slices). The environment says when the
process kills itself, or waits to be killed:

- ``DIE_AT=record_slices:2`` before the second call of that method of the store, ``DIE_AFTER=...`` after it;
  ``replace`` is the replacement of one table's rows, inside the transaction that records a result;
- ``WAIT_AT=2`` in the second call of the engine, having written ``AT_WORK`` to standard error.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from pipeline import assembly, cli, store_tables
from pipeline.driver import LineOptions
from pipeline.models import LocalModel
from pipeline.stopping import stoppable
from pipeline.store import Store
from tests.integration.speaking import LoudnessDetector, SpeakingEngine

AT_WORK = "at work"


def main() -> None:
    """Put the made-up parts in place, then be the command."""
    place: Any = assembly
    place.load_engine = lambda *_: SpeakingEngine(_wait)
    place.find_detector = lambda *_: (LoudnessDetector, LoudnessDetector.fingerprint)
    place.present_model = lambda *_: LocalModel("speaking", Path("speaking"), "speaking")
    place = cli
    place.line_options = lambda request: _in_small_batches(assembly.line_options(request))
    for owner, name in ((Store, "record_media"), (Store, "record_slices"), (Store, "record_result")):
        setattr(owner, name, _deadly(name, getattr(owner, name)))
    place = store_tables
    place.replace = _deadly("replace", store_tables.replace)
    stoppable(cli.app)


def _in_small_batches(options: LineOptions) -> LineOptions:
    return replace(options, batch_slices=2)


def _deadly(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    calls = count(1)

    def called(*given: Any, **named: Any) -> Any:
        here = f"{name}:{next(calls)}"
        _die_if(os.environ.get("DIE_AT") == here)
        result = function(*given, **named)
        _die_if(os.environ.get("DIE_AFTER") == here)
        return result

    return called


def _die_if(so: bool) -> None:
    if so:
        os.kill(os.getpid(), signal.SIGKILL)


def _wait(call: int) -> None:
    if os.environ.get("WAIT_AT") == str(call):
        print(AT_WORK, file=sys.stderr, flush=True)
        time.sleep(120)


if __name__ == "__main__":
    main()
