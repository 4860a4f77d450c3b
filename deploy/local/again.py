"""``python -m deploy.local.again NAME COMMAND...`` runs a command, and again whenever it says "later" by status 75.

So a consumer that gave up on a broker comes back with it. Any other status is the command's last, and ours. SIGTERM is
passed on, and ends a pause; SIGKILL must go to the process group, as ``processes.Program`` sends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from deploy.local.processes import start_line

PAUSE_S = 5.0


class Again:
    """Runs ``command`` until it ends for good, or ``stop`` is called."""

    def __init__(self, command: Sequence[str], mark: Callable[[], None], pause_s: float = PAUSE_S) -> None:
        """``mark`` is called before each start but the first."""
        self._command, self._mark, self._pause_s = command, mark, pause_s
        self._stopped = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """The exit status of the last run, as a shell gives it."""
        status = self._run_once()
        while status == os.EX_TEMPFAIL and not self._stopped.is_set():
            print(f"ended with status {status}; again in {self._pause_s:.0f} s", flush=True)
            if self._stopped.wait(self._pause_s):
                break
            self._mark()
            status = self._run_once()
        return status

    def stop(self, *_: object) -> None:
        """A signal handler; harmless at any moment."""
        self._stopped.set()
        if self._child:
            self._child.terminate()

    def _run_once(self) -> int:
        self._child = subprocess.Popen(self._command)
        if self._stopped.is_set():  # asked before there was a child to pass it on to
            self._child.terminate()
        status = self._child.wait()
        return status if status >= 0 else 128 - status


def main() -> int:
    name, *command = sys.argv[1:]
    again = Again(command, lambda: print(start_line(name), end="", flush=True))
    signal.signal(signal.SIGTERM, again.stop)
    return again.run()


if __name__ == "__main__":
    sys.exit(main())
