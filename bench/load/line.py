"""The line that is measured: a broker, PostgreSQL and two consumers, each a process of its own, all of them real."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from sqlalchemy import text

from bench.load.noting import Stored
from bench.load.producer import Job, Produced, media_id
from bench.load.usage import process_s
from deploy.local.kafka import Broker
from deploy.local.postgres import Postgres
from deploy.local.processes import Program
from pipeline.broker import create_topics
from pipeline.database import connect
from pipeline.errors import RetriableError
from pipeline.store_line import LineStore
from pipeline.values import Media, Priority

START_TIMEOUT_S = 60.0
CONSUMES = " consumes "


@dataclass(frozen=True, slots=True)
class Line:
    """It runs. Its files lie in ``folder``."""

    folder: Path
    postgres: Postgres
    kafka: Broker
    consumers: tuple[Program, ...]

    def announce(self, run: str, courses: int) -> None:
        """Slices of media that nobody has announced are not stored."""
        with LineStore.open(self.postgres.address) as store:
            for course in range(courses):
                media = media_id(run, course)
                store.announce(Media(media, f"course-{media}", media, media, "", None, "en"), Priority.NORMAL, None)

    def usage_s(self) -> dict[str, float]:
        """Processor seconds until now of all that runs."""
        consumers = {program.name: process_s(program.pid()) for program in self.consumers}
        broker = process_s(self.kafka.pid())
        return {"broker": broker, **consumers, "PostgreSQL": process_s(self.postgres.server_pid())}

    def stored(self, run: str) -> list[Stored]:
        """What the assemble consumer noted of a run so far, the first time each slice was stored."""
        lines = notes_of(self.folder).read_bytes().split(b"\n")[:-1]
        noted = (msgspec.json.decode(line, type=Stored) for line in lines)
        first: dict[tuple[str, int], Stored] = {}
        for one in noted:
            if one.media_id.startswith(f"{run}-"):
                first.setdefault((one.media_id, one.slice_index), one)
        return list(first.values())

    def rows(self, run: str) -> dict[str, int]:
        """How many rows PostgreSQL has of a run, by table."""
        engine = connect(self.postgres.address)
        with engine.connect() as connection:
            counts = {table: connection.execute(text(_count(table)), {"run": f"{run}-%"}) for table in TABLES}
            rows = {table: int(count.scalar_one()) for table, count in counts.items()}
        engine.dispose()
        return rows


TABLES = ("slice", "slice_transcript")


def _count(table: str) -> str:
    return f"select count(*) from lecturemill.{table} where media_id like :run"


@contextmanager
def running(folder: Path, batch: int, delay_ms: int) -> Iterator[Line]:
    """Up with everything, down at the end. Raises RetriableError where something does not come up."""
    folder.chmod(0o755)  # root's PostgreSQL is nobody: its data stay in this folder, and go with it
    notes_of(folder).touch()
    with Postgres(folder / "postgres") as postgres, Broker(folder / "kafka") as kafka, ExitStack() as stack:
        create_topics(kafka.address)
        environment = _environment(folder, postgres, kafka)
        stub = _consumer(folder, "transcribe", ["bench.load.stub", str(batch), str(delay_ms)], environment)
        noting = _consumer(folder, "assemble", ["bench.load.noting", str(notes_of(folder))], environment)
        for program in (stub, noting):
            stack.callback(program.stop)
            program.await_health(lambda one=program: CONSUMES in one.said(), START_TIMEOUT_S)  # type: ignore[misc]
        yield Line(folder, postgres, kafka, (stub, noting))


def notes_of(folder: Path) -> Path:
    return folder / "stored.jsonl"


def _environment(folder: Path, postgres: Postgres, kafka: Broker) -> dict[str, str]:
    own = {
        "DATABASE_URL": postgres.address,
        "LECTUREMILL_BROKERS": kafka.address,
        "LECTUREMILL_MEDIA_STORE": (folder / "media").as_uri(),
    }
    return {**os.environ, **own}


def _consumer(folder: Path, name: str, module: Iterable[str], environment: Mapping[str, str]) -> Program:
    program = Program(name, folder / "consumers")
    program.start([sys.executable, "-m", *module], environment)
    return program


class Producer:
    """The other end of a ``bench.load.producer``, ready when it is made."""

    def __init__(self, job: Job) -> None:
        command = [sys.executable, "-m", "bench.load.producer"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._write(msgspec.json.encode(job) + b"\n")
        self._read()

    def produce(self) -> Produced:
        """Begin, and return when it is done."""
        self._write(b"\n")
        return msgspec.json.decode(self._read(), type=Produced)

    def close(self) -> None:
        with suppress(OSError):
            self._process.kill()
        self._process.communicate()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def _read(self) -> bytes:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RetriableError("the producer ended before its work was done; it said why above")
        return line
