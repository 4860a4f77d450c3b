"""The engines that ``bench.engine`` compares: each takes the same slices and gives a text, and words, for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench.values import Timed
from pipeline.errors import UsageError
from pipeline.transcription import Decoding, Engine, Request
from pipeline.values import SAMPLE_RATE_HZ

SEQUENTIAL = "faster-whisper"
BATCHED = "faster-whisper batched"
TRANSFORMERS = "transformers"
REFERENCE = "ours (reference)"
OURS = "ours"
_ROUNDING = 1600


@dataclass(frozen=True, slots=True)
class Task:
    """What every engine is asked for."""

    model: Path
    device: str
    arithmetic: str
    """Of ours and, on a GPU, of the peers; on a CPU they compute in int8, as their users have it."""
    threads: int
    beam: int = 5
    max_tokens: int | None = None
    """The longest text; None leaves each engine its own limit, 224 for all of them."""
    is_random: bool = False
    """Whether the weights are: large models, few slices."""

    @property
    def place(self) -> str:
        """Where batch sizes are looked up."""
        return "random" if self.is_random else self.device

    @classmethod
    def of(cls, model: Path, device: str) -> Self:
        """As the product would choose on this machine. Raises UsageError where there is no such device."""
        from pipeline.devices import BFLOAT16, processor_flags

        threads = len(os.sched_getaffinity(0))
        if device == "cuda":
            if not find_spec("torch") or not _sees_cuda():
                raise UsageError("--device cuda: PyTorch is not installed, or sees no CUDA device")
            return cls(model, device, "float16", threads)
        return cls(model, device, "bf16" if BFLOAT16 & processor_flags() else "f32", threads)


def _sees_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of one slice; words are on the media clock."""

    text: str
    words: tuple[Timed, ...] = ()


Run = Callable[[Sequence[Request], int, bool], list[Heard]]
"""Slices, how many at once, and whether word times are wanted."""


@dataclass(frozen=True, slots=True)
class System:
    """A row of the table."""

    name: str
    load: Callable[[Task], Run]
    batches: Mapping[str, Sequence[int]]
    """Sizes that are tried, by ``Task.place``; none where it is not measured."""
    warms_whole: bool = False
    """Whether it must see everything once: graphs are made for the sizes that it meets."""
    most_slices: int | None = None
    """It gets no more of them on a GPU, whose room it does not use; never less than each once."""

    @property
    def is_ours(self) -> bool:
        return self.name.startswith(OURS)

    def bound(self, task: Task) -> int | None:
        """``most_slices`` where that counts."""
        if self.most_slices is None or task.device == "cpu":
            return None
        return self.most_slices // 4 if task.is_random else self.most_slices


def faster_whisper(task: Task) -> Any:
    """Its model, loaded."""
    if task.device == "cuda":
        import torch  # noqa: F401 - it loads cuDNN, which CTranslate2 then finds

    from faster_whisper import WhisperModel

    kind = task.arithmetic if task.device == "cuda" else "int8"
    return WhisperModel(
        str(task.model), device=task.device, compute_type=kind, cpu_threads=task.threads, local_files_only=True
    )


def sequential(task: Task) -> Run:
    """Each slice by itself, without timestamp tokens and fallbacks, as the batched way does."""
    model = faster_whisper(task)

    def one(request: Request, with_words: bool) -> Heard:
        options = _peer_options(task, with_words) | {"without_timestamps": True, "temperature": 0.0}
        segments, _ = model.transcribe(request.audio.samples, language=request.language, **options)
        found = list(segments)
        return Heard("".join(segment.text for segment in found), _words(found, request, 0))

    return lambda requests, batch, with_words: [one(request, with_words) for request in requests]  # noqa: ARG005


def batched(task: Task) -> Run:
    """The slices of each language as one recording, cut at the same places."""
    from faster_whisper import BatchedInferencePipeline

    pipeline = BatchedInferencePipeline(faster_whisper(task))

    def of_language(requests: Sequence[Request], batch: int, with_words: bool) -> list[Heard]:
        sizes = [len(request.audio.samples) for request in requests]
        ends_s = np.cumsum(sizes) / SAMPLE_RATE_HZ
        starts_s = ends_s - np.array(sizes) / SAMPLE_RATE_HZ
        cuts = [{"start": start, "end": end} for start, end in zip(starts_s, ends_s, strict=True)]
        segments, _ = pipeline.transcribe(
            # The silence at the end is for rounding: cuts must not add up to more than the recording.
            np.concatenate([*(request.audio.samples for request in requests), np.zeros(_ROUNDING, np.float32)]),
            batch_size=batch,
            clip_timestamps=cuts,
            language=requests[0].language,
            **_peer_options(task, with_words),
        )
        found: list[list[Any]] = [[] for _ in requests]
        for segment in segments:
            # seek is where its slice begins, in frames of 10 ms.
            found[max(0, int(np.searchsorted(starts_s, segment.seek / 100 + 0.02)) - 1)].append(segment)
        return [
            Heard("".join(segment.text for segment in own), _words(own, request, start))
            for own, request, start in zip(found, requests, starts_s, strict=True)
        ]

    return lambda requests, batch, with_words: _by_language(requests, lambda own: of_language(own, batch, with_words))


def reference(task: Task) -> Run:
    """Our engine that computes by CTranslate2. It cannot do without word times."""
    from pipeline.engines.faster_whisper import FasterWhisperEngine

    if task.device == "cuda":
        import torch  # noqa: F401 - as above

    kind = task.arithmetic if task.device == "cuda" else "int8"
    engine = FasterWhisperEngine(task.model, "bench", device=task.device, compute_type=kind, threads=task.threads)
    return lambda requests, batch, with_words: _ours(engine, task, requests, batch)  # noqa: ARG005


class Fused:
    """Our engine of this device. On a CPU its word times cost next to nothing and always come."""

    def __init__(self, task: Task) -> None:
        self._task, self.engine = task, product_engine(task)

    def __call__(self, requests: Sequence[Request], batch: int, with_words: bool) -> list[Heard]:
        if self._task.device == "cuda":
            # The product loads it with word times; to load it anew without them would take minutes for a large one.
            self.engine._options = replace(self.engine._options, with_words=with_words)
        return _ours(self.engine, self._task, requests, batch)


def product_engine(task: Task, most_lanes: int | None = None) -> Any:
    """The fused engine of the device, on a CPU with no more lanes than the product has."""
    if task.device == "cpu":
        from pipeline.engines.openvino_whisper import MAX_LANES, load_fused

        lanes = most_lanes or MAX_LANES
        return load_fused(task.model, "bench", arithmetic=task.arithmetic, threads=task.threads, most_lanes=lanes)
    from pipeline.engines.torch_whisper import TorchOptions, load_torch

    options = TorchOptions(task.device, task.arithmetic, max_tokens=task.max_tokens)
    return load_torch(task.model, "bench", options)


def transformers(task: Task) -> Run:
    from bench.gpu.peer_transformers import load

    return load(task)


SYSTEMS = (
    System(SEQUENTIAL, sequential, {"cpu": (1,), "cuda": (1,)}, most_slices=0),
    System(BATCHED, batched, {"cpu": (2, 4, 8), "cuda": (8, 16, 32, 64), "random": (16, 32)}, most_slices=128),
    System(TRANSFORMERS, transformers, {"cpu": (4,), "cuda": (16, 32, 64), "random": (16,)}, most_slices=64),
    System(REFERENCE, reference, {"cpu": (8,), "cuda": (32,)}, most_slices=0),
    System(OURS, Fused, {"cpu": (8, 16), "cuda": (128, 256, 1024), "random": (64, 128)}, warms_whole=True),
)


def present(names: Sequence[str], task: Task) -> list[System]:
    """Those of ``names`` that can be measured here: transformers is no part of the product."""
    here = [one for one in SYSTEMS if one.name in names and task.place in one.batches]
    return [one for one in here if one.name != TRANSFORMERS or find_spec("transformers")]


def _ours(engine: Engine, task: Task, requests: Sequence[Request], batch: int) -> list[Heard]:
    found: list[Any] = []
    for at in range(0, len(requests), batch):
        found += engine.transcribe(requests[at : at + batch], Decoding(beam_size=task.beam))
    return [
        Heard(one.segment.text, tuple(Timed(word.text, word.start_ms, word.end_ms) for word in one.segment.words))
        for one in found
    ]


def _by_language(requests: Sequence[Request], run: Callable[[Sequence[Request]], list[Heard]]) -> list[Heard]:
    """In the order of ``requests``, one call a language."""
    found: dict[int, Heard] = {}
    for language in dict.fromkeys(request.language for request in requests):
        places = [at for at, request in enumerate(requests) if request.language == language]
        found |= zip(places, run([requests[at] for at in places]), strict=True)
    return [found[at] for at in range(len(requests))]


def _peer_options(task: Task, with_words: bool) -> dict[str, Any]:
    # CTranslate2 counts half of its limit for the text, prompt included in the whole.
    longest = {"max_new_tokens": 2 * task.max_tokens - 4} if task.max_tokens else {}
    return {
        "beam_size": task.beam,
        "word_timestamps": with_words,
        "condition_on_previous_text": False,
        **longest,
    }


def _words(segments: Sequence[Any], request: Request, start_s: float) -> tuple[Timed, ...]:
    """Words of a recording in which the slice begins at ``start_s``, on the media clock."""
    from_ms = request.audio.slice.span.start_ms - start_s * 1000
    return tuple(
        Timed(word.word, round(from_ms + word.start * 1000), round(from_ms + word.end * 1000))
        for segment in segments
        for word in segment.words or ()
    )
