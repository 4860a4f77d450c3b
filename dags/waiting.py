"""The wait of a run for the consumers: a deferred task, and the trigger that asks PostgreSQL for it.

While it waits the run takes no worker, only a few lines of the triggerer, which imports this module by its name.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from dags.common import opened_store, settings

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

POLL_S = 4.0
CONNECTIONS = 4
"""So many waiting media are asked for at the same time; a query takes 10 ms with its connection."""
SHOWN_SLICES = 10

_TURNS = asyncio.Semaphore(CONNECTIONS)

# ``stale`` is the run key of the result that was there before: a glossary alone changes it, and no other fingerprint.
QUERY = """
    select m.state, m.reason, (m.slicing_fingerprint, m.asr_fingerprint) = (%(slicing)s, %(asr)s),
        coalesce((t.slicing_fingerprint, t.asr_fingerprint) = (%(slicing)s, %(asr)s)
            and t.fingerprint <> %(stale)s, false)
    from lecturemill.media as m
    left join lecturemill.transcript as t using (media_id)
    where m.media_id = %(media_id)s
"""
WANTED = ("media_id", "slicing", "asr", "stale")


class MediaFinished(BaseTrigger):
    """Fires when a media is done or failed under the given fingerprints, or ``deadline_s`` (Unix time) has passed.

    The event holds ``state`` (done, failed, gone, taken over or overdue) and ``reason``.
    """

    def __init__(self, wanted: Mapping[str, str], deadline_s: float) -> None:
        """``wanted`` has the keys of ``WANTED``."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.wanted, self.deadline_s = dict(wanted), deadline_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Without the database's URL, which would lie readable in Airflow's own."""
        return "dags.waiting.MediaFinished", {"wanted": self.wanted, "deadline_s": self.deadline_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        opened = ExitStack()
        try:
            url = await asyncio.to_thread(_database_url, opened)
            while (event := await self._event(url)) is None:
                await asyncio.sleep(POLL_S)
        finally:
            await asyncio.to_thread(opened.close)
        yield TriggerEvent(event)  # type: ignore[no-untyped-call]

    async def _event(self, url: str) -> dict[str, str] | None:
        """None while there is nothing to say. A database that is away is asked again, until the deadline."""
        import psycopg

        try:
            event = _event_of(await _rows(url, self.wanted))
        except psycopg.OperationalError as error:
            log.warning("media %s: the database does not answer: %s", self.wanted["media_id"], error)
            event = None
        is_overdue = event is None and time.time() >= self.deadline_s
        return {"state": "overdue", "reason": ""} if is_overdue else event


class WaitForResult(BaseOperator):
    """Waits until the consumers have made the result of a media.

    It is tried again like any task, as Airflow fails a deferred one whose trigger fires before the scheduler has
    noticed that it was deferred. A media that failed, or is not done in time, fails it at once.
    """

    template_fields: Sequence[str] = ("sliced",)

    def __init__(self, *, sliced: Any, patience: timedelta, **kwargs: Any) -> None:
        """``sliced`` is what the slicing task returned, with the keys of ``WANTED``."""
        super().__init__(**kwargs)
        self.sliced, self.patience = sliced, patience

    def execute(self, context: Context) -> None:  # noqa: ARG002 - Airflow passes it
        wanted = {name: self.sliced[name] for name in WANTED}
        log.info("media %s: waiting for its transcript", wanted["media_id"])
        deadline_s = time.time() + self.patience.total_seconds()
        self.defer(trigger=MediaFinished(wanted, deadline_s), method_name="resume")

    def resume(self, context: Context, event: Mapping[str, str]) -> None:  # noqa: ARG002 - Airflow passes it
        """Raises AirflowFailException where the media failed or is not done in time."""
        media_id = self.sliced["media_id"]
        if event["state"] == "done":
            log.info("media %s: its transcript is there", media_id)
        elif event["state"] == "overdue":
            raise AirflowFailException(f"media {media_id} is not done after {self.patience}: {lacking(media_id)}")
        else:
            raise AirflowFailException(f"media {media_id} is {event['state']}: {event['reason']}")


def lacking(media_id: str) -> str:
    """What a media still lacks, in one line."""
    with opened_store(settings()) as store:
        missing = store.missing(media_id)
    if missing.plan is None:
        return "its end mark has not come; see that consumers.transcribe and consumers.assemble run"
    if not missing.untranscribed:
        return "every slice is transcribed, but there is no result of them; see that consumers.assemble runs"
    few = ", ".join(map(str, missing.untranscribed[:SHOWN_SLICES]))
    more = ", ..." if len(missing.untranscribed) > SHOWN_SLICES else ""
    return (
        f"{len(missing.untranscribed)} of {missing.plan.slice_count} slices are missing ({few}{more}); "
        "see that consumers.transcribe runs, then let audit_media send them again"
    )


def _event_of(rows: Sequence[Any]) -> dict[str, str] | None:
    """None while the media is being worked on."""
    if not rows:
        return {"state": "gone", "reason": "its row was deleted from the database"}
    state, reason, is_wanted, is_made = rows[0]
    if not is_wanted:
        return {"state": "taken over", "reason": "a later run works on it with another model, glossary or options"}
    if state == "failed":
        return {"state": state, "reason": reason}
    return {"state": state, "reason": ""} if state == "done" and is_made else None


async def _rows(url: str, wanted: Mapping[str, str]) -> Sequence[Any]:
    """Over a connection of its own: hundreds that lie idle would be more than PostgreSQL gives."""
    import psycopg

    async with _TURNS, await psycopg.AsyncConnection.connect(url, connect_timeout=10) as connection:
        return await (await connection.execute(QUERY, wanted)).fetchall()


def _database_url(opened: ExitStack) -> str:
    """As psycopg reads it. The embedded PostgreSQL stays up until ``opened`` is closed."""
    from pipeline.database import embedded

    known = settings()
    url = known.database_url or opened.enter_context(embedded(known.home))
    return f"postgresql://{url.partition('://')[2]}"
