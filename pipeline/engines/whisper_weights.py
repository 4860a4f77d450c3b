"""Whisper's weights out of a CTranslate2 folder, for engines that compute with them elsewhere.

``model.bin`` is read as CTranslate2 4 writes it (binary version 6): a list of named arrays, little-endian, and then
other names for some of them, as equal arrays are written once. The file is mapped, not read: an array takes memory
from when it is asked for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
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
_MULTILINGUAL_VOCABULARY = 51_865
"""Tokens of the smallest model that speaks more than English; the others have one less, before the special ones."""
_END = 50_257
_MAX_ASSUMED_HEADS = 32
"""Of a model that does not name those that follow the sound. All of a large one would take 1 MB for each token."""


@dataclass(frozen=True, slots=True)
class WhisperWeights:
    """The arrays, and what must be known beside them."""

    arrays: Mapping[str, npt.NDArray[Any]]
    """As they are stored; take them by ``[]``, as float32."""
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
    end: int
    """The token that ends a text; those above it are special."""
    suppressed: tuple[int, ...]
    """Tokens that are never written: those that the model names, and all special ones but the end."""
    suppressed_first: tuple[int, ...]
    """Tokens that are not written first."""
    alignment_heads: tuple[tuple[int, int], ...]
    """(layer, head) of the decoder's cross-attention that follow the sound."""

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name].astype(np.float32)

    @property
    def is_multilingual(self) -> bool:
        return self.vocabulary >= _MULTILINGUAL_VOCABULARY

    @property
    def output(self) -> str:
        """Name of the matrix that makes logits of the last states: in most models the embeddings."""
        embeddings, output = "decoder/embeddings/weight", "decoder/projection/weight"
        is_apart = output in self.arrays and self.arrays[output] is not self.arrays[embeddings]
        return output if is_apart else embeddings


def load_weights(folder: Path) -> WhisperWeights:
    """Read ``model.bin`` and ``config.json``. Raises UsageError for weights that are quantized or no Whisper model."""
    try:
        arrays = _arrays(np.memmap(folder / "model.bin", np.uint8, "r"))
        config = json.loads((folder / "config.json").read_text())
        return _described(arrays, config)
    except (OSError, KeyError, ValueError, struct.error) as error:
        raise UsageError(f"{folder}: not a CTranslate2 Whisper model that can be read here ({error})") from error


def _described(arrays: Mapping[str, npt.NDArray[Any]], config: Mapping[str, Any]) -> WhisperWeights:
    vocabulary, width = arrays["decoder/embeddings/weight"].shape
    heads, layers = int(arrays["decoder/num_heads"]), _layers(arrays, "decoder")
    end = _END if vocabulary >= _MULTILINGUAL_VOCABULARY else _END - 1
    named = [token for token in config.get("suppress_ids") or () if 0 <= token < end]
    pairs = config.get("alignment_heads") or _upper_heads(layers, heads)
    return WhisperWeights(
        arrays=arrays,
        heads=heads,
        encoder_layers=_layers(arrays, "encoder"),
        decoder_layers=layers,
        width=width,
        mels=arrays["encoder/conv1/weight"].shape[1],
        vocabulary=vocabulary,
        frames=arrays["encoder/position_encodings/encodings"].shape[0],
        context_tokens=arrays["decoder/position_encodings/encodings"].shape[0],
        end=end,
        suppressed=(*named, *range(end + 1, vocabulary)),
        suppressed_first=tuple(token for token in config.get("suppress_ids_begin") or () if token >= 0),
        alignment_heads=tuple(sorted((layer, head) for layer, head in pairs)),
    )


def _upper_heads(layers: int, heads: int) -> list[tuple[int, int]]:
    """Those of the upper half of the decoder, as Whisper itself does where none are named."""
    every = [(layer, head) for layer in range(layers // 2, layers) for head in range(heads)]
    return every[:: -(-len(every) // _MAX_ASSUMED_HEADS)]


def _layers(arrays: Mapping[str, npt.NDArray[Any]], part: str) -> int:
    return len({name.split("/")[1] for name in arrays if name.startswith(f"{part}/layer_") and "/ffn/" in name})


def _arrays(data: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[Any]]:
    reader = _Reader(data)
    (version,) = reader.take("I")
    if version != _BINARY_VERSION:
        raise ValueError(f"model.bin has version {version}, not {_BINARY_VERSION}")
    reader.text()  # the name of the model's class
    reader.take("I")  # its revision
    arrays = dict(reader.named_array() for _ in range(*reader.take("I")))
    others = {reader.text(): reader.text() for _ in range(*reader.take("I"))}
    return arrays | {name: arrays[same] for name, same in others.items()}


class _Reader:
    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data, self._at = data, 0

    def named_array(self) -> tuple[str, npt.NDArray[Any]]:
        name, array = self.text(), self._array()
        if array.ndim and array.dtype in _QUANTIZED:
            raise ValueError(
                f"its weights are quantized to {array.dtype}; choose --engine faster-whisper, or convert the model "
                "with --quantization float16"
            )
        return name, array

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data.data, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def text(self) -> str:
        (length,) = self.take("H")
        (raw,) = self.take(f"{length}s")
        return bytes(raw).rstrip(b"\0").decode()

    def _array(self) -> npt.NDArray[Any]:
        (rank,) = self.take("B")
        shape = self.take(f"{rank}I")
        kind, size_bytes = self.take("BI")
        if kind not in _TYPES:
            raise ValueError(f"an array of type {kind}, not float32 or float16")
        raw = self._data[self._at : self._at + size_bytes]
        self._at += size_bytes
        # Arrays begin anywhere in the file, and numpy does not mind.
        return raw.view(_TYPES[kind]).reshape(shape)
