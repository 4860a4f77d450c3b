"""``model.bin`` as CTranslate2 writes it: what is read of it, what is assumed without it, what is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.engines.whisper_weights import WhisperWeights, load_weights
from pipeline.errors import UsageError

TYPES = {np.dtype(np.float32): 0, np.dtype(np.int8): 1, np.dtype(np.int16): 2, np.dtype(np.float16): 4}
CONFIG = {"suppress_ids": [1, 2, 50_258], "suppress_ids_begin": [220, 50_257], "alignment_heads": [[3, 1], [2, 0]]}
EMBEDDINGS = "decoder/embeddings/weight"


def arrays(vocabulary: int = 51_865, layers: int = 4, kind: type = np.float16) -> dict[str, np.ndarray]:
    made: dict[str, np.ndarray] = {
        EMBEDDINGS: np.arange(vocabulary * 2).reshape(vocabulary, 2) % 999,
        "encoder/conv1/weight": np.ones((2, 80, 3)),
        "encoder/position_encodings/encodings": np.ones((1_500, 2)),
        "decoder/position_encodings/encodings": np.ones((448, 2)),
    }
    made |= {f"encoder/layer_{at}/ffn/linear_0/weight": np.ones((8, 2)) for at in range(2)}
    made |= {f"decoder/layer_{at}/ffn/linear_0/weight": np.ones((8, 2)) for at in range(layers)}
    return {name: array.astype(kind) for name, array in made.items()} | {"decoder/num_heads": np.array(2, np.int8)}


def text(value: str) -> bytes:
    data = value.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def variable(name: str, array: np.ndarray) -> bytes:
    shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
    return text(name) + shape + struct.pack("<BI", TYPES[array.dtype], array.nbytes) + array.tobytes()


def model(
    folder: Path,
    content: Mapping[str, np.ndarray],
    config: Mapping[str, Any] = CONFIG,
    others: Mapping[str, str] | None = None,
    version: int = 6,
) -> Path:
    head = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<I", 3)
    body = struct.pack("<I", len(content)) + b"".join(variable(name, array) for name, array in content.items())
    tail = struct.pack("<I", len(others or {})) + b"".join(
        text(name) + text(same) for name, same in (others or {}).items()
    )
    (folder / "model.bin").write_bytes(head + body + tail)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def loaded(folder: Path, content: Mapping[str, np.ndarray] | None = None, **more: Any) -> WhisperWeights:
    return load_weights(model(folder, content or arrays(), **more))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_arrays_come_back_as_float32_whatever_they_are_stored_as(tmp_path: Path, kind: type) -> None:
    content = arrays(kind=kind)
    weights = loaded(tmp_path, content)
    assert weights[EMBEDDINGS].dtype == np.float32
    assert np.array_equal(weights[EMBEDDINGS], content[EMBEDDINGS].astype(np.float32))


def test_the_shape_of_the_model_is_read_from_its_arrays(tmp_path: Path) -> None:
    weights = loaded(tmp_path)
    assert (weights.heads, weights.width, weights.mels, weights.frames, weights.context_tokens) == (2, 2, 80, 1500, 448)
    assert (weights.encoder_layers, weights.decoder_layers, weights.vocabulary) == (2, 4, 51_865)


def test_an_array_that_is_written_once_is_found_by_its_other_names(tmp_path: Path) -> None:
    weights = loaded(tmp_path, others={"decoder/projection/weight": EMBEDDINGS})
    assert np.array_equal(weights["decoder/projection/weight"], weights[EMBEDDINGS])
    assert weights.output == EMBEDDINGS


def test_an_output_that_was_trained_apart_from_the_embeddings_is_used(tmp_path: Path) -> None:
    content = arrays() | {"decoder/projection/weight": np.ones((51_865, 2), np.float16)}
    assert loaded(tmp_path, content).output == "decoder/projection/weight"


@pytest.mark.parametrize(("vocabulary", "end", "multilingual"), [(51_864, 50_256, False), (51_866, 50_257, True)])
def test_no_special_token_but_the_end_is_ever_written(
    tmp_path: Path, vocabulary: int, end: int, multilingual: bool
) -> None:
    weights = loaded(tmp_path, arrays(vocabulary))
    assert (weights.end, weights.is_multilingual) == (end, multilingual)
    assert set(weights.suppressed) == {1, 2, *range(end + 1, vocabulary)}
    assert weights.suppressed_first == (220, 50_257)


def test_the_heads_that_follow_the_sound_are_ordered_by_layer(tmp_path: Path) -> None:
    assert loaded(tmp_path).alignment_heads == ((2, 0), (3, 1))


@pytest.mark.parametrize("config", [{}, {"alignment_heads": None, "suppress_ids": None}])
def test_a_fine_tune_that_names_no_heads_uses_the_upper_half_of_the_decoder(
    tmp_path: Path, config: dict[str, None]
) -> None:
    weights = loaded(tmp_path, config=config)
    assert weights.alignment_heads == ((2, 0), (2, 1), (3, 0), (3, 1))
    assert weights.suppressed_first == ()


def test_of_many_layers_not_every_head_is_used(tmp_path: Path) -> None:
    heads = loaded(tmp_path, arrays(layers=80), config={}).alignment_heads
    assert 16 <= len(heads) <= 32
    assert {layer for layer, _ in heads} <= set(range(40, 80))


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_quantized_weights_are_refused_with_a_remedy(tmp_path: Path, kind: type) -> None:
    with pytest.raises(UsageError, match=r"faster-whisper, or convert .* float16"):
        loaded(tmp_path, arrays() | {EMBEDDINGS: np.ones((4, 2), kind)})


def test_another_version_of_the_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="version 5"):
        loaded(tmp_path, version=5)


def test_a_file_that_breaks_off_is_refused(tmp_path: Path) -> None:
    file = model(tmp_path, arrays()) / "model.bin"
    whole = file.read_bytes()
    for size in (0, 3, 40, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(UsageError, match="not a CTranslate2 Whisper model"):
            load_weights(tmp_path)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a CTranslate2 Whisper model"):
        load_weights(tmp_path)


def test_a_model_that_is_not_whisper_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a CTranslate2 Whisper model"):
        loaded(tmp_path, {"encoder/embeddings/weight": np.ones((4, 2), np.float32)})
