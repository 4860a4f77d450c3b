"""``python -m consumers.ingest``: each media of ``media.uploaded`` is recorded, and its DAG run started.

Airflow's answer comes before the commit. A media that is announced again is the same media, and its run, which is
there already, the same run; so every message can come again. Only where the media had failed when the message was
written is another run started: somebody has mended the file, or asks for another try.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from consumers.airflow_api import AirflowApi, credentials_from, run_conf, run_id_of
from consumers.intake import Received
from consumers.loop import LoopRules
from consumers.tracing import Tracing, to_text
from consumers.wiring import Surroundings, Wired, run_program
from pipeline.admission import admit, had_failed
from pipeline.announcements import MediaUploaded
from pipeline.broker import MEDIA_UPLOADED, Outgoing
from pipeline.errors import InvalidInputError
from pipeline.identity import digest
from pipeline.messages import decode_uploaded
from pipeline.settings import open_database
from pipeline.store_line import Asked, LineStore
from pipeline.values import Priority

GROUP = "ingest"
DAG = "ingest_media"
MAX_BATCH = 20
"""Airflow starts about 15 runs a second."""

Answer = Sequence[Outgoing] | InvalidInputError


class Airflow(Protocol):
    """``consumers.airflow_api.AirflowApi``."""

    def start_run(self, dag_id: str, run_id: str, conf: dict[str, object]) -> bool: ...


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A message of ``media.uploaded``, decoded."""

    received: Received
    uploaded: MediaUploaded


class IngestStep:
    """Announcements in, DAG runs out; nothing is sent."""

    def __init__(self, store: LineStore, airflow: Airflow, tracing: Tracing, say: Callable[[str], None]) -> None:
        self._store, self._airflow, self._tracing, self._say = store, airflow, tracing, say

    def prepare(self, message: Received) -> Uploaded:
        """Raises InvalidInputError for bytes that are no such message."""
        return Uploaded(message, decode_uploaded(message.value))

    def handle(self, batch: Sequence[Uploaded]) -> list[Answer]:
        """Nothing to send, for each, or why it can never be a run. Raises RetriableError where Airflow is away."""
        return [self._answer(one) for one in batch]

    def _answer(self, one: Uploaded) -> Answer:
        try:
            self._start(one)
        except InvalidInputError as error:
            return error
        return ()

    def _start(self, one: Uploaded) -> None:
        uploaded = one.uploaded
        media = admit(uploaded, self._store)
        with self._tracing.span("ingest", one.received.headers, media_id=media.media_id) as headers:
            conf = run_conf(media, Asked(uploaded.priority, uploaded.audio_track), to_text(headers))
            became = self._started(media.media_id, conf, one.received)
        self._say(f"media {media.media_id} of course {media.course_id}: {became}")

    def _started(self, media_id: str, conf: dict[str, object], received: Received) -> str:
        """What became of the announcement, for people."""
        failed_at = self._failed_at(media_id, received)
        is_new = self._airflow.start_run(DAG, run_id_of(media_id), conf)
        if failed_at and not is_new:
            # A version of this message's own, so that the same message starts it once.
            version = digest(received.partition, received.offset, received.timestamp_ms)
            is_new = self._airflow.start_run(DAG, run_id_of(media_id, version), conf)
        if not is_new:
            return "its run is there already"
        if not failed_at:
            return "its run is started"
        self._store.reopen(media_id, failed_at)
        return "it had failed, and a new run is started"

    def _failed_at(self, media_id: str, received: Received) -> datetime | None:
        """The failure that the message answers, if any: its media's first one, come again, is older than that."""
        (status,) = self._store.status(media_id)
        return status.finished_at if had_failed(status, received.timestamp_ms) else None


@contextmanager
def wire(around: Surroundings) -> Iterator[Wired]:
    """The step and its rules, over the database and the Airflow of the settings."""
    settings = around.settings
    with (
        open_database(settings) as url,
        LineStore.open(url) as store,
        AirflowApi(settings.airflow_url, credentials_from(os.environ)) as airflow,
    ):
        rules = LoopRules(GROUP, {Priority.NORMAL: MEDIA_UPLOADED}, max_batch=MAX_BATCH)
        yield IngestStep(store, airflow, around.tracing, around.say), rules


if __name__ == "__main__":
    sys.exit(run_program("ingest", wire))
