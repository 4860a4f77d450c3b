# Kernels are compiled by Triton, which knows no annotations but its own.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Attention of a decoder's step as GPU kernels; what they compute is written in ``torch_ops``.

A slice's sound is read once for all of its beams; slices that are done are not read; texts are never moved when beams
change places, as ``lines`` says who wrote what. What is read may be packed into 8 bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from pipeline.engines.torch_packing import Packed
from pipeline.engines.triton_products import given

Tensor = Any

_BEAM_ROWS = 16
"""The fewest rows of a tensor core's product; beams fill some of them."""
_SOUND_PARTS = 3
"""That a slice's sound is read in side by side: so few slices, too, keep many multiprocessors busy. Always so many, as
a sum in other parts rounds otherwise."""
_LOG2_E = 1.4426950408889634


def attend_text(
    projected: Tensor,
    keys: Packed,
    values: Packed,
    lines: Tensor,
    starts: Tensor,
    frames: Tensor,
    position: Tensor,
    beam: int,
) -> Tensor:
    rows, (heads, context, head_width) = projected.shape[0], keys.numbers.shape[1:]
    answer = projected.new_empty(rows, heads * head_width)
    _attend_text[(rows, heads)](
        projected, keys.numbers, values.numbers, given(keys.scales, keys), given(values.scales, values),
        lines, starts, frames, position, answer, beam, heads, context, head_width**-0.5 * _LOG2_E,
        is_packed=keys.scales is not None, head_size=head_width, block_size=64, num_warps=2,
    )  # fmt: skip
    return answer


@triton.jit
def _attend_text(
    projected, keys, values, key_scales, value_scales, lines, starts, frames, position, answer, beam, heads, context,
    scale, is_packed: tl.constexpr, head_size: tl.constexpr, block_size: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    piece = row // beam
    here = tl.load(position).to(tl.int32)
    first = tl.load(starts + piece).to(tl.int32)
    last = tl.where(tl.load(frames + piece) > 0, here, first)
    across = tl.arange(0, head_size)
    given = projected + (row.to(tl.int64) * 3 * heads + head) * head_size + across
    query = tl.load(given).to(tl.float32) * scale
    own = (row.to(tl.int64) * heads + head) * context + here
    key = _kept(tl.load(given + heads * head_size), keys, key_scales, own, across, is_packed, head_size)
    value = _kept(tl.load(given + 2 * heads * head_size), values, value_scales, own, across, is_packed, head_size)
    highest = tl.sum(query * key, 0)
    total = highest * 0.0 + 1.0
    mixed = value
    for begin in range(first, last, block_size):
        place = begin + tl.arange(0, block_size)
        inside = place < last
        writer = tl.load(lines + row.to(tl.int64) * context + place, mask=inside, other=0).to(tl.int64)
        vector = (writer * heads + head) * context + place
        at = vector[:, None] * head_size + across[None, :]
        block = tl.load(keys + at, mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(block * query[None, :], 1)
        if is_packed:
            scores *= tl.load(key_scales + vector, mask=inside, other=0.0).to(tl.float32)
        scores = tl.where(inside, scores, float("-inf"))
        above = tl.maximum(highest, tl.max(scores, 0))
        shares = tl.exp2(scores - above)
        fade = tl.exp2(highest - above)
        total = total * fade + tl.sum(shares, 0)
        if is_packed:
            shares *= tl.load(value_scales + vector, mask=inside, other=0.0).to(tl.float32)
        block = tl.load(values + at, mask=inside[:, None], other=0.0).to(tl.float32)
        mixed = mixed * fade + tl.sum(block * shares[:, None], 0)
        highest = above
    tl.store(answer + (row.to(tl.int64) * heads + head) * head_size + across, mixed / total)


@triton.jit
def _kept(vector, numbers, scales, place, across, is_packed: tl.constexpr, head_size: tl.constexpr):
    """Store a vector, packed by the rule of ``packed_of``; float32, as it will be read."""
    if is_packed:
        highest = tl.max(tl.abs(vector.to(tl.float32)), 0)
        scale = tl.maximum(highest / 127.0, 1e-6).to(vector.dtype)
        tl.store(scales + place, scale)
        exact = vector.to(tl.float32) / scale.to(tl.float32)
        whole = tl.where(exact < 0.0, tl.ceil(exact - 0.5), tl.floor(exact + 0.5))
        whole = tl.minimum(tl.maximum(whole, -127.0), 127.0)
        tl.store(numbers + place * head_size + across, whole.to(tl.int8))
        answer = whole * scale.to(tl.float32)
    else:
        tl.store(numbers + place * head_size + across, vector)
        answer = vector.to(tl.float32)
    return answer


def attend_sound(query: Tensor, keys: Packed, values: Packed, slots: Tensor, frames: Tensor, beam: int) -> Tensor:
    """``beam`` may be the length of prompts, too."""
    heads, longest, head_width = keys.numbers.shape[1:]
    slices = slots.shape[0]
    query = query.contiguous()
    mixed = query.new_empty(slices, heads, _SOUND_PARTS, beam, head_width, dtype=torch.float32)
    sums = query.new_empty(2, slices, heads, _SOUND_PARTS, beam, dtype=torch.float32)
    answer = torch.empty_like(query)
    _attend_part[(slices, heads, _SOUND_PARTS * triton.cdiv(beam, _BEAM_ROWS))](
        query, keys.numbers, values.numbers, given(keys.scales, keys), given(values.scales, values),
        slots, frames, mixed, sums[0], sums[1], beam, heads, longest, head_width**-0.5 * _LOG2_E,
        is_packed=keys.scales is not None, part_count=_SOUND_PARTS, row_count=_BEAM_ROWS, head_size=head_width,
        block_size=128, num_stages=3,
    )  # fmt: skip
    _join_parts[(slices * beam, heads)](
        mixed, sums[0], sums[1], answer, beam, heads,
        part_count=_SOUND_PARTS, part_room=triton.next_power_of_2(_SOUND_PARTS), head_size=head_width, num_warps=1,
    )  # fmt: skip
    return answer


@triton.jit
def _attend_part(
    query, keys, values, key_scales, value_scales, slots, frames, mixed, highests, totals, beam, heads, longest, scale,
    is_packed: tl.constexpr, part_count: tl.constexpr, row_count: tl.constexpr, head_size: tl.constexpr,
    block_size: tl.constexpr,
):  # fmt: skip
    piece, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2) % part_count
    heard = tl.load(frames + piece).to(tl.int32)
    size = tl.cdiv(tl.cdiv(heard, part_count), block_size) * block_size
    first = part * size
    last = tl.minimum(heard, first + size)
    row, across = tl.program_id(2) // part_count * row_count + tl.arange(0, row_count), tl.arange(0, head_size)
    is_row = row < beam
    asked = ((piece * beam + row)[:, None].to(tl.int64) * heads + head) * head_size + across[None, :]
    asking = tl.load(query + asked, mask=is_row[:, None], other=0.0)
    base = (tl.load(slots + piece).to(tl.int64) * heads + head) * longest
    highest = tl.full([row_count], float("-inf"), tl.float32)
    total = tl.zeros([row_count], tl.float32)
    answer = tl.zeros([row_count, head_size], tl.float32)
    for begin in range(first, last, block_size):
        frame = begin + tl.arange(0, block_size)
        inside = frame < last
        vector = base + frame
        block = tl.load(keys + vector[None, :] * head_size + across[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(asking, block.to(asking.dtype), input_precision="ieee") * scale
        if is_packed:
            scores *= tl.load(key_scales + vector, mask=inside, other=0.0).to(tl.float32)[None, :]
        scores = tl.where(inside[None, :], scores, float("-inf"))
        above = tl.maximum(highest, tl.max(scores, 1))
        shares = tl.exp2(scores - above[:, None])
        fade = tl.exp2(highest - above)
        total = total * fade + tl.sum(shares, 1)
        if is_packed:
            shares *= tl.load(value_scales + vector, mask=inside, other=0.0).to(tl.float32)[None, :]
        block = tl.load(values + vector[:, None] * head_size + across[None, :], mask=inside[:, None], other=0.0)
        block = block.to(asking.dtype)
        answer = answer * fade[:, None] + tl.dot(shares.to(asking.dtype), block, input_precision="ieee")
        highest = above
    out = ((piece * heads + head) * part_count + part).to(tl.int64) * beam + row
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
    at = ((row // beam * heads + head) * part_count + part).to(tl.int64) * beam + row % beam
    is_part = part < part_count
    highest = tl.load(highests + at, mask=is_part, other=float("-inf"))
    above = tl.max(highest, 0)
    # A part without frames, or a slice without any, has a highest score of -inf.
    share = tl.where(highest == float("-inf"), 0.0, tl.exp2(highest - above))
    total = tl.sum(tl.load(totals + at, mask=is_part, other=0.0) * share, 0)
    block = tl.load(mixed + at[:, None] * head_size + across[None, :], mask=is_part[:, None], other=0.0)
    joined = tl.sum(block * share[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    tl.store(answer + (row.to(tl.int64) * heads + head) * head_size + across, joined)
