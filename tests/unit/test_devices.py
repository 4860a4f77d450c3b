"""Which device, engine and precision are taken, and what is said of those that are not there."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipeline.devices import Device, able_of, batch_bound, choose_device
from pipeline.errors import UsageError
from pipeline.precision import Precision

ABLE = {"cpu": {"float32", "int8", "int8_float32"}, "cuda": {"float32", "float16", "bfloat16", "int8"}}
MIG = "MIG-8f6a1d2c-7e5b-5d3a-9c1f-0a2b3c4d5e6f"
GPU = "GPU-8f6a1d2c-7e5b-5d3a-9c1f-0a2b3c4d5e6f"


def a_machine(
    monkeypatch: pytest.MonkeyPatch, *, gpus: int = 0, flags: tuple[str, ...] = ("avx2",), has_torch: bool = False
) -> None:
    counting = SimpleNamespace(get_cuda_device_count=lambda: gpus, get_supported_compute_types=ABLE.__getitem__)
    monkeypatch.setitem(sys.modules, "ctranslate2", counting)
    monkeypatch.setattr("pipeline.devices.processor_flags", lambda: frozenset(flags))
    monkeypatch.setattr("pipeline.devices.find_spec", lambda _: object() if has_torch else None)


def taken(device: Device) -> tuple[str, str, str]:
    return device.name, device.precision, device.engine


@pytest.mark.parametrize(
    ("asked", "gpus", "expected"),
    [
        ("auto", 0, ("cpu", "fp32", "fused")),
        ("auto", 1, ("cuda", "fp16", "faster-whisper")),
        ("cpu", 1, ("cpu", "fp32", "fused")),
        ("cuda", 2, ("cuda", "fp16", "faster-whisper")),
    ],
)
def test_auto_takes_a_gpu_where_there_is_one(
    asked: str, gpus: int, expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a_machine(monkeypatch, gpus=gpus)
    assert taken(choose_device(asked)) == expected


def test_a_processor_with_bfloat16_gets_the_fused_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, flags=("avx2", "amx_bf16"))
    device = choose_device("auto")
    assert taken(device) == ("cpu", "bf16", "fused")
    assert device.why == "this processor computes in bfloat16 (amx_bf16)"
    assert taken(choose_device("cpu", "faster-whisper")) == ("cpu", "int8", "faster-whisper")


def test_a_processor_that_openvino_has_nothing_for_gets_the_reference_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, flags=("asimd",))
    assert taken(choose_device("auto")) == ("cpu", "int8", "faster-whisper")
    assert choose_device("cpu").why == "this processor has no avx2"
    assert taken(choose_device("cpu", "fused")) == ("cpu", "fp32", "fused")


def test_a_gpu_with_pytorch_gets_the_fused_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, gpus=1, has_torch=True)
    assert taken(choose_device("auto")) == taken(choose_device("cuda", "fused")) == ("cuda", "fp16", "fused")
    assert taken(choose_device("cuda", "faster-whisper")) == ("cuda", "fp16", "faster-whisper")


def test_it_is_said_why_an_engine_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, gpus=1)
    assert choose_device("auto").why == (
        "there is a GPU, but no torch and no triton, which the fused engine needs (extra 'gpu')"
    )
    assert choose_device("cpu").why == "this processor has avx2"
    assert choose_device("cpu", "fused").why == "asked for"


def test_an_engine_that_is_asked_for_is_taken_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, gpus=1)
    assert taken(choose_device("cpu", "fused")) == ("cpu", "fp32", "fused")
    with pytest.raises(UsageError, match="extra 'gpu'"):
        choose_device("auto", "fused")
    with pytest.raises(UsageError, match="auto or one of faster-whisper, fused"):
        choose_device("auto", "whisper.cpp")


def test_a_precision_that_is_asked_for_is_the_top_of_the_ladder_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch)
    assert choose_device("cpu", precision="fp32").precision is Precision.FP32
    with pytest.raises(UsageError, match="LECTUREMILL_PRECISION=bf16: faster-whisper on cpu does fp32, int8 here"):
        choose_device("cpu", "faster-whisper", precision="bf16")
    with pytest.raises(UsageError, match="must be auto or one of fp32, bf16, fp16, int8, not 'half'"):
        choose_device("cpu", precision="half")


def test_the_precisions_of_an_engine_are_those_that_its_device_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, gpus=1, flags=("avx512_bf16",), has_torch=True)
    assert able_of(choose_device("cpu", "fused")) == {"fp32", "bf16", "int8"}
    assert able_of(choose_device("cuda", "fused")) == {"fp32", "bf16", "fp16", "int8"}
    assert able_of(choose_device("cuda", "faster-whisper")) == {"fp32", "bf16", "fp16", "int8"}


@pytest.mark.parametrize(
    ("asked", "before", "after"),
    [
        ("cuda:0", None, "0"),
        ("cuda:2", None, "2"),
        ("cuda:1", "GPU-a, GPU-b", "GPU-b"),
        (MIG, None, MIG),
        (GPU, "0,1", GPU),
    ],
)
def test_one_of_several_gpus_is_the_only_one_that_cuda_sees(
    asked: str, before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {} if before is None else {"CUDA_VISIBLE_DEVICES": before}
    a_machine(monkeypatch)
    seen: list[str | None] = []
    looking = SimpleNamespace(
        get_cuda_device_count=lambda: seen.append(environment.get("CUDA_VISIBLE_DEVICES")) or 1,
        get_supported_compute_types=ABLE.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "ctranslate2", looking)
    device = choose_device(asked, environment=environment)
    assert (device.name, device.label) == ("cuda", asked)
    assert (environment, seen) == ({"CUDA_VISIBLE_DEVICES": after}, [after])


def test_all_gpus_stay_visible_where_none_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, str] = {}
    a_machine(monkeypatch, gpus=2)
    assert choose_device("cuda", environment=environment).label == "cuda"
    assert choose_device("auto", environment=environment).label == "cuda"
    assert environment == {}


@pytest.mark.parametrize("asked", ["cuda", "cuda:1", MIG, GPU])
def test_a_device_that_is_not_there_is_wrong_usage(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch)
    with pytest.raises(UsageError, match=f"--device {asked}: no such CUDA device is visible; nvidia-smi -L"):
        choose_device(asked, environment={})


def test_a_number_beyond_the_visible_devices_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, gpus=1)
    with pytest.raises(UsageError, match="--device cuda:1: CUDA_VISIBLE_DEVICES shows 1 devices"):
        choose_device("cuda:1", environment={"CUDA_VISIBLE_DEVICES": MIG})


@pytest.mark.parametrize("asked", ["tpu", "cuda:", "cuda:x", "cuda:-1", "cuda:٣", "MIG-", "mig-1", "GPU-a b", ""])
def test_what_is_no_device_is_wrong_usage(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(monkeypatch, gpus=1)
    with pytest.raises(UsageError, match=r"must be auto, cpu, cuda, cuda:N, GPU-<uuid> or MIG-<uuid>"):
        choose_device(asked, environment={})


CPU = Device("cpu", Precision.INT8, "faster-whisper")


def test_the_batch_is_as_large_as_asked_and_else_as_the_device_likes() -> None:
    gpus = [Device("cuda", Precision.FP16, engine) for engine in ("faster-whisper", "fused")]
    assert [batch_bound(None, CPU), *(batch_bound("", gpu) for gpu in gpus), batch_bound("3", CPU)] == [8, 32, 128, 3]


@pytest.mark.parametrize("text", ["0", "-1", "257", "many", "1.5"])
def test_a_batch_of_no_such_size_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="LECTUREMILL_BATCH_SLICES"):
        batch_bound(text, CPU)
