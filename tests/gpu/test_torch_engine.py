"""The PyTorch engine's parts against each other and against the CPU engine's; on a GPU where there is one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU tests need PyTorch")

from bench.gpu.shapes import Shape, random_weights  # noqa: E402
from pipeline.engines import torch_ops  # noqa: E402
from pipeline.engines.alignment import token_starts  # noqa: E402
from pipeline.engines.beam_search import Rules, Text, search  # noqa: E402
from pipeline.engines.mark_tokens import MarkTokens  # noqa: E402
from pipeline.engines.torch_alignment import starts  # noqa: E402
from pipeline.engines.torch_decoder import Decoder  # noqa: E402
from pipeline.engines.torch_encoder import SoundMemory  # noqa: E402
from pipeline.engines.torch_packing import Place  # noqa: E402
from pipeline.engines.torch_search import BeamSearch, Written  # noqa: E402
from pipeline.engines.torch_stepping import HostSteps  # noqa: E402
from pipeline.engines.torch_texts import new_texts  # noqa: E402

pytestmark = pytest.mark.gpu

_TINY = Shape(128, 1, 2, 80, 51_865, ((0, 1), (1, 0)))
_MARKS = MarkTokens(tuple(range(20_000)), tuple(range(30_000, 50_000)))
"""Random weights seldom write the real ones."""
_PROMPTS = [[50258, 50260, 50359, 50363], [50361, 1000, 2000, 50258, 50260, 50359, 50363], [50258, 50260, 50359, 50363]]


@pytest.fixture
def device() -> Any:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def cuda() -> Any:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device("cuda")


class _Listened:
    """A tiny decoder before the noise of three slices; ``end`` is made likely, so that texts end."""

    def __init__(self, device: Any, beam: int, seed: int, *, is_int8: bool = False) -> None:
        torch.manual_seed(seed)
        self.weights = random_weights(_TINY)
        place = Place(device, torch.float32, is_int8=is_int8)
        self.decoder = Decoder(self.weights, place, torch_ops)
        self.sound = SoundMemory(self.weights, place, 3)
        encoded = torch.randn(3, 1500, 128, generator=torch.Generator().manual_seed(seed)) * 3
        self.sound.fill(torch.arange(3, device=device), encoded.to(device))
        self.texts = new_texts(self.weights, place, 3, beam)
        self.end = self.likely_token()

    def read(self, limit: int) -> Any:
        self.texts.begin(3, [1500, 700, 60], [len(prompt) for prompt in _PROMPTS], limit)
        longest = max(map(len, _PROMPTS))
        padded = [[0] * (longest - len(prompt)) + prompt for prompt in _PROMPTS]
        return self.decoder.read(self.texts, self.sound, torch.tensor(padded, device=self.texts.lines.device), 4)

    def likely_token(self) -> int:
        """A token that is common in what this decoder writes: taken for the end, it ends texts at many lengths."""
        states = self.read(12)
        written = BeamSearch(self.decoder, torch_ops, self.texts, self.sound, -1, _MARKS).run(
            self.decoder.logits(states[:, -1])
        )
        return int(written.tokens[0, 5])

    def on_device(self, limit: int) -> Written:
        states = self.read(limit)
        running = BeamSearch(self.decoder, torch_ops, self.texts, self.sound, self.end, _MARKS)
        return running.run(self.decoder.logits(states[:, -1]))

    def on_host(self, limit: int) -> list[Text]:
        states = self.read(limit)
        steps = HostSteps(self.decoder, torch_ops, self.texts, self.sound, self.weights.vocabulary)
        return search(steps, steps.first(states[:, -1]), Rules(self.texts.beam, self.end, limit, marks=_MARKS))


@pytest.mark.parametrize(
    ("beam", "limit", "seed", "is_int8"), [*product((1, 3, 5), (1, 9, 40), (1, 2), (False,)), (3, 9, 1, True)]
)
def test_the_search_on_the_device_finds_the_texts_of_the_search_on_the_host(
    device: Any, beam: int, limit: int, seed: int, is_int8: bool
) -> None:
    with torch.inference_mode():
        listened = _Listened(device, beam, seed, is_int8=is_int8)
        written, texts = listened.on_device(limit), listened.on_host(limit)
    for at, text in enumerate(texts):
        length = int(written.lengths[at])
        assert tuple(written.tokens[at, :length].tolist()) == text.tokens
        assert float(written.totals[at]) == pytest.approx(text.logprob, abs=1e-3)
        assert written.logprobs[at, :length].exp().tolist() == pytest.approx(list(text.probabilities), abs=1e-4)
        ends = length + (not written.is_cut[at])
        assert written.marks[at, :ends].flatten().tolist() == pytest.approx(np.ravel(text.marks).tolist(), abs=1e-3)
        assert bool(written.is_cut[at]) == (len(text.attention) == len(text.tokens))


def test_the_queries_that_were_kept_give_the_attention_of_each_step(device: Any) -> None:
    with torch.inference_mode():
        listened = _Listened(device, 3, 1)
        written = listened.on_device(24)
        first = listened.texts.prompt_length - 1
        slots = torch.arange(3, device=device)
        lines = written.lines[:, first : first + int(written.lengths.max())]
        steps = HostSteps(listened.decoder, torch_ops, listened.texts, listened.sound, listened.weights.vocabulary)
        listened.texts.frames[:3] = torch.tensor([1500, 700, 60], device=device, dtype=torch.int32)
        kept = steps.attention(slots, lines, first).cpu().numpy()
        texts = listened.on_host(24)
    for at, text in enumerate(texts):
        length = len(text.tokens)
        assert np.abs(kept[at, :, :length].swapaxes(0, 1) - text.attention[:length]).max() < 2e-3


def test_tokens_of_many_slices_begin_where_those_of_each_slice_alone_do(device: Any) -> None:
    rows, frames = [1, 30, 12, 7], [200, 170, 3, 64]
    scores = torch.randn(4, 3, 30, 200, generator=torch.Generator().manual_seed(3)) * 3
    counted = [torch.tensor(of, device=device) for of in (rows, frames)]
    found = starts(scores.to(device), counted[0], counted[1], torch_ops)
    for at, (row, frame) in enumerate(zip(rows, frames, strict=True)):
        weights = scores[at, :, :row].softmax(-1).permute(1, 0, 2).numpy()
        assert found[at, :row].tolist() == token_starts(weights, frame).tolist()


def test_the_kernels_of_a_gpu_do_what_the_functions_of_pytorch_do(cuda: Any) -> None:
    from bench.gpu import selftest

    assert cuda.type == "cuda"
    attention = selftest.text_attention, selftest.sound_attention
    for check in (selftest.norms, selftest.products, *attention, selftest.tokens, selftest.search):
        with torch.inference_mode():
            check()


def test_a_slice_has_the_text_and_the_numbers_that_it_has_alone_in_every_batch(cuda: Any) -> None:
    from bench.gpu import selftest

    assert cuda.type == "cuda"
    with torch.inference_mode():
        selftest.same_in_every_batch()
