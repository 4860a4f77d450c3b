"""Where the time of a batch goes in the PyTorch engine, and how far that is from what the card could do.

The limit counts, for each clip, the encoder's operations at the rate of a large product, and for each step of the
decoder the bytes that it must read at the rate of a large copy: the sound's keys and values once for each clip, the
texts' once for each row, the weights once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from bench.engine_systems import Task, requests_of
from pipeline.engines.torch_model import Sound, Wanted
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.transcription import Decoding
from pipeline.values import Samples

OPERATIONS_PER_S = 790e12
BYTES_PER_S = 4.3e12
"""Measured on an H200: a product of 8192 x 8192 half-precision matrices, and a copy of 8.6 GB."""


def stages(engine: Any, clips: Sequence[Samples], task: Task) -> dict[str, float]:
    """Milliseconds a clip for each stage, the steps of the decoder, and the limit."""
    model, count = engine.model, len(clips)
    sounds = [Sound(clip, min(3000, len(clip) // 160 + 300)) for clip in clips]
    language = engine._special.languages[task.language]
    prompts = [[engine._special.start, language, 50359, 50363]] * count
    decoding = Decoding(beam_size=task.beam)
    wanted = Wanted(engine._special.asking, engine._special.no_speech, task.max_tokens or 224, [0] * count)
    without = Wanted(wanted.asking, wanted.no_speech, wanted.max_tokens, wanted.seeds, with_starts=False)
    with torch.inference_mode():
        hear = _ms(lambda: model.hear(sounds)) / count
        mel = _ms(lambda: [model._mel(clips[at : at + 64], 3000) for at in range(0, count, 64)]) / count
        plain = _ms(lambda: model.write(prompts, decoding, without)) / count
        timed = _ms(lambda: model.write(prompts, decoding, wanted)) / count
    steps = model._searches[task.beam].steps
    whole = _ms(lambda: engine.transcribe(requests_of(clips, task.language), decoding)) / count
    limit = limit_ms(model.weights, steps, task.beam, count)
    return {
        "log_mel": mel,
        "encode_and_keys": hear - mel,
        "search": plain,
        "alignment": timed - plain,
        "words_and_rest": whole - hear - timed,
        "whole": whole,
        "steps": float(steps),
        "ms_per_step": plain * count / steps,
        "limit": limit,
        "share_of_limit": limit / whole,
    }


def limit_ms(weights: WhisperWeights, steps: int, beam: int, clips: int) -> float:
    """The least time for a clip of 30 s, in ms."""
    width, frames, half = weights.width, weights.frames, 2
    linear = 2 * frames * 12 * width * width * weights.encoder_layers
    attention = 4 * frames * frames * width * weights.encoder_layers
    convolutions = 2 * 3 * (2 * frames * weights.mels + frames * width) * width
    keys = 2 * frames * 2 * width * width * weights.decoder_layers
    encoder_s = (linear + attention + convolutions + keys) / OPERATIONS_PER_S
    sound = 2 * frames * width * half * weights.decoder_layers
    text = beam * (steps / 2) * 2 * width * half * weights.decoder_layers
    shared = (weights.vocabulary * width + 14 * width * width * weights.decoder_layers) * half / clips
    return 1000 * (encoder_s + steps * (sound + text + shared) / BYTES_PER_S)


def _ms(work: Callable[[], object], repeats: int = 3) -> float:
    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1000)
    return sorted(times)[repeats // 2]
