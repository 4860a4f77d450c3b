"""Whisper's weights out of a CTranslate2 folder, for engines that compute with them elsewhere.

``model.bin`` is read as CTranslate2 4 writes it (binary version 6): a list of named arrays, little-endian.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import UsageError

Array = npt.NDArray[np.float32]

_BINARY_VERSION = 6
_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
_QUANTIZED = (np.dtype(np.int8), np.dtype(np.int16))


@dataclass(frozen=True, slots=True)
class WhisperWeights:
    """The arrays, as float32, and what must be known beside them."""

    arrays: Mapping[str, Array]
    heads: int
    encoder_layers: int
    decoder_layers: int
    width: int
    """Of the model's states, in numbers."""
    mels: int
    vocabulary: int
    """Tokens, special ones included."""
    frames: int
    """Encoder positions of 20 ms: 1,500 in 30 s."""
    context_tokens: int
    """The longest text, prompt included."""
    suppressed: tuple[int, ...]
    """Tokens that are never written."""
    suppressed_first: tuple[int, ...]
    """Tokens that are not written first."""
    alignment_heads: tuple[tuple[int, int], ...]
    """(layer, head) of the decoder's cross-attention that follow the sound."""

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


def load_weights(folder: Path) -> WhisperWeights:
    """Read ``model.bin`` and ``config.json``. Raises UsageError for weights that are quantized or no Whisper model."""
    try:
        arrays = dict(_arrays((folder / "model.bin").read_bytes()))
        config = json.loads((folder / "config.json").read_text())
        return _described(arrays, config)
    except (OSError, KeyError, ValueError, struct.error) as error:
        raise UsageError(f"{folder}: not a CTranslate2 Whisper model that can be read here ({error})") from error


def _described(arrays: Mapping[str, Array], config: Mapping[str, Any]) -> WhisperWeights:
    embeddings = arrays["decoder/embeddings/weight"]
    return WhisperWeights(
        arrays=arrays,
        heads=int(arrays["encoder/num_heads"]),
        encoder_layers=_layers(arrays, "encoder"),
        decoder_layers=_layers(arrays, "decoder"),
        width=embeddings.shape[1],
        mels=arrays["encoder/conv1/weight"].shape[1],
        vocabulary=embeddings.shape[0],
        frames=arrays["encoder/position_encodings/encodings"].shape[0],
        context_tokens=arrays["decoder/position_encodings/encodings"].shape[0],
        suppressed=tuple(token for token in config["suppress_ids"] if token >= 0),
        suppressed_first=tuple(token for token in config["suppress_ids_begin"] if token >= 0),
        alignment_heads=tuple((layer, head) for layer, head in config["alignment_heads"]),
    )


def _layers(arrays: Mapping[str, Array], part: str) -> int:
    return len({name.split("/")[1] for name in arrays if name.startswith(f"{part}/layer_") and "/ffn/" in name})


def _arrays(data: bytes) -> Iterator[tuple[str, Array]]:
    reader = _Reader(data)
    (version,) = reader.take("I")
    if version != _BINARY_VERSION:
        raise ValueError(f"model.bin has version {version}, not {_BINARY_VERSION}")
    reader.text()  # the name of the model's class
    reader.take("I")  # its revision
    for _ in range(*reader.take("I")):
        name, array = reader.text(), reader.array()
        if array.ndim and array.dtype in _QUANTIZED:
            raise ValueError(f"its weights are quantized to {array.dtype}; float16 or float32 is needed")
        yield name, array.astype(np.float32)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def text(self) -> str:
        (length,) = self.take("H")
        (raw,) = self.take(f"{length}s")
        return bytes(raw).rstrip(b"\0").decode()

    def array(self) -> npt.NDArray[Any]:
        (rank,) = self.take("B")
        shape = self.take(f"{rank}I")
        kind, size_bytes = self.take("BI")
        array = np.frombuffer(
            self._data, np.dtype(_TYPES[kind]), size_bytes // np.dtype(_TYPES[kind]).itemsize, self._at
        )
        self._at += size_bytes
        return array.reshape(shape)
