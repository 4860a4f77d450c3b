"""Engines beside each other: ``python -m bench.engine --model FOLDER --audio FOLDER [--device cuda]``.

One run, one recording, the same cuts, weights, beam and longest text. The recording is the lectures of one language,
one after the other, again and again, each round shifted by 370 ms, cut every 30 s; what is timed runs from samples in
memory to texts (and words) in memory. Loading and one warm-up are not timed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.engine_systems import Peer, Run, Task, fused_engine, ours, torch_engine
from pipeline.values import SAMPLE_RATE_HZ, Samples

CLIP_S = 30
_SHIFT = 370 * SAMPLE_RATE_HZ // 1000


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine at one batch size; seconds are the median of the repeats."""

    system: str
    batch: int
    with_words: bool
    seconds: float
    x_real_time: float
    ms_per_clip: float
    words: int
    peak_gib: float
    """Of the device; 0 on a CPU."""
    texts: list[str]


class Bench:
    """The clips and what was measured on them."""

    def __init__(self, clips: Sequence[Samples], device: str, repeats: int) -> None:
        self.clips, self._device, self._repeats = clips, device, repeats
        self.results: list[Measured] = []

    def measure(self, system: str, batch: int, run: Run, with_words: bool, clips: int | None = None) -> Measured:
        """Warm up, time, print. The peer is warm after one batch; ours makes graphs for what it meets."""
        some = self.clips[: clips or len(self.clips)]
        run(some if system == "ours" else some[:batch], with_words)
        times = []
        with _peak(self._device) as peak:
            for _ in range(self._repeats):
                begun = time.perf_counter()
                texts, words = run(some, with_words)
                times.append(time.perf_counter() - begun)
        seconds = statistics.median(times)
        sound_s = sum(map(len, some)) / SAMPLE_RATE_HZ
        result = Measured(
            system, batch, with_words, seconds, sound_s / seconds, seconds / len(some) * 1000, words, peak(), texts
        )
        self.results.append(result)
        print(
            f"{system:24} batch {batch:4} words {with_words!s:5} {result.x_real_time:9.0f} x  "
            f"{result.ms_per_clip:8.2f} ms a clip  {words:6} words  peak {result.peak_gib:.1f} GiB",
            flush=True,
        )
        return result

    def best(self, system: str, with_words: bool) -> Measured:
        return max(
            (one for one in self.results if one.system == system and one.with_words == with_words),
            key=lambda one: one.x_real_time,
        )


def recording(folder: Path, language: str, clips: int) -> tuple[list[Samples], str, int]:
    """The clips; what is said in the first round of them; and how many make a round."""
    from faster_whisper.audio import decode_audio

    files = sorted(path for path in folder.glob(f"{language}_*") if path.suffix in (".flac", ".mp4"))
    files = [path for path in files if path.with_suffix(".json").is_file()]
    sound = np.concatenate([decode_audio(str(path)) for path in files])
    rows = [row for path in files for row in json.loads(path.with_suffix(".json").read_text("utf-8"))]
    size = CLIP_S * SAMPLE_RATE_HZ
    starts = range(0, len(sound) - size // 2, size)
    cuts: list[Samples] = []
    for turn in range(-(-clips // len(starts))):
        shifted = np.roll(sound, -turn * _SHIFT)
        cuts += [np.ascontiguousarray(shifted[at : at + size]) for at in starts]
    return cuts[:clips], "".join(row["text"] for row in rows), len(starts)


def error_rate(reference: str, heard: str, language: str) -> float:
    """Character (zh) or word error rate after the folding of ``bench.folding``."""
    from rapidfuzz.distance import Levenshtein

    from bench.folding import plain_text, tokens_of
    from bench.values import Timed

    right = tokens_of([Timed(reference, 0, 0)], language)
    said = tokens_of([Timed(heard, 0, 0)], language, context=plain_text(right, language))
    return Levenshtein.distance([one.text for one in right], [one.text for one in said]) / max(1, len(right))


@contextmanager
def _peak(device: str) -> Iterator[Callable[[], float]]:
    """The most device memory in use meanwhile, in GiB, whoever asked for it."""
    seen = [0]
    stop = threading.Event()

    def watch() -> None:
        import torch

        while not stop.wait(0.05):
            free, whole = torch.cuda.mem_get_info()
            seen[0] = max(seen[0], whole - free)

    watcher = threading.Thread(target=watch if device == "cuda" else stop.wait)
    watcher.start()
    try:
        yield lambda: seen[0] / 2**30
    finally:
        stop.set()
        watcher.join()


def run_peer(bench: Bench, task: Task, batches: Sequence[int], clips: int, sequential_clips: int) -> None:
    peer = Peer(task)
    for with_words in (True, False):
        if sequential_clips:
            bench.measure("faster-whisper", 1, peer.sequential(), with_words, sequential_clips)
        for batch in batches:
            try:
                bench.measure("faster-whisper batched", batch, peer.batched(batch), with_words, clips)
            except RuntimeError as error:  # out of memory at the larger sizes
                print(f"faster-whisper batched {batch}: {error}")


def run_torch(bench: Bench, task: Task, batches: Sequence[int], *, is_compiled: bool) -> dict[str, float]:
    from bench.gpu.stages import stages

    stage_ms: dict[str, float] = {}
    for with_words in (True, False):
        engine = torch_engine(task, is_compiled=is_compiled, with_words=with_words, max_batch=max(batches))
        for batch in batches:
            bench.measure("ours", batch, ours(engine, task, batch), with_words)
        if with_words:
            stage_ms = stages(engine, bench.clips[: max(batches)], task)
        del engine
        gc.collect()
    return stage_ms


def run_cpu(bench: Bench, task: Task, arithmetic: str, threads: int, batches: Sequence[int]) -> None:
    engine = fused_engine(task, arithmetic, threads)
    for batch in batches:
        bench.measure("ours", batch, ours(engine, task, batch), True)


def summary(bench: Bench, reference: str, round_clips: int, language: str) -> dict[str, Any]:
    """Ratios at the best batch size of each, how far the texts agree, and the error of each."""
    found: dict[str, Any] = {}
    peer, own = (bench.best(system, True) for system in ("faster-whisper batched", "ours"))
    found["ratio_to_faster_whisper_batched"] = own.x_real_time / peer.x_real_time
    plain = [one for one in bench.results if not one.with_words]
    if {one.system for one in plain} >= {"ours", "faster-whisper batched"}:
        both = (bench.best(system, False).x_real_time for system in ("ours", "faster-whisper batched"))
        found["ratio_without_words"] = next(both) / next(both)
    found["clips_with_equal_text"] = sum(a.strip() == b.strip() for a, b in zip(own.texts, peer.texts, strict=False))
    found["clips_compared"] = min(len(own.texts), len(peer.texts))
    if reference:
        found["cer_ours_against_peer"] = error_rate(
            "".join(peer.texts), "".join(own.texts[: len(peer.texts)]), language
        )
        for name, one in (("ours", own), ("peer", peer)):
            heard = "".join(one.texts[:round_clips])
            found[f"error_rate_{name}"] = error_rate(reference, heard, language)
            found[f"characters_a_clip_{name}"] = sum(map(len, one.texts)) / len(one.texts)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description="Engines beside each other.")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--audio", type=Path, required=True)
    parser.add_argument("--language", default="zh")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--clips", type=int, default=512)
    parser.add_argument("--peer-batches", default="16,32,64,128")
    parser.add_argument("--batches", default="128,256", help="of ours; clips a call")
    parser.add_argument("--peer-clips", type=int, default=256, help="of the clips, how many the peer does")
    parser.add_argument("--sequential-clips", type=int, default=8, help="0 leaves the sequential way out")
    parser.add_argument("--max-tokens", type=int, help="the longest text; given for random weights")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--shape", choices=("base", "turbo", "large-v3"), help="random weights: speed only")
    parser.add_argument("--arithmetic", default="f32", help="of our engine on a CPU: f32 or bf16")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    clips, reference, round_clips = recording(given.audio, given.language, given.clips)
    model = given.model
    if given.shape:
        from bench.gpu.shapes import random_folder

        model, reference = random_folder(given.shape, given.model), ""
    task = Task(model, given.language, given.beam, given.device, given.dtype, given.max_tokens)
    bench = Bench(clips, given.device, given.repeats)
    own, peers = ([int(size) for size in sizes.split(",")] for sizes in (given.batches, given.peer_batches))
    run_peer(bench, task, peers, given.peer_clips, given.sequential_clips)
    if given.device == "cuda":
        print("transformers is not measured: nothing here loads these weights into it")
    gc.collect()
    stage_ms: dict[str, float] = {}
    if given.device == "cuda":
        stage_ms = run_torch(bench, task, own, is_compiled=given.compile)
    else:
        run_cpu(bench, task, given.arithmetic, os.cpu_count() or 1, own)
    found = summary(bench, reference, round_clips, given.language)
    print(json.dumps({"stages_ms_per_clip": stage_ms} | found, indent=1))
    if given.json:
        rows = [{name: value for name, value in asdict(one).items() if name != "texts"} for one in bench.results]
        given.json.write_text(
            json.dumps({"asked": vars(given), "results": rows, "stages": stage_ms} | found, default=str)
        )


if __name__ == "__main__":
    main()
