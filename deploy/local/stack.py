"""All parts together: what needs what, in which order they start and end, and what a shell must export to use them."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.local.airflow import Airflow
from deploy.local.airflow_settings import Surroundings
from deploy.local.consumer import Consumer
from deploy.local.kafka import Broker
from deploy.local.parts import Part
from deploy.local.postgres import Postgres
from pipeline.broker import create_topics
from pipeline.errors import RetriableError, UsageError

DAGS = Path(__file__).parents[2] / "dags"
CONSUMERS = ("ingest", "transcribe", "assemble")


@dataclass(frozen=True, slots=True)
class Row:
    """One program of a part, as ``status`` shows it."""

    program: str
    state: str
    """``up``; ``unwell`` where it runs and cannot work, or its part lacks another program; ``down``."""
    pid: int | None
    address: str
    log: Path


class Stack:
    """The stack whose state lies in ``folder``. ``ports`` are by part; without one, a free port is chosen and kept.

    As a context it is brought up whole, and down at the end. Where root uses it, ``folder`` should be one that
    every user can reach: the PostgreSQL of root runs as nobody.
    """

    def __init__(self, folder: Path, dags: Path = DAGS, ports: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        port = defaultdict(int, ports or {})
        self.postgres = Postgres(folder / "postgres")
        self.kafka = Broker(folder / "kafka", port["kafka"])
        self.airflow = Airflow(folder / "airflow", dags, self._airflow_surroundings, port["airflow"])
        consumers = [Consumer(name, folder / "consumers", self.environment, port[name]) for name in CONSUMERS]
        self.parts: dict[str, Part] = {
            part.name: part for part in (self.postgres, self.kafka, self.airflow, *consumers)
        }
        """By name, in the order of their start."""

    def environment(self) -> dict[str, str]:
        """What programs need to find the stack. Empty for a part that was never started."""
        return {
            "DATABASE_URL": self.postgres.address,
            "LECTUREMILL_BROKERS": self.kafka.address,
            "LECTUREMILL_AIRFLOW_URL": self.airflow.address,
            "LECTUREMILL_MEDIA_STORE": (self.folder / "media").as_uri(),
        }

    def up(self, names: Sequence[str] = (), say: Callable[[str], None] = lambda _: None) -> None:
        """Start the named parts (all, if none is named) one after the other, and write ``folder/env``.

        Raises UsageError for an unknown name, RetriableError for the first part that does not come up.
        """
        for part in self._chosen(names):
            say(f"starting {part.name}")
            try:
                part.start()
            except RetriableError as error:
                raise RetriableError(f"{part.name} does not come up: {error.reason}") from error
            if part is self.kafka:
                create_topics(self.kafka.address)
        self._write_environment()

    def down(self, names: Sequence[str] = (), say: Callable[[str], None] = lambda _: None) -> None:
        """End the named parts (all, if none is named), the last first."""
        for part in reversed(self._chosen(names)):
            say(f"stopping {part.name}")
            part.stop()

    def rows(self) -> Iterable[Row]:
        """Each program, in the order of their start."""
        for part in self.parts.values():
            is_healthy = part.is_healthy()
            for program in part.programs:
                pid = program.pid()
                state = "down" if not pid else "up" if is_healthy else "unwell"
                yield Row(program.name, state, pid or None, part.address, program.log)

    def __enter__(self) -> Self:
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def _chosen(self, names: Sequence[str]) -> list[Part]:
        unknown = set(names) - self.parts.keys()
        if unknown:
            raise UsageError(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(self.parts)}")
        return [part for part in self.parts.values() if not names or part.name in names]

    def _airflow_surroundings(self) -> Surroundings:
        return Surroundings(self.postgres.create_database("airflow"), self.environment())

    def _write_environment(self) -> None:
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in self.environment().items() if value]
        (self.folder / "env").write_text("".join(lines), "utf-8")
