"""The DAG ``backfill_course``: a folder, a list or a whole course goes down the line (again), a few media at a time.

Only those go again whose result was made with another model, glossary or options than the present ones. A **dry run**
lists what would be done with each media, and why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import BaseOperator, Param, dag

from dags.common import INGEST, PRIORITIES, TASKS, failing_at_once, opened_airflow, settings
from dags.slicing import opened_present

if TYPE_CHECKING:
    from airflow.sdk import Context

    from consumers.airflow_api import AirflowApi
    from pipeline.backfilling import BackfillRequest, Decision
    from pipeline.publisher import Present

log = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)
STARTED = "started"

PARAMS = {
    "course_id": Param(
        type="string", minLength=1, maxLength=200, title="Course", description="The course that owns the media."
    ),
    "source": Param(
        None,
        type=["null", "string"],
        title="Folder",
        description="URI of a folder, for all media below it. Empty: the list below or, without one, the known media.",
    ),
    "uris": Param(
        None, type=["null", "array"], items={"type": "string"}, title="URIs", description="One media a line."
    ),
    "language": Param(
        None,
        type=["null", "string"],
        title="Language",
        examples=["zh", "en"],
        description="Of media that are not known yet; empty to hear it in each slice.",
    ),
    "audio_track": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Audio track",
        description="Of media that are not known yet, counted from 1; empty for the default one.",
    ),
    "priority": Param("bulk", enum=list(PRIORITIES), title="Priority", description="Which queue the slices wait in."),
    "per_minute": Param(
        30, type="integer", minimum=1, maximum=600, title="Runs a minute", description="At most so many are started."
    ),
    "max_waiting": Param(
        50,
        type="integer",
        minimum=1,
        title="Unfinished runs",
        description="None is started while so many runs of ingest_media are not finished, whoever started them.",
    ),
    "dry_run": Param(False, type="boolean", title="Dry run", description="Only say what would be done, and why."),
    "force": Param(
        False, type="boolean", title="Force", description="Also media that failed, and those that are up to date."
    ),
}


class StartRuns(BaseOperator):
    """Starts the runs of ``ingest_media``, so many a minute; in between it is deferred and takes no worker.
    Returns how many were started (or would be), were there already, were left alone, and can be no media.
    """

    def execute(self, context: Context) -> dict[str, int]:
        return self._go_on(context, "", {})

    def resume(self, context: Context, event: object, after: str, counts: dict[str, int]) -> dict[str, int]:  # noqa: ARG002
        return self._go_on(context, after, counts)

    def _go_on(self, context: Context, after: str, counts: dict[str, int]) -> dict[str, int]:
        """``after``: the last candidate that was dealt with."""
        from pipeline.backfilling import candidates

        params, known = context["params"], settings()
        with failing_at_once(), opened_present(known) as present, opened_airflow(known) as airflow:
            request = request_of(params, str(context["run_id"]))
            deal = Dealing(request, present, airflow, is_dry=params["dry_run"])
            left = [one for one in candidates(request, present) if one > after]
            allowed = len(left) if deal.is_dry else allowance(params, airflow)
            for candidate in left:
                if not allowed:
                    rest = {"after": after, "counts": counts}
                    self.defer(trigger=TimeDeltaTrigger(MINUTE), method_name="resume", kwargs=rest)
                outcome = deal.with_one(candidate)
                allowed -= outcome == STARTED
                counts = {**counts, outcome: counts.get(outcome, 0) + 1}
                after = candidate
        log.info("course %s: %s", request.course_id, counts or "there is no media")
        return counts


@dataclass(frozen=True, slots=True)
class Dealing:
    """Deals with one candidate after the other."""

    request: BackfillRequest
    present: Present
    airflow: AirflowApi
    is_dry: bool

    def with_one(self, candidate: str) -> str:
        """What was done, for the count. Raises RetriableError where Airflow or the database is away."""
        from pipeline.backfilling import decide
        from pipeline.errors import InvalidInputError

        try:
            decision = decide(candidate, self.request, self.present)
            outcome = self._done(decision)
        except InvalidInputError as error:
            log.warning("%s: refused: %s", candidate, error.reason)
            return "refused"
        log.info("media %s (%s): %s: %s", decision.media.media_id, decision.media.uri, outcome, decision.why)
        return outcome

    def _done(self, decision: Decision) -> str:
        from consumers.airflow_api import run_conf, run_id_of

        if not decision.is_started:
            return "left alone"
        if self.is_dry:
            return "to be started"
        conf = {**run_conf(decision.media, decision.asked), "force": bool(self.request.forced_version)}
        run_id = run_id_of(decision.media.media_id, decision.version)
        return STARTED if self.airflow.start_run(INGEST, run_id, conf) else "already there"


def allowance(params: Mapping[str, Any], airflow: AirflowApi) -> int:
    """How many runs may be started this minute."""
    per_minute, max_waiting = int(params["per_minute"]), int(params["max_waiting"])
    return max(0, min(per_minute, max_waiting - airflow.unfinished_runs(INGEST)))


def request_of(params: Mapping[str, Any], run_id: str) -> BackfillRequest:
    """``run_id`` is the backfill's own: what it forces has a version of its own, which a retry does not change."""
    from pipeline.backfilling import BackfillRequest
    from pipeline.identity import digest
    from pipeline.values import Priority

    return BackfillRequest(
        course_id=params["course_id"],
        source=params["source"] or "",
        uris=tuple(params["uris"] or ()),
        language=params["language"],
        audio_track=params["audio_track"],
        priority=Priority(params["priority"]),
        forced_version=digest(run_id) if params["force"] else "",
    )


@dag(
    dag_id="backfill_course",
    schedule=None,
    catchup=False,
    params=PARAMS,
    default_args=TASKS,
    is_paused_upon_creation=False,
    tags=["lecturemill", "operation"],
    doc_md=__doc__,
)
def backfill_course() -> None:
    StartRuns(task_id="start_runs", doc_md=StartRuns.__doc__)


backfill_course()
