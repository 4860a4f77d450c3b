"""Which steps down in precision save time."""

from __future__ import annotations

import pytest

from pipeline.devices import Device
from pipeline.engine_loading import saves_only_memory
from pipeline.precision import Precision


@pytest.mark.parametrize(
    ("name", "engine", "flags", "expected"),
    [
        ("cpu", "fused", ("avx2",), True),
        ("cpu", "fused", ("avx2", "avx_vnni"), False),
        ("cpu", "fused", ("avx512_bf16", "avx512_vnni"), False),
        ("cpu", "faster-whisper", ("avx2",), False),
        ("cuda", "fused", ("avx512_vnni",), True),
        ("cuda", "faster-whisper", (), False),
    ],
)
def test_8_bits_save_only_memory_where_nothing_multiplies_them_faster(
    name: str, engine: str, flags: tuple[str, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.engine_loading.processor_flags", lambda: frozenset(flags))
    assert saves_only_memory(Device(name, Precision.FP32, engine), Precision.INT8) is expected


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16, Precision.FP16])
def test_other_precisions_save_time(precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.engine_loading.processor_flags", frozenset)
    assert not saves_only_memory(Device("cuda", precision, "fused"), precision)
