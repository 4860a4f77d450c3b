"""What a program of the line measures, for Prometheus; deploy/README.md has the table.

Counters and histograms are in base units (seconds, US dollars); a rate or a share over any window is made of them by
the query. The two gauges of the last batch are for a quick look at one program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from traceback import walk_tb

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from consumers.handling import Hooks, Taken
from consumers.intake import Received
from pipeline.errors import InvalidInputError, LecturemillError, RetriableError
from pipeline.values import MediaPlan, Slice, SliceTranscript

PUBLISHED_MS = "published-ms"
"""The header that tells how long a slice was on its way: when its message was written, in milliseconds since 1970."""

_MINUTE, _HOUR = 60, 3600
_BRIEF = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE)
# A backlog of lectures may wait for a night, or for the broker to come back.
_LONG = (0.5, 1, 2, 5, 10, 30, _MINUTE, 3 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE, _HOUR, 3 * _HOUR, 12 * _HOUR)
_MESSAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics(Hooks):
    """The instruments of one program, in a registry of their own. Threads may share it.

    The loop calls the methods that ``Hooks`` has, a step the others.
    """

    def __init__(self, usd_per_hour: float = 0.0) -> None:
        """``usd_per_hour``: what one hour of this machine costs."""
        self.registry = CollectorRegistry()
        self._usd_per_second = usd_per_hour / _HOUR
        self._loop()
        self._transcribing()
        self._assembling()

    def _loop(self) -> None:
        self._lag = self._gauge("lag_messages", "Messages behind the end of a partition", "topic", "partition")
        self._batch = self._histogram("batch_messages", "Messages in a batch", _MESSAGES)
        self._wait = self._histogram("queue_wait_seconds", "From a message written to its work begun", _LONG, "topic")
        self._handling = self._histogram("handling_seconds", "Work on a batch, without sending", _BRIEF)
        self._failures = self._counter("failures", "Failures by the module that raised them", "module")
        self._retries = self._counter("retries", "Batches tried again after a failure of the surroundings")
        self._dead = self._counter("dead_letters", "Messages that can never be processed", "topic")

    def _transcribing(self) -> None:
        self._engine = self._histogram("engine_seconds", "Transcription of one model's slices in a batch", _BRIEF)
        self._audio = self._counter("audio_seconds", "Audio of the slices transcribed")
        self._speech = self._counter("speech_seconds", "Speech in the slices transcribed")
        self._pace = self._gauge("realtime_ratio", "Audio by engine time in the last batch: times real time")
        self._share = self._gauge("speech_ratio", "Speech by audio in the last batch")
        self._slices = self._counter("slices", "Slices transcribed", "outcome")
        self._objections = self._counter("slice_objections", "What the judge said of slices", "outcome", "reason")
        self._cost = self._counter("cost_usd", "Machine time at its price", "step")
        self._steps = self._counter("precision_steps", "Steps of the engine's precision", "direction", "precision")
        self._bound = self._gauge("batch_bound_slices", "Slices that the engine takes at most in its next batch")
        self._ran_out = self._counter("out_of_memory", "Batches that did not fit into the device's memory")
        self._refused = self._counter("batch_sizes_refused", "Batch sizes that were proven wrong", "slices")

    def _assembling(self) -> None:
        self._slicing = self._histogram("slicing_seconds", "Decoding and slicing one media", _LONG)
        self._sliced = self._counter("sliced_slices", "Slices cut")
        self._media = self._counter("media_seconds", "Duration of the media sliced, with its silence")
        self._stored = self._histogram("slice_to_store_seconds", "From a slice published to its row", _LONG)
        self._completed = self._histogram("upload_to_store_seconds", "From an upload to the rows of all cues", _LONG)

    def taken(self, taken: Taken) -> None:
        now_ms = taken.waited_ms + min(message.timestamp_ms for message in taken.messages)
        self._batch.observe(len(taken.messages))
        for message in taken.messages:
            self._wait.labels(topic=message.topic).observe(_seconds(message.timestamp_ms, now_ms))
        for (topic, partition), behind in taken.lag.items():
            self._lag.labels(topic=topic, partition=partition).set(behind)

    def handled(self, messages: int, took_ms: int) -> None:  # noqa: ARG002 - the loop's
        self._handling.observe(took_ms / 1000)

    def dead(self, message: Received, error: InvalidInputError) -> None:
        self._dead.labels(topic=message.topic).inc()
        self._failures.labels(module=_raised_in(error, "step")).inc()

    def retry(self, error: RetriableError, failures: int, wait_ms: int) -> None:  # noqa: ARG002 - the loop's
        self._retries.inc()
        self._failures.labels(module=_raised_in(error, "consumers.loop")).inc()

    def transcribed(self, slices: Sequence[Slice], transcripts: Iterable[SliceTranscript], engine_s: float) -> None:
        """One call of the engine's for ``slices`` took ``engine_s`` and gave ``transcripts``."""
        audio_s = sum(piece.span.duration_ms for piece in slices) / 1000
        speech_s = sum(span.duration_ms for piece in slices for span in piece.speech) / 1000
        self._engine.observe(engine_s)
        self._audio.inc(audio_s)
        self._speech.inc(speech_s)
        if engine_s and audio_s:
            self._pace.set(audio_s / engine_s)
            self._share.set(speech_s / audio_s)
        self._cost.labels(step="transcribe").inc(engine_s * self._usd_per_second)
        for transcript in transcripts:
            self._judged(transcript)

    def _judged(self, transcript: SliceTranscript) -> None:
        """A slice may have several objections: they are counted each, so that the labels stay few."""
        self._slices.labels(outcome=transcript.outcome).inc()
        for reason in filter(None, transcript.reason.split(", ")):
            self._objections.labels(outcome=transcript.outcome, reason=reason).inc()

    def stepped(self, precision: str, *, is_down: bool) -> None:
        """The engine computes in ``precision`` from now on."""
        self._steps.labels(direction="down" if is_down else "up", precision=precision).inc()

    def bounded(self, slices: int) -> None:
        self._bound.set(slices)

    def ran_out(self) -> None:
        self._ran_out.inc()

    def refused(self, slices: int) -> None:
        self._refused.labels(slices=str(slices)).inc()

    def sliced(self, plan: MediaPlan) -> None:
        """The slicing task is gone before anything could scrape it: its end mark tells what it took."""
        slicing_s = plan.slicing_ms / 1000
        self._slicing.observe(slicing_s)
        self._sliced.inc(plan.slice_count)
        self._media.inc(plan.duration_ms / 1000)
        self._cost.labels(step="slice").inc(slicing_s * self._usd_per_second)

    def stored(self, headers: Iterable[tuple[str, bytes]], now_ms: int) -> None:
        """The row of the transcript that came with ``headers`` is in PostgreSQL since ``now_ms`` (since 1970)."""
        published = dict(headers).get(PUBLISHED_MS, b"")
        if published.isdigit():
            self._stored.observe(_seconds(int(published), now_ms))

    def completed(self, uploaded_ms: int, now_ms: int) -> None:
        """All rows of a media are in PostgreSQL since ``now_ms``; both since 1970."""
        self._completed.observe(_seconds(uploaded_ms, now_ms))

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"lecturemill_{name}", help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"lecturemill_{name}", help_text, labels, registry=self.registry)

    def _histogram(self, name: str, help_text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"lecturemill_{name}", help_text, labels, buckets=buckets, registry=self.registry)


def _seconds(from_ms: int, to_ms: int) -> float:
    """Two machines' clocks may differ: no wait is negative."""
    return max(0, to_ms - from_ms) / 1000


def _raised_in(error: LecturemillError, otherwise: str) -> str:
    """The module of this project that found the fault, ``otherwise`` where it was returned and never raised.

    The reason itself holds names and numbers, of which no label is made. The spec has the name of ``__main__``, too.
    """
    specs = [frame.f_globals.get("__spec__") for frame, _ in walk_tb(error.__traceback__)]
    names = [spec.name for spec in specs if spec]
    return next((name for name in reversed(names) if name.startswith(("pipeline.", "consumers."))), otherwise)
