"""What the programs of the line share: settings in, a loop that runs until it is told to stop, an exit status out.

Exit status: 0 after an orderly stop (SIGTERM, Ctrl-C), 75 (EX_TEMPFAIL: start it again later) where the surroundings
stayed unwell, 2 for wrong usage; each of the last two with one line that says why.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from prometheus_client import start_http_server

from consumers.handling import Hooks, Step, Taken
from consumers.heap import keep_freed_memory
from consumers.intake import Received
from consumers.loop import LoopRules, run
from consumers.membership import open_consumer
from consumers.metrics import Metrics
from consumers.tracing import Tracing, tracing_for
from pipeline.broker import Sender
from pipeline.console import complain
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.settings import Settings, settings_from

EXIT_DONE, EXIT_USAGE, EXIT_RETRIABLE = 0, 2, 75
METRICS_PORT = "LECTUREMILL_METRICS_PORT"
METRICS_HOST = "LECTUREMILL_METRICS_HOST"
DEFAULT_METRICS_HOST = "127.0.0.1"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program's step is made of."""

    settings: Settings
    metrics: Metrics
    tracing: Tracing
    say: Say
    """One line on standard error, with the time and the program's name."""


Wired = tuple[Step[Any], LoopRules]


def run_program(program: str, wire: Callable[[Surroundings], AbstractContextManager[Wired]]) -> int:
    """Consume until a signal; the exit status. ``wire`` makes the step, and is left after the loop has ended."""
    keep_freed_memory()
    say = speaker(program)
    logging.basicConfig(level=logging.WARNING, format=f"{program}: %(name)s: %(message)s")
    # Brokers that are away fill a screen with lost connections; what it comes to is raised, or told to the hooks.
    logging.getLogger("kafka.net").setLevel(logging.CRITICAL)
    try:
        with ExitStack() as stack:
            stop = stack.enter_context(stop_on_signals())
            settings = settings_from(os.environ)
            metrics = Metrics(settings.usd_per_hour)
            stack.enter_context(metrics_served(metrics, os.environ))
            tracing = stack.enter_context(tracing_for(program, os.environ))
            step, rules = stack.enter_context(wire(Surroundings(settings, metrics, tracing, say)))
            client_id = f"lecturemill-{program}"
            sender = stack.enter_context(Sender.open(settings.brokers, client_id))
            consumer = open_consumer(settings.brokers, client_id, rules.group)
            rules = replace(rules, version=version("lecturemill"))
            say(f"consumes {', '.join(rules.topics.values())} from {settings.brokers}")
            run(step, consumer, sender, rules, Reports(metrics, say), stop)
    except (RetriableError, UsageError) as error:
        say(error.reason)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_RETRIABLE
    say("stopped")
    return EXIT_DONE


class Reports(Hooks):
    """One line per batch, and for all that goes wrong; the numbers go to the metrics."""

    def __init__(self, metrics: Metrics, say: Say) -> None:
        self._metrics, self._say = metrics, say
        self._courses, self._waited_ms = "", 0

    def taken(self, taken: Taken) -> None:
        self._metrics.taken(taken)
        self._courses, self._waited_ms = _courses(taken), taken.waited_ms

    def handled(self, messages: int, took_ms: int) -> None:
        self._metrics.handled(messages, took_ms)
        self._say(f"{messages} messages of {self._courses} in {took_ms} ms; the oldest waited {self._waited_ms} ms")

    def dead(self, message: Received, error: InvalidInputError) -> None:
        self._metrics.dead(message, error)
        place = f"{message.topic}, partition {message.partition}, offset {message.offset}"
        self._say(f"dead letter: {place}: {error.reason}")

    def retry(self, error: RetriableError, failures: int, wait_ms: int) -> None:
        self._metrics.retry(error, failures, wait_ms)
        self._say(f"failed {failures} times, again in {wait_ms} ms: {error.reason}")


def _courses(taken: Taken) -> str:
    """The key of each message of the line is its course."""
    names = sorted({(message.key or b"").decode(errors="replace") for message in taken.messages})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def speaker(program: str) -> Say:
    """Says one line on standard error: the time in UTC, the program, the text."""
    return lambda line: complain(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {program}: {line}")


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Gives an event that SIGTERM or Ctrl-C sets. A second signal ends the process at once."""
    stop = threading.Event()

    def told(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def metrics_served(metrics: Metrics, environment: Mapping[str, str]) -> Iterator[int | None]:
    """Serve them at ``LECTUREMILL_METRICS_PORT``, and give the port; without it, or at 0, do not.

    This machine alone is served, unless ``LECTUREMILL_METRICS_HOST`` names another address of it to listen on.
    Raises UsageError where that is no port, or a taken one, and where the address is not one of this machine.
    """
    host = environment.get(METRICS_HOST) or DEFAULT_METRICS_HOST
    text = environment.get(METRICS_PORT) or "0"
    if not text.isdecimal() or int(text) > 65535:
        raise UsageError(f"{METRICS_PORT} must be a port from 1 to 65535, or 0 for none, not {text!r}")
    if not int(text):
        yield None
        return
    try:
        server, thread = start_http_server(int(text), host, metrics.registry)
    except OSError as error:
        where = f"{METRICS_HOST}, {METRICS_PORT}: {host}:{text}"
        raise UsageError(f"{where} cannot be listened on: {error.strerror}") from error
    try:
        yield int(text)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
