"""The sound of the simulated lectures: our demo lectures, cut anywhere."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import numpy as np

from bench.data import DEMO
from bench.load.lectures import Turn
from pipeline.audio_codec import encode
from pipeline.decoding import find_ffmpeg
from pipeline.values import SAMPLE_RATE_HZ, SAMPLES_PER_MS, Samples

FILES = ("pythagoras.mp4", "newton.mp4")


def speech() -> Samples:
    """The demo lectures one after the other, 100 s, on the grid of 16 bits."""
    return np.concatenate([_decoded(name) for name in FILES])


def clips(choice: Sequence[Turn]) -> list[bytes]:
    """FLAC for each turn, every one beginning elsewhere in the lectures."""
    sound = speech()
    step = len(sound) // max(1, len(choice))
    return [encode(_clip(sound, at * step, turn), "flac") for at, turn in enumerate(choice)]


def _clip(sound: Samples, begin: int, turn: Turn) -> Samples:
    return np.take(sound, range(begin, begin + turn.speech_ms * SAMPLES_PER_MS), mode="wrap")


def _decoded(name: str) -> Samples:
    form = ["-vn", "-ac", "1", "-ar", str(SAMPLE_RATE_HZ), "-f", "s16le", "-"]
    command = [find_ffmpeg(), "-nostdin", "-loglevel", "error", "-i", str(DEMO / name), *form]
    pcm = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout
    return np.frombuffer(pcm, np.int16).astype(np.float32) / np.float32(32768)
