"""The engines that ``bench.engine`` compares: each takes the same clips of one recording and gives a text for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.transcription import Decoding, Engine, Request
from pipeline.values import SAMPLES_PER_MS, Boundary, Samples, Slice, SliceAudio, Span

Texts = list[str]
Run = Callable[[Sequence[Samples], bool], tuple[Texts, int]]
"""Clips, and whether word times are wanted: their texts, and how many words have times."""


@dataclass(frozen=True, slots=True)
class Task:
    """What every engine is asked for."""

    model: Path
    language: str
    beam: int
    device: str
    dtype: str
    max_tokens: int | None
    """The longest text; None leaves each engine its own limit, 224 for all of them."""


class Peer:
    """faster-whisper, loaded once; on a CPU in int8, as its users run it."""

    def __init__(self, task: Task) -> None:
        if task.device == "cuda":
            import torch  # noqa: F401 - it loads cuDNN, which CTranslate2 then finds

        from faster_whisper import WhisperModel

        kind = task.dtype if task.device == "cuda" else "int8"
        self._task = task
        self._model: Any = WhisperModel(str(task.model), device=task.device, compute_type=kind, local_files_only=True)

    def sequential(self) -> Run:
        """Each clip by itself, without timestamp tokens and fallbacks, as the batched way does."""

        def run(clips: Sequence[Samples], with_words: bool) -> tuple[Texts, int]:
            heard = [
                list(
                    self._model.transcribe(clip, without_timestamps=True, temperature=0.0, **self._options(with_words))[
                        0
                    ]
                )
                for clip in clips
            ]
            return ["".join(one.text for one in segments) for segments in heard], _words(
                list(chain.from_iterable(heard))
            )

        return run

    def batched(self, batch: int) -> Run:
        """All clips as one recording, cut at the same places."""
        from faster_whisper import BatchedInferencePipeline

        def run(clips: Sequence[Samples], with_words: bool) -> tuple[Texts, int]:
            ends = np.cumsum([len(clip) for clip in clips]) / 16_000
            cuts = [{"start": end - len(clip) / 16_000, "end": end} for clip, end in zip(clips, ends, strict=True)]
            segments, _ = BatchedInferencePipeline(self._model).transcribe(
                np.concatenate(clips), batch_size=batch, clip_timestamps=cuts, **self._options(with_words)
            )
            heard = list(segments)
            texts = [""] * len(clips)
            for one in heard:
                texts[min(int(np.searchsorted(ends, one.seek / 100 + 0.05)), len(texts) - 1)] += one.text
            return texts, _words(heard)

        return run

    def _options(self, with_words: bool) -> dict[str, Any]:
        # CTranslate2 counts half of its limit for the text, prompt included in the whole.
        longest = {"max_new_tokens": 2 * self._task.max_tokens - 4} if self._task.max_tokens else {}
        return {
            "language": self._task.language,
            "beam_size": self._task.beam,
            "word_timestamps": with_words,
            "condition_on_previous_text": False,
            **longest,
        }


def _words(segments: Sequence[Any]) -> int:
    return sum(len(segment.words or ()) for segment in segments)


def torch_engine(task: Task, *, is_compiled: bool, with_words: bool, max_batch: int) -> Any:
    """The PyTorch engine."""
    from pipeline.engines.torch_whisper import TorchOptions, load_torch

    options = TorchOptions(
        device=task.device,
        dtype=task.dtype if task.device == "cuda" else "float32",
        is_compiled=is_compiled,
        max_batch=max_batch,
        max_tokens=task.max_tokens,
        with_words=with_words,
    )
    return load_torch(task.model, "bench", options)


def fused_engine(task: Task, arithmetic: str, threads: int) -> Engine:
    """The engine of a CPU."""
    from pipeline.engines.openvino_whisper import load_fused

    return load_fused(task.model, "bench", arithmetic=arithmetic, threads=threads)


def ours(engine: Engine, task: Task, batch: int) -> Run:
    """An engine of this project, ``batch`` clips a call."""

    def run(clips: Sequence[Samples], with_words: bool) -> tuple[Texts, int]:  # noqa: ARG001 - set at loading
        requests = requests_of(clips, task.language)
        found = []
        for at in range(0, len(requests), batch):
            found += engine.transcribe(requests[at : at + batch], Decoding(beam_size=task.beam))
        return [one.segment.text for one in found], sum(len(one.segment.words) for one in found)

    return run


def requests_of(clips: Sequence[Samples], language: str) -> list[Request]:
    return [
        Request(
            SliceAudio(Slice("bench", at, Span(0, len(clip) // SAMPLES_PER_MS), Boundary.SILENCE, ()), clip),
            language,
            {},
        )
        for at, clip in enumerate(clips)
    ]
