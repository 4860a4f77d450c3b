"""From FLAC slices to transcripts delivered, beside the engine alone: ``python -m bench.stream --model FOLDER``.

The consumer's loop, its step and the engine are the product's. Kafka is simulated: slices lie in memory and come a
fetch at a time, transcripts are delivered when they are sent. The engine alone gets the same slices as samples in
memory, all at once. What kafka-python and a broker cost is not in here (``bench.load`` has it).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench import clips
from bench.data import SHARED_DATA
from bench.engine_systems import Task, product_engine
from bench.machine import card, describe
from bench.simulated import MemoryConsumer, MemorySender
from consumers.loop import run
from consumers.metrics import Metrics
from consumers.tracing import Tracing
from consumers.transcribe import NamedEngine, TranscribeStep, rules_of, spare_collector
from pipeline.broker import AUDIO_SLICES
from pipeline.errors import LecturemillError
from pipeline.judging import JudgeRules
from pipeline.messages import SliceReady, encode
from pipeline.transcription import LADDER, Decoding, Engine, Request, TranscriptionOptions, transcribe
from pipeline.values import Priority

OPTIONS = TranscriptionOptions(LADDER, JudgeRules())


@dataclass(frozen=True, slots=True)
class Streamed:
    """One pass; all in seconds but the first two, summed up over the threads where there are several."""

    slices: int
    audio_s: float
    wall_s: float
    """From the first poll to the last delivery."""
    steady_slices: int
    """Those delivered after the first batch, which is a small one,"""
    steady_s: float
    """and the time from its delivery to the last one."""
    prepare_cpu_s: float
    """Processor time of the threads that decode messages and FLAC."""
    handle_s: float
    """The step's thread at work; the rest of the time it waited for slices, or sent."""
    engine_s: float
    """Of that, inside the engine."""
    retried: int
    """Slices that were decoded more than once."""


class TimedEngine:
    """Passes on, and adds up."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.fingerprint = engine, engine.fingerprint
        self.seconds, self.asked = 0.0, 0

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> Any:
        begun = time.perf_counter()
        try:
            return self._engine.transcribe(requests, decoding)
        finally:
            self.seconds += time.perf_counter() - begun
            self.asked += len(requests)


class TimedStep(TranscribeStep):
    """The product's step, with a watch."""

    prepare_cpu_s = 0.0
    handle_s = 0.0
    _lock = threading.Lock()

    def prepare(self, message: Any) -> Any:
        begun = time.thread_time()
        try:
            return super().prepare(message)
        finally:
            with self._lock:
                self.prepare_cpu_s += time.thread_time() - begun

    def handle(self, batch: Any) -> Any:
        begun = time.perf_counter()
        try:
            return super().handle(batch)
        finally:
            self.handle_s += time.perf_counter() - begun


def stream(engine: Engine, messages: Sequence[SliceReady], batch: int, cores: int) -> Streamed:
    """Everything through the loop once."""
    topic = AUDIO_SLICES[Priority.NORMAL]
    timed = TimedEngine(engine)
    metrics = Metrics()
    step = TimedStep(lambda _: NamedEngine(timed, "bench"), OPTIONS, metrics, Tracing())
    stop = threading.Event()
    consumer = MemoryConsumer(topic, [encode(message) for message in messages])
    sender = MemorySender(len(messages), stop)
    rules = rules_of({Priority.NORMAL: topic}, batch, cores)
    begun = time.perf_counter()
    run(step, consumer, sender, rules, metrics, stop)
    return Streamed(
        slices=len(messages),
        audio_s=sum(message.end_ms - message.start_ms for message in messages) / 1000,
        wall_s=sender.deliveries[-1][0] - begun,
        steady_slices=len(messages) - sender.deliveries[0][1],
        steady_s=sender.deliveries[-1][0] - sender.deliveries[0][0],
        prepare_cpu_s=step.prepare_cpu_s,
        handle_s=step.handle_s,
        engine_s=timed.seconds,
        retried=timed.asked - len(messages),
    )


def seconds_of(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def alone(engine: Engine, requests: Sequence[Request]) -> dict[str, float]:
    """The engine on samples in memory: the first rung without its judge, and with judge and ladder."""
    return {
        "engine_s": seconds_of(lambda: engine.transcribe(requests, LADDER[0])),
        "engine_and_judge_s": seconds_of(lambda: transcribe(engine, requests, OPTIONS)),
    }


def measure(
    engine: Engine, lectures: Sequence[clips.Lecture], slices: int, batches: Sequence[int], cores: int
) -> dict[str, Any]:
    """Every batch size once, between two measurements of the engine alone, after a pass that warms up."""
    requests, messages = clips.requests(lectures, slices), clips.ready(lectures, slices)
    transcribe(engine, requests[: max(batches)], OPTIONS)
    spare_collector()
    first = alone(engine, requests)
    streamed = {batch: stream(engine, messages, batch, cores) for batch in batches}
    second = alone(engine, requests)
    mean = {name: (first[name] + second[name]) / 2 for name in first}
    audio_s = sum(request.audio.slice.span.duration_ms for request in requests) / 1000
    rows = {
        str(batch): asdict(one)
        | {
            "x_real_time": audio_s / slices * one.steady_slices / one.steady_s,
            "share_of_engine": mean["engine_s"] / slices * one.steady_slices / one.steady_s,
            "share_of_engine_and_judge": mean["engine_and_judge_s"] / slices * one.steady_slices / one.steady_s,
        }
        for batch, one in streamed.items()
    }
    return {"alone": [first, second], "engine_x_real_time": audio_s / mean["engine_s"], "streamed": rows}


def table(found: dict[str, Any]) -> str:
    """Milliseconds a slice."""
    lines = [
        "| batch | × real time | share of the engine alone | ms a slice | decoding (processor) | engine | the rest |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for batch, one in found["streamed"].items():
        ms = {name: 1000 * one[name] / one["slices"] for name in ("prepare_cpu_s", "handle_s", "engine_s")}
        whole_ms = 1000 * one["steady_s"] / one["steady_slices"]
        lines.append(
            f"| {batch} | {one['x_real_time']:.0f} | {100 * one['share_of_engine']:.0f} % | {whole_ms:.2f} | "
            f"{ms['prepare_cpu_s']:.2f} | {ms['engine_s']:.2f} | {ms['handle_s'] - ms['engine_s']:.2f} |"
        )
    return "\n".join([f"engine alone: {found['engine_x_real_time']:.0f} × real time", "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stream", description="The consumer beside its engine.")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--audio", type=Path, default=SHARED_DATA, help="shared data, or a file of bench.clips")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--slices", type=int, default=2048)
    parser.add_argument("--batches", default="256", help="the most that the consumer takes at once; several by commas")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    try:
        _measure(given)
    except LecturemillError as error:
        sys.exit(error.reason)


def _measure(given: argparse.Namespace) -> None:
    engine = product_engine(replace(Task.of(given.model, given.device), beam=LADDER[0].beam_size))
    batches = [int(one) for one in given.batches.split(",")]
    found = measure(engine, clips.lectures(given.audio), given.slices, batches, given.cores)
    print(table(found), flush=True)
    if given.json:
        machine = asdict(describe(str(given.model), os.cpu_count() or 1)) | {"card": card(given.device)}
        given.json.write_text(json.dumps(found | {"machine": machine}))


if __name__ == "__main__":
    main()
