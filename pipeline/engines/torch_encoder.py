"""The first half of the PyTorch engine: samples to log-mel features, features to what the decoder looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from pipeline.engines.torch_ops import EPSILON
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.values import SAMPLE_RATE_HZ, Samples

Tensor = Any

_FFT = 400
_HOP = 160
_TAIL = 160
"""Samples of silence after the sound, as faster-whisper adds them."""
_TOGETHER = 32
"""Slices whose spectra are computed at a time: those of 30 s take 20 MB each."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where and in what is computed: a device and a floating type, both PyTorch's."""

    device: Any
    dtype: Any

    def take(self, array: Any) -> Tensor:
        # Some arrays are views of a file that must not be written to; PyTorch wants writable ones.
        return torch.tensor(np.asarray(array)).to(self.device, self.dtype)


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
        """``(slices, mels, frames)``, float32, zero after each sound's end. ``frames`` are of 10 ms."""
        parts = [sounds[at : at + _TOGETHER] for at in range(0, len(sounds), _TOGETHER)]
        return torch.cat([self._together(part, frames) for part in parts])

    def _together(self, sounds: Sequence[Samples], frames: int) -> Tensor:
        heard = torch.tensor([min(frames, (len(sound) + _TAIL) // _HOP) for sound in sounds], device=self._device)
        waves = self._waves(sounds, frames)
        spectra = torch.stft(waves, _FFT, _HOP, window=self._window, center=False, return_complex=True)[:, :, :frames]
        mel = self._filters @ spectra.abs().square()
        silent = torch.arange(frames, device=self._device) >= heard[:, None]
        mel = mel.clamp(min=1e-10).log10().masked_fill(silent[:, None], -torch.inf)
        mel = (torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0) + 4.0) / 4.0
        return mel.masked_fill(silent[:, None], 0.0)

    def _waves(self, sounds: Sequence[Samples], frames: int) -> Tensor:
        """The samples, mirrored at both ends, in rows long enough for ``frames``."""
        size = max(frames * _HOP + _FFT, max(map(len, sounds)) + _TAIL + _FFT)
        waves = torch.zeros(len(sounds), size, pin_memory=self._device.type == "cuda")
        for row, sound in zip(waves, sounds, strict=True):
            reach = _FFT // 2
            end = reach + len(sound)
            row[reach:end] = torch.from_numpy(np.require(sound, requirements="W"))
            first = np.pad(sound[: _FFT + 1], (0, _TAIL))[: _FFT + 1]
            last = np.pad(sound[-_FFT - 1 :], (0, _TAIL))[-_FFT - 1 :]
            row[:reach] = torch.from_numpy(np.pad(first, (reach, 0), mode="reflect")[:reach].copy())
            row[end + _TAIL : end + _TAIL + reach] = torch.from_numpy(
                np.pad(last, (0, reach), mode="reflect")[-reach:].copy()
            )
        return waves.to(self._device, non_blocking=True)


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer: attention and feed-forward, each weight matrix ``(out, in)``."""

    norm: tuple[Tensor, Tensor]
    project: tuple[Tensor, Tensor]
    out: tuple[Tensor, Tensor]
    ffn_norm: tuple[Tensor, Tensor]
    widen: tuple[Tensor, Tensor]
    narrow: tuple[Tensor, Tensor]


class Encoder:
    """Whisper's encoder."""

    def __init__(self, weights: WhisperWeights, place: Place, *, is_compiled: bool) -> None:
        """``is_compiled``: through torch.compile, which takes a minute once and saves a fifth of the time."""
        pair = _pairs(weights, place)
        self._heads, self._dtype = weights.heads, place.dtype
        self._convolutions = [pair("encoder/conv1", "weight", "bias"), pair("encoder/conv2", "weight", "bias")]
        self._positions = place.take(weights["encoder/position_encodings/encodings"])
        self._layers = [_layer(pair, f"encoder/layer_{at}") for at in range(weights.encoder_layers)]
        self._norm = pair("encoder/layer_norm", "gamma", "beta")
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
            x = x + functional.linear(
                functional.gelu(functional.linear(_normal(x, layer.ffn_norm), *layer.widen)), *layer.narrow
            )
        return _normal(x, self._norm)

    def _attended(self, x: Tensor, layer: _Layer) -> Tensor:
        slices, frames, width = x.shape
        projected = functional.linear(_normal(x, layer.norm), *layer.project)
        query, key, value = projected.view(slices, frames, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return functional.linear(mixed.transpose(1, 2).reshape(slices, frames, width), *layer.out)


class SoundMemory:
    """Keys and values of every decoder layer over the sound of ``slots`` slices, ``(slots, heads, frames, width)``."""

    def __init__(self, weights: WhisperWeights, place: Place, slots: int) -> None:
        pair = _pairs(weights, place)
        self._heads = weights.heads
        self.slots = slots
        self._project = [
            pair(f"decoder/layer_{at}/attention/linear_1", "weight", "bias") for at in range(weights.decoder_layers)
        ]
        # A multiple of 16, which attention with a mask wants.
        frames = -(-weights.frames // 16) * 16
        shape = (weights.decoder_layers, slots, weights.heads, frames, weights.width // weights.heads)
        self.keys, self.values = (torch.zeros(shape, device=place.device, dtype=place.dtype) for _ in range(2))

    def fill(self, slots: Tensor, encoded: Tensor) -> None:
        """Put the encoder's output ``(n, frames, width)`` into the slots ``(n,)``."""
        slices, frames, _ = encoded.shape
        for layer, project in enumerate(self._project):
            both = functional.linear(encoded, *project).view(slices, frames, 2, self._heads, -1).permute(2, 0, 3, 1, 4)
            self.keys[layer, :, :, :frames].index_copy_(0, slots, both[0])
            self.values[layer, :, :, :frames].index_copy_(0, slots, both[1])


def _normal(x: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
    return functional.layer_norm(x, (x.shape[-1],), *norm, EPSILON)


def _pairs(weights: WhisperWeights, place: Place) -> Any:
    """Of a layer's name and those of its two arrays: the arrays."""
    return lambda name, first, second: (place.take(weights[f"{name}/{first}"]), place.take(weights[f"{name}/{second}"]))


def _layer(pair: Any, name: str) -> _Layer:
    return _Layer(
        norm=pair(f"{name}/self_attention/layer_norm", "gamma", "beta"),
        project=pair(f"{name}/self_attention/linear_0", "weight", "bias"),
        out=pair(f"{name}/self_attention/linear_1", "weight", "bias"),
        ffn_norm=pair(f"{name}/ffn/layer_norm", "gamma", "beta"),
        widen=pair(f"{name}/ffn/linear_0", "weight", "bias"),
        narrow=pair(f"{name}/ffn/linear_1", "weight", "bias"),
    )
