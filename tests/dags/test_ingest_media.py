"""The DAG ``ingest_media`` as Airflow runs it, with the consumers in a thread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.broker import AUDIO_SLICES
from pipeline.identity import media_id_of
from pipeline.ledger import total_ms
from pipeline.store_line import LineStore
from pipeline.values import Outcome, Priority
from tests.dags.conftest import Line
from tests.integration.speaking import write_sound


def run(dag_bag: Any, path: Path, **asked: object) -> dict[str, str]:
    """The state of each task after a run for one file."""
    run = dag_bag.dags["ingest_media"].test(run_conf={"course_id": "geometry", "uri": path.as_uri(), **asked})
    return {one.task_id: str(one.state) for one in run.get_task_instances()}


def states(*names: str) -> dict[str, str]:
    return dict(zip(("probe", "slice_and_publish", "wait", "verify", "export"), names, strict=True))


DONE = states(*["success"] * 5)


def test_a_media_goes_down_the_whole_line(dag_bag: Any, line: Line, store: LineStore, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "第一讲.wav", (5, 2), (40, 1))
    assert run(dag_bag, path, priority="urgent", formats=["srt", "txt"], language="zh") == DONE
    media_id = media_id_of("geometry", path.as_uri())
    result = store.result(media_id)
    assert result.duration_ms == 48_000
    assert total_ms(result.ledger, Outcome.TRANSCRIBED) > 40_000
    assert {one.topic for one in line.sent} == {AUDIO_SLICES[Priority.URGENT]}
    assert store.media(media_id).title == "第一讲"
    files = sorted((tmp_path / "media").rglob("*.*"))
    assert {"第一讲.zh.srt", "第一讲.zh.txt"} <= {file.name for file in files}


def test_a_finished_media_is_neither_sliced_nor_waited_for_again(dag_bag: Any, line: Line, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", (3, 2))
    assert run(dag_bag, path) == DONE
    sent = len(line.sent)
    assert run(dag_bag, path) == states("success", "skipped", "skipped", "success", "success")
    assert len(line.sent) == sent


def test_force_sends_every_slice_of_a_finished_media_again(
    dag_bag: Any, line: Line, store: LineStore, tmp_path: Path
) -> None:
    path = write_sound(tmp_path / "a.wav", (3, 2))
    assert run(dag_bag, path) == DONE
    once = len(line.sent)
    assert run(dag_bag, path, force=True) == DONE
    assert len(line.sent) == 2 * once
    assert store.result(media_id_of("geometry", path.as_uri())).cues


def test_a_file_that_is_no_media_fails_the_run_at_once(
    dag_bag: Any, line: Line, store: LineStore, tmp_path: Path
) -> None:
    path = tmp_path / "notes.mp4"
    path.write_text("no lecture, only notes\n" * 100)
    became = run(dag_bag, path)
    assert became == states("failed", *["upstream_failed"] * 4)
    (status,) = store.status(media_id_of("geometry", path.as_uri()))
    assert (status.state, status.title) == ("failed", "notes")
    assert "not a media file" in status.reason
    assert line.sent == []


def test_a_file_that_is_gone_costs_a_finished_media_nothing(dag_bag: Any, store: LineStore, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", (3, 2))
    assert run(dag_bag, path) == DONE
    path.rename(tmp_path / "elsewhere.wav")
    assert run(dag_bag, path)["probe"] == "failed"
    (status,) = store.status(media_id_of("geometry", path.as_uri()))
    assert status.state == "done"
    assert status.cues


def test_a_silent_file_is_done_with_an_end_mark_alone(
    dag_bag: Any, line: Line, store: LineStore, tmp_path: Path
) -> None:
    path = write_sound(tmp_path / "silence.wav", (0, 20))
    assert run(dag_bag, path) == DONE
    result = store.result(media_id_of("geometry", path.as_uri()))
    assert (result.duration_ms, result.cues) == (20_000, ())
    assert total_ms(result.ledger, Outcome.SILENCE) == 20_000
    assert len(line.sent) == 1


def test_the_slices_belong_to_the_trace_of_the_upload(dag_bag: Any, line: Line, tmp_path: Path) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert run(dag_bag, write_sound(tmp_path / "a.wav", (3, 2)), traceparent=trace) == DONE
    assert {one.headers for one in line.sent} == {(("traceparent", trace.encode()),)}


def test_what_does_not_add_up_is_not_verified(dag_bag: Any, store: LineStore, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    path = write_sound(tmp_path / "a.wav", (3, 2))
    assert run(dag_bag, path) == DONE
    media_id = media_id_of("geometry", path.as_uri())
    verify = dag_bag.dags["ingest_media"].task_dict["verify"].python_callable
    result = store.result(media_id)
    assert verify(media_id)["duration_ms"] == result.duration_ms == 5000
    store.record_result(replace(result, duration_ms=result.duration_ms + 7), "another")
    with pytest.raises(AirflowFailException, match=r"covers 0\.\.5000 ms, its duration is 5007 ms"):
        verify(media_id)


def test_every_parameter_of_the_form_says_what_it_is_for(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        for name in dag.params:
            assert dag.params.get_param(name).description, f"{dag.dag_id}: {name}"


def test_every_task_and_dag_is_documented(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        assert dag.doc_md
        for task in dag.tasks:
            assert task.doc_md, task
