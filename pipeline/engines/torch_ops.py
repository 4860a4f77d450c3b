"""What a decoder step is made of, in plain PyTorch: right everywhere, fast nowhere.

``triton_ops`` has the same functions for a GPU. On a GPU every shape is static and nothing is read back, so
that both can be captured in a CUDA graph. Rows are texts: ``beam`` of them side by side for each slice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from pipeline.engines.torch_packing import Packed

Tensor = Any

EPSILON = 1e-5


def linear(x: Tensor, weight: Packed, bias: Tensor) -> Tensor:
    """``x (..., in)`` to ``(..., out)``; ``weight (out, in)``."""
    return functional.linear(x, weight.whole(x.dtype), bias)


def add_norm(x: Tensor, change: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """``x + change``, and its layer norm; all ``(rows, width)``."""
    x = x + change
    return x, functional.layer_norm(x, (x.shape[-1],), gamma, beta, EPSILON)


def attend_text(
    projected: Tensor,
    keys: Packed,
    values: Packed,
    lines: Tensor,
    starts: Tensor,
    frames: Tensor,  # noqa: ARG001 - the GPU's function skips slices without frames
    position: Tensor,
    beam: int,
) -> Tensor:
    """Each row looks at its own text, itself included, which is stored at ``position (1,)``.

    ``projected (rows, 3 * width)``; ``keys``, ``values (all rows, heads, context, head width)``; ``lines (all rows,
    context)``: which row wrote a place of a row's text; ``starts (slices,)``: the places before are padding.
    """
    rows = projected.shape[0]
    # Only where the position is at hand: a GPU would have to be waited for.
    context = lines.shape[1] if lines.is_cuda else int(position) + 1
    heads, head_width = keys.numbers.shape[1], keys.numbers.shape[3]
    query, key, value = projected.view(rows, 3, heads, head_width).unbind(1)
    for kept, new in ((keys, key), (values, value)):
        kept.put((slice(0, rows), slice(None), position), new.unsqueeze(2))
    places = torch.arange(context, device=lines.device)
    origin = torch.where(
        places == position, torch.arange(rows, device=lines.device)[:, None], lines[:rows, :context].long()
    )
    hidden = (places > position) | (places < starts.repeat_interleave(beam)[:, None])
    own_keys, own_values = (kept[origin, :, places].whole(query.dtype) for kept in (keys, values))
    scores = torch.einsum("rhd,rchd->rhc", query, own_keys) * head_width**-0.5
    shares = scores.float().masked_fill(hidden[:, None], -torch.inf).softmax(-1).to(query.dtype)
    return torch.einsum("rhc,rchd->rhd", shares, own_values).reshape(rows, -1)


def attend_sound(query: Tensor, keys: Packed, values: Packed, slots: Tensor, frames: Tensor, beam: int) -> Tensor:
    """Each row looks at the sound of its slice; where ``frames (slices,)`` is 0 the answer is 0.

    ``query (rows, width)``; ``keys``, ``values (all slots, heads, frames, head width)``; ``slots (slices,)``.
    """
    heads, longest, head_width = keys.numbers.shape[1:]
    apart = query.view(-1, beam, heads, head_width).transpose(1, 2)
    # The last slot is behind all others: it stands for none.
    slots = slots.clamp(max=keys.numbers.shape[0] - 1)
    heard_keys, heard_values = (kept[slots].whole(query.dtype) for kept in (keys, values))
    heard = torch.arange(longest, device=frames.device) < frames[:, None].clamp(min=1)
    answer = functional.scaled_dot_product_attention(apart, heard_keys, heard_values, attn_mask=heard[:, None, None])
    answer = answer.masked_fill((frames == 0)[:, None, None, None], 0.0)
    return answer.transpose(1, 2).reshape(query.shape)


def best_tokens(logits: Tensor, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The likeliest tokens of each row, best first, and their log-probabilities, both ``(rows, count)``.

    ``logits (rows, vocabulary)`` are float32; ``hidden (vocabulary,)`` is 0, or -inf for a token that is not written.
    """
    logprobs, tokens = (logits + hidden).log_softmax(-1).topk(count)
    return tokens, logprobs


def mark_chances(tokens: Tensor, logprobs: Tensor, marks: tuple[Tensor, Tensor]) -> Tensor:
    """How likely a token of each of two groups comes next, ``(rows, 2)``; see ``MarkTokens.chances``.

    ``tokens`` and ``logprobs`` are ``(rows, count)``, as ``best_tokens`` gives them.
    """
    shares = [(logprobs.exp() * (tokens[..., None] == group).any(-1)).sum(-1) for group in marks]
    return torch.stack(shares, -1)


def smoothed_mean(weights: Tensor, frames: Tensor, reach: int) -> Tensor:
    """The median over ``2 * reach + 1`` frames, mirrored at both ends of each slice, then the mean over the heads.

    ``weights (slices, heads, tokens, longest)``, ``frames (slices,)`` of the slice; returns ``(slices, tokens,
    longest)``. A slice of ``reach`` frames or fewer is not smoothed.
    """
    longest = weights.shape[-1]
    last = (frames - 1)[:, None]
    places = torch.arange(longest, device=weights.device)[None]
    shifted = []
    for shift in range(-reach, reach + 1):
        place = (places + torch.where(last >= reach, shift, 0)).abs()
        place = torch.where(place > last, 2 * last - place, place).clamp(0, longest - 1)
        shifted.append(weights.gather(-1, place[:, None, None].expand_as(weights)))
    return torch.stack(shifted).median(0).values.mean(1)


def project_out(states: Tensor, embeddings: Packed) -> Tensor:
    """Logits in float32: in half precision many of them would be equal. ``embeddings (vocabulary, width)``."""
    return functional.linear(states, embeddings.whole(states.dtype)).float()
