"""Where the time of a batch goes in our engine, stage by stage, and how far that is from what the machine could do."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bench.engine_systems import Task, product_engine
from bench.limits import Work, cpu_rates, gpu_rates, limit_ms
from pipeline.engines.fused import window_ms
from pipeline.engines.lanes import Lanes
from pipeline.engines.whisper_weights import load_weights
from pipeline.transcription import Decoding, Request

_FRAME_MS = 20


def share_of_limit(
    engine: Any, task: Task, requests: Sequence[Request], batch: int, took_ms: float
) -> dict[str, float]:
    """Milliseconds a slice for each stage of one batch, the steps of the decoder, the limit and the share of it.

    On a CPU the stages are those of one lane that has all threads. The limit is compared with ``took_ms`` a slice, of
    the engine as it was measured beside the others.
    """
    some = requests[: min(batch, 256)]
    if task.device == "cuda":
        from bench.gpu.stages import stages

        found, steps = stages(engine, some, task)
    else:
        found, steps = _cpu_stages(task, some)
    rates = gpu_rates() if task.device == "cuda" else cpu_rates(task.arithmetic, task.threads)
    frames = sum(window_ms(one.audio.slice.span.duration_ms) for one in some) / len(some) / _FRAME_MS
    number_bytes = 4 if task.arithmetic == "f32" else 2
    work = Work(frames, len(some), task.beam, steps, number_bytes, 2 if task.device == "cuda" else 1)
    limit = limit_ms(load_weights(task.model), work, rates)
    return found | {
        "slices": len(some),
        "steps": steps,
        "limit": limit,
        "measured": took_ms,
        "share_of_limit": limit / took_ms,
        "product_tera_operations_per_s": rates.operations_per_s / 1e12,
        "copy_gb_per_s": rates.bytes_per_s / 1e9,
    }


class _Watch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()

    def around(self, stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begun = time.perf_counter()
            try:
                return work(*given)
            finally:
                self.seconds[stage] += time.perf_counter() - begun
                self.calls[stage] += 1

        return run


class _Watched:
    """A runtime of the fused engine, or what it gives out: everything passes through, the named calls are timed."""

    def __init__(self, inner: Any, watch: _Watch, stages: dict[str, str]) -> None:
        self._inner, self._watch, self._stages = inner, watch, stages

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._inner, name)
        return self._watch.around(self._stages[name], own) if name in self._stages else own

    def begin(self, *given: Any) -> Any:
        begun = self._watch.around("prompt", self._inner.begin)(*given)
        return _Watched(begun, self._watch, {"prompt": "prompt", "step": "search"})


def _cpu_stages(task: Task, requests: Sequence[Request]) -> tuple[dict[str, float], int]:
    watch = _Watch()
    engine: Any = product_engine(task, most_lanes=1)
    engine.transcribe(requests[:1], Decoding(beam_size=task.beam))
    engine._mel = watch.around("log_mel", engine._mel)
    engine._lanes = Lanes([_Watched(engine._lanes.first, watch, {"encode": "encoder"})])
    engine._texts = watch.around("texts", engine._texts)
    engine._words = watch.around("alignment", engine._words)
    watch.around("whole", engine.transcribe)(requests, Decoding(beam_size=task.beam))
    ms = {name: 1000 * seconds / len(requests) for name, seconds in watch.seconds.items()}
    ms["choice_of_texts"] = ms.pop("texts") - ms["search"]
    ms["rest"] = 2 * ms["whole"] - sum(ms.values())
    return ms, watch.calls["search"] + 1
