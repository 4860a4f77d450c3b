"""Which device an engine runs on, which engine, in which precision, and why: resolved once, in the entry point."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import UsageError
from pipeline.precision import Precision

ENGINES = ("faster-whisper", "fused")
TILES = "amx_bf16"
"""A processor with it multiplies whole tiles of numbers in half precision."""
BFLOAT16 = frozenset({"avx512_bf16", TILES})
"""A processor with one of these computes the fused engine in half precision."""
PRODUCTS_IN_8_BITS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
"""A processor with one of these multiplies numbers of 8 bits faster than others."""
FUSED = "avx2"
"""The fused engine is faster than the reference, in float32 too, where OpenVINO has this to compute with."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
BATCH_SLICES = "LECTUREMILL_BATCH_SLICES"
MAX_BATCH_SLICES = 256
_FORMS = "auto, cpu, cuda, cuda:N, GPU-<uuid> or MIG-<uuid>"
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z][0-9A-Za-z/-]*")
_ORDINAL = re.compile(r"cuda:(\d{1,3})", re.ASCII)
_COMPUTE_TYPES = {
    Precision.FP32: "float32",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
    Precision.INT8: "int8",
}
"""CTranslate2's and PyTorch's names."""


@dataclass(frozen=True, slots=True)
class Device:
    """What the engine runs on, and the engine and the precision that are wanted there."""

    name: str
    """``cpu`` or ``cuda``: of the GPUs, the process sees the one that was asked for."""
    precision: Precision
    engine: str
    """One of ``ENGINES``."""
    why: str = ""
    """For people: why this engine."""
    shown: str = ""
    """For people: the device as it was asked for, e.g. ``cuda:1``; empty where that is its name."""

    @property
    def label(self) -> str:
        return self.shown or self.name


def compute_type(precision: Precision) -> str:
    """The precision in the words of CTranslate2 and PyTorch."""
    return _COMPUTE_TYPES[precision]


def choose_device(
    asked: str, engine: str = "auto", precision: str = "auto", environment: MutableMapping[str, str] | None = None
) -> Device:
    """``auto`` takes the GPU where CTranslate2 sees one. Raises UsageError for anything unknown or absent.

    One of several GPUs is taken by leaving only that one visible in ``environment`` (the process's own, as CUDA reads
    it): so this must come before anything that starts CUDA.
    """
    if engine not in ("auto", *ENGINES):
        raise UsageError(f"--engine must be auto or one of {', '.join(ENGINES)}, not {engine!r}")
    if precision not in ("auto", *Precision):
        raise UsageError(f"LECTUREMILL_PRECISION must be auto or one of {', '.join(Precision)}, not {precision!r}")
    has_cuda = _has_cuda(asked, environment)
    chosen = _on_gpu(engine) if has_cuda and asked != "cpu" else _on_cpu(engine)
    shown = asked if asked not in ("auto", chosen.name) else ""
    wanted = chosen.precision if precision == "auto" else Precision(precision)
    device = Device(chosen.name, wanted, chosen.engine, chosen.why, shown)
    if wanted not in able_of(device):
        able = ", ".join(one for one in Precision if one in able_of(device))
        raise UsageError(f"LECTUREMILL_PRECISION={wanted}: {device.engine} on {device.name} does {able} here")
    return device


def _has_cuda(asked: str, environment: MutableMapping[str, str] | None) -> bool:
    """Raises UsageError for a device that is unknown or not there."""
    import ctranslate2

    if asked not in ("auto", "cpu", "cuda"):
        only = _only_visible(asked, (environment or {}).get(VISIBLE))
        if environment is not None:
            environment[VISIBLE] = only
    count = ctranslate2.get_cuda_device_count()
    if asked not in ("auto", "cpu") and not count:
        raise UsageError(f"--device {asked}: no such CUDA device is visible; nvidia-smi -L names those that are there")
    return bool(count)


def _only_visible(asked: str, visible: str | None) -> str:
    """What CUDA_VISIBLE_DEVICES must be for ``asked`` to be the only device. Raises UsageError for what is no device.

    >>> _only_visible("cuda:1", "GPU-a,GPU-b"), _only_visible("cuda:1", None)
    ('GPU-b', '1')
    """
    if _UUID.fullmatch(asked):
        return asked
    ordinal = _ORDINAL.fullmatch(asked)
    if not ordinal:
        raise UsageError(f"--device must be {_FORMS}, not {asked!r}")
    number = int(ordinal[1])
    if visible is None:
        return str(number)
    seen = [one.strip() for one in visible.split(",") if one.strip()]
    if number >= len(seen):
        raise UsageError(f"--device {asked}: {VISIBLE} shows {len(seen)} devices, counted from 0")
    return seen[number]


def _on_gpu(engine: str) -> Device:
    absent = [name for name in ("torch", "triton") if not find_spec(name)]
    if engine == "faster-whisper":
        return Device("cuda", Precision.FP16, engine, "asked for")
    if not absent:
        why = "asked for" if engine == "fused" else "there is a GPU, and PyTorch with Triton"
        return Device("cuda", Precision.FP16, "fused", why)
    if engine == "fused":
        raise UsageError("--engine fused on a GPU needs PyTorch and Triton: install the extra 'gpu'")
    why = f"there is a GPU, but no {' and no '.join(absent)}, which the fused engine needs (extra 'gpu')"
    return Device("cuda", Precision.FP16, "faster-whisper", why)


def _on_cpu(engine: str) -> Device:
    flags = processor_flags()
    halves = sorted(BFLOAT16 & flags)
    if engine == "fused" or (engine == "auto" and FUSED in flags):
        can = f"this processor computes in bfloat16 ({', '.join(halves)})" if halves else f"this processor has {FUSED}"
        why = "asked for" if engine == "fused" else can
        return Device("cpu", Precision.BF16 if halves else Precision.FP32, "fused", why)
    why = "asked for" if engine != "auto" else f"this processor has no {FUSED}"
    return Device("cpu", Precision.INT8, "faster-whisper", why)


def default_batch_slices(device: Device) -> int:
    """What the engine is fast with; memory and the latency target may allow less.

    CTranslate2 gains little above 32 slices on a GPU; the fused engine does up to 128 and more.
    """
    if device.name == "cpu":
        return 8
    return 128 if device.engine == "fused" else 32


def batch_bound(asked: str | None, device: Device) -> int:
    """Slices per batch. Raises UsageError for anything but a number from 1 to ``MAX_BATCH_SLICES``."""
    if not asked:
        return default_batch_slices(device)
    if not asked.isdecimal() or not 1 <= int(asked) <= MAX_BATCH_SLICES:
        raise UsageError(f"--batch and {BATCH_SLICES} take a number from 1 to {MAX_BATCH_SLICES}, not {asked!r}")
    return int(asked)


def able_of(device: Device) -> frozenset[Precision]:
    """The precisions that an engine can do on a device."""
    if device.engine == "faster-whisper":
        return _able_in_ctranslate2(device.name)
    if device.name == "cuda":
        return frozenset(Precision)
    halves = {Precision.BF16} if BFLOAT16 & processor_flags() else set()
    return frozenset({Precision.FP32, Precision.INT8} | halves)


def _able_in_ctranslate2(name: str) -> frozenset[Precision]:
    import ctranslate2

    known: Iterable[str] = ctranslate2.get_supported_compute_types(name)
    return frozenset(one for one in Precision if compute_type(one) in set(known))


def processor_flags() -> frozenset[str]:
    """What the processor can, as Linux says; empty where it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
