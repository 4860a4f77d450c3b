"""Whisper models of any shape with random weights: their speed is a real one's, their text is not.

``write_model`` makes a CTranslate2 folder of them, so that both engines compute with the same numbers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pipeline.engines.whisper_weights import WhisperWeights

Array = npt.NDArray[Any]

_BINARY_VERSION = 6
_TYPES = {np.dtype(np.float32): 0, np.dtype(np.int8): 1, np.dtype(np.int16): 2, np.dtype(np.float16): 4}
_HEAD_WIDTH = 64
_END = 50_257


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a Whisper model; heads are 64 wide."""

    width: int
    encoder_layers: int
    decoder_layers: int
    mels: int
    vocabulary: int
    alignment_heads: tuple[tuple[int, int], ...]


SHAPES = {
    "base": Shape(512, 6, 6, 80, 51_865, ((3, 1), (4, 2), (4, 3), (4, 7), (5, 1), (5, 2), (5, 4), (5, 6))),
    "turbo": Shape(1280, 32, 4, 128, 51_866, ((2, 4), (2, 11), (3, 3), (3, 6), (3, 11), (3, 14))),
    "large-v3": Shape(
        1280, 32, 32, 128, 51_866,
        ((7, 0), (10, 17), (12, 18), (13, 12), (16, 1), (17, 14), (19, 11), (21, 4), (24, 1), (25, 6)),
    ),
}  # fmt: skip
"""The shapes that OpenAI published, with the heads that follow the sound."""


def random_weights(shape: Shape) -> WhisperWeights:
    """Weights in memory, the same ones each time."""
    return WhisperWeights(
        arrays=dict(_arrays(shape)),
        heads=shape.width // _HEAD_WIDTH,
        encoder_layers=shape.encoder_layers,
        decoder_layers=shape.decoder_layers,
        width=shape.width,
        mels=shape.mels,
        vocabulary=shape.vocabulary,
        frames=1500,
        context_tokens=448,
        end=_END,
        suppressed=tuple(range(_END + 1, shape.vocabulary)),
        suppressed_first=(220, _END),
        alignment_heads=shape.alignment_heads,
    )


def write_model(shape: Shape, folder: Path) -> None:
    """``model.bin`` and ``config.json`` of random weights; the tokenizer is to be put beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = dict(_arrays(shape))
    with (folder / "model.bin").open("wb") as file:
        file.write(struct.pack("<I", _BINARY_VERSION) + _text("WhisperSpec") + struct.pack("<I", 3))
        file.write(struct.pack("<I", len(arrays)))
        for name, array in arrays.items():
            _write(file, name, array)
        file.write(struct.pack("<I", 1) + _text("decoder/projection/weight") + _text("decoder/embeddings/weight"))
    config = {
        "suppress_ids": [],
        "suppress_ids_begin": [220, _END],
        "lang_ids": list(range(50_259, 50_358 + (shape.vocabulary > 51_865))),
        "alignment_heads": [list(pair) for pair in shape.alignment_heads],
    }
    (folder / "config.json").write_text(json.dumps(config))


def _text(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return struct.pack("<H", len(raw)) + raw


def _write(file: BinaryIO, name: str, array: Array) -> None:
    file.write(_text(name) + struct.pack("<B", array.ndim))
    file.write(b"".join(struct.pack("<I", size) for size in array.shape))
    file.write(struct.pack("<BI", _TYPES[array.dtype], array.nbytes))
    file.write(array.tobytes())


def _arrays(shape: Shape) -> Iterator[tuple[str, Array]]:
    """Half precision, each matrix cut from one block of noise: a billion random numbers would take a minute.

    The block's size is a prime number, or rows of the vocabulary would be equal.
    """
    noise = np.random.default_rng(1).standard_normal(1_048_583, np.float32)
    width, wide = shape.width, 4 * shape.width

    def matrix(*size: int) -> Array:
        scale = (1.0 / np.sqrt(np.prod(size[1:]))).astype(np.float32)
        return np.resize((noise * scale).astype(np.float16), size)

    def linear(name: str, out: int, into: int) -> Iterator[tuple[str, Array]]:
        yield f"{name}/weight", matrix(out, into)
        yield f"{name}/bias", np.zeros(out, np.float16)

    def norm(name: str) -> Iterator[tuple[str, Array]]:
        yield f"{name}/gamma", np.ones(width, np.float16)
        yield f"{name}/beta", np.zeros(width, np.float16)

    for part, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        yield f"{part}/num_heads", np.array(width // _HEAD_WIDTH, np.int16)
        yield f"{part}/position_encodings/encodings", matrix(1500 if part == "encoder" else 448, width)
        yield from norm(f"{part}/layer_norm")
        for layer in range(layers):
            name = f"{part}/layer_{layer}"
            yield from norm(f"{name}/self_attention/layer_norm")
            yield from linear(f"{name}/self_attention/linear_0", 3 * width, width)
            yield from linear(f"{name}/self_attention/linear_1", width, width)
            if part == "decoder":
                yield from norm(f"{name}/attention/layer_norm")
                for at, out in enumerate((width, 2 * width, width)):
                    yield from linear(f"{name}/attention/linear_{at}", out, width)
            yield from norm(f"{name}/ffn/layer_norm")
            yield from linear(f"{name}/ffn/linear_0", wide, width)
            yield from linear(f"{name}/ffn/linear_1", width, wide)
    yield "encoder/conv1/weight", matrix(width, shape.mels, 3)
    yield "encoder/conv1/bias", np.zeros(width, np.float16)
    yield "encoder/conv2/weight", matrix(width, width, 3)
    yield "encoder/conv2/bias", np.zeros(width, np.float16)
    yield "decoder/embeddings/weight", matrix(shape.vocabulary, width)
    yield "decoder/alignment_heads", np.array(1, np.int16)
    yield "decoder/alignment_layer", np.array(-1, np.int16)
    for name, value in (("activation", 3), ("alibi", 0), ("pre_norm", 1)):
        yield f"decoder/{name}", np.array(value, np.int8)
    for name in ("scale_embeddings", "start_from_zero_embedding"):
        yield f"decoder/{name}", np.array(0, np.int8)


def random_folder(name: str, tokenizer_of: Path, root: Path = Path("/tmp")) -> Path:
    """A folder with random weights of a shape, written once, and the tokenizer of another model."""
    folder = root / f"whisper-random-{name}"
    if not (folder / "vocabulary.txt").is_file():
        write_model(SHAPES[name], folder)
        for file in ("tokenizer.json", "vocabulary.txt"):
            (folder / file).write_bytes((tokenizer_of / file).read_bytes())
        _fill_vocabulary(folder / "vocabulary.txt", SHAPES[name].vocabulary)
        # faster-whisper takes the number of mels from here, and 80 without it.
        (folder / "preprocessor_config.json").write_text(json.dumps({"feature_size": SHAPES[name].mels}))
    return folder


def _fill_vocabulary(path: Path, size: int) -> None:
    """CTranslate2 wants as many lines as the model has tokens; large-v3 has one more than the others."""
    lines = path.read_text("utf-8").split("\n")
    lines = lines[:-1] if not lines[-1] else lines
    lines += [f"<|extra{at}|>" for at in range(size - len(lines))]
    path.write_text("\n".join(lines) + "\n", "utf-8")
