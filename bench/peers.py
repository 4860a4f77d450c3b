"""The peer: faster-whisper, called as its README says, with the defaults that a user gets.

Sequential: ``WhisperModel.transcribe(path, beam_size=5)``. Batched: ``BatchedInferencePipeline(model)
.transcribe(path, batch_size=16)``. Same weights and threads as the line, int8, the language given. What a
viewer would see of it is its segments, as its users write them into SRT files.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.values import Hypothesis, Request, Timed

Transcribe = Callable[[Request], Hypothesis]
"""A loaded system: a request in, its result out."""

BEAM_SIZE = 5
BATCH_SIZE = 16


def load_sequential(model: str, threads: int) -> Transcribe:
    """faster-whisper's plain way; a glossary in the request becomes its ``hotwords``."""
    whisper = _whisper(model, threads)

    def transcribe(request: Request) -> Hypothesis:
        segments, _ = whisper.transcribe(request.path, beam_size=BEAM_SIZE, **_options(request))
        return _hypothesis(segments)

    return transcribe


def load_batched(model: str, threads: int) -> Transcribe:
    """faster-whisper's batched way; a glossary in the request becomes its ``hotwords``."""
    from faster_whisper import BatchedInferencePipeline

    pipeline = BatchedInferencePipeline(_whisper(model, threads))

    def transcribe(request: Request) -> Hypothesis:
        segments, _ = pipeline.transcribe(request.path, batch_size=BATCH_SIZE, **_options(request))
        return _hypothesis(segments)

    return transcribe


def terms_as_hotwords(glossary: Path, language: str) -> str:
    """The glossary's terms of one language, parted by commas: what a user of faster-whisper would pass."""
    with glossary.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return ", ".join(row["term"] for row in rows if row["language"] in ("", language))


def _whisper(model: str, threads: int) -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=threads)


def _options(request: Request) -> dict[str, Any]:
    options: dict[str, Any] = {"language": request.language, "word_timestamps": request.with_words}
    if request.glossary:
        options["hotwords"] = terms_as_hotwords(Path(request.glossary), request.language)
    return options


def _hypothesis(segments: Iterable[Any]) -> Hypothesis:
    # The segments are a generator: the work is done here.
    heard = list(segments)
    words = [word for segment in heard for word in segment.words or ()]
    return Hypothesis(
        cues=tuple(_timed(segment.text.strip(), segment) for segment in heard),
        words=tuple(_timed(word.word, word) for word in words),
    )


def _timed(text: str, of: Any) -> Timed:
    return Timed(text, round(of.start * 1000), round(of.end * 1000))
