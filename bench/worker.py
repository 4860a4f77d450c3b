"""One system in one process of its own: ``python -m bench.worker SYSTEM MODEL THREADS``.

Reads one JSON ``Request`` a line, writes one JSON ``Reply`` a line. The model is loaded before the first
request is read, so its loading is in no timing; the peak memory is of this process (and its children) alone.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from collections.abc import Callable
from typing import TextIO

import msgspec

from bench.peers import Transcribe
from bench.values import Hypothesis, Reply, Request
from pipeline.errors import LecturemillError

KIB = 1024
"""``ru_maxrss`` is in KiB on Linux (getrusage(2))."""


def loaders() -> dict[str, Callable[[str, int], Transcribe]]:
    """The kinds of system; each is called with the model (a name or folder) and the number of threads."""
    from bench import ours, peers

    return {"sequential": peers.load_sequential, "batched": peers.load_batched, "ours": ours.load}


def answer(transcribe: Transcribe, request: Request) -> Reply:
    """Do what is asked and time it; the line's own errors become the reply's ``problem``."""
    started = time.perf_counter()
    try:
        hypothesis = transcribe(request)
    except LecturemillError as error:
        return failure(error.reason)
    return Reply(hypothesis, time.perf_counter() - started, peak_bytes())


def failure(problem: str) -> Reply:
    return Reply(Hypothesis((), ()), 0.0, 0, problem)


def peak_bytes() -> int:
    """The most memory that this process, or a child that it has waited for, ever held."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(usage.ru_maxrss for usage in usages) * KIB


def serve(kind: str, model: str, threads: int, requests: TextIO, replies: TextIO) -> None:
    """Load the system, say that it is ready (or why not) with one reply, then answer until the input ends."""
    try:
        transcribe = loaders()[kind](model, threads)
    except LecturemillError as error:
        _send(failure(error.reason), replies)
        return
    _send(failure(""), replies)
    for line in requests:
        _send(answer(transcribe, msgspec.json.decode(line, type=Request)), replies)


def _send(reply: Reply, replies: TextIO) -> None:
    replies.write(msgspec.json.encode(reply).decode() + "\n")
    replies.flush()


if __name__ == "__main__":
    # Replies own standard output; whatever a library prints goes to standard error.
    with contextlib.redirect_stdout(sys.stderr):
        serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.stdin, sys.__stdout__ or sys.stdout)
