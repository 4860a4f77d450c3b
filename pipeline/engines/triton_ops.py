# Kernels are compiled by Triton, which knows no annotations but its own.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""The functions of ``torch_ops`` as GPU kernels; the shapes and meanings are written there.

What makes them fast: a slice's sound is read once for all of its beams; slices that are done are not read; texts are
never moved when beams change places, as ``lines`` says who wrote what; the vocabulary is read once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from pipeline.engines.torch_ops import EPSILON

Tensor = Any

CHUNK = 128
"""Tokens of the vocabulary that are looked at as one. The padded vocabulary is a multiple of it."""
_BEAM_ROWS = 16
"""The fewest rows of a tensor core's product; beams fill some of them."""
_PROGRAMS = 2048
"""Programs that keep every multiprocessor of a large GPU busy."""
_LOG2_E = 1.4426950408889634


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


def attend_text(
    projected: Tensor,
    keys: Tensor,
    values: Tensor,
    lines: Tensor,
    starts: Tensor,
    frames: Tensor,
    position: Tensor,
    beam: int,
) -> Tensor:
    rows, (heads, context, head_width) = projected.shape[0], keys.shape[1:]
    answer = projected.new_empty(rows, heads * head_width)
    _attend_text[(rows, heads)](
        projected, keys, values, lines, starts, frames, position, answer, beam, heads, context,
        head_width**-0.5 * _LOG2_E, head_size=head_width, block_size=64, num_warps=2,
    )  # fmt: skip
    return answer


@triton.jit
def _attend_text(
    projected, keys, values, lines, starts, frames, position, answer, beam, heads, context, scale,
    head_size: tl.constexpr, block_size: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    piece = row // beam
    here = tl.load(position).to(tl.int32)
    first = tl.load(starts + piece).to(tl.int32)
    last = tl.where(tl.load(frames + piece) > 0, here, first)
    across = tl.arange(0, head_size)
    given = projected + (row.to(tl.int64) * 3 * heads + head) * head_size + across
    query = tl.load(given).to(tl.float32) * scale
    key, value = tl.load(given + heads * head_size), tl.load(given + 2 * heads * head_size)
    own = ((row.to(tl.int64) * heads + head) * context + here) * head_size + across
    tl.store(keys + own, key)
    tl.store(values + own, value)
    highest = tl.sum(query * key.to(tl.float32), 0)
    total = highest * 0.0 + 1.0
    mixed = value.to(tl.float32)
    for begin in range(first, last, block_size):
        place = begin + tl.arange(0, block_size)
        inside = place < last
        writer = tl.load(lines + row.to(tl.int64) * context + place, mask=inside, other=0).to(tl.int64)
        at = (((writer * heads + head) * context + place) * head_size)[:, None] + across[None, :]
        block = tl.load(keys + at, mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.where(inside, tl.sum(block * query[None, :], 1), float("-inf"))
        above = tl.maximum(highest, tl.max(scores, 0))
        shares = tl.exp2(scores - above)
        fade = tl.exp2(highest - above)
        block = tl.load(values + at, mask=inside[:, None], other=0.0).to(tl.float32)
        mixed = mixed * fade + tl.sum(block * shares[:, None], 0)
        total = total * fade + tl.sum(shares, 0)
        highest = above
    tl.store(answer + (row.to(tl.int64) * heads + head) * head_size + across, mixed / total)


def attend_sound(query: Tensor, keys: Tensor, values: Tensor, slots: Tensor, frames: Tensor, beam: int) -> Tensor:
    heads, longest, head_width = keys.shape[1:]
    slices = slots.shape[0]
    parts = max(1, min(8, _PROGRAMS // (slices * heads)))
    mixed = query.new_empty(slices, heads, parts, beam, head_width, dtype=torch.float32)
    sums = query.new_empty(2, slices, heads, parts, beam, dtype=torch.float32)
    answer = torch.empty_like(query)
    _attend_part[(slices, heads, parts)](
        query, keys, values, slots, frames, mixed, sums[0], sums[1], beam, heads, longest,
        head_width**-0.5 * _LOG2_E, part_count=parts, row_count=_BEAM_ROWS, head_size=head_width, block_size=128,
        num_stages=3,
    )  # fmt: skip
    _join_parts[(slices * beam, heads)](
        mixed, sums[0], sums[1], answer, beam, heads,
        part_count=parts, part_room=triton.next_power_of_2(parts), head_size=head_width, num_warps=1,
    )  # fmt: skip
    return answer


@triton.jit
def _attend_part(
    query, keys, values, slots, frames, mixed, highests, totals, beam, heads, longest, scale,
    part_count: tl.constexpr, row_count: tl.constexpr, head_size: tl.constexpr, block_size: tl.constexpr,
):  # fmt: skip
    piece, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heard = tl.load(frames + piece).to(tl.int32)
    size = tl.cdiv(tl.cdiv(heard, part_count), block_size) * block_size
    first = part * size
    last = tl.minimum(heard, first + size)
    row, across = tl.arange(0, row_count), tl.arange(0, head_size)
    is_row = row < beam
    asked = ((piece * beam + row)[:, None].to(tl.int64) * heads + head) * head_size + across[None, :]
    asking = tl.load(query + asked, mask=is_row[:, None], other=0.0)
    base = (tl.load(slots + piece).to(tl.int64) * heads + head) * longest * head_size
    highest = tl.full([row_count], float("-inf"), tl.float32)
    total = tl.zeros([row_count], tl.float32)
    answer = tl.zeros([row_count, head_size], tl.float32)
    for begin in range(first, last, block_size):
        frame = begin + tl.arange(0, block_size)
        inside = frame < last
        block = tl.load(keys + base + frame[None, :] * head_size + across[:, None], mask=inside[None, :], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(asking, block) * scale, float("-inf"))
        above = tl.maximum(highest, tl.max(scores, 1))
        shares = tl.exp2(scores - above[:, None])
        fade = tl.exp2(highest - above)
        block = tl.load(values + base + frame[:, None] * head_size + across[None, :], mask=inside[:, None], other=0.0)
        answer = answer * fade[:, None] + tl.dot(shares.to(block.dtype), block)
        total = total * fade + tl.sum(shares, 1)
        highest = above
    out = ((piece * heads + head) * part_count + part) * beam + row
    tl.store(highests + out, highest, mask=is_row)
    tl.store(totals + out, total, mask=is_row)
    tl.store(mixed + out[:, None] * head_size + across[None, :], answer, mask=is_row[:, None])


@triton.jit
def _join_parts(
    mixed, highests, totals, answer, beam, heads,
    part_count: tl.constexpr, part_room: tl.constexpr, head_size: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    part, across = tl.arange(0, part_room), tl.arange(0, head_size)
    at = ((row // beam * heads + head) * part_count + part) * beam + row % beam
    is_part = part < part_count
    highest = tl.load(highests + at, mask=is_part, other=float("-inf"))
    above = tl.max(highest, 0)
    # A part without frames, or a slice without any, has a highest score of -inf.
    share = tl.where(highest == float("-inf"), 0.0, tl.exp2(highest - above))
    total = tl.sum(tl.load(totals + at, mask=is_part, other=0.0) * share, 0)
    block = tl.load(mixed + at[:, None] * head_size + across[None, :], mask=is_part[:, None], other=0.0)
    joined = tl.sum(block * share[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    tl.store(answer + (row.to(tl.int64) * heads + head) * head_size + across, joined)


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
    whole = above + (total * (highest - above).exp()).sum(-1, keepdim=True).log()
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


def project_out(states: Tensor, embeddings: Tensor) -> Tensor:
    if states.dtype == torch.float32:
        return states @ embeddings.t()
    return torch.mm(states, embeddings.t(), out_dtype=torch.float32)
