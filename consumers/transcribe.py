"""Step 5 on Kafka: ``python -m consumers.transcribe`` turns the slices of ``audio.slices.*`` into transcripts.

A batch holds slices of any courses and languages, as they came. The end mark of a media goes through unchanged,
behind the transcripts of its slices.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

from consumers.handling import Answer
from consumers.intake import Received
from consumers.loop import LoopRules
from consumers.metrics import PUBLISHED_MS, Metrics
from consumers.priorities import BY_URGENCY
from consumers.tracing import Headers, Tracing
from consumers.wiring import Surroundings, run_program
from pipeline.assembly import SayingWatch, load_engine, present_model
from pipeline.broker import AUDIO_SLICES, SLICE_TRANSCRIPTS, Outgoing
from pipeline.devices import BATCH_SLICES, MAX_BATCH_SLICES, Device, batch_bound, choose_device
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.guarding import GuardedEngine
from pipeline.judging import JudgeRules
from pipeline.messages import MediaSliced, SliceReady, SliceTranscribed, decode_audio_topic, encode, slice_transcribed
from pipeline.precision import Precision
from pipeline.settings import Settings
from pipeline.transcription import LADDER, Engine, Request, TranscriptionOptions, label_of, transcribe
from pipeline.values import Priority, SliceTranscript

_SLICE_BYTES = 1024 * 1024
"""30 s of FLAC are less: so the number of messages fills a buffer, not their size."""
_MOST_PREPARING = 4
KEPT_ENGINES = 2
"""Two, for the days on which a line moves from one model to another; three large ones would fill a small GPU."""


@dataclass(frozen=True, slots=True)
class NamedEngine:
    """A loaded engine; ``label`` tells people which, e.g. ``faster-whisper base int8 cpu``."""

    engine: Engine
    label: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A slice whose audio is decoded."""

    received: Received
    message: SliceReady
    request: Request


@dataclass(frozen=True, slots=True)
class EndMark:
    """A media is cut: there are no more slices of it."""

    received: Received
    message: MediaSliced


class TranscribeStep:
    """Slices in, transcripts out, in the same order."""

    def __init__(
        self,
        engine_of: Callable[[str], NamedEngine],
        options: TranscriptionOptions,
        metrics: Metrics,
        tracing: Tracing,
    ) -> None:
        """``engine_of`` gives the engine of a model by its name; it is asked for each batch."""
        self._engine_of, self._options, self._metrics, self._tracing = engine_of, options, metrics, tracing
        self._room = MAX_BATCH_SLICES

    def prepare(self, message: Received) -> Spoken | EndMark:
        """Raises InvalidInputError for bytes that are no such message, and for damaged audio."""
        decoded = decode_audio_topic(message.value)
        if isinstance(decoded, MediaSliced):
            return EndMark(message, decoded)
        return Spoken(message, decoded, decoded.to_request())

    def handle(self, batch: Sequence[Spoken | EndMark]) -> list[Answer]:
        """An answer for each of ``batch``. Raises RetriableError where an engine is not to be had, or fails."""
        parents = [(one.received.headers, _attributes(one)) for one in batch]
        with self._tracing.batch("transcribe", parents) as headers:
            spoken = {at: one for at, one in enumerate(batch) if isinstance(one, Spoken)}
            made: dict[int, SliceTranscribed | InvalidInputError] = {}
            for model in dict.fromkeys(one.message.model for one in spoken.values()):
                rows = [at for at, one in spoken.items() if one.message.model == model]
                made |= zip(rows, self._of_model(model, [spoken[at] for at in rows]), strict=True)
            return [_answer(one, made.get(at), headers[at]) for at, one in enumerate(batch)]

    def _of_model(self, model: str, spoken: Sequence[Spoken]) -> list[SliceTranscribed | InvalidInputError]:
        named = self._engine_of(model)
        return [
            made if isinstance(made, InvalidInputError) else slice_transcribed(one.message, made, label)
            for one, made, label in self._labelled(named, spoken)
        ]

    def _labelled(
        self, named: NamedEngine, spoken: Sequence[Spoken]
    ) -> Iterator[tuple[Spoken, SliceTranscript | InvalidInputError, str]]:
        """What was made of each slice, and what computed it: an engine that adapts says so itself."""
        made = self._transcripts(named.engine, spoken)
        label = label_of(named.engine) or named.label
        yield from ((one, own, label) for one, own in zip(spoken, made, strict=True))

    def _transcripts(self, engine: Engine, spoken: Sequence[Spoken]) -> list[SliceTranscript | InvalidInputError]:
        try:
            return list(self._timed(engine, [one.request for one in spoken]))
        except UsageError as error:  # a slice in a language that its model does not speak, which others must not suffer
            if len(spoken) == 1:
                return [InvalidInputError(error.reason).with_traceback(error.__traceback__)]
            return [made for one in spoken for made in self._transcripts(engine, [one])]

    def _timed(self, engine: Engine, requests: Sequence[Request]) -> list[SliceTranscript]:
        started_s = time.perf_counter()
        transcripts = transcribe(engine, requests, self._options)
        slices = [request.audio.slice for request in requests]
        self._metrics.transcribed(slices, transcripts, time.perf_counter() - started_s)
        if isinstance(engine, GuardedEngine):
            self._room = engine.most_slices
            self._metrics.bounded(self._room)
        return transcripts

    def room(self) -> int:
        """How many slices the next batch should have at most, by what memory and the latency target allowed last."""
        return self._room


class CountingWatch(SayingWatch):
    """Says what the guard of an engine does, and counts it."""

    def __init__(self, metrics: Metrics, say: Callable[[str], None]) -> None:
        super().__init__(say)
        self._metrics = metrics

    def stepped(self, label: str, precision: Precision, why: str, *, is_down: bool) -> None:
        super().stepped(label, precision, why, is_down=is_down)
        self._metrics.stepped(precision, is_down=is_down)

    def ran_out(self, slices: int) -> None:
        super().ran_out(slices)
        self._metrics.ran_out()

    def refused(self, slices: int, label: str, why: str) -> None:
        super().refused(slices, label, why)
        self._metrics.refused(slices)


def local_engines(
    device: Device, settings: Settings, say: Callable[[str], None], metrics: Metrics, most_slices: int
) -> Callable[[str], NamedEngine]:
    """The engines of this machine by model, loaded (and fetched) at the first use; the two used last are kept.

    What it returns raises RetriableError for a model that is not to be had: its slices wait, nothing is lost.
    """

    @lru_cache(maxsize=KEPT_ENGINES)
    def engine_of(name: str) -> NamedEngine:
        try:
            model = present_model(name, settings, say)
            engine = load_engine(model, device, settings, settings.latency_ms, CountingWatch(metrics, say), most_slices)
        except UsageError as error:
            raise RetriableError(f"slices wait for the model {name}: {error.reason}") from error
        spare_collector()
        return NamedEngine(engine, f"{device.engine} {model.folder.name} {device.precision} {device.label}")

    return engine_of


def spare_collector() -> None:
    """To be called when all is loaded: what is there now is not looked at again for cycles of garbage.

    A few hundred slices make enough objects for a full collection; it took 0.2 s with PyTorch's 300,000 among them.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _attributes(one: Spoken | EndMark) -> dict[str, str | int]:
    if isinstance(one, EndMark):
        return {"media_id": one.message.media_id}
    return {"media_id": one.message.media_id, "slice_index": one.message.slice_index, "model": one.message.model}


def _answer(one: Spoken | EndMark, made: SliceTranscribed | InvalidInputError | None, headers: Headers) -> Answer:
    """``made`` is None for an end mark, which goes on byte by byte as it came."""
    if isinstance(made, InvalidInputError):
        return made
    value = encode(made) if made else one.received.value
    published = (PUBLISHED_MS, str(one.received.timestamp_ms).encode())
    return [Outgoing(SLICE_TRANSCRIPTS, one.message.course_id, value, (*headers, published))]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status is that of ``consumers.wiring``."""
    parser = argparse.ArgumentParser(prog="python -m consumers.transcribe", description=__doc__)
    parser.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:N, GPU-<uuid> or MIG-<uuid> (default: auto)"
    )
    parser.add_argument(
        "--batch", help=f"most slices at once (default: ${BATCH_SLICES}, else 8 on a CPU, 32 or 128 on a GPU)"
    )
    parser.add_argument("--priorities", default=",".join(BY_URGENCY), help="which to take (default: %(default)s)")
    options = parser.parse_args(arguments)
    return run_program("transcribe", lambda around: _wired(options, around))


@contextmanager
def _wired(options: argparse.Namespace, around: Surroundings) -> Iterator[tuple[TranscribeStep, LoopRules]]:
    device = choose_device(options.device, around.settings.engine, around.settings.precision, os.environ)
    batch_slices = batch_bound(options.batch or os.environ.get(BATCH_SLICES), device)
    step = TranscribeStep(
        local_engines(device, around.settings, around.say, around.metrics, batch_slices),
        TranscriptionOptions(LADDER, JudgeRules()),
        around.metrics,
        around.tracing,
    )
    around.say(f"{device.engine} on {device.label}, {device.precision}: {device.why}")
    rules = rules_of(topics_of(options.priorities), batch_slices, around.settings.threads)
    yield step, replace(rules, room=step.room)


def rules_of(topics: Mapping[Priority, str], batch_slices: int, cores: int = 2) -> LoopRules:
    """A full buffer is filled again at half, when it must still hold the next batch and the one to prepare.

    A GPU takes 400 slices a second, of which a core decodes 250; more threads than needed are in its way.
    """
    messages = max(64, 4 * batch_slices)
    return LoopRules(
        "transcribe",
        topics,
        max_batch=batch_slices,
        buffer_messages=messages,
        buffer_bytes=messages * _SLICE_BYTES,
        prepare_threads=min(_MOST_PREPARING, max(2, cores // 2)),
    )


def topics_of(priorities: str) -> dict[Priority, str]:
    """The topics of some priorities, e.g. ``urgent,normal``, the most urgent first. Raises UsageError for others."""
    asked = priorities.split(",")
    if unknown := [name for name in asked if name not in AUDIO_SLICES]:
        raise UsageError(f"--priorities takes {', '.join(BY_URGENCY)}, not {unknown[0]!r}")
    return {one: AUDIO_SLICES[one] for one in BY_URGENCY if one in asked}


if __name__ == "__main__":
    sys.exit(main())
