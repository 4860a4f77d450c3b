"""Step 5 on Kafka: ``python -m consumers.transcribe`` turns the slices of ``audio.slices.*`` into transcripts.

A batch holds slices of any courses and languages, as they came. The end mark of a media goes through unchanged,
behind the transcripts of its slices.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from consumers.handling import Answer
from consumers.intake import Received
from consumers.loop import LoopRules
from consumers.metrics import PUBLISHED_MS, Metrics
from consumers.priorities import BY_URGENCY
from consumers.tracing import Headers, Tracing
from consumers.wiring import Surroundings, run_program
from pipeline.assembly import load_engine, present_model
from pipeline.broker import AUDIO_SLICES, SLICE_TRANSCRIPTS, Outgoing
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.judging import JudgeRules
from pipeline.keys import engine_key
from pipeline.messages import MediaSliced, SliceReady, SliceTranscribed, decode_audio_topic, encode, slice_transcribed
from pipeline.settings import Device, Settings, choose_device
from pipeline.transcription import LADDER, Engine, Request, TranscriptionOptions, transcribe
from pipeline.values import Priority, SliceTranscript

BATCH_SLICES = "LECTUREMILL_BATCH_SLICES"
DEFAULT_BATCH_SLICES = {"cpu": 8, "cuda": 32}
MAX_BATCH_SLICES = 256
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
            made if isinstance(made, InvalidInputError) else slice_transcribed(one.message, made, named.label)
            for one, made in zip(spoken, self._transcripts(named.engine, spoken), strict=True)
        ]

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
        return transcripts


def local_engines(device: Device, settings: Settings, say: Callable[[str], None]) -> Callable[[str], NamedEngine]:
    """The engines of this machine by model, loaded (and fetched) at the first use; the two used last are kept.

    What it returns raises RetriableError for a model that is not to be had: its slices wait, nothing is lost.
    """

    @lru_cache(maxsize=KEPT_ENGINES)
    def engine_of(name: str) -> NamedEngine:
        try:
            model = present_model(name, settings, say)
            key = engine_key(model.fingerprint, device.engine, device.name, device.compute_type)
            engine = load_engine(model, key, device, settings)
        except UsageError as error:
            raise RetriableError(f"slices wait for the model {name}: {error.reason}") from error
        return NamedEngine(engine, f"{device.engine} {model.folder.name} {device.compute_type} {device.name}")

    return engine_of


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
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--batch", help=f"most slices at once (default: ${BATCH_SLICES}, else 8 on a CPU, 32 on a GPU)")
    parser.add_argument("--priorities", default=",".join(BY_URGENCY), help="which to take (default: %(default)s)")
    options = parser.parse_args(arguments)
    return run_program("transcribe", lambda around: _wired(options, around))


@contextmanager
def _wired(options: argparse.Namespace, around: Surroundings) -> Iterator[tuple[TranscribeStep, LoopRules]]:
    device = choose_device(options.device, around.settings.engine)
    batch_slices = batch_bound(options.batch or os.environ.get(BATCH_SLICES), device)
    step = TranscribeStep(
        local_engines(device, around.settings, around.say),
        TranscriptionOptions(LADDER, JudgeRules()),
        around.metrics,
        around.tracing,
    )
    yield step, rules_of(topics_of(options.priorities), batch_slices)


def rules_of(topics: Mapping[Priority, str], batch_slices: int) -> LoopRules:
    """A full buffer is filled again at half, when it must still hold the next batch and the one to prepare."""
    return LoopRules("transcribe", topics, max_batch=batch_slices, buffer_messages=max(64, 4 * batch_slices))


def batch_bound(asked: str | None, device: Device) -> int:
    """Slices per batch. Raises UsageError for anything but a number from 1 to ``MAX_BATCH_SLICES``."""
    if not asked:
        return DEFAULT_BATCH_SLICES[device.name]
    if not asked.isdecimal() or not 1 <= int(asked) <= MAX_BATCH_SLICES:
        raise UsageError(f"--batch and {BATCH_SLICES} take a number from 1 to {MAX_BATCH_SLICES}, not {asked!r}")
    return int(asked)


def topics_of(priorities: str) -> dict[Priority, str]:
    """The topics of some priorities, e.g. ``urgent,normal``, the most urgent first. Raises UsageError for others."""
    asked = priorities.split(",")
    if unknown := [name for name in asked if name not in AUDIO_SLICES]:
        raise UsageError(f"--priorities takes {', '.join(BY_URGENCY)}, not {unknown[0]!r}")
    return {one: AUDIO_SLICES[one] for one in BY_URGENCY if one in asked}


if __name__ == "__main__":
    sys.exit(main())
