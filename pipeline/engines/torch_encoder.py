"""The first half of the PyTorch engine: samples to log-mel features, features to what the decoder looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from pipeline.engines.torch_ops import EPSILON
from pipeline.engines.torch_packing import Packed, Place
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.values import SAMPLE_RATE_HZ, Samples

Tensor = Any
Pair = tuple[Tensor, Tensor]

_FFT = 400
_HOP = 160
_TAIL = 160
"""Samples of silence after the sound, as faster-whisper adds them."""
ENCODED_TOGETHER = 4
"""Slices that are encoded at a time, never more nor fewer: libraries choose their algorithms, which round otherwise, by
the size of what they are given. So a slice is the same in every batch."""
_SILENCE = np.zeros(0, np.float32)


class LogMel:
    """faster-whisper's ``FeatureExtractor`` for many slices at once, in float32."""

    def __init__(self, mels: int, place: Place) -> None:
        # Imported here: it takes a second and is not needed to plan, export or look.
        from faster_whisper.feature_extractor import FeatureExtractor

        filters = FeatureExtractor.get_mel_filters(SAMPLE_RATE_HZ, _FFT, n_mels=mels)
        self._device = place.device
        self._filters = torch.tensor(filters.astype(np.float32), device=place.device)
        self._window = torch.hann_window(_FFT, device=place.device)

    def __call__(self, sounds: Sequence[Samples], frames: int) -> Tensor:
        """``(ENCODED_TOGETHER, mels, frames)``, float32, zero after each sound's end. ``frames`` are of 10 ms."""
        sounds = [*sounds, *[_SILENCE] * (ENCODED_TOGETHER - len(sounds))]
        heard = self._sent(torch.tensor([min(frames, (len(sound) + _TAIL) // _HOP) for sound in sounds]))
        waves = self._waves(sounds, frames)
        spectra = torch.stft(waves, _FFT, _HOP, window=self._window, center=False, return_complex=True)[:, :, :frames]
        mel = self._filters @ spectra.abs().square()
        silent = torch.arange(frames, device=self._device) >= heard[:, None]
        mel = mel.clamp(min=1e-10).log10().masked_fill(silent[:, None], -torch.inf)
        mel = (torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0) + 4.0) / 4.0
        return mel.masked_fill(silent[:, None], 0.0)

    def _waves(self, sounds: Sequence[Samples], frames: int) -> Tensor:
        """The samples, mirrored at both ends, in rows long enough for ``frames``."""
        size = max(frames * _HOP, *map(len, sounds)) + _TAIL + _FFT
        waves = torch.empty(len(sounds), size, pin_memory=self._device.type == "cuda")
        for row, sound in zip(waves, sounds, strict=True):
            reach = _FFT // 2
            end = reach + len(sound)
            row[reach:end] = torch.from_numpy(np.require(sound, requirements="W"))
            row[end:] = 0.0
            first = np.pad(sound[: _FFT + 1], (0, _TAIL))[: _FFT + 1]
            last = np.pad(sound[-_FFT - 1 :], (0, _TAIL))[-_FFT - 1 :]
            row[:reach] = torch.from_numpy(np.pad(first, (reach, 0), mode="reflect")[:reach].copy())
            row[end + _TAIL : end + _TAIL + reach] = torch.from_numpy(
                np.pad(last, (0, reach), mode="reflect")[-reach:].copy()
            )
        return self._sent(waves)

    def _sent(self, tensor: Tensor) -> Tensor:
        """On the device, without waiting for what it has to do before."""
        if self._device.type == "cuda" and not tensor.is_pinned():
            tensor = tensor.pin_memory()
        return tensor.to(self._device, non_blocking=True)


@dataclass(frozen=True, slots=True)
class Linear:
    """A weight matrix ``(out, in)`` and what is added."""

    weight: Packed
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.whole(x.dtype), self.bias)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer: attention and feed-forward."""

    norm: Pair
    project: Linear
    out: Linear
    ffn_norm: Pair
    widen: Linear
    narrow: Linear


class Encoder:
    """Whisper's encoder."""

    def __init__(self, weights: WhisperWeights, place: Place, *, is_compiled: bool) -> None:
        """``is_compiled``: through torch.compile, which takes a minute once and saves a fifth of the time."""
        self._heads, self._dtype = weights.heads, place.dtype
        self._convolutions = [pair_of(weights, place, f"encoder/conv{at}", "weight", "bias") for at in (1, 2)]
        self._positions = place.take(weights["encoder/position_encodings/encodings"])
        self._layers = [_layer(weights, place, f"encoder/layer_{at}") for at in range(weights.encoder_layers)]
        self._norm = pair_of(weights, place, "encoder/layer_norm", "gamma", "beta")
        self._run = torch.compile(self._encode, dynamic=True) if is_compiled else self._encode

    def __call__(self, mel: Tensor) -> Tensor:
        """``(slices, mels, frames of 10 ms)`` to ``(slices, frames / 2, width)``."""
        return self._run(mel.to(self._dtype))

    def _encode(self, mel: Tensor) -> Tensor:
        first, second = self._convolutions
        x = functional.gelu(functional.conv1d(mel, *first, padding=1))
        x = functional.gelu(functional.conv1d(x, *second, stride=2, padding=1)).transpose(1, 2)
        x = x + self._positions[: x.shape[1]]
        for layer in self._layers:
            x = x + self._attended(x, layer)
            x = x + layer.narrow(functional.gelu(layer.widen(_normal(x, layer.ffn_norm))))
        return _normal(x, self._norm)

    def _attended(self, x: Tensor, layer: _Layer) -> Tensor:
        slices, frames, width = x.shape
        projected = layer.project(_normal(x, layer.norm))
        query, key, value = projected.view(slices, frames, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return layer.out(mixed.transpose(1, 2).reshape(slices, frames, width))


class SoundMemory:
    """Keys and values of every decoder layer over the sound of ``slots`` slices, ``(slots, heads, frames, width)``."""

    def __init__(self, weights: WhisperWeights, place: Place, slots: int) -> None:
        self._heads = weights.heads
        self.slots = slots
        self._project = [
            linear_of(weights, place, f"decoder/layer_{at}/attention/linear_1") for at in range(weights.decoder_layers)
        ]
        # A multiple of 16, which attention with a mask wants.
        frames = -(-weights.frames // 16) * 16
        shape = (weights.decoder_layers, slots, weights.heads, frames, weights.width // weights.heads)
        self.keys, self.values = place.zeros(*shape), place.zeros(*shape)

    def fill(self, slots: Tensor, encoded: Tensor) -> None:
        """Put the encoder's output ``(n or more, frames, width)`` into the slots ``(n,)``."""
        slices, frames, _ = encoded.shape
        for layer, project in enumerate(self._project):
            both = project(encoded).view(slices, frames, 2, self._heads, -1).permute(2, 0, 3, 1, 4)
            for kept, new in zip((self.keys, self.values), both[:, : len(slots)], strict=True):
                kept[layer, :, :, :frames].put(slots, new)


def _normal(x: Tensor, norm: Pair) -> Tensor:
    return functional.layer_norm(x, (x.shape[-1],), *norm, EPSILON)


def pair_of(weights: WhisperWeights, place: Place, name: str, first: str, second: str) -> Pair:
    """The two arrays of a part of the model, by its name and theirs."""
    return place.take(weights[f"{name}/{first}"]), place.take(weights[f"{name}/{second}"])


def linear_of(weights: WhisperWeights, place: Place, name: str) -> Linear:
    weight, bias = pair_of(weights, place, name, "weight", "bias")
    return Linear(place.pack(weight), bias)


def _layer(weights: WhisperWeights, place: Place, name: str) -> _Layer:
    return _Layer(
        norm=pair_of(weights, place, f"{name}/self_attention/layer_norm", "gamma", "beta"),
        project=linear_of(weights, place, f"{name}/self_attention/linear_0"),
        out=linear_of(weights, place, f"{name}/self_attention/linear_1"),
        ffn_norm=pair_of(weights, place, f"{name}/ffn/layer_norm", "gamma", "beta"),
        widen=linear_of(weights, place, f"{name}/ffn/linear_0"),
        narrow=linear_of(weights, place, f"{name}/ffn/linear_1"),
    )
