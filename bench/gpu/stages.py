"""Where the time of a batch goes in the PyTorch engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from bench.engine_systems import Task
from pipeline.engines.torch_encoder import ENCODED_TOGETHER
from pipeline.engines.torch_model import Wanted
from pipeline.engines.torch_whisper import _sound
from pipeline.transcription import Decoding, Request

_MAX_TOKENS = 224


def stages(engine: Any, requests: Sequence[Request], task: Task) -> tuple[dict[str, float], int]:
    """Milliseconds a slice for each stage, and the steps of the search."""
    model, count, decoding = engine.model, len(requests), Decoding(beam_size=task.beam)
    sounds = [_sound(request) for request in requests]
    special, known = engine._special, engine._tokenizer.token_to_id
    prompts = [
        [special.start, special.languages[request.language], known("<|transcribe|>"), known("<|notimestamps|>")]
        for request in requests
    ]
    wanted = Wanted(special.asking, special.no_speech, task.max_tokens or _MAX_TOKENS, [0] * count)
    parts = [range(at, min(at + ENCODED_TOGETHER, count)) for at in range(0, count, ENCODED_TOGETHER)]
    with torch.inference_mode():
        hear = _ms(lambda: model.hear(sounds)) / count
        mel = _ms(lambda: [model._mel([sounds[at].samples for at in part], sounds[0].window) for part in parts]) / count
        timed = _ms(lambda: model.write(prompts, decoding, wanted)) / count
        plain = _ms(lambda: model.write(prompts, decoding, replace(wanted, with_starts=False))) / count
        steps = model._searches[task.beam].steps
        running = model._search(task.beam)
        prompt = _ms(lambda: model._read(running, prompts, special.asking, wanted.max_tokens)) / count
    whole = _ms(lambda: engine.transcribe(requests, decoding)) / count
    return {
        "log_mel": mel,
        "encoder": hear - mel,
        "prompt": prompt,
        "search": plain - prompt,
        "alignment": timed - plain,
        "words_and_rest": whole - hear - timed,
        "whole": whole,
        "ms_per_step": (plain - prompt) * count / steps,
    }, steps


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
