"""Traces: one from the upload to the cues, whatever the batches mix; off, nothing but the headers is passed on."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from consumers.tracing import Headers, Tracing, from_text, of_trace, to_text, tracing_for

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
UPLOADED: Headers = (("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01".encode()), ("tracestate", b"shop=7"))
STEPS = ["upload", "ingest", "slice", "transcribe", "assemble", "cue"]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider.get_tracer("test"))


def trace_of(headers: Headers) -> str:
    return to_text(headers).split("-")[1]


def span_id(span: ReadableSpan) -> str:
    assert span.context
    return f"{span.context.span_id:016x}"


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert len(spans) == len(exporter.get_finished_spans())
    return spans


def test_one_trace_leads_from_the_uploaded_message_to_the_completed_one(
    tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    with tracing.span("upload", (), course_id="c") as uploaded:
        pass
    with tracing.span("ingest", uploaded) as ingested:
        conf = to_text(ingested)
    with tracing.span("slice", from_text(conf)) as sliced:
        pass
    with tracing.batch("transcribe", [(sliced, {"slice_index": 0}), (UPLOADED, {})]) as transcribed:
        pass
    with tracing.span("assemble", transcribed[0]) as assembled, tracing.span("cue", assembled) as completed:
        pass
    ours = [span for span in exporter.get_finished_spans() if f"{span.context.trace_id:032x}" == trace_of(uploaded)]
    spans = {span.name: span for span in ours}
    parents = {name: f"{span.parent.span_id:016x}" if span.parent else None for name, span in spans.items()}
    assert parents == {
        "upload": None,
        **{after: span_id(spans[before]) for before, after in pairwise(STEPS)},
    }
    assert to_text(completed).split("-")[2] == span_id(spans["cue"])


def test_a_trace_that_a_stranger_began_is_carried_on(tracing: Tracing) -> None:
    with tracing.span("ingest", (("why", b"x"), *UPLOADED)) as headers:
        pass
    assert trace_of(headers) == TRACE
    assert ("tracestate", b"shop=7") in headers
    assert len(headers) == 2


def test_each_slice_of_a_batch_stays_in_its_own_trace_with_the_time_of_the_batch_and_a_link_to_it(
    tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    with tracing.batch("transcribe", [(UPLOADED, {"slice_index": 4}), ((), {"slice_index": 5})]) as headers:
        pass
    whole = by_name_prefix(exporter, "transcribe batch")[0]
    slices = by_name_prefix(exporter, "transcribe")
    assert [trace_of(one) for one in headers] == [f"{one.context.trace_id:032x}" for one in slices if one.context]
    assert trace_of(headers[0]) == TRACE
    assert len({one.context.trace_id for one in (whole, *slices) if one.context}) == 3
    for at, one in enumerate(slices):
        assert [link.context for link in one.links] == [whole.context]
        assert one.attributes == {"lecturemill.slice_index": 4 + at}
        assert whole.start_time <= one.start_time <= one.end_time <= whole.end_time  # type: ignore[operator]
    assert whole.attributes == {"lecturemill.size": 2}


def by_name_prefix(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """In the order in which they began."""
    found = [span for span in exporter.get_finished_spans() if span.name == name]
    return sorted(found, key=lambda span: span.start_time or 0)


def test_what_fails_says_so_in_every_span_of_the_batch(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(RuntimeError), tracing.batch("transcribe", [((), {}), (UPLOADED, {})]):
        raise RuntimeError("the engine is gone")
    assert [span.status.status_code for span in exporter.get_finished_spans()] == [StatusCode.ERROR] * 3


def test_a_message_without_a_trace_begins_one_also_inside_another_span(
    tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    with tracing.span("ingest", UPLOADED) as first, tracing.span("ingest other", ()) as second:
        pass
    assert trace_of(first) != trace_of(second)
    assert by_name(exporter)["ingest other"].parent is None


NAMES = st.one_of(st.sampled_from(["traceparent", "tracestate", "why"]), st.text(max_size=12))


@given(st.lists(st.tuples(NAMES, st.binary(max_size=80))))
def test_headers_of_any_bytes_are_no_reason_to_fail(headers: list[tuple[str, bytes]]) -> None:
    with Tracing(TracerProvider(shutdown_on_exit=False).get_tracer("test")).span("ingest", headers) as ours:
        assert trace_of(ours).strip("0")


def test_off_the_headers_of_the_trace_and_no_others_go_on() -> None:
    off = Tracing()
    with (
        off.span("ingest", (("why", b"x"), *UPLOADED)) as one,
        off.batch("transcribe", [(UPLOADED, {}), ((), {})]) as many,
    ):
        assert (one, many) == (UPLOADED, [UPLOADED, ()])


def test_without_an_endpoint_not_even_the_library_is_loaded() -> None:
    script = (
        "import sys; from consumers.tracing import tracing_for\n"
        "with tracing_for('transcribe', {}) as tracing, tracing.span('x', ()): pass\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_with_an_endpoint_spans_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[ReadableSpan] = []

    def take(_exporter: object, spans: list[ReadableSpan]) -> None:
        sent.extend(spans)

    monkeypatch.setattr("opentelemetry.exporter.otlp.proto.http.trace_exporter.OTLPSpanExporter.export", take)
    with (
        tracing_for("transcribe", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}) as tracing,
        tracing.span("transcribe", UPLOADED),
    ):
        pass
    assert [span.name for span in sent] == ["transcribe"]
    assert sent[0].resource.attributes["service.name"] == "lecturemill-transcribe"


@given(st.text("0123456789abcdef-", min_size=1))
def test_a_trace_goes_through_text_and_back(text: str) -> None:
    assert to_text(from_text(text)) == text
    assert of_trace(from_text(text)) == from_text(text)
