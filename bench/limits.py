"""The least time that a machine could take: operations and bytes counted here, rates measured in the same run.

Counted are, for each slice, the encoder's and the prompt's operations at the rate of a large product, and for each step
of the decoder the bytes that it must read at the rate of a large copy: the sound's keys and values once for each slice,
the texts' once for each row, the weights once for the batch. Words and the log-mel spectra cost nothing here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.engines.whisper_weights import WhisperWeights

_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Rates:
    """Of a machine."""

    operations_per_s: float
    """A multiplication with its addition is two."""
    bytes_per_s: float
    """Read and written."""


@dataclass(frozen=True, slots=True)
class Work:
    """A batch, as it was decoded."""

    frames: float
    """Encoder positions of 20 ms in a slice's window, on the average."""
    slices: int
    beam: int
    steps: int
    number_bytes: int
    weight_bytes: int
    """Of one number among the decoder's weights."""
    prompt_tokens: int = 4


def operations(weights: WhisperWeights, work: Work) -> float:
    """Of the encoder, its keys and values for each layer of the decoder, and the prompt, for one slice."""
    width, frames = weights.width, work.frames
    layer = 2 * frames * 12 * width * width + 4 * frames * frames * width
    convolutions = 2 * 3 * (2 * frames * weights.mels + frames * width) * width
    keys = 2 * frames * 2 * width * width * weights.decoder_layers
    prompt = 2 * work.prompt_tokens * 14 * width * width * weights.decoder_layers
    return layer * weights.encoder_layers + convolutions + keys + prompt


def step_bytes(weights: WhisperWeights, work: Work) -> float:
    """What one step reads for one slice."""
    sound = 2 * work.frames * weights.width * work.number_bytes * weights.decoder_layers
    text = work.beam * (work.steps / 2) * 2 * weights.width * work.number_bytes * weights.decoder_layers
    matrices = weights.vocabulary * weights.width + 14 * weights.width**2 * weights.decoder_layers
    return sound + text + matrices * work.weight_bytes / work.slices


def limit_ms(weights: WhisperWeights, work: Work, rates: Rates) -> float:
    """The least time for one slice of the batch."""
    encoder_s = operations(weights, work) / rates.operations_per_s
    return 1000 * (encoder_s + work.steps * step_bytes(weights, work) / rates.bytes_per_s)


def gpu_rates() -> Rates:
    """A product of 8192 x 8192 half-precision matrices of noise, and a copy of 2 GiB, by CUDA's clock."""
    import torch

    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    source = torch.empty(2**31, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)

    def waited(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(10):
                work()
            torch.cuda.synchronize()

        return run

    product_s = _best_s(waited(lambda: torch.mm(left, right))) / 10
    copy_s = _best_s(waited(lambda: target.copy_(source))) / 10
    return Rates(2 * 8192**3 / product_s, 2 * 2**31 / copy_s)


def cpu_rates(arithmetic: str, threads: int) -> Rates:
    """A product as large as a layer's, by the runtime of our engine; copies of 128 MiB by every thread at once."""
    import openvino as ov
    from openvino import opset13 as ops

    rows, width = 1500, 2048
    given = ops.parameter([rows, width], ov.Type.f32, name="rows")
    matrix = ops.constant(np.random.default_rng(1).standard_normal((width, width), np.float32))
    options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": arithmetic}
    product = ops.matmul(given, matrix, False, False)
    graph = ov.Core().compile_model(ov.Model([product], [given], "product"), "CPU", options).create_infer_request()
    graph.set_tensor(given.friendly_name, ov.Tensor(np.ones((rows, width), np.float32)))
    pieces: list[Any] = [np.ones(2**24, np.float64) for _ in range(2 * threads)]
    with ThreadPoolExecutor(threads) as pool:
        copy_s = _best_s(lambda: list(pool.map(np.copyto, pieces[:threads], pieces[threads:])))
    return Rates(2 * rows * width**2 / _best_s(graph.infer), 2 * threads * pieces[0].nbytes / copy_s)


def _best_s(work: Callable[[], object]) -> float:
    """Of as many runs as half a second holds, after one."""
    work()
    times: list[float] = []
    until_s = time.perf_counter() + _SECONDS
    while not times or time.perf_counter() < until_s:
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)
