"""Engines beside each other: ``python -m bench.engine [--device cuda]``.

One run: the same weights, beam and longest text, and the same slices, which the line has cut out of the lectures, again
and again. What is timed runs from samples in memory to texts and words in memory. Loading and a warm-up are not timed.
First each system tries its batch sizes; then they take turns at their best one. On a GPU, which nobody shares, each is
measured once and makes room for the next.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench import clips
from bench.clips import Lecture
from bench.data import SETS, SHARED_DATA
from bench.engine_measure import Loaded, watched
from bench.engine_summary import LEGEND, summary, table
from bench.engine_systems import SYSTEMS, Fused, System, Task, present
from bench.machine import card, describe
from bench.stages import share_of_limit
from consumers.transcribe import spare_collector
from pipeline.errors import LecturemillError
from pipeline.models import default_cache
from pipeline.transcription import Request


class Bench:
    """The slices, and the systems that were measured on them."""

    def __init__(self, task: Task, lectures: Sequence[Lecture], slices: int, rounds: int) -> None:
        self._task, self._rounds = task, rounds
        self._once = sum(len(lecture.messages) for lecture in lectures)
        self._requests = clips.requests(lectures, slices)
        self.loaded: dict[str, Loaded] = {}

    def run(self, systems: Sequence[System]) -> dict[str, float]:
        """Measure them all; the stages of ours."""
        stages: dict[str, float] = {}
        for system in systems:
            one = self._first(system)
            if self._task.device == "cuda":
                stages |= self._stages(one)
                _let_go(one)
        for _ in range(self._rounds - 1):
            for one in self.loaded.values():
                one.time(one.best_batch, True, _say)
                one.time(one.best_batch, False, _say)
        for one in self.loaded.values():
            stages |= self._stages(one)
        return stages

    def _stages(self, one: Loaded) -> dict[str, float]:
        if not isinstance(one.run, Fused):
            return {}
        took_ms = 1000 * min(of.seconds for of in one.of(True) if of.batch == one.best_batch) / len(one.slices)
        return share_of_limit(one.run.engine, self._task, self._requests, one.best_batch, took_ms)

    def slices(self, system: System) -> Sequence[Request]:
        """What the system gets."""
        bound = system.bound(self._task)
        return self._requests if bound is None else self._requests[: max(self._once, bound)]

    def _first(self, system: System) -> Loaded:
        begun = time.perf_counter()
        with watched(self._task.device) as peak:
            one = Loaded(system, system.load(self._task), self.slices(system))
            spare_collector()
            self.loaded[system.name] = one
            _say(f"{system.name}: loaded in {time.perf_counter() - begun:.1f} s")
            one.explore(system.batches[self._task.place], _say)
            if self._task.device == "cuda":
                one.run(one.slices[: one.best_batch], one.best_batch, False)
            one.time(one.best_batch, False, _say)
        one.peak_gib = peak()
        return one


def _let_go(one: Loaded) -> None:
    import torch

    one.run = _gone
    gc.collect()
    torch.cuda.empty_cache()


def _gone(requests: Sequence[Request], batch: int, with_words: bool) -> Any:
    raise RuntimeError(f"unloaded before {len(requests)} slices at {batch}, words {with_words}")


def _say(line: str) -> None:
    print(line, flush=True)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    names = ",".join(system.name for system in SYSTEMS)
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description="Engines beside each other.")
    parser.add_argument("--model", type=Path, default=default_cache() / "base", help="CTranslate2 folder, float16")
    parser.add_argument("--audio", type=Path, default=SHARED_DATA, help="shared data, or a file of bench.clips")
    parser.add_argument("--sets", default="lectures", help=f"some of {','.join(SETS)}: errors of more than lectures")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cpu")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--slices", type=int, default=0, help="0: each slice of the lectures once")
    parser.add_argument("--rounds", type=int, default=3, help="on a CPU, of which medians are taken")
    parser.add_argument("--systems", default=names, help="some of: %(default)s")
    parser.add_argument("--shape", choices=("base", "turbo", "large-v3"), help="random weights: speed only")
    parser.add_argument("--max-tokens", type=int, help="the longest text; to be given with --shape")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(arguments)
    try:
        _measure(given)
    except LecturemillError as error:
        sys.exit(error.reason)


def _measure(given: argparse.Namespace) -> None:
    lectures = clips.lectures(given.audio, given.sets.split(","))
    model = given.model
    if given.shape:
        from bench.gpu.shapes import random_folder

        model = random_folder(given.shape, given.model)
    task = replace(
        Task.of(model, given.device), beam=given.beam, max_tokens=given.max_tokens, is_random=bool(given.shape)
    )
    once = sum(len(lecture.messages) for lecture in lectures)
    slices = given.slices or once
    bench = Bench(task, lectures, slices, given.rounds if given.device == "cpu" else 1)
    stages = bench.run(present(given.systems.split(","), task))
    has_texts = not given.shape and slices >= once
    found = summary(bench.loaded, lectures if has_texts else None) | {"stages": stages}
    machine = asdict(describe(given.shape or str(model), task.threads)) | {"card": card(given.device)}
    print("\n".join(("", table(found), "", LEGEND, "", json.dumps(stages, indent=1))))
    if given.json:
        given.json.write_text(json.dumps(found | {"machine": machine, "asked": vars(given)}, default=str))


if __name__ == "__main__":
    main()
