"""From a model's folder and a device to an engine in memory, under guard."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.devices import (
    BFLOAT16,
    MAX_BATCH_SLICES,
    PRODUCTS_IN_8_BITS,
    Device,
    able_of,
    compute_type,
    processor_flags,
)
from pipeline.engines.footprint import slices_in
from pipeline.engines.memory_faults import failure_of
from pipeline.engines.whisper_weights import load_weights
from pipeline.errors import UsageError
from pipeline.guarding import GuardedEngine, Loaded, Rung, Watch
from pipeline.keys import engine_key
from pipeline.memory import memory_of, release_unused
from pipeline.precision import PaceRules, Precision, ladder
from pipeline.proof.batches import BatchProof
from pipeline.proof.verdicts import Verdicts, proof_key
from pipeline.transcription import Inspectable

_MEMORY_SHARE = 0.5
"""Of the free memory that the slices of a batch may take; the rest is for what is done beside them."""
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model, and what it is to run on."""

    folder: Path
    model_fingerprint: str
    device: Device
    threads: int

    @property
    def fingerprint(self) -> str:
        """Of what is wanted, whatever the ladder makes of it."""
        return self.fingerprint_in(self.device.precision)

    def fingerprint_in(self, precision: Precision) -> str:
        return engine_key(self.model_fingerprint, self.device.engine, self.device.name, precision)

    def label_in(self, precision: Precision) -> str:
        return f"{self.device.engine} {self.folder.name} {precision} {self.device.label}"


def load_plain(wanted: Wanted, precision: Precision) -> Inspectable:
    """The engine in one precision. Raises UsageError, or OutOfMemoryError, where it cannot be loaded."""
    release_unused()
    try:
        return _load(wanted, precision)
    except (RuntimeError, MemoryError) as error:
        raise failure_of(error, 0) from error


def _load(wanted: Wanted, precision: Precision) -> Inspectable:
    device, key = wanted.device, wanted.fingerprint_in(precision)
    if (device.engine, device.name) == ("fused", "cuda"):
        from pipeline.engines.torch_whisper import TorchOptions, load_torch

        return load_torch(wanted.folder, key, TorchOptions(device.name, compute_type(precision)))
    if device.engine == "fused":
        from pipeline.engines.openvino_whisper import load_fused

        is_half = precision is Precision.BF16 or (precision is Precision.INT8 and bool(BFLOAT16 & processor_flags()))
        arithmetic, int8 = "bf16" if is_half else "f32", precision is Precision.INT8
        return load_fused(wanted.folder, key, arithmetic=arithmetic, threads=wanted.threads, int8_encoder=int8)
    from pipeline.engines.faster_whisper import FasterWhisperEngine

    return FasterWhisperEngine(
        wanted.folder, key, device=device.name, compute_type=compute_type(precision), threads=wanted.threads
    )


def load_exact(wanted: Wanted) -> Inspectable:
    """The same engine in float32 throughout: what its precisions are compared with."""
    device, key = wanted.device, wanted.fingerprint_in(Precision.FP32)
    if device.engine == "faster-whisper":
        return load_plain(wanted, Precision.FP32)
    if device.name == "cuda":
        from pipeline.engines.torch_whisper import TorchOptions, load_torch

        # With PyTorch's functions: ours are a part of what is proven.
        return load_torch(wanted.folder, key, TorchOptions(device.name, "float32", uses_triton=False))
    from pipeline.engines.openvino_whisper import load_fused

    # Else its decoder's weights have 8 bits in every precision: that is what the processor is fast at.
    return load_fused(wanted.folder, key, arithmetic="f32", threads=wanted.threads, int8_decoder=False)


def load_guarded(
    wanted: Wanted, *, home: Path, most_slices: int = MAX_BATCH_SLICES, target_ms: int | None, watch: Watch
) -> GuardedEngine:
    """The engine, its ladder and its proofs; verdicts are kept in ``home``.

    Raises UsageError, or OutOfMemoryError, where not even the lowest precision can be loaded.
    """

    def rung(precision: Precision) -> Rung:
        load, is_faster = partial(_loaded, wanted, precision, home), not saves_only_memory(wanted.device, precision)
        return Rung(precision, wanted.label_in(precision), load, is_faster=is_faster)

    below, able = rungs_of(wanted.device), able_of(wanted.device)
    above = [one for one in reversed(Precision) if one in able and one not in below]
    return GuardedEngine(
        wanted.fingerprint,
        [rung(one) for one in below],
        most_slices,
        partial(_free_share, wanted.device.name),
        PaceRules(target_ms=target_ms),
        watch,
        [rung(one) for one in above],
    )


def saves_only_memory(device: Device, precision: Precision) -> bool:
    """Whether a precision takes longer than those above it: the fused engine's 8 bits may.

    On a GPU they are unpacked for each product: a step takes a fifth longer. An encoder takes a sixth longer where the
    processor has no instruction to multiply them and add.
    """
    if (device.engine, precision) != ("fused", Precision.INT8):
        return False
    return device.name == "cuda" or not PRODUCTS_IN_8_BITS & processor_flags()


def rungs_of(device: Device) -> tuple[Precision, ...]:
    """What is wanted on a device, and what the ladder may go down to."""
    return ladder(device.precision, able_of(device))


def _loaded(wanted: Wanted, precision: Precision, home: Path) -> Loaded:
    engine = load_plain(wanted, precision)
    most = getattr(engine, "most_slices", None) or _most_slices(wanted)
    return Loaded(engine, most, BatchProof(engine, verdicts_of(wanted, precision, home)))


def verdicts_of(wanted: Wanted, precision: Precision, home: Path) -> Verdicts:
    device = wanted.device
    key = proof_key(wanted.fingerprint_in(precision), device.engine, device.name, hardware_of(wanted))
    return Verdicts(home / "proofs" / f"{key}.json")


def hardware_of(wanted: Wanted) -> str:
    """The processor with the threads it may use, or the GPU: what rounding may depend on."""
    if wanted.device.name == "cpu":
        lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
        return f"{model}, {digest_of_flags()}, {wanted.threads} threads"
    torch = sys.modules.get("torch")
    if torch is not None:
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def digest_of_flags() -> str:
    """One model name stands for many processors in virtual machines."""
    return " ".join(sorted(flag for flag in processor_flags() if flag.startswith(("avx", "amx", "sse", "fma"))))


def _most_slices(wanted: Wanted) -> int:
    """By the memory that is free now; without a bound where it, or the model's shape, cannot be told."""
    memory = memory_of(wanted.device.name)
    if memory is None:
        return MAX_BATCH_SLICES
    try:
        weights = load_weights(wanted.folder)
    except UsageError:  # weights that were quantized before: only CTranslate2 reads them
        return MAX_BATCH_SLICES
    return min(MAX_BATCH_SLICES, slices_in(int(memory.free_bytes * _MEMORY_SHARE), weights, _FLOAT_BYTES))


def _free_share(device: str) -> float | None:
    memory = memory_of(device)
    return memory.free_share if memory else None
