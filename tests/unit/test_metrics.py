"""What is measured, and that dashboard and documentation speak of nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.structs import TopicPartition
from prometheus_client import generate_latest

from consumers.handling import Taken
from consumers.intake import Received
from consumers.metrics import PUBLISHED_MS, Metrics
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.messages import decode_uploaded
from pipeline.values import Boundary, MediaPlan, Outcome, Slice, SliceTranscript, Span

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = DEPLOY / "grafana" / "lecturemill.json"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(usd_per_hour=3.6)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"lecturemill_{name}", labels)


def a_message(timestamp_ms: int = 1_000_000, topic: str = "t", partition: int = 0) -> Received:
    return Received(topic, partition, 5, b"c", b"value", (), timestamp_ms)


def a_transcript(outcome: Outcome, reason: str = "") -> SliceTranscript:
    return SliceTranscript("m", 0, "zh", 1.0, (), outcome, reason, 1, 100)


def a_slice(start_ms: int, end_ms: int, *speech: Span) -> Slice:
    return Slice("m", 0, Span(start_ms, end_ms), Boundary.SILENCE, speech)


def names_known(metrics: Metrics) -> set[str]:
    """All names that a scrape may hold, also of metrics of which nothing was observed yet."""
    endings = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    return {family.name + ending for family in metrics.registry.collect() for ending in endings[family.type]}


def observe_everything(metrics: Metrics) -> None:
    metrics.taken(Taken([a_message()], 0, {TopicPartition("t", 0): 1}))
    metrics.retry(RetriableError("away"), 1, 500)
    metrics.dead(a_message(), InvalidInputError("bad"))
    metrics.transcribed([a_slice(0, 1000)], [a_transcript(Outcome.FILTERED, "too fast")], 1.0)
    metrics.stepped("int8", is_down=True)
    metrics.bounded(4)
    metrics.ran_out()
    metrics.refused(256)


def test_each_message_of_a_batch_has_waited_since_it_was_written(metrics: Metrics) -> None:
    messages = [a_message(1_000_000), a_message(1_003_000), a_message(1_004_000, "urgent")]
    metrics.taken(Taken(messages, 4_000, {TopicPartition("t", 0): 12}))
    assert value(metrics, "queue_wait_seconds_sum", topic="t") == 4 + 1
    assert value(metrics, "queue_wait_seconds_count", topic="t") == 2
    assert value(metrics, "queue_wait_seconds_sum", topic="urgent") == 0
    assert value(metrics, "batch_messages_sum") == 3
    assert value(metrics, "lag_messages", topic="t", partition="0") == 12


def test_the_lag_is_that_of_the_last_batch(metrics: Metrics) -> None:
    for behind in (12, 3):
        metrics.taken(Taken([a_message()], 0, {TopicPartition("t", 0): behind}))
    assert value(metrics, "lag_messages", topic="t", partition="0") == 3


def test_work_failures_and_dead_letters_are_counted(metrics: Metrics) -> None:
    metrics.handled(3, 1500)
    metrics.retry(RetriableError("away"), 1, 500)
    metrics.dead(a_message(topic="media.uploaded"), InvalidInputError("bad"))
    assert value(metrics, "handling_seconds_sum") == 1.5
    assert value(metrics, "retries_total") == 1
    assert value(metrics, "dead_letters_total", topic="media.uploaded") == 1


def test_a_failure_is_counted_by_the_module_that_raised_it_and_not_by_its_words(metrics: Metrics) -> None:
    for number in range(3):
        with pytest.raises(InvalidInputError) as raised:
            decode_uploaded(b"no message %d" % number)
        metrics.dead(a_message(), raised.value)
    assert value(metrics, "failures_total", module="pipeline.message_bytes") == 3


def test_a_failure_that_was_never_raised_is_the_step_s_or_the_loop_s(metrics: Metrics) -> None:
    metrics.dead(a_message(), InvalidInputError("said, not raised"))
    metrics.retry(RetriableError("said, not raised"), 1, 500)
    assert value(metrics, "failures_total", module="step") == 1
    assert value(metrics, "failures_total", module="consumers.loop") == 1


def test_a_batch_through_the_engine_gives_its_pace_its_speech_and_its_cost(metrics: Metrics) -> None:
    pieces = [a_slice(0, 30_000, Span(0, 10_000), Span(12_000, 22_000)), a_slice(30_000, 40_000, Span(30_000, 40_000))]
    metrics.transcribed(pieces, [a_transcript(Outcome.TRANSCRIBED)] * 2, engine_s=2.0)
    assert value(metrics, "audio_seconds_total") == 40
    assert value(metrics, "speech_seconds_total") == 30
    assert value(metrics, "realtime_ratio") == 20
    assert value(metrics, "speech_ratio") == 0.75
    assert value(metrics, "engine_seconds_sum") == 2
    assert value(metrics, "cost_usd_total", step="transcribe") == pytest.approx(0.002)


def test_slices_are_counted_by_outcome_and_each_objection_by_its_rule(metrics: Metrics) -> None:
    transcripts = [
        a_transcript(Outcome.TRANSCRIBED),
        a_transcript(Outcome.FILTERED, "repetitive, too fast"),
        a_transcript(Outcome.FILTERED, "too fast"),
    ]
    metrics.transcribed([a_slice(0, 1)] * 3, transcripts, engine_s=1.0)
    assert value(metrics, "slices_total", outcome="transcribed") == 1
    assert value(metrics, "slices_total", outcome="filtered") == 2
    assert value(metrics, "slice_objections_total", outcome="filtered", reason="too fast") == 2
    assert value(metrics, "slice_objections_total", outcome="filtered", reason="repetitive") == 1


@pytest.mark.parametrize(("engine_s", "slices"), [(0.0, [a_slice(0, 1000)]), (1.0, [a_slice(5, 5)]), (1.0, [])])
def test_no_time_and_no_audio_give_no_pace(metrics: Metrics, engine_s: float, slices: list[Slice]) -> None:
    metrics.transcribed(slices, [], engine_s)
    assert value(metrics, "realtime_ratio") == 0


def test_an_end_mark_tells_what_the_slicing_took(metrics: Metrics) -> None:
    metrics.sliced(MediaPlan("m", "s", "a", 110, 3_600_000, (), (), 20_000))
    assert value(metrics, "slicing_seconds_sum") == 20
    assert value(metrics, "sliced_slices_total") == 110
    assert value(metrics, "media_seconds_total") == 3600
    assert value(metrics, "cost_usd_total", step="slice") == pytest.approx(0.02)


def test_a_row_knows_when_its_slice_was_published(metrics: Metrics) -> None:
    metrics.stored([("why", b"x"), (PUBLISHED_MS, b"1000000")], now_ms=1_002_500)
    metrics.stored([(PUBLISHED_MS, b"1000000")], now_ms=999_000)
    assert value(metrics, "slice_to_store_seconds_sum") == 2.5
    assert value(metrics, "slice_to_store_seconds_count") == 2


@pytest.mark.parametrize("headers", [[], [(PUBLISHED_MS, b"")], [(PUBLISHED_MS, b"soon")], [(PUBLISHED_MS, b"-4")]])
def test_a_row_without_that_header_is_not_observed(metrics: Metrics, headers: list[tuple[str, bytes]]) -> None:
    metrics.stored(headers, now_ms=1)
    assert value(metrics, "slice_to_store_seconds_count") == 0


def test_a_media_is_timed_from_its_upload_to_its_cues(metrics: Metrics) -> None:
    metrics.completed(uploaded_ms=1_000_000, now_ms=1_060_000)
    assert value(metrics, "upload_to_store_seconds_sum") == 60


def test_two_programs_of_one_process_share_no_numbers(metrics: Metrics) -> None:
    metrics.handled(1, 1000)
    assert value(Metrics(), "handling_seconds_count") == 0


def test_every_metric_is_named_by_the_project_and_says_what_it_is(metrics: Metrics) -> None:
    metrics.handled(1, 1000)
    helps = re.findall(r"# HELP (\S+) (.*)", generate_latest(metrics.registry).decode())
    ours = [(name, text) for name, text in helps if not name.endswith("_created")]
    assert ours
    assert all(name.startswith("lecturemill_") and text for name, text in ours)


def dashboard() -> Any:
    return json.loads(DASHBOARD.read_text("utf-8"))


def targets() -> Iterator[tuple[str, str]]:
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_the_dashboard_asks_only_for_metrics_that_exist(metrics: Metrics) -> None:
    asked = {name for _, query in targets() for name in re.findall(r"lecturemill_\w+", query)}
    assert len(asked) > 15
    assert asked <= names_known(metrics)


def test_the_dashboard_groups_only_by_labels_that_exist(metrics: Metrics) -> None:
    observe_everything(metrics)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    known = {label for sample in samples for label in sample.labels} | {"job", "instance"}
    groupings = [labels for _, query in targets() for labels in re.findall(r"\bby \(([^)]*)\)", query)]
    asked = {label.strip() for labels in groupings for label in labels.split(",")}
    assert {"le", "topic", "outcome"} <= asked <= known


def test_every_panel_of_the_dashboard_has_a_title_a_query_and_a_place_of_its_own() -> None:
    panels = dashboard()["panels"]
    assert all(panel["title"] and panel["targets"] for panel in panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


def test_every_metric_is_in_the_table_of_the_documentation(metrics: Metrics) -> None:
    table = set(re.findall(r"^\| `(lecturemill_\w+)`", (DEPLOY / "README.md").read_text("utf-8"), re.MULTILINE))
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names_known(metrics)}
    assert table == known
