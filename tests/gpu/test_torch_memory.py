"""Memory that runs out under the PyTorch engine; on a GPU it really does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the GPU tests need PyTorch")

from pipeline.engines.torch_whisper import TorchWhisperEngine  # noqa: E402
from pipeline.errors import DeviceLostError, OutOfMemoryError  # noqa: E402

pytestmark = pytest.mark.gpu


def an_engine(forgotten: list[bool]) -> Any:
    """An engine without a model, which is told to forget its arrays."""
    engine = TorchWhisperEngine.__new__(TorchWhisperEngine)
    engine.model = SimpleNamespace(forget=lambda: forgotten.append(True))
    engine._heard = (1, 2, 3)
    return engine


def test_arrays_that_do_not_fit_are_forgotten_and_fewer_slices_are_asked_for() -> None:
    forgotten: list[bool] = []
    engine = an_engine(forgotten)
    failure = engine._failed(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), 64)
    assert isinstance(failure, OutOfMemoryError)
    assert (forgotten, engine._heard) == ([True], ())


def test_a_device_that_is_lost_is_no_lack_of_memory() -> None:
    forgotten: list[bool] = []
    failure = an_engine(forgotten)._failed(RuntimeError("CUDA error: unspecified launch failure"), 64)
    assert type(failure) is DeviceLostError
    assert forgotten == []


def test_what_a_full_gpu_raises_is_known_as_a_lack_of_memory() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    assert isinstance(an_engine([])._failed(raised.value, 1), OutOfMemoryError)
