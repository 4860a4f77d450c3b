from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from consumers.heap import KEPT_BYTES, keep_freed_memory

def a_poll():
    messages = [bytearray(500_000) for _ in range(KEPT_BYTES // 2 // 500_000)]

keep_freed_memory()
a_poll()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    a_poll()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES_OF_A_POLL = 32 * 1024 * 1024 // 4096


@pytest.mark.skipif(sys.platform != "linux", reason="the heap of the GNU C library")
def test_memory_that_held_messages_is_not_asked_for_again() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < PAGES_OF_A_POLL
