"""Numbers in 8 bits: how far off they are, what they save, and that the engine's parts agree over them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the GPU tests need PyTorch")

from bench.gpu.shapes import Shape, random_weights  # noqa: E402
from pipeline.engines import torch_ops  # noqa: E402
from pipeline.engines.torch_decoder import Decoder  # noqa: E402
from pipeline.engines.torch_encoder import Encoder, SoundMemory  # noqa: E402
from pipeline.engines.torch_packing import Packed, Place, packed_of  # noqa: E402
from pipeline.engines.torch_texts import new_texts  # noqa: E402

pytestmark = pytest.mark.gpu

_TINY = Shape(128, 2, 2, 80, 51_865, ((0, 1), (1, 0)))


def a_place(*, is_int8: bool) -> Place:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Place(device, torch.float16 if device.type == "cuda" else torch.float32, is_int8=is_int8)


def random(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_each_number_is_off_by_half_a_step_of_its_vector_s_largest(dtype: Any) -> None:
    vectors = (random(300, 64) * torch.logspace(-3, 2, 300)[:, None]).to(dtype)
    vectors[7] = 0.0
    packed = packed_of(vectors)
    step = vectors.float().abs().amax(-1, keepdim=True) / 127
    off = (packed.whole(torch.float32) - vectors.float()).abs()
    # The scale and the quotient are rounded to the type, too: a bfloat16 has 8 bits itself.
    allowed = {torch.float32: 0.501, torch.float16: 0.56, torch.bfloat16: 1.3}[dtype]
    assert (off <= allowed * step).all()
    assert packed.numbers.dtype is torch.int8
    assert (packed.numbers[7] == 0).all()


def test_vectors_are_put_where_they_are_asked_for_and_come_back() -> None:
    room = Place(torch.device("cpu"), torch.float32, is_int8=True).zeros(3, 4, 8)
    vectors = random(2, 2, 8)
    room.put((torch.tensor([2, 0]), slice(1, 3)), vectors)
    back = room[torch.tensor([2, 0]), 1:3].whole(torch.float32)
    assert (back - vectors).abs().max() <= vectors.abs().max() / 127
    assert (room[1].whole(torch.float32) == 0).all()


def size_bytes(*packed: Packed) -> int:
    tensors = [tensor for one in packed for tensor in (one.numbers, one.scales) if tensor is not None]
    return sum(tensor.numel() * tensor.itemsize for tensor in tensors)


def test_sound_texts_and_vocabulary_take_half_the_memory_in_8_bits() -> None:
    weights = random_weights(_TINY)
    found = {}
    for is_int8 in (False, True):
        place = a_place(is_int8=is_int8)
        sound, texts = SoundMemory(weights, place, 3), new_texts(weights, place, 3, 5)
        decoder = Decoder(weights, place, torch_ops)
        kept = (sound.keys, sound.values, texts.keys, texts.values, decoder._output)
        found[is_int8] = size_bytes(*kept)
        assert place.kept_bytes == kept[0].numbers.itemsize
    assert found[True] < 0.52 * found[False]


def test_an_encoder_in_8_bits_is_hardly_off() -> None:
    weights, mel = random_weights(_TINY), random(4, 80, 400)
    whole, small = (Encoder(weights, a_place(is_int8=is_int8), is_compiled=False) for is_int8 in (False, True))
    with torch.inference_mode():
        right, found = (one(mel.to(a_place(is_int8=False).device)).float() for one in (whole, small))
    assert 0 < (found - right).norm() / right.norm() < 0.1
