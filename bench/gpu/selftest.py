"""Whether the PyTorch engine's parts are right on this GPU, and what each takes: ``python3 -m bench.gpu.selftest``.

Needs PyTorch with Triton alone: the weights are random. Every check runs, whatever failed before it; the exit status is
the number of failures.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from bench.gpu.shapes import SHAPES, random_weights
from pipeline.engines import torch_ops, triton_ops
from pipeline.engines.mark_tokens import MarkTokens
from pipeline.engines.torch_alignment import costs, starts
from pipeline.engines.torch_decoder import Decoder
from pipeline.engines.torch_encoder import ENCODED_TOGETHER, Encoder, SoundMemory
from pipeline.engines.torch_packing import Packed, Place, packed_of
from pipeline.engines.torch_search import BeamSearch, capacity_for
from pipeline.engines.torch_texts import new_texts

Tensor = Any

_PLACE = Place(torch.device("cuda"), torch.float16)
_PROMPT = [50258, 50260, 50359, 50363]
_MARKS = MarkTokens((11, 1231), (13, 1543))


def milliseconds(work: Callable[[], object], repeats: int = 20) -> float:
    """The median time of a piece of work on the device."""
    for _ in range(3):
        work()
    times: list[float] = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[repeats // 2]


def off(found: Tensor, right: Tensor) -> float:
    """The relative error; more than 1 where the result is no number."""
    error = float((found.double() - right.double()).norm() / right.double().norm())
    return error if error == error else 9.9


def require(name: str, error: float, allowed: float) -> None:
    print(f"  {name}: error {error:.1e} (allowed {allowed:.0e})")
    if not error <= allowed:
        raise AssertionError(f"{name}: error {error:.1e}")


def random(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, device="cuda") * scale).half()


def packed(vectors: Tensor, *, is_int8: bool) -> tuple[Packed, Packed]:
    """As a kernel gets them, and the same numbers in float32."""
    kept = packed_of(vectors) if is_int8 else Packed(vectors)
    return kept, Packed(kept.whole(torch.float16).float())


def ceilings() -> None:
    """What this card does at best: a large copy, and a large product."""
    print(
        f"  {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {torch.cuda.mem_get_info()[0] >> 30} GiB free"
    )
    source = random(1 << 30)
    target = torch.empty_like(source)
    took = milliseconds(lambda: target.copy_(source))
    print(f"  copy {2 * source.numel() * 2 / took / 1e9:.2f} TB/s")
    left, right = random(8192, 8192), random(8192, 8192)
    print(f"  product {2 * 8192**3 / milliseconds(lambda: left @ right) / 1e9:.0f} TFLOP/s")


def norms() -> None:
    x, change, gamma, beta = random(640, 512), random(640, 512), random(512), random(512)
    right = torch_ops.add_norm(x.double(), change.double(), gamma.double(), beta.double())
    found = triton_ops.add_norm(x, change, gamma, beta)
    require("add_norm", max(map(off, found, right)), 2e-3)
    print(f"  {milliseconds(lambda: triton_ops.add_norm(x, change, gamma, beta)) * 1000:.0f} us")


def products() -> None:
    for rows, width, out, is_int8 in ((640, 512, 1536, False), (640, 2048, 512, False), (3, 512, 512, True)):
        x, bias = random(rows, width), random(out)
        weight, right = packed(random(out, width, scale=width**-0.5), is_int8=is_int8)
        found = triton_ops.linear(x, weight, bias)
        require(f"linear {rows} x {width} x {out}", off(found, torch_ops.linear(x.float(), right, bias.float())), 2e-3)
        took = milliseconds(partial(triton_ops.linear, x, weight, bias))
        theirs = milliseconds(partial(torch_ops.linear, x, weight, bias))
        print(f"  {took * 1000:.0f} us, PyTorch's {theirs * 1000:.0f} us")


def text_attention() -> None:
    for beam, heads, is_int8 in ((5, 8, False), (1, 8, False), (5, 20, False), (5, 8, True)):
        slices, context, position = 128, 448, torch.tensor([150], device="cuda")
        rows = slices * beam
        projected = random(rows, 3 * heads * 64)
        (keys, right_keys), (values, right_values) = (
            packed(random(rows, heads, context, 64), is_int8=is_int8) for _ in range(2)
        )
        lines = torch.randint(0, rows, (rows, context), device="cuda", dtype=torch.int32)
        at = torch.randint(0, 60, (slices,), device="cuda", dtype=torch.int32)
        frames = torch.full((slices,), 1500, device="cuda", dtype=torch.int32)
        given = (lines, at, frames, position, beam)
        right = torch_ops.attend_text(projected.float(), right_keys, right_values, *given)
        found = triton_ops.attend_text(projected, keys, values, *given)
        # What a row has just written is rounded, too.
        require(f"attend_text beam {beam} heads {heads}", off(found, right), 1e-2 if is_int8 else 3e-3)
        took = milliseconds(partial(triton_ops.attend_text, projected, keys, values, *given))
        read = rows * 120 * heads * 64 * 2 * (1 if is_int8 else 2)
        print(f"  {took * 1000:.0f} us, {read / took / 1e9:.2f} TB/s")


def sound_attention() -> None:
    shapes = ((128, 5, 8, False), (128, 1, 8, False), (8, 5, 8, False), (64, 5, 20, False), (128, 5, 8, True))
    for slices, beam, heads, is_int8 in (*shapes, (3, 228, 8, False)):
        query = random(slices * beam, heads * 64)
        (keys, right_keys), (values, right_values) = (
            packed(random(slices, heads, 1504, 64), is_int8=is_int8) for _ in range(2)
        )
        slots = torch.randperm(slices, device="cuda")
        frames = torch.randint(300, 1501, (slices,), device="cuda", dtype=torch.int32)
        frames[::7] = 0
        given = (slots, frames, beam)
        right = torch_ops.attend_sound(query.float(), right_keys, right_values, *given)
        found = triton_ops.attend_sound(query, keys, values, *given)
        require(f"attend_sound {slices} slices, beam {beam}, {heads} heads", off(found, right), 3e-3)
        frames[:] = 1500
        took = milliseconds(partial(triton_ops.attend_sound, query, keys, values, *given))
        read = 2 * keys.numbers.numel() * keys.numbers.itemsize
        print(f"  {took * 1000:.0f} us, {read / took / 1e9:.2f} TB/s")


def tokens() -> None:
    logits = torch.randn(640, 51968, device="cuda") * 5
    hidden = torch.zeros(51968, device="cuda")
    hidden[51865:] = -torch.inf
    hidden[::97] = -torch.inf
    right, found = torch_ops.best_tokens(logits, hidden, 10), triton_ops.best_tokens(logits, hidden, 10)
    require("best_tokens", off(found[1], right[1]), 1e-5)
    require("which tokens", float((found[0] != right[0]).double().mean()), 1e-3)
    print(f"  {milliseconds(lambda: triton_ops.best_tokens(logits, hidden, 10)) * 1000:.0f} us")
    for is_int8 in (False, True):
        states, (embeddings, whole) = random(640, 512), packed(random(51968, 512), is_int8=is_int8)
        right_logits = states.float() @ whole.numbers.t()
        require("project_out", off(triton_ops.project_out(states, embeddings), right_logits), 1e-3)
        took = milliseconds(partial(triton_ops.project_out, states, embeddings))
        print(f"  product {took * 1000:.0f} us")


def alignment() -> None:
    scores = torch.randn(128, 8, 140, 1500, device="cuda")
    rows = torch.randint(5, 141, (128,), device="cuda")
    frames = torch.randint(400, 1501, (128,), device="cuda")
    some = slice(0, 4)
    given = scores[some], rows[some], frames[some]
    right, found = (costs(*given, ops) for ops in (torch_ops, triton_ops))
    for at in range(4):
        part = at, slice(0, int(rows[at])), slice(0, int(frames[at]))
        require(f"costs of slice {at}", off(found[part], right[part]), 1e-5)
    require("starts", float((starts(*given, torch_ops) != starts(*given, triton_ops)).double().mean()), 1e-3)
    with torch.inference_mode():
        took = milliseconds(
            lambda: [
                costs(scores[a : a + 32], rows[a : a + 32], frames[a : a + 32], triton_ops) for a in range(0, 128, 32)
            ],
            3,
        )
        both = milliseconds(lambda: starts(scores, rows, frames, triton_ops), 3)
    print(f"  128 slices: costs {took:.1f} ms, with the path {both:.1f} ms")


def encoder() -> None:
    weights = random_weights(SHAPES["base"])
    mel = torch.randn(ENCODED_TOGETHER, 80, 3000, device="cuda")
    right = Encoder(weights, Place(torch.device("cuda"), torch.float32), is_compiled=False)(mel[:2])
    half = Encoder(weights, _PLACE, is_compiled=False)
    require("encoder", off(half(mel[:2]), right), 2e-2)
    int8 = Encoder(weights, Place(torch.device("cuda"), torch.float16, is_int8=True), is_compiled=False)
    require("encoder in 8 bits", off(int8(mel[:2]), right), 1e-1)
    for name, one in (("half precision", half), ("8 bits", int8)):
        took = milliseconds(partial(one, mel), 20) / len(mel)
        print(f"  {name}: {took:.3f} ms a window of 30 s ({87 / took:.0f} TFLOP/s)")


def same_in_every_batch() -> None:
    """A slice's sound and text are those that it has alone, to the last bit, wherever it stands in a batch."""
    shape = SHAPES["base"]
    weights = random_weights(shape)
    for dtype, is_int8 in (
        (torch.float16, False),
        (torch.bfloat16, False),
        (torch.float16, True),
        (torch.float32, False),
    ):
        place = Place(torch.device("cuda"), dtype, is_int8=is_int8)
        encoder = Encoder(weights, place, is_compiled=False)
        mel = torch.randn(ENCODED_TOGETHER, shape.mels, 2400, device="cuda")
        turned = torch.cat([mel[3:], mel[:3]])
        encoded = encoder(mel)
        require("a slice in another place of the encoder", off(encoder(turned)[1], encoded[0]), 0.0)
        decoder = Decoder(weights, place, triton_ops)
        alone = written_of(decoder, weights, place, encoded[2:3], [_PROMPT])
        for slices in (2, 3, 4, 24, 48, 256):
            others = torch.randn(slices, *encoded.shape[1:], device="cuda").to(dtype)
            others[slices // 2] = encoded[2]
            found = written_of(decoder, weights, place, others, [_PROMPT] * slices)
            length = int(alone.lengths[0])
            same = bool((found.tokens[slices // 2, :length] == alone.tokens[0, :length]).all())
            error = off(found.totals[slices // 2], alone.totals[0])
            print(f"  {dtype}, 8 bits {is_int8}, {slices} slices: same tokens {same}, total off by {error:.1e}")
            require("a text in a batch", error + (not same), 0.0)


def written_of(decoder: Decoder, weights: Any, place: Place, encoded: Tensor, prompts: list[list[int]]) -> Any:
    slices = len(prompts)
    sound = SoundMemory(weights, place, capacity_for(slices))
    for first in range(0, slices, ENCODED_TOGETHER):
        some = encoded[first : first + ENCODED_TOGETHER]
        whole = torch.cat([some, some.new_zeros(ENCODED_TOGETHER - len(some), *some.shape[1:])])
        sound.fill(torch.arange(first, first + len(some), device="cuda"), whole)
    texts = new_texts(weights, place, capacity_for(slices), 3)
    texts.begin(slices, [encoded.shape[1]] * slices, [4] * slices, 40)
    states = decoder.read(texts, sound, torch.tensor(prompts, device="cuda"), 4)
    return BeamSearch(decoder, triton_ops, texts, sound, weights.end, _MARKS).run(decoder.logits(states[:, -1]))


def search() -> None:
    """The same texts with both sets of functions, with and without graphs; then the time of a step."""
    weights = random_weights(SHAPES["base"])
    for slices, beam in ((5, 5), (128, 1), (128, 5), (256, 5)):
        encoded = random(slices, 1500, 512)
        found = []
        for ops in (triton_ops, torch_ops) if slices == 5 else (triton_ops,):
            decoder, sound = Decoder(weights, _PLACE, ops), SoundMemory(weights, _PLACE, slices)
            sound.fill(torch.arange(slices, device="cuda"), encoded)
            texts = new_texts(weights, _PLACE, slices, beam)
            running = BeamSearch(decoder, ops, texts, sound, weights.end, _MARKS)
            prompts = torch.tensor([_PROMPT] * slices, device="cuda")

            def once(
                running: BeamSearch = running,
                decoder: Decoder = decoder,
                sound: SoundMemory = sound,
                prompts: Tensor = prompts,
            ) -> Any:
                running.texts.begin(len(prompts), [1500] * len(prompts), [4] * len(prompts), 64)
                return running.run(decoder.logits(decoder.read(running.texts, sound, prompts, 4)[:, -1]))

            begun = time.perf_counter()
            first = once()
            torch.cuda.synchronize()
            print(f"  {slices} x beam {beam}: first run {time.perf_counter() - begun:.1f} s")
            again = once()
            # Another choice of algorithm for a product is enough for another text of random weights.
            require("a graph writes what single steps write", off(again.totals, first.totals), 2e-2)
            found.append(again)
            took = milliseconds(once, 3)
            held = torch.cuda.max_memory_allocated() / 2**30
            print(f"  {running.steps} steps, {took / running.steps:.3f} ms a step, peak {held:.1f} GiB")
        if len(found) == 2:
            same = float((found[0].tokens[:, :16] == found[1].tokens[:, :16]).double().mean())
            print(f"  first 16 tokens equal between kernels: {same:.2f}")
            require("kernels agree", off(found[0].totals, found[1].totals), 2e-2)


CHECKS = (
    ceilings,
    norms,
    products,
    text_attention,
    sound_attention,
    tokens,
    alignment,
    encoder,
    same_in_every_batch,
    search,
)


def main() -> int:
    failed = 0
    for check in CHECKS:
        begun = time.perf_counter()
        print(check.__name__, flush=True)
        try:
            with torch.inference_mode():
                check()
        except Exception:  # noqa: BLE001 - a machine's time is short: the other parts are looked at as well
            failed += 1
            print("FAILED\n" + traceback.format_exc()[-2500:])
        torch.cuda.empty_cache()
        print(f"  ({time.perf_counter() - begun:.1f} s)", flush=True)
    print(f"failed: {failed}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
