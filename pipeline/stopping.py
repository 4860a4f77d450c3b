"""How a run is stopped: Ctrl-C is felt at once, children are ended, what was done is kept."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 and the number of the signal, as shells have it."""
PATIENCE_S = 10.0
"""So long the clean-up is left alone; ending the children takes a second."""


class _Stop:
    """The handler of Ctrl-C, of a service manager's stop and of a closed terminal: raises KeyboardInterrupt.

    A second signal soon after would stop the clean-up that the first one began, and is ignored.
    """

    def __init__(self) -> None:
        self._last_s = -math.inf

    def __call__(self, _number: int, _frame: object) -> None:
        now_s = time.monotonic()
        if now_s - self._last_s > PATIENCE_S:
            self._last_s = now_s
            raise KeyboardInterrupt


def stoppable(command: Callable[[], object]) -> None:
    """Call the command of this process, which turns KeyboardInterrupt into the exit status ``INTERRUPTED``."""
    stop = _Stop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and a script's "&" want it
            signal.signal(number, stop)
    try:
        command()
    except KeyboardInterrupt:  # before the command was far enough to say so itself
        print("stopped", file=sys.stderr)
        _leave_at_once()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once()
        raise


def _leave_at_once() -> None:
    """An abandoned thread that is still at work would hold up an orderly exit, or crash in it."""
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(INTERRUPTED)


def in_thread(work: Callable[[], T]) -> T:
    """What ``work`` returns or raises. Meanwhile a stop is felt, though ``work`` may be one call of a minute.

    Python delivers signals between two steps of its main thread, never inside a call. The thread is abandoned
    then, and goes with the process.
    """
    outcome: Future[T] = Future()

    def fulfil() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            outcome.set_exception(error)

    threading.Thread(target=fulfil, name="engine", daemon=True).start()
    return outcome.result()
