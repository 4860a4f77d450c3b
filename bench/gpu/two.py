"""Two GPUs beside each other, a process for each: ``bash bench/gpu/run.sh two``.

Each process is what ``consumers.transcribe --device …`` is: ``choose_device`` leaves it one GPU, the engine is under
guard, and the slices come through the consumer's loop and step; Kafka is simulated. First one process does slices on
the first GPU alone, then two of them do as many each at the same time, the second GPU asked for by its UUID. Texts must
be those of one device alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ALONE = 96
"""Slices whose texts are compared."""


@dataclass(frozen=True, slots=True)
class Work:
    """What each process is asked for."""

    model: Path
    audio: Path
    """A file of ``bench.clips``."""
    slices: int
    batch: int
    cores: int


def devices() -> list[str]:
    """The UUIDs of the GPUs that nvidia-smi lists, in CUDA's order; none where there is no nvidia-smi."""
    try:
        said = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return re.findall(r"^GPU \d+:.*\(UUID: (GPU-[^)]+)\)", said, re.MULTILINE)


class Process:
    """A process with one GPU, loaded and warm."""

    def __init__(self, device: str, work: Work, home: Path) -> None:
        given = [f"--{name}={value}" for name, value in asdict(work).items()]
        command = [sys.executable, "-m", "bench.gpu.two", "--worker", device, f"--home={home}", *given]
        environment = os.environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ready(self) -> dict[str, Any]:
        """Wait until it is; what it found: its GPU, and texts."""
        return self._line()

    def start(self) -> None:
        assert self._process.stdin
        print("go", file=self._process.stdin, flush=True)

    def done(self) -> dict[str, Any]:
        """What it did since its start."""
        found = self._line()
        self._process.communicate(timeout=60)
        return found

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended with status {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def together(asked: Sequence[str], work: Work, home: Path) -> list[dict[str, Any]]:
    """A process for each device; all work at the same time. What each found and did."""
    processes = [Process(device, work, home) for device in asked]
    found = [process.ready() for process in processes]
    for process in processes:
        process.start()
    return [one | process.done() for one, process in zip(found, processes, strict=True)]


def _worker(asked: str, work: Work, home: Path) -> None:
    from pipeline.devices import choose_device

    device = choose_device(asked, "fused", "fp16", os.environ)

    import torch

    from bench import clips
    from bench.stream import OPTIONS, stream
    from consumers.transcribe import spare_collector
    from pipeline.engine_loading import Wanted, load_guarded
    from pipeline.guarding import Watch
    from pipeline.proof.batches import SIZES
    from pipeline.transcription import LADDER, transcribe

    wanted = Wanted(work.model, "gpu", device, work.cores)
    engine = load_guarded(wanted, home=home, most_slices=work.batch, target_ms=None, watch=Watch())
    lectures = clips.lectures(work.audio)
    requests = clips.requests(lectures, max(ALONE, work.batch))
    # Every size is proven, and its graph made, before the time counts.
    for size in SIZES:
        engine.transcribe(requests[: min(size, work.batch)], LADDER[0])
    transcripts = transcribe(engine, requests[:ALONE], OPTIONS)
    texts = [[segment.text for segment in one.segments] for one in transcripts]
    messages = clips.ready(lectures, work.slices)
    stream(engine, messages[: 2 * work.batch], work.batch, work.cores)
    spare_collector()
    gpu = str(torch.cuda.get_device_properties(0).uuid)
    _say({"label": engine.label, "gpu": gpu, "seen": torch.cuda.device_count(), "texts": texts})
    sys.stdin.readline()
    _say({"streamed": asdict(stream(engine, messages, work.batch, work.cores))})


def _say(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


def _rate(found: Sequence[dict[str, Any]]) -> float:
    """Times real time, of processes that began together."""
    streamed = [one["streamed"] for one in found]
    seconds: float = sum(one["audio_s"] for one in streamed) / max(one["wall_s"] for one in streamed)
    return seconds


def _measured(work: Work, home: Path) -> dict[str, Any]:
    gpus = devices()
    (alone,) = together(["cuda:0"], work, home)
    both = together(["cuda:0", gpus[1]], work, home)
    _, by_number = together(["cuda:0", "cuda:1"], work, home)
    one_rate, two_rate = _rate([alone]), _rate(both)
    return {
        "gpus": gpus,
        "found": [one["label"] + f" on {one['gpu']}, sees {one['seen']}" for one in (alone, *both, by_number)],
        "is_second_by_number_and_uuid": both[1]["gpu"] == by_number["gpu"] != alone["gpu"],
        "texts_as_alone": [one["texts"] == alone["texts"] for one in (*both, by_number)],
        "x_real_time_one": one_rate,
        "x_real_time_two": two_rate,
        "ratio": two_rate / one_rate,
    }


def main() -> int:
    """Exit status 1 where a text differs, or a process got another GPU than the one that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.two", description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--audio", type=Path, required=True, help="a file of bench.clips")
    parser.add_argument("--slices", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--cores", type=int, default=max(2, (os.cpu_count() or 2) // 2), help="of each process")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    given, _ = parser.parse_known_args()  # run.sh passes what the benchmarks take
    work = Work(given.model, given.audio, given.slices, given.batch, given.cores)
    if given.worker:
        _worker(given.worker, work, given.home)
        return 0
    if len(devices()) < 2:
        sys.exit("two GPUs are needed: nvidia-smi -L lists those that are there")
    with tempfile.TemporaryDirectory() as home:
        found = _measured(work, Path(home))
    print(json.dumps(found, indent=1))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 0 if all(found["texts_as_alone"]) and found["is_second_by_number_and_uuid"] else 1


if __name__ == "__main__":
    sys.exit(main())
