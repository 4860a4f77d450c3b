"""The proof on a GPU, and memory that really runs out: ``bash bench/gpu/run.sh proof``; three minutes on an H200.

First what ``lecturemill doctor --engine`` does, for both engines, from float32 down and up to batches of 256. Then the
memory is taken away under a working engine: batches must be halved, with the same texts, and where nothing fits the
slices must wait. The exit status is 1 where anything is wrong but a batch of CTranslate2's, which is known.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import torch

from pipeline.devices import MAX_BATCH_SLICES, choose_device
from pipeline.engine_loading import Wanted, load_guarded
from pipeline.errors import DeviceLostError, RetriableError
from pipeline.guarding import GuardedEngine, Watch
from pipeline.precision import Precision
from pipeline.proof.judgement import difference, judge_batch, judge_texts
from pipeline.proof.report import Proven, prove
from pipeline.proof.speech import slices_for
from pipeline.transcription import LADDER, Failed, Hypothesis

_GIB = 1 << 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.proof", description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--most", type=int, default=MAX_BATCH_SLICES, help="largest batch (default: %(default)s)")
    parser.add_argument("--engines", default="fused,faster-whisper", help="separated by commas (default: %(default)s)")
    options, _ = parser.parse_known_args()  # run.sh passes what the benchmarks take
    started = time.perf_counter()
    found: list[Proven] = []
    with tempfile.TemporaryDirectory() as folder:
        for one in _all(options.engines.split(","), options.model, options.most, Path(folder)):
            found.append(one)
            state, at_s = "ok     " if one.holds else "PROBLEM", time.perf_counter() - started
            print(f"{at_s:5.0f} s  {state} {one.what}: {one.said}")
    if options.json:
        options.json.write_bytes(msgspec.json.encode([msgspec.to_builtins(one) for one in found]))
    wrong = [one for one in found if not one.holds and not _is_known(one)]
    return 1 if wrong else 0


def _is_known(one: Proven) -> bool:
    """CTranslate2 4.8.5 is wrong in large batches: that it is found out is what is proven here."""
    return one.what.startswith("faster-whisper") and "batch" in one.what


def _all(engines: Sequence[str], model: Path, most: int, home: Path) -> Iterator[Proven]:
    for engine in engines:
        highest = Precision.FP32 if engine == "fused" else Precision.FP16
        yield from prove(Wanted(model, "gpu", choose_device("cuda", engine, highest), 16), most, home, print)
    for engine in engines:
        yield from _without_memory(Wanted(model, "gpu", choose_device("cuda", engine, Precision.FP16), 16), most, home)


def _without_memory(wanted: Wanted, most: int, home: Path) -> Iterator[Proven]:
    watch = _Told()
    engine = load_guarded(wanted, home=home, most_slices=most, target_ms=None, watch=watch)
    label = f"{engine.label}, memory taken away"
    right = _texts(engine, most)
    _forget(engine)
    with _held(leave_bytes=6 * _GIB):
        yield Proven(f"{label} but 6 GiB", *_halved(engine, most, right, watch), "")
        _forget(engine)
    with _held(leave_bytes=8 * _GIB):
        engine.settle(1, 1)
        yield Proven(f"{label} but 8 GiB, next batch", bool(watch.lines), watch.told(), "")
    with _held(leave_bytes=_GIB // 64):
        yield Proven(f"{label} but 16 MiB", *_waits(engine), "")
        watch.told()
    again = judge_texts(difference(_texts(engine, 8), right[:8]))
    yield Proven(f"{label} and given back", again.holds, f"{engine.label}: {again.said}", "")


def _halved(engine: GuardedEngine, most: int, right: list[str], watch: _Told) -> tuple[bool, str]:
    """The same texts in smaller batches; or the slices wait, where the engine cannot say that it is the memory."""
    try:
        verdict = judge_batch(difference(_texts(engine, most), right))
    except RetriableError as error:
        then = "another process must go on" if isinstance(error, DeviceLostError) else "slices wait"
        return True, f"{then}: {error.reason[:200]}; {watch.told()}"
    ran_out = any("out of memory" in line for line in watch.lines)
    return verdict.holds and ran_out, f"{verdict.said}; {watch.told()}"


def _forget(engine: GuardedEngine) -> None:
    """The arrays that the PyTorch engine keeps for the next batch would do for this one, too."""
    model = getattr(engine.loaded_engine, "model", None)
    if model is not None:
        model.forget()


def _waits(engine: GuardedEngine) -> tuple[bool, str]:
    """Where no slice at all can be done, none is failed."""
    try:
        made = engine.transcribe(slices_for(3), LADDER[0])
    except RetriableError as error:
        return True, f"slices wait: {error.reason[:200]}"
    failed = sum(isinstance(one, Failed) for one in made)
    return not failed, f"{len(made) - failed} of {len(made)} slices done all the same, {failed} failed"


def _texts(engine: GuardedEngine, count: int) -> list[str]:
    return [_text(one) for one in engine.transcribe(slices_for(count), LADDER[0])]


def _text(made: Hypothesis | Failed) -> str:
    return "" if isinstance(made, Failed) else made.segment.text


@contextmanager
def _held(leave_bytes: int) -> Iterator[None]:
    """Take the device's memory, all but so much; what PyTorch keeps for later is given back first."""
    torch.cuda.empty_cache()
    held: list[object] = []
    for piece_bytes in (_GIB, _GIB // 16, _GIB // 256):
        while torch.cuda.mem_get_info()[0] - piece_bytes > leave_bytes:
            held.append(torch.empty(piece_bytes, device="cuda", dtype=torch.uint8))
    try:
        yield
    finally:
        held.clear()
        torch.cuda.empty_cache()


class _Told(Watch):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def told(self) -> str:
        """What was told since it was asked last."""
        lines, self.lines = self.lines, []
        return "; ".join(lines) or "nothing told"

    def stepped(self, label: str, precision: Precision, why: str, *, is_down: bool) -> None:
        self.lines.append(f"{'down' if is_down else 'up'} to {precision} ({label}): {why}")

    def bounded(self, slices: int, why: str) -> None:
        self.lines.append(f"at most {slices} slices: {why}")

    def ran_out(self, slices: int) -> None:
        self.lines.append(f"out of memory with {slices} slices")

    def refused(self, slices: int, label: str, why: str) -> None:
        self.lines.append(f"no batches of {slices} ({label}): {why}")


if __name__ == "__main__":
    raise SystemExit(main())
