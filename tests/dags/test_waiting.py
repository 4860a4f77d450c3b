"""The trigger that waits for a media."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from pipeline.ledger import failed_ledger
from pipeline.store_line import LineStore
from pipeline.values import (
    Boundary,
    Media,
    MediaPlan,
    Outcome,
    Priority,
    Slice,
    SliceTranscript,
    Span,
    TranscribedSlice,
)

pytestmark = pytest.mark.usefixtures("line")

MEDIA = Media("lecture-1", "geometry", "file:///1.mp4", "1", "content", 60_000, "zh")
WANTED = {"media_id": "lecture-1", "slicing": "s1", "asr": "a1", "stale": ""}


def first_event(wanted: dict[str, str], patience_s: float = 0.1) -> Any:
    from dags.waiting import MediaFinished

    async def wait() -> Any:
        async for event in MediaFinished(wanted, time.time() + patience_s).run():
            return event.payload
        return None

    return asyncio.run(wait())


def begin(store: LineStore) -> None:
    store.announce(MEDIA, Priority.NORMAL, None)
    store.begin_slicing(MEDIA, "s1", "a1")


def test_a_media_that_is_being_worked_on_is_waited_for_until_the_deadline(store: LineStore) -> None:
    begin(store)
    assert first_event(WANTED)["state"] == "overdue"


def test_a_failed_media_ends_the_wait_with_its_reason(store: LineStore) -> None:
    begin(store)
    store.record_failure("lecture-1", "the audio is damaged", failed_ledger(60_000, "the audio is damaged"))
    assert first_event(WANTED, 30) == {"state": "failed", "reason": "the audio is damaged"}


def test_a_media_that_another_run_took_over_ends_the_wait(store: LineStore) -> None:
    begin(store)
    store.begin_slicing(MEDIA, "s1", "a2")
    assert first_event(WANTED, 30)["state"] == "taken over"


def test_a_media_whose_row_was_deleted_ends_the_wait() -> None:
    assert first_event(WANTED, 30)["state"] == "gone"


def test_a_database_that_is_away_is_asked_again_until_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/nothing")
    assert first_event(WANTED)["state"] == "overdue"


def test_the_trigger_comes_back_from_what_airflow_keeps_of_it() -> None:
    from airflow.sdk._shared.module_loading import import_string

    from dags.waiting import MediaFinished

    path, arguments = MediaFinished(WANTED, 12.5).serialize()
    again = import_string(path)(**arguments)
    assert (again.wanted, again.deadline_s) == (WANTED, 12.5)
    assert "postgresql" not in str(arguments)


@pytest.mark.parametrize("state", ["failed", "gone", "taken over", "overdue"])
def test_a_media_that_will_not_be_done_is_not_waited_for_again(store: LineStore, state: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from dags.ingest_media import PATIENCE
    from dags.waiting import WaitForResult

    begin(store)
    wait = WaitForResult(task_id="wait", sliced=WANTED, patience=PATIENCE)
    with pytest.raises(AirflowFailException, match="media lecture-1 is"):
        wait.resume({}, {"state": state, "reason": "why"})


def test_a_wait_that_airflow_lost_is_tried_again(dag_bag: Any) -> None:
    """A trigger that fires at once can be ahead of the scheduler, which fails the task then."""
    assert dag_bag.dags["ingest_media"].get_task("wait").retries > 0


def test_a_wait_in_vain_names_the_missing_slices(store: LineStore) -> None:
    from dags.waiting import lacking

    begin(store)
    assert "its end mark has not come" in lacking("lecture-1")
    store.record_line([], [MediaPlan("lecture-1", "s1", "a1", 3, 60_000, (), (), 5)])
    store.record_line([transcribed(1)], [])
    assert "2 of 3 slices are missing (0, 2)" in lacking("lecture-1")
    store.record_line([transcribed(0), transcribed(2)], [])
    assert "every slice is transcribed" in lacking("lecture-1")


def transcribed(index: int) -> TranscribedSlice:
    span = Span(index * 20_000, index * 20_000 + 20_000)
    piece = Slice("lecture-1", index, span, Boundary.SILENCE, (span,))
    text = SliceTranscript("lecture-1", index, "zh", 1.0, (), Outcome.TRANSCRIBED, "", 1, 5)
    return TranscribedSlice("s1", "a1", "engine", piece, text)
