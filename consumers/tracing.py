"""Traces: one from the upload of a media to its cues, through the W3C ``traceparent`` headers of Kafka messages.

On where ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Off, it
costs nothing and hands the headers on as they came, so that one program without tracing does not break a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
Headers = tuple[tuple[str, bytes], ...]
"""The headers of a message, as Kafka has them; of those given out here, only the ones of a trace."""
Attribute = str | int | float | bool
Parent = tuple[Iterable[tuple[str, bytes]], Mapping[str, Attribute]]
"""The headers of a message that is worked on, and what to note of it in the span."""

_TRACEPARENT = "traceparent"
_NAMES = (_TRACEPARENT, "tracestate")


class Tracing:
    """Makes the spans of one program. ``tracer`` None is off."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer

    @contextmanager
    def span(self, name: str, parent: Iterable[tuple[str, bytes]], **attributes: Attribute) -> Iterator[Headers]:
        """One step of a trace; gives the headers under which the next step belongs to it.

        ``parent``: the headers of the message that is worked on; without a trace in them, a new one begins.
        """
        if self._tracer is None:
            yield of_trace(parent)
            return
        named = _named(attributes)
        with self._tracer.start_as_current_span(name, _extract(parent), attributes=named) as span:
            yield _inject(span)

    @contextmanager
    def batch(self, name: str, parents: Sequence[Parent]) -> Iterator[list[Headers]]:
        """One step of many traces at once: a span for each of ``parents``, and their headers in the same order.

        All last as long as the batch, which has a span of its own in a trace of its own; each is linked to it.
        """
        if self._tracer is None:
            yield [of_trace(headers) for headers, _ in parents]
            return
        from opentelemetry.context import Context
        from opentelemetry.trace import Link

        begin = self._tracer.start_as_current_span
        with ExitStack() as open_spans:
            whole = open_spans.enter_context(
                begin(f"{name} batch", Context(), attributes=_named({"size": len(parents)}))
            )
            links = [Link(whole.get_span_context())]
            spans = [
                open_spans.enter_context(begin(name, _extract(headers), attributes=_named(attributes), links=links))
                for headers, attributes in parents
            ]
            yield [_inject(span) for span in spans]


@contextmanager
def tracing_for(program: str, environment: Mapping[str, str]) -> Iterator[Tracing]:
    """The tracing of a process: set up once, in its entry point. What is not exported yet goes out at the end."""
    if not environment.get(ENDPOINT):
        yield Tracing()
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = environment.get("OTEL_SERVICE_NAME") or f"lecturemill-{program}"
    provider = TracerProvider(resource=Resource.create({"service.name": name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield Tracing(provider.get_tracer("lecturemill"))
    finally:
        provider.shutdown()


def of_trace(headers: Iterable[tuple[str, bytes]]) -> Headers:
    """Those of ``headers`` that carry a trace."""
    return tuple((name, value) for name, value in headers if name in _NAMES)


def to_text(headers: Iterable[tuple[str, bytes]]) -> str:
    """The trace as one text, to go through a DAG run's configuration; empty where there is none.

    >>> to_text([("why", b"x"), ("traceparent", b"00-1-2-01")])
    '00-1-2-01'
    """
    return _carrier(headers).get(_TRACEPARENT, "")


def from_text(text: str) -> Headers:
    """The way back from ``to_text``.

    >>> from_text("00-1-2-01"), from_text("")
    ((('traceparent', b'00-1-2-01'),), ())
    """
    return ((_TRACEPARENT, text.encode()),) if text else ()


def _carrier(headers: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """Strangers write these headers: what is no text is no trace, and the propagator checks the rest."""
    return {name: value.decode("ascii", "replace") for name, value in of_trace(headers)}


def _extract(headers: Iterable[tuple[str, bytes]]) -> Context:
    """Never the context of this thread: the message alone says where its work belongs."""
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(_carrier(headers), Context())


def _inject(span: Span) -> Headers:
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    return tuple((name, value.encode()) for name, value in carrier.items())


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"lecturemill.{name}": value for name, value in attributes.items()}
