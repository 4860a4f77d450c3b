"""The second half of the PyTorch engine: one step of Whisper's decoder over many texts, and the prompts before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import functional

from pipeline.engines.torch_encoder import Linear, Pair, SoundMemory, linear_of, pair_of
from pipeline.engines.torch_ops import EPSILON
from pipeline.engines.torch_packing import Packed, Place
from pipeline.engines.torch_texts import Texts
from pipeline.engines.whisper_weights import WhisperWeights

Tensor = Any

_VOCABULARY_MULTIPLE = 128
"""The vocabulary is padded to it: the product with it is aligned then, and can be searched in chunks."""


class Ops(Protocol):
    """``torch_ops`` or ``triton_ops``."""

    def linear(self, x: Tensor, weight: Packed, bias: Tensor) -> Tensor: ...
    def add_norm(self, x: Tensor, change: Tensor, gamma: Tensor, beta: Tensor) -> Pair: ...
    def attend_text(
        self,
        projected: Tensor,
        keys: Packed,
        values: Packed,
        lines: Tensor,
        starts: Tensor,
        frames: Tensor,
        position: Tensor,
        beam: int,
    ) -> Tensor: ...
    def attend_sound(
        self, query: Tensor, keys: Packed, values: Packed, slots: Tensor, frames: Tensor, beam: int
    ) -> Tensor: ...
    def best_tokens(self, logits: Tensor, hidden: Tensor, count: int) -> Pair: ...
    def smoothed_mean(self, weights: Tensor, frames: Tensor, reach: int) -> Tensor: ...
    def project_out(self, states: Tensor, embeddings: Packed) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class _Layer:
    text_norm: Pair
    text_project: Linear
    text_out: Linear
    sound_norm: Pair
    sound_query: Linear
    sound_out: Linear
    ffn_norm: Pair
    widen: Linear
    narrow: Linear


class Decoder:
    """Whisper's decoder. The texts and the sound that it works on are given to each call."""

    def __init__(self, weights: WhisperWeights, place: Place, ops: Ops) -> None:
        self._ops, self._heads, self._place = ops, weights.heads, place
        self._layers = [_layer(weights, place, f"decoder/layer_{at}") for at in range(weights.decoder_layers)]
        self._norm = pair_of(weights, place, "decoder/layer_norm", "gamma", "beta")
        self._positions = place.take(weights["decoder/position_encodings/encodings"])
        self._followed = _followed(weights, place)
        self._embeddings = place.pack(_padded(place.take(weights["decoder/embeddings/weight"])))
        is_shared = weights.output == "decoder/embeddings/weight"
        self._output = self._embeddings if is_shared else place.pack(_padded(place.take(weights[weights.output])))
        self.hidden = self._hidden(weights, ())
        self.hidden_first = self._hidden(weights, weights.suppressed_first)

    @property
    def dtype(self) -> Any:
        return self._place.dtype

    def _hidden(self, weights: WhisperWeights, more: Sequence[int]) -> Tensor:
        """0 for a token that may be written, else -inf; float32."""
        hidden = torch.zeros(self._embeddings.numbers.shape[0], device=self._place.device)
        hidden[weights.vocabulary :] = -torch.inf
        hidden[[*weights.suppressed, *more]] = -torch.inf
        return hidden

    def step(self, texts: Texts, sound: SoundMemory, slices: int) -> Tensor:
        """The states ``(rows, width)`` after the last token of each text of the first ``slices``."""
        rows = slices * texts.beam
        starts, frames, slots = texts.starts[:slices], texts.frames[:slices], texts.slots[:slices]
        places = (texts.position - starts).clamp(min=0).repeat_interleave(texts.beam)
        x = self._embedded(texts.tokens[:rows]) + self._positions[places]

        def attend_text(layer: int, projected: Tensor) -> Tensor:
            keys, values = texts.keys[layer], texts.values[layer]
            return self._ops.attend_text(
                projected, keys, values, texts.lines, starts, frames, texts.position, texts.beam
            )

        def attend_sound(layer: int, query: Tensor) -> Tensor:
            asked = query.view(1, rows, self._heads, -1)
            self._keep_queries(texts, layer, asked, texts.position, slice(0, rows))
            return self._ops.attend_sound(query, sound.keys[layer], sound.values[layer], slots, frames, texts.beam)

        return self._through(x, attend_text, attend_sound)

    def _embedded(self, tokens: Tensor) -> Tensor:
        return self._embeddings[tokens].whole(self.dtype)

    def logits(self, states: Tensor) -> Tensor:
        """``(rows, width)`` to ``(rows, padded vocabulary)``, float32."""
        return self._ops.project_out(states, self._output)

    def read(self, texts: Texts, sound: SoundMemory, prompts: Tensor, asking: int) -> Tensor:
        """Read the prompts ``(slices, length)``, padded at their start; their slots are the first ones.

        Returns the states after each of the last ``asking`` tokens, ``(slices, asking, width)``; what the heads that
        follow the sound asked for there is kept.
        """
        slices, length = prompts.shape
        places, every = torch.arange(length, device=prompts.device), slice(0, slices * texts.beam, texts.beam)
        starts = texts.starts[:slices, None]
        own = (places[:, None] >= places) & (places >= starts[..., None])
        # A place of the padding sees itself: a softmax over nothing is not a number.
        own = (own | torch.eye(length, dtype=torch.bool, device=own.device))[:, None]
        slots, frames = torch.arange(slices, device=own.device), texts.frames[:slices]
        x = self._embedded(prompts) + self._positions[(places - starts).clamp(min=0)]

        def attend_text(layer: int, projected: Tensor) -> Tensor:
            split = projected.view(slices, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            for kept, new in zip((texts.keys, texts.values), split[1:], strict=True):
                kept[layer].put((every, slice(None), slice(0, length)), new)
            return _joined(functional.scaled_dot_product_attention(*split, attn_mask=own))

        def attend_sound(layer: int, query: Tensor) -> Tensor:
            apart = query.view(slices, length, self._heads, -1)
            self._keep_queries(texts, layer, apart[:, -asking:].transpose(0, 1), places[-asking:], every)
            asked = query.reshape(slices * length, -1)
            mixed = self._ops.attend_sound(asked, sound.keys[layer], sound.values[layer], slots, frames, length)
            return mixed.view(query.shape)

        return self._through(x, attend_text, attend_sound)[:, -asking:]

    def _through(
        self, x: Tensor, attend_text: Callable[[int, Tensor], Tensor], attend_sound: Callable[[int, Tensor], Tensor]
    ) -> Tensor:
        """All layers and the last norm; ``x (..., width)``."""
        nexts = [layer.text_norm for layer in self._layers[1:]] + [self._norm]
        normal = functional.layer_norm(x, (x.shape[-1],), *self._layers[0].text_norm, EPSILON)
        for at, (layer, after) in enumerate(zip(self._layers, nexts, strict=True)):
            change = self._linear(attend_text(at, self._linear(normal, layer.text_project)), layer.text_out)
            x, normal = self._ops.add_norm(x, change, *layer.sound_norm)
            change = self._linear(attend_sound(at, self._linear(normal, layer.sound_query)), layer.sound_out)
            x, normal = self._ops.add_norm(x, change, *layer.ffn_norm)
            change = self._linear(functional.gelu(self._linear(normal, layer.widen)), layer.narrow)
            x, normal = self._ops.add_norm(x, change, *after)
        return normal

    def _linear(self, x: Tensor, layer: Linear) -> Tensor:
        return self._ops.linear(x, layer.weight, layer.bias)

    def _keep_queries(self, texts: Texts, layer: int, queries: Tensor, position: Tensor, rows: slice) -> None:
        """Keep what the heads that follow the sound ask for; ``queries (places, rows, heads, head width)``."""
        if layer in self._followed:
            chosen = queries.index_select(2, self._followed[layer])
            texts.queries[layer][:, rows].index_copy_(0, position, chosen)

    def followed(self, texts: Texts, sound: SoundMemory, slots: Tensor, lines: Tensor, first: int) -> Tensor:
        """Scores of the heads that follow the sound, float32, ``(texts, heads, length, frames)``.

        ``lines (texts, length)`` says which row was at each place from ``first`` on, ``slots (texts,)`` where the
        sound is.
        """
        places = torch.arange(first, first + lines.shape[1], device=lines.device)
        scores = []
        for layer, heads in self._followed.items():
            queries = texts.queries[layer][places, lines.long()].permute(0, 2, 1, 3)
            keys = sound.keys[layer][slots[:, None], heads].whole(self.dtype)
            scores.append((queries * queries.shape[-1] ** -0.5) @ keys.transpose(2, 3))
        return torch.cat(scores, 1).float()


def _joined(heads: Tensor) -> Tensor:
    """``(slices, heads, length, head width)`` to ``(slices, length, width)``."""
    return heads.transpose(1, 2).flatten(2)


def _padded(embeddings: Tensor) -> Tensor:
    return functional.pad(embeddings, (0, 0, 0, -embeddings.shape[0] % _VOCABULARY_MULTIPLE))


def _followed(weights: WhisperWeights, place: Place) -> dict[int, Tensor]:
    """The heads of each layer that follow the sound, by layer."""
    layers = sorted({layer for layer, _ in weights.alignment_heads})
    return {
        layer: torch.tensor([head for at, head in weights.alignment_heads if at == layer], device=place.device)
        for layer in layers
    }


def _layer(weights: WhisperWeights, place: Place, name: str) -> _Layer:
    def norm(part: str) -> Pair:
        return pair_of(weights, place, f"{name}/{part}/layer_norm", "gamma", "beta")

    def linear(part: str) -> Linear:
        return linear_of(weights, place, f"{name}/{part}")

    return _Layer(
        text_norm=norm("self_attention"),
        text_project=linear("self_attention/linear_0"),
        text_out=linear("self_attention/linear_1"),
        sound_norm=norm("attention"),
        sound_query=linear("attention/linear_0"),
        sound_out=linear("attention/linear_2"),
        ffn_norm=norm("ffn"),
        widen=linear("ffn/linear_0"),
        narrow=linear("ffn/linear_1"),
    )
