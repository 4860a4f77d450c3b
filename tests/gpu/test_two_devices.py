"""A process for each GPU: each sees its own alone, and all write the same texts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the GPU tests need PyTorch")

from bench.gpu.two import Work, devices, together
from pipeline.models import default_cache

pytestmark = pytest.mark.gpu


def the_gpus(least: int) -> list[str]:
    gpus = devices()
    if len(gpus) < least:
        pytest.skip(f"needs {least} CUDA devices, and {len(gpus)} are here")
    return gpus


@pytest.fixture
def gpu() -> str:
    """The UUID of the first GPU."""
    return the_gpus(1)[0]


@pytest.fixture
def two_gpus() -> list[str]:
    return the_gpus(2)


@pytest.fixture
def work() -> Work:
    """64 slices of the lectures through a consumer's loop."""
    model, sound = default_cache() / "base", default_cache() / "clips.msgpack"
    for needed in (model, sound):
        if not needed.exists():
            pytest.skip(f"{needed} is not here; python -m bench.clips --out FILE writes the sound")
    return Work(model, sound, slices=64, batch=16, cores=4)


def test_a_gpu_by_its_uuid_is_the_one_by_its_number_and_two_processes_can_share_it(
    gpu: str, work: Work, tmp_path: Path
) -> None:
    by_number, by_uuid = together(["cuda:0", gpu], work, tmp_path)
    assert [one["seen"] for one in (by_number, by_uuid)] == [1, 1]
    assert f"GPU-{by_number['gpu']}" == f"GPU-{by_uuid['gpu']}" == gpu
    assert by_number["texts"] == by_uuid["texts"]
    assert any(text for texts in by_number["texts"] for text in texts)


def test_two_processes_with_a_gpu_each_write_the_texts_of_one(two_gpus: list[str], work: Work, tmp_path: Path) -> None:
    (alone,) = together(["cuda:0"], work, tmp_path)
    by_number, by_uuid = together(["cuda:1", two_gpus[0]], work, tmp_path)
    assert [one["seen"] for one in (alone, by_number, by_uuid)] == [1, 1, 1]
    assert by_uuid["gpu"] == alone["gpu"] != by_number["gpu"]
    assert by_number["texts"] == by_uuid["texts"] == alone["texts"]
    assert [one["streamed"]["slices"] for one in (by_number, by_uuid)] == [64, 64]
