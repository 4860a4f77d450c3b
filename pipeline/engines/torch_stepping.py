"""Steps that the host asks for one by one: for sampling and for texts that must not repeat themselves.

Such texts are rare, so that the searches of the CPU engine serve them; what they ask of a decoder is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pipeline.engines.beam_search import CANDIDATES, Step, Tokens
from pipeline.engines.torch_decoder import Decoder, Ops
from pipeline.engines.torch_encoder import SoundMemory
from pipeline.engines.torch_texts import Texts

Tensor = Any
Floats = npt.NDArray[np.float32]


class HostSteps:
    """``Stepper`` of the searches, after the prompts have been read."""

    def __init__(self, decoder: Decoder, ops: Ops, texts: Texts, sound: SoundMemory, vocabulary: int) -> None:
        self._decoder, self._ops, self._texts, self._sound = decoder, ops, texts, sound
        self._vocabulary = vocabulary
        self._places = np.arange(0, texts.capacity * texts.beam, texts.beam)
        """Where the rows of the step before lie; after the prompts there is one a slice."""

    def first(self, states: Tensor) -> Step:
        """The step after the prompts, of whose states ``(slices, width)`` it is made."""
        return self._answer(states, np.arange(len(states)), self._decoder.hidden_first)

    def step(self, tokens: Tokens, parents: Tokens, slices: Tokens) -> Step:
        texts, device = self._texts, self._texts.lines.device
        begins = np.flatnonzero(np.r_[True, slices[1:] != slices[:-1]])
        rank = np.arange(len(slices)) - np.repeat(begins, np.diff(np.r_[begins, len(slices)]))
        places = slices * texts.beam + rank
        every = np.arange(texts.capacity * texts.beam)
        every[places] = self._places[parents]
        self._places = places
        rows = torch.tensor(places, device=device)
        texts.lines.copy_(texts.lines[torch.tensor(every, device=device)])
        texts.position.add_(1)
        own = torch.arange(len(every), device=device, dtype=torch.int32)
        texts.lines.index_copy_(1, texts.position, own[:, None])
        texts.tokens[rows] = torch.tensor(tokens, device=device)
        states = self._decoder.step(texts, self._sound, texts.capacity)
        return self._answer(states[rows], slices, self._decoder.hidden)

    def _answer(self, states: Tensor, slices: Tokens, hidden: Tensor) -> Step:
        device = states.device
        tokens, logprobs = self._ops.best_tokens(self._decoder.logits(states), hidden, CANDIDATES)
        rows = torch.tensor(self._places[: len(slices)], device=device)
        scores = self.attention(torch.tensor(slices, device=device), rows[:, None], int(self._texts.position))
        kept: npt.NDArray[np.float16] = scores[:, :, 0].half().cpu().numpy()
        return Step(tokens.cpu().numpy(), logprobs.cpu().numpy(), kept, states.float().cpu().numpy())

    def attention(self, slots: Tensor, lines: Tensor, first: int) -> Tensor:
        """By the heads that follow the sound, ``(texts, heads, length, frames)``; see ``Decoder.followed``."""
        scores = self._decoder.followed(self._texts, self._sound, slots, lines, first)
        heard = torch.arange(scores.shape[-1], device=scores.device) < self._texts.frames[slots, None]
        return scores.masked_fill(~heard[:, None, None], -torch.inf).softmax(-1)

    def logits(self, states: Floats) -> Floats:
        """Of all tokens, ``(rows, vocabulary)``, from a step's states."""
        device = self._texts.lines.device
        given = torch.tensor(states, device=device).to(self._decoder.dtype)
        logits: Floats = self._decoder.logits(given)[:, : self._vocabulary].cpu().numpy()
        return logits
