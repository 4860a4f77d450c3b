"""The benchmark of the whole line beside its peer: ``python -m bench.line`` (``make bench``).

Each system runs in a process of its own with its model loaded; they take turns on each file, round by round,
so that a busy machine slows all of them alike. Then the peers hear each file once more for word times. Tables
go to the terminal, and with every single result into ``bench/results/<date>-<set>.md`` and ``.json``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Self

import msgspec

from bench.data import CHECKOUT, SETS, load
from bench.machine import describe
from bench.report import FileResult, SetResult, SystemResult, markdown
from bench.scoring import score
from bench.values import Item, Reply, Request
from pipeline.assembly import present_model
from pipeline.errors import LecturemillError, RetriableError, UsageError
from pipeline.settings import settings_from

ITEM_TIMEOUT_S = 1800
LEAVE_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class System:
    """A row of the table: ``kind`` is a loader of the worker, ``takes_glossary`` whether it is given one."""

    name: str
    kind: str
    takes_glossary: bool = False
    has_words: bool = False
    """True where word times come with every timed result, so that no second run is needed for them."""


SYSTEMS = (
    System("faster-whisper sequential", "sequential"),
    System("faster-whisper batched", "batched"),
    # What our own row holds too: the line cannot do without word times.
    System("faster-whisper batched, word times", "batched", has_words=True),
    System("faster-whisper batched, terms as hotwords", "batched", takes_glossary=True),
    System("ours", "ours", has_words=True),
    System("ours with glossary", "ours", takes_glossary=True, has_words=True),
)


class Worker:
    """The other end of a ``bench.worker`` process; once it has a ``problem`` it is asked nothing more."""

    def __init__(self, system: System, model: str, threads: int) -> None:
        command = [sys.executable, "-m", "bench.worker", system.kind, model, str(threads)]
        self.system = system
        self._process = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.problem = self._reply().problem

    def ask(self, item: Item, *, with_words: bool = False) -> Reply | None:
        """Send a file through; None (and a ``problem``) where the worker cannot."""
        if self.problem:
            return None
        glossary = str(item.glossary) if item.glossary and self.system.takes_glossary else None
        reply = self._send(Request(str(item.path), item.language, glossary, with_words))
        self.problem = f"{item.name}: {reply.problem}" if reply.problem else ""
        return None if self.problem else reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The end of its input ends a worker, and with it the server that ours has started."""
        try:
            self._process.communicate(timeout=LEAVE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _send(self, request: Request) -> Reply:
        if self._process.stdin is None:
            raise RetriableError("the worker's input is not a pipe")
        self._process.stdin.write(msgspec.json.encode(request).decode() + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> Reply:
        if self._process.stdout is None:
            raise RetriableError("the worker's output is not a pipe")
        watch = Timer(ITEM_TIMEOUT_S, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise RetriableError(f"the worker of {self.system.name} ended or hung; its error stands above")
        return msgspec.json.decode(line, type=Reply)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    sets: tuple[str, ...]
    rounds: int
    quick: bool
    model: str
    threads: int
    out: Path


def measure(name: str, options: Options) -> SetResult:
    """Run every system over a set."""
    items = load(name)
    chosen = [system for system in SYSTEMS if _is_wanted(system, items, options.quick)]
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(system, options.model, options.threads)) for system in chosen]
        warm_up(workers, items)
        timed = [run_round(workers, items, number) for number in range(options.rounds)]
        results = tuple(_system_result(worker, items, timed) for worker in workers)
    return SetResult(name, options.rounds, describe(options.model, options.threads), results)


def warm_up(workers: Sequence[Worker], items: Sequence[Item]) -> None:
    """One short file through each system, not counted: first use opens detectors and buffers."""
    shortest = min(items, key=lambda item: item.duration_ms)
    for worker in workers:
        worker.ask(shortest)


Round = dict[tuple[str, str], Reply]
"""(system, item) -> reply."""


def run_round(workers: Sequence[Worker], items: Sequence[Item], number: int) -> Round:
    """Every system on every file, in turn; each round another system goes first."""
    first = number % len(workers)
    replies: Round = {}
    for item in items:
        for worker in [*workers[first:], *workers[:first]]:
            _say(f"round {number + 1}: {item.name}: {worker.system.name}")
            if reply := worker.ask(item, with_words=worker.system.has_words):
                replies[worker.system.name, item.name] = reply
    return replies


def _system_result(worker: Worker, items: Sequence[Item], timed: Sequence[Round]) -> SystemResult:
    name = worker.system.name
    if worker.problem:
        return SystemResult(name, 0, (), worker.problem)
    # The peak is taken before the run for word times, which is no part of what is measured.
    peak = max(done[name, item.name].peak_bytes for done in timed for item in items)
    files = tuple(_file_result(worker, item, [done[name, item.name] for done in timed]) for item in items)
    return SystemResult(name, peak, files, worker.problem)


def _file_result(worker: Worker, item: Item, replies: Sequence[Reply]) -> FileResult:
    shown = replies[0].hypothesis
    again = None if worker.system.has_words or not item.sentences else worker.ask(item, with_words=True)
    judged = score(item, shown, again.hypothesis if again else shown)
    seconds = tuple(reply.seconds for reply in replies)
    return FileResult(worker.system.name, item.name, item.language, item.duration_ms, seconds, judged)


def _is_wanted(system: System, items: Sequence[Item], quick: bool) -> bool:
    if not system.takes_glossary:
        return True
    return any(item.glossary for item in items) and (system.kind == "ours" or not quick)


def write(result: SetResult, out: Path) -> Path:
    """Write the report and all single results; returns the path of the report."""
    out.mkdir(parents=True, exist_ok=True)
    report = out / f"{result.machine.date}-{result.name}.md"
    report.write_text(markdown(result), "utf-8")
    report.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    return report


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The command line as options."""
    parser = argparse.ArgumentParser(prog="python -m bench.line", description="Measure the line beside its peer.")
    parser.add_argument("--quick", action="store_true", help="one round, fewer systems")
    parser.add_argument("--sets", default="demo,lectures", help=f"comma-separated: {', '.join(SETS)}")
    parser.add_argument("--rounds", type=int, default=3, help="of which medians are taken (default 3)")
    parser.add_argument("--model", default="base", help="name or folder of the Whisper weights, for all systems")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results")
    given = parser.parse_args(arguments)
    if given.rounds < 1:
        parser.error("--rounds must be 1 or more")
    rounds = 1 if given.quick else given.rounds
    return Options(tuple(given.sets.split(",")), rounds, given.quick, given.model, given.threads, given.out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 all measured; 1 some system was not, with its reason printed; 2 wrong usage."""
    options = parse(arguments)
    complete = True
    try:
        settings = settings_from(os.environ)
        options = replace(options, model=str(present_model(options.model, settings, _say).folder))
        for name in options.sets:
            result = measure(name, options)
            report = write(result, options.out)
            print(markdown(result), flush=True)
            _say(f"written: {report}")
            complete = complete and not any(system.problem for system in result.systems)
    except UsageError as error:
        _say(error.reason)
        return 2
    except LecturemillError as error:
        _say(error.reason)
        return 1
    return 0 if complete else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
