"""The texts that a decoder is writing: their state on the device, in arrays that never move.

A row is one text; the ``beam`` rows of a slice lie side by side. What a row has written stays where it was written:
``lines`` says for each row which row wrote each place of its text, so that texts change places without being copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pipeline.engines.torch_packing import Packed, Place
from pipeline.engines.whisper_weights import WhisperWeights

Tensor = Any


@dataclass(slots=True)
class Texts:
    """Arrays for ``capacity`` slices. Places of a text count from its prompt's padding on."""

    beam: int
    capacity: int
    keys: Packed
    """Of every layer and place, ``(layers, rows, heads, places, head width)``; ``values`` likewise."""
    values: Packed
    queries: dict[int, Tensor]
    """By layer, of the heads that follow the sound, ``(places, rows, heads, head width)``."""
    lines: Tensor
    tokens: Tensor
    """The last token of each row, ``(rows,)``."""
    totals: Tensor
    """Log-probability of each text, ``(slices, beam)``."""
    written: Tensor
    """The tokens, ``(places, rows)``; ``logprobs`` likewise."""
    logprobs: Tensor
    marks: Tensor
    """How likely a mark was instead, and the end of the sentence, ``(places, rows, 2)``."""
    starts: Tensor
    """Where the prompt of each slice begins, ``(slices,)``."""
    frames: Tensor
    """How many frames of 20 ms of sound each slice has; 0 once it is done."""
    slots: Tensor
    """Where the sound of each slice lies, and its best text."""
    done: Tensor
    ended: Tensor
    """How many texts of each slice have ended."""
    position: Tensor
    """The place of the last token, ``(1,)``; ``count`` of tokens before the next one; ``limit`` of tokens."""
    count: Tensor
    limit: Tensor
    best: Best
    prompt_length: int = 0

    def begin(self, slices: int, frames: list[int], lengths: list[int], limit: int) -> None:
        """Make room for new texts of the first ``slices``, whose prompts have these ``lengths``."""
        longest = max(lengths)
        self.prompt_length = longest
        device = self.lines.device
        self.lines.copy_((torch.arange(self.lines.shape[0], device=device) // self.beam * self.beam)[:, None])
        self.totals.fill_(-torch.inf)[:, 0] = 0.0
        self.done.fill_(True)[:slices] = False
        self.frames.zero_()[:slices] = torch.tensor(frames, dtype=torch.int32).to(device)
        self.starts.zero_()[:slices] = torch.tensor([longest - one for one in lengths], dtype=torch.int32).to(device)
        # Places that stand for no slice write their best text, which nobody reads, behind the last slot.
        self.slots.fill_(self.capacity)[:slices] = torch.arange(slices, device=device)
        self.ended.zero_()
        self.tokens.zero_()
        self.position.fill_(longest - 1)
        self.count.zero_()
        self.limit.fill_(limit)
        self.best.scores.fill_(-torch.inf)

    def keep(self, kept: Tensor) -> None:
        """Bring the slices ``kept`` to the front: what is true of a place is true of another now."""
        rows = (kept[:, None] * self.beam + torch.arange(self.beam, device=kept.device)).flatten()
        for of_slices in (self.totals, self.starts, self.frames, self.slots, self.done, self.ended):
            of_slices[: len(kept)] = of_slices[kept]
        for of_rows in (self.tokens, self.lines):
            of_rows[: len(rows)] = of_rows[rows]
        # The last tokens have yet to go through the decoder: their keys will lie where the rows are now.
        own = torch.arange(len(rows), device=kept.device, dtype=torch.int32)
        self.lines[: len(rows)].index_copy_(1, self.position, own[:, None])
        for of_places in (self.written, self.logprobs, self.marks):
            last = of_places.index_select(0, self.position)[:, rows]
            of_places[:, : len(rows)].index_copy_(0, self.position, last)


@dataclass(frozen=True, slots=True)
class Best:
    """The best text that has ended, for each slot and one more."""

    scores: Tensor
    """Log-probability per token."""
    totals: Tensor
    lines: Tensor
    lengths: Tensor
    """Tokens before the last one."""
    last: Tensor
    """The last token: the end, but in a text that was cut."""
    last_logprobs: Tensor
    last_marks: Tensor


def new_texts(weights: WhisperWeights, place: Place, capacity: int, beam: int) -> Texts:
    """Arrays for ``capacity`` slices of ``beam`` texts each."""
    rows, context = capacity * beam, weights.context_tokens
    head_width = weights.width // weights.heads

    def zeros(*shape: int, dtype: Any = place.dtype) -> Tensor:
        return torch.zeros(shape, device=place.device, dtype=dtype)

    layers = [layer for layer, _ in weights.alignment_heads]
    shape = (weights.decoder_layers, rows, weights.heads, context, head_width)
    whole, small, real = torch.int64, torch.int32, torch.float32
    return Texts(
        beam=beam,
        capacity=capacity,
        keys=place.zeros(*shape),
        values=place.zeros(*shape),
        queries={layer: zeros(context, rows, layers.count(layer), head_width) for layer in sorted(set(layers))},
        lines=zeros(rows, context, dtype=small),
        tokens=zeros(rows, dtype=whole),
        totals=zeros(capacity, beam, dtype=real),
        written=zeros(context, rows, dtype=small),
        logprobs=zeros(context, rows, dtype=real),
        marks=zeros(context, rows, 2, dtype=real),
        starts=zeros(capacity, dtype=small),
        frames=zeros(capacity, dtype=small),
        slots=zeros(capacity, dtype=whole),
        done=zeros(capacity, dtype=torch.bool),
        ended=zeros(capacity, dtype=small),
        position=zeros(1, dtype=whole),
        count=zeros(1, dtype=whole),
        limit=zeros(1, dtype=whole),
        best=Best(
            scores=zeros(capacity + 1, dtype=real),
            totals=zeros(capacity + 1, dtype=real),
            lines=zeros(capacity + 1, context, dtype=small),
            lengths=zeros(capacity + 1, dtype=whole),
            last=zeros(capacity + 1, dtype=whole),
            last_logprobs=zeros(capacity + 1, dtype=real),
            last_marks=zeros(capacity + 1, 2, dtype=real),
        ),
    )
