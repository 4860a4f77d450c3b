# Kernels are compiled by Triton, which knows no annotations but its own.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""The functions of ``torch_ops`` as GPU kernels; the shapes and meanings are written there.

Each row is computed in the same order whatever the others are and however many: a text does not depend on its batch.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from pipeline.engines.torch_ops import EPSILON
from pipeline.engines.triton_attention import attend_sound, attend_text
from pipeline.engines.triton_products import CHUNK, linear, project_out

__all__ = ["add_norm", "attend_sound", "attend_text", "best_tokens", "linear", "project_out", "smoothed_mean"]

Tensor = Any


def add_norm(x: Tensor, change: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    width = x.shape[-1]
    total, normal = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(width)
    _add_norm[(x.numel() // width,)](x, change, gamma, beta, total, normal, width, EPSILON, block_size=block)
    return total, normal


@triton.jit
def _add_norm(x, change, gamma, beta, total, normal, width, epsilon, block_size: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    at = tl.arange(0, block_size)
    inside = at < width
    value = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(change + row + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(total + row + at, value, mask=inside)
    mean = tl.sum(value, 0) / width
    apart = tl.where(inside, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / width + epsilon)
    weight = tl.load(gamma + at, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(beta + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(normal + row + at, apart * scale * weight + shift, mask=inside)


def best_tokens(logits: Tensor, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The best tokens are in the ``count`` chunks with the highest maxima: only those are sorted."""
    rows, vocabulary = logits.shape
    chunks = vocabulary // CHUNK
    highest, total = (logits.new_empty(rows, chunks) for _ in range(2))
    per_program = 16
    _chunk_sums[(rows, triton.cdiv(chunks, per_program))](
        logits, hidden, highest, total, vocabulary, chunks, row_count=per_program, chunk_size=CHUNK
    )
    tops, best_chunks = highest.topk(count)
    above = tops[:, :1]
    # In float64: the order of a sum depends on the number of rows, too.
    whole = above + (total * (highest - above).exp()).sum(-1, keepdim=True, dtype=torch.float64).log().float()
    places = (best_chunks[:, :, None] * CHUNK + torch.arange(CHUNK, device=logits.device)).flatten(1)
    found, at = (logits.gather(1, places) + hidden[places]).topk(count)
    return places.gather(1, at), found - whole


@triton.jit
def _chunk_sums(
    logits, hidden, highests, totals, vocabulary, chunks, row_count: tl.constexpr, chunk_size: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1) * row_count + tl.arange(0, row_count)
    is_chunk = chunk < chunks
    token = chunk[:, None] * chunk_size + tl.arange(0, chunk_size)[None, :]
    value = tl.load(logits + row * vocabulary + token, mask=is_chunk[:, None], other=float("-inf"))
    value += tl.load(hidden + token, mask=is_chunk[:, None], other=0.0)
    highest = tl.max(value, 1)
    floor = tl.where(highest == float("-inf"), 0.0, highest)
    tl.store(highests + row * chunks + chunk, highest, mask=is_chunk)
    tl.store(totals + row * chunks + chunk, tl.sum(tl.exp(value - floor[:, None]), 1), mask=is_chunk)


def smoothed_mean(weights: Tensor, frames: Tensor, reach: int) -> Tensor:
    if reach != 3:
        raise ValueError(f"the kernel takes the median of 7 frames, not {2 * reach + 1}")
    slices, heads, tokens, longest = weights.shape
    answer = weights.new_empty(slices, tokens, longest)
    _smoothed_mean[(tokens, slices, triton.cdiv(longest, 256))](
        weights, frames, answer, tokens, longest, head_count=heads, block_size=256
    )
    return answer


@triton.jit
def _ordered(low, high):
    return tl.minimum(low, high), tl.maximum(low, high)


@triton.jit
def _mirrored(source, place, last, inside):
    place = tl.abs(place)
    place = tl.where(place > last, 2 * last - place, place)
    return tl.load(source + tl.maximum(place, 0), mask=inside, other=0.0)


@triton.jit
def _smoothed_mean(weights, frames, answer, tokens, longest, head_count: tl.constexpr, block_size: tl.constexpr):
    token, piece = tl.program_id(0), tl.program_id(1)
    last = tl.load(frames + piece).to(tl.int32) - 1
    at = tl.program_id(2) * block_size + tl.arange(0, block_size)
    inside = at <= last
    one = tl.where(last >= 3, 1, 0)
    total = tl.zeros([block_size], tl.float32)
    for head in range(head_count):
        source = weights + ((piece.to(tl.int64) * head_count + head) * tokens + token) * longest
        a, b = _mirrored(source, at - 3 * one, last, inside), _mirrored(source, at - 2 * one, last, inside)
        c, d = _mirrored(source, at - one, last, inside), _mirrored(source, at, last, inside)
        e, f = _mirrored(source, at + one, last, inside), _mirrored(source, at + 2 * one, last, inside)
        g = _mirrored(source, at + 3 * one, last, inside)
        # A sorting network that leaves the fourth of seven in d.
        a, f = _ordered(a, f)
        a, d = _ordered(a, d)
        b, g = _ordered(b, g)
        c, e = _ordered(c, e)
        a, b = _ordered(a, b)
        d, f = _ordered(d, f)
        c, g = _ordered(c, g)
        c, d = _ordered(c, d)
        d, g = _ordered(d, g)
        e, f = _ordered(e, f)
        b, e = _ordered(b, e)
        b, d = _ordered(b, d)
        d, e = _ordered(d, e)
        total += d
    tl.store(answer + (piece.to(tl.int64) * tokens + token) * longest + at, total / head_count, mask=at < longest)
