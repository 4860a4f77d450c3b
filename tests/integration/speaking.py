"""A detector and an engine for sound that is made here: fast, and the same on every machine.

Loud noise is speech to both; the engine's text depends on where a slice lies and on what its batch holds, so that a
slice that was batched differently, moved or mixed up shows in the rows.
"""

from __future__ import annotations

import wave
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipeline.speech import Probabilities
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import SAMPLE_RATE_HZ, Samples, Segment, Slice, Span, Word

FRAME_SAMPLES = 512
CHARACTERS = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈"


class LoudnessDetector:
    """Takes a frame for speech if it is loud; what is less than a frame waits for the next block."""

    frame_samples = FRAME_SAMPLES
    fingerprint = "loudness"

    def __init__(self) -> None:
        self._rest = np.zeros(0, np.float32)

    def score(self, samples: Samples) -> Probabilities:
        joined = np.concatenate([self._rest, samples])
        whole = len(joined) - len(joined) % FRAME_SAMPLES
        self._rest = joined[whole:]
        return np.asarray(np.abs(joined[:whole].reshape(-1, FRAME_SAMPLES)).mean(axis=1) > 0.05, np.float32)

    def finish(self) -> Probabilities:
        return self.score(np.zeros(-len(self._rest) % FRAME_SAMPLES, np.float32))


class SpeakingEngine:
    """Hears a character every 400 ms of speech. ``before`` is called first, with the number of the call from 1."""

    fingerprint = "speaking"

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self.batches: list[list[int]] = []
        self._before = before

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        self.batches.append([request.audio.slice.index for request in requests])
        self._before(len(self.batches))
        seed = sum(self.batches[-1])
        return [_hypothesis(request, seed, decoding) for request in requests]


def _hypothesis(request: Request, seed: int, decoding: Decoding) -> Hypothesis:
    piece, language = request.audio.slice, request.language or "zh"
    words = tuple(_words(piece, seed))
    text = "".join(word.text for word in words)
    start_ms, end_ms = piece.speech[0].start_ms, piece.speech[-1].end_ms
    return Hypothesis(language, 1.0, Segment(start_ms, end_ms, text, words, -0.1, 0.0, 1.0, decoding.temperature))


def _words(piece: Slice, seed: int) -> list[Word]:
    starts = [at for span in piece.speech for at in _beats(span)]
    texts = [CHARACTERS[(seed + start_ms * 7 // 100) % len(CHARACTERS)] for start_ms in starts]
    return [Word(text, start_ms, start_ms + 300, 0.95) for text, start_ms in zip(texts, starts, strict=True)]


def _beats(span: Span) -> range:
    return range(span.start_ms, max(span.start_ms + 1, span.end_ms - 300), 400)


def write_sound(path: Path, *runs: tuple[float, float]) -> Path:
    """A WAV file of runs of (seconds of noise, seconds of silence)."""
    noise = np.random.default_rng(3).standard_normal
    parts = [
        np.concatenate([0.2 * noise(round(loud_s * SAMPLE_RATE_HZ)), np.zeros(round(quiet_s * SAMPLE_RATE_HZ))])
        for loud_s, quiet_s in runs
    ]
    pcm = (np.clip(np.concatenate(parts), -1, 1) * 32_000).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(pcm.tobytes())
    return path
