"""An Airflow of its own in a temporary folder, and the line of the consumers in a thread of this process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from consumers.assemble import AssembleStep, Target
from consumers.intake import Received
from consumers.metrics import Metrics
from consumers.tracing import Tracing
from consumers.transcribe import NamedEngine, TranscribeStep
from pipeline import assembly, broker
from pipeline.broker import Outgoing
from pipeline.judging import JudgeRules
from pipeline.store_line import LineStore
from pipeline.transcription import LADDER, TranscriptionOptions
from tests.integration.conftest import database_url, make_home, server_url
from tests.integration.speaking import LoudnessDetector, SpeakingEngine

__all__ = ["database_url", "make_home", "server_url"]

DAGS = Path(__file__).resolve().parents[2] / "dags"


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the DAGs, with an Airflow that reads it.

    Airflow reads its settings when it is first imported, so no test imports it at its top.
    """
    home = tmp_path_factory.mktemp("airflow")
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        from airflow.utils.db import initdb

        initdb()
        yield DAGS


@pytest.fixture(scope="session")
def dag_bag(airflow: Path) -> Any:
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(airflow)


class Line:
    """The consumers, in a thread: what is sent comes out as rows. Given to the tasks in place of a Sender."""

    def __init__(self, store: LineStore, media_store: str) -> None:
        self.store = store
        self.sent: list[Outgoing] = []
        engine = NamedEngine(SpeakingEngine(), "speaking")
        options = TranscriptionOptions(LADDER, JudgeRules())
        target = Target(media_store, ("srt", "vtt"), 0.1)
        self._transcribe = TranscribeStep(lambda _: engine, options, Metrics(), Tracing())
        self._assemble = AssembleStep(store, target, Metrics(), Tracing())
        self._queue: queue.Queue[Sequence[Outgoing]] = queue.Queue()
        self._thread = threading.Thread(target=self._work)

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        self.sent += outgoings
        self._queue.put(outgoings)

    def close(self) -> None:
        """The thread is the fixture's."""

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        self._thread.start()

    def settle(self) -> None:
        """Return when everything that was sent has become rows."""
        self._queue.join()

    def stop(self) -> None:
        self._queue.put(())
        self._thread.join()

    def _work(self) -> None:
        while outgoings := self._queue.get():
            for step in (self._transcribe, self._assemble):
                outgoings = _through(step, outgoings)
            self._queue.task_done()


def _through(step: Any, outgoings: Sequence[Outgoing]) -> list[Outgoing]:
    batch = [step.prepare(_received(one)) for one in outgoings]
    answers = step.handle(batch)
    return [outgoing for answer in answers for outgoing in answer]


def _received(one: Outgoing) -> Received:
    return Received(one.topic, 0, 0, one.key_bytes, one.value, one.headers, 0)


@pytest.fixture
def line(airflow: Path, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """The surroundings of a task: the database, the media store, the line, and loud noise taken for speech."""
    assert airflow.is_dir()
    from dags import waiting

    monkeypatch.setattr(waiting, "POLL_S", 0.02)
    media_store = (tmp_path / "media").as_uri()
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("LECTUREMILL_MEDIA_STORE", media_store)
    monkeypatch.setenv("LECTUREMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(assembly, "find_detector", lambda *_: (LoudnessDetector, LoudnessDetector.fingerprint))
    with LineStore.open(database_url) as store:
        line = Line(store, media_store)
        monkeypatch.setattr(broker.Sender, "open", lambda *_: line)
        line.start()
        yield line
        line.stop()


@pytest.fixture
def store(line: Line) -> LineStore:
    return line.store
