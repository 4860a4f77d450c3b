# Kernels are compiled by Triton, which knows no annotations but its own.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Products with weights as GPU kernels; what they compute is written in ``torch_ops``.

Each row is computed in the same order whatever the others are and however many, so that a text does not depend on its
batch. A library's product would, as it chooses its algorithm by the number of rows. Weights may be packed into 8 bits:
then half as much is read.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from pipeline.engines.torch_packing import Packed

Tensor = Any

CHUNK = 128
"""Tokens of the vocabulary that are looked at as one. The padded vocabulary is a multiple of it."""
_DEPTH = 64
"""Columns that are multiplied at a time: the width of every model is a multiple of it."""


def linear(x: Tensor, weight: Packed, bias: Tensor) -> Tensor:
    answer = x.new_empty(*x.shape[:-1], weight.numbers.shape[0])
    return _multiplied(x, weight, bias, answer, row_count=64, column_count=64, num_warps=4)


def project_out(states: Tensor, embeddings: Packed) -> Tensor:
    answer = states.new_empty(states.shape[0], embeddings.numbers.shape[0], dtype=torch.float32)
    return _multiplied(states, embeddings, None, answer, row_count=128, column_count=CHUNK, num_warps=8)


def _multiplied(x: Tensor, weight: Packed, bias: Tensor | None, answer: Tensor, **options: int) -> Tensor:
    """``answer`` is filled. What is chosen by the shapes is chosen by those of ``weight`` alone."""
    out, width = weight.numbers.shape
    if width % _DEPTH or out % options["column_count"]:
        raise ValueError(f"the kernel takes no matrix of {out} x {width}")
    x = x.contiguous()
    rows = x.numel() // width
    _multiply[(triton.cdiv(rows, options["row_count"]), out // options["column_count"])](
        x, weight.numbers, given(weight.scales, weight), given(bias, weight), answer, rows, width, out,
        is_packed=weight.scales is not None, has_bias=bias is not None, depth=_DEPTH, num_stages=3, **options,
    )  # fmt: skip
    return answer


@triton.jit(do_not_specialize=["rows"])
def _multiply(
    x, weight, scales, bias, answer, rows, width, out,
    is_packed: tl.constexpr, has_bias: tl.constexpr,
    row_count: tl.constexpr, column_count: tl.constexpr, depth: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * row_count + tl.arange(0, row_count)
    column = tl.program_id(1).to(tl.int64) * column_count + tl.arange(0, column_count)
    is_row = row < rows
    total = tl.zeros([row_count, column_count], tl.float32)
    for first in range(0, width, depth):
        at = first + tl.arange(0, depth)
        left = tl.load(x + row[:, None] * width + at[None, :], mask=is_row[:, None], other=0.0)
        right = tl.load(weight + column[None, :] * width + at[:, None])
        total = tl.dot(left, right.to(left.dtype), total, input_precision="ieee")
    if is_packed:
        total *= tl.load(scales + column).to(tl.float32)[None, :]
    if has_bias:
        total += tl.load(bias + column).to(tl.float32)[None, :]
    tl.store(answer + row[:, None] * out + column[None, :], total, mask=is_row[:, None])


def given(tensor: Tensor | None, instead: Packed) -> Tensor:
    """A kernel must be given something where it reads nothing."""
    return instead.numbers if tensor is None else tensor
