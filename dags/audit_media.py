"""The DAG ``audit_media``: every hour it looks for media that are stuck, and gets them going again.

A media is stuck when nothing was heard of it for a while. Where it has no run, it gets one; where slices of it are
missing, those are sent again, and the end mark. It is left alone while the consumers are as far behind, for then its
slices wait on Kafka, and while its run is slicing it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, dag, task

from dags.common import INGEST, SLICING_POOL, SLICING_TASK, TASKS, asked_for, opened_airflow, settings
from dags.slicing import opened_publisher

if TYPE_CHECKING:
    from consumers.airflow_api import AirflowApi
    from pipeline.publisher import Publisher
    from pipeline.store import MediaStatus
    from pipeline.store_line import LineStore, Missing
    from pipeline.values import Priority

log = logging.getLogger(__name__)

STARTED, SENT, SLICES, LEFT, FAILED = "started", "sent again", "slices", "left alone", "failed"
MAX_SUSPECTS = 1000
"""Those that are left alone must not hide the others."""
TIMEOUT = timedelta(hours=6)

PARAMS = {
    "course_id": Param(None, type=["null", "string"], title="Course", description="Only this one; empty for all."),
    "media_id": Param(None, type=["null", "string"], title="Media", description="Only this one, however short a time."),
    "silent_minutes": Param(
        60, type="integer", minimum=1, title="Silent minutes", description="A media is stuck after so long a silence."
    ),
    "limit": Param(
        20,
        type="integer",
        minimum=1,
        title="Media",
        description="At most so many are set going, the longest silent first.",
    ),
}


@task(pool=SLICING_POOL, execution_timeout=TIMEOUT, multiple_outputs=False)
def audit() -> dict[str, int]:
    """Get stuck media going again. Returns how many got a run, were sent again, were left alone and failed."""
    params, known = asked_for(), settings()
    with opened_publisher(known) as publisher, opened_airflow(known) as airflow:
        behind = cache(lambda priority: is_behind(known.brokers, priority, params["silent_minutes"]))
        auditing = Auditing(publisher, airflow, behind)
        found = suspects(publisher.tools.store, params)
        counts = auditing.with_all(found, params["limit"])
    log.info("%d suspects: %s", len(found), counts)
    return counts


@dataclass(frozen=True, slots=True)
class Auditing:
    """Deals with one media after the other."""

    publisher: Publisher
    airflow: AirflowApi
    is_behind: Callable[[Priority], bool]
    """Whether the consumers of a priority are so far behind that the slices of a silent media still wait there."""

    def with_all(self, found: Sequence[MediaStatus], limit: int) -> dict[str, int]:
        """The counts, once ``limit`` media were not left alone, or there is none left."""
        counts = dict.fromkeys((STARTED, SENT, SLICES, LEFT, FAILED), 0)
        for status in found:
            if counts[STARTED] + counts[SENT] + counts[FAILED] == limit:
                break
            outcome, slices = self.with_one(status)
            counts[outcome] += 1
            counts[SLICES] += slices
        return counts

    def with_one(self, status: MediaStatus) -> tuple[str, int]:
        """What was done, and how many slices were sent. Raises RetriableError where the surroundings are unwell."""
        from pipeline.errors import InvalidInputError

        try:
            outcome, why, slices = self._done(status.media_id)
        except InvalidInputError as error:
            outcome, why, slices = FAILED, error.reason, 0
        log.info("media %s of course %s: %s: %s", status.media_id, status.course_id, outcome, why)
        return outcome, slices

    def _done(self, media_id: str) -> tuple[str, str, int]:
        from consumers.airflow_api import run_conf, run_id_of

        store, run_id = self.publisher.tools.store, run_id_of(media_id)
        asked = store.asked(media_id)
        run_state = self.airflow.run_state(INGEST, run_id)
        if not run_state:
            self.airflow.start_run(INGEST, run_id, run_conf(store.media(media_id), asked))
            return STARTED, "it had no run", 0
        missing, is_behind = store.missing(media_id), self.is_behind(asked.priority)
        if why := why_left(run_state, missing, is_behind=is_behind, is_sliced=self._is_sliced(run_id)):
            return LEFT, why, 0
        sent = self.publisher.publish(media_id)
        if sent is None:
            return LEFT, "its result is there", 0
        return SENT, f"{sent.slices} of {sent.plan.slice_count} slices were missing", sent.slices

    def _is_sliced(self, run_id: str) -> bool:
        """Whether the run has sent everything; an end mark that has not come since is lost."""
        return self.airflow.task_state(INGEST, run_id, SLICING_TASK) == "success"


def why_left(run_state: str, missing: Missing, *, is_behind: bool, is_sliced: bool) -> str:
    """Why a media is none of the audit's business; empty where it is stuck."""
    if is_behind:
        return "the consumers are far behind, so its slices may still wait on Kafka"
    if run_state in ("queued", "running") and missing.plan is None and not is_sliced:
        return f"its run is {run_state} and has not sliced it yet"
    return ""


def suspects(store: LineStore, params: Mapping[str, Any]) -> Sequence[MediaStatus]:
    """The media to look at; the one that is asked for in any state."""
    if params["media_id"]:
        return store.status(params["media_id"])
    return store.unfinished(params["course_id"], params["silent_minutes"] * 60, MAX_SUSPECTS)


def is_behind(brokers: str, priority: Priority, silent_minutes: int) -> bool:
    """Whether a message of the priority, or a transcript, has waited for longer than a media may be silent."""
    from consumers.backlog import oldest_unread_ms
    from pipeline.broker import AUDIO_SLICES, SLICE_TRANSCRIPTS

    read_by = {"transcribe": AUDIO_SLICES[priority], "assemble": SLICE_TRANSCRIPTS}
    oldest = [oldest_unread_ms(brokers, group, [topic]) for group, topic in read_by.items()]
    limit_ms = time.time_ns() // 1_000_000 - silent_minutes * 60_000
    return any(written_ms is not None and written_ms < limit_ms for written_ms in oldest)


@dag(
    dag_id="audit_media",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    params=PARAMS,
    default_args=TASKS,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["lecturemill", "operation"],
    doc_md=__doc__,
)
def audit_media() -> None:
    audit()


audit_media()
