"""The DAG ``ingest_media``: one run takes one media down the line.

probe -> slice_and_publish -> wait -> verify -> export. Slices are messages on Kafka, never tasks: Airflow plans, Kafka
moves, PostgreSQL remembers. Every task can be cleared and run again without harm.
"""

from __future__ import annotations

import logging
import os
import time
from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.common import INGEST, PRIORITIES, SLICING_POOL, TASKS, asked_for, failing_at_once, opened_store, settings
from dags.slicing import opened_publisher
from dags.waiting import WaitForResult

log = logging.getLogger(__name__)

MAX_ACTIVE_RUNS = 200
"""Nearly all of them wait, which costs a row in the triggerer."""
PATIENCE = timedelta(hours=24)
SLICING_TIMEOUT = timedelta(hours=3)
"""A ten-hour file takes ten minutes; what takes longer than this hangs."""

PARAMS = {
    "course_id": Param(
        type="string", minLength=1, maxLength=200, title="Course", description="The course that owns the media."
    ),
    "uri": Param(
        type="string",
        minLength=1,
        title="URI",
        description="Where it lies, as every worker reaches it: file:///lectures/1.mp4, s3://, gs://, https://.",
    ),
    "media_id": Param(
        None,
        type=["null", "string"],
        title="Media id",
        description="Leave it empty: it is made of course and URI, so that one file is one media.",
    ),
    "title": Param(
        None, type=["null", "string"], title="Title", description="What people call it; else its file's name."
    ),
    "language": Param(
        None,
        type=["null", "string"],
        title="Language",
        examples=["zh", "en"],
        description="zh, en or another ISO 639-1 code; empty to hear it in each slice.",
    ),
    "priority": Param("normal", enum=list(PRIORITIES), title="Priority", description="Which queue its slices wait in."),
    "audio_track": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Audio track",
        description="Counted from 1; empty for the default one.",
    ),
    "formats": Param(
        ["srt", "vtt"],
        type="array",
        items={"type": "string"},
        examples=["srt", "vtt", "ass", "ttml", "json", "txt"],
        title="Formats",
        description="The subtitle files to be written to the media store at the end.",
    ),
    "force": Param(
        False,
        type="boolean",
        title="Force",
        description="Transcribe everything again, though the result is there: for new weights under an old name.",
    ),
    "traceparent": Param(
        None,
        type=["null", "string"],
        title="Trace",
        description="The W3C trace that the upload belongs to; set by consumers.ingest.",
    ),
}


@task
def probe() -> str:
    """Record the media and look what is in its file. Returns the media id.
    A file at fault fails the run at once; the one line that says why is in the log and, with the ledger, in PostgreSQL.
    """
    from pipeline.admission import admit, opened
    from pipeline.announcements import MediaUploaded
    from pipeline.values import Priority

    params = asked_for()
    asked = {name: params[name] for name in ("course_id", "uri", "media_id", "title", "language", "audio_track")}
    with failing_at_once(), opened_store(settings()) as store:
        media = admit(MediaUploaded(**asked, priority=Priority(params["priority"])), store)
        log.info("media %s of course %s: %s", media.media_id, media.course_id, media.uri)
        with opened(media, store) as found:
            store.record_media(found.media)
        info = found.info
        log.info("%s, %s ms, %d audio tracks", info.container, info.duration_ms, len(info.tracks))
    return media.media_id


@task(pool=SLICING_POOL, execution_timeout=SLICING_TIMEOUT, multiple_outputs=False)
def slice_and_publish(media_id: str) -> dict[str, Any]:
    """Decode the media, cut it in its silences, send the slices to Kafka, and the end mark behind them.
    Skipped, as is the wait, where the result is there already. Slices that are transcribed are not sent again.
    """
    from consumers.tracing import from_text, tracing_for

    params, started_s = asked_for(), time.perf_counter()
    with (
        failing_at_once(),
        tracing_for("slice", os.environ) as tracing,
        opened_publisher(settings()) as publisher,
        tracing.span("slice", from_text(params["traceparent"] or ""), media_id=media_id) as headers,
    ):
        sent = publisher.publish(media_id, force=params["force"], headers=headers)
    if sent is None:
        raise AirflowSkipException(f"media {media_id}: its result is there already")
    log.info(
        "media %s of course %s: %d slices, %d of them sent, in %.1f s",
        media_id,
        params["course_id"],
        sent.plan.slice_count,
        sent.slices,
        time.perf_counter() - started_s,
    )
    return {"media_id": media_id, "slicing": sent.plan.slicing, "asr": sent.plan.asr, "stale": sent.stale}


@task(trigger_rule="none_failed", multiple_outputs=False)
def verify(media_id: str) -> dict[str, int]:
    """Check that the ledger accounts for every millisecond, and that there are cues where there is speech."""
    from pipeline.ledger import total_ms
    from pipeline.values import Outcome
    from pipeline.verifying import complaints

    with failing_at_once(), opened_store(settings()) as store:
        result = store.result(media_id)
    if wrong := complaints(result):
        raise AirflowFailException(f"media {media_id}: {'; '.join(wrong)}")
    numbers = {f"{outcome}_ms": total_ms(result.ledger, outcome) for outcome in Outcome}
    numbers |= {"duration_ms": result.duration_ms, "cues": len(result.cues), "violations": len(result.violations)}
    log.info("media %s: %s", media_id, ", ".join(f"{name} {number}" for name, number in numbers.items()))
    return numbers


@task
def export(media_id: str) -> None:
    """Write the subtitle files to the media store, and log where they are."""
    from pipeline.exporting import write_subtitles

    known = settings()
    with failing_at_once(), opened_store(known) as store:
        media, result = store.media(media_id), store.result(media_id)
    for uri in write_subtitles(media, result, known.media_store, asked_for()["formats"]):
        log.info("media %s of course %s: %s", media_id, media.course_id, uri)


@dag(
    dag_id=INGEST,
    schedule=None,
    catchup=False,
    params=PARAMS,
    default_args=TASKS,
    max_active_runs=MAX_ACTIVE_RUNS,
    is_paused_upon_creation=False,
    tags=["lecturemill", "line"],
    doc_md=__doc__,
)
def ingest_media() -> None:
    media_id: Any = probe()
    sliced = slice_and_publish(media_id)
    waited = WaitForResult(task_id="wait", sliced=sliced, patience=PATIENCE, doc_md=WaitForResult.__doc__)
    verified = verify(media_id)
    waited >> verified >> export(media_id)


ingest_media()
