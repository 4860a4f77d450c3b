"""Settings: what the environment and the options say, resolved once."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.errors import UsageError
from pipeline.settings import Device, choose_device, open_database, settings_from


def test_options_come_before_the_environment_and_that_before_the_embedded_database() -> None:
    assert settings_from({}).database_url is None
    assert settings_from({"DATABASE_URL": ""}).database_url is None
    assert settings_from({"DATABASE_URL": "postgresql://a/b"}).database_url == "postgresql://a/b"
    assert settings_from({"DATABASE_URL": "postgresql://a/b"}, "postgresql://c/d").database_url == "postgresql://c/d"


def test_a_home_is_absolute_and_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert settings_from({"LECTUREMILL_HOME": "state"}).home == tmp_path / "state"
    assert settings_from({"LECTUREMILL_HOME": "~/state"}).home == tmp_path / "user" / "state"


def test_without_a_home_the_users_data_folder_is_taken() -> None:
    assert settings_from({}).home.name == "lecturemill"
    assert settings_from({"LECTUREMILL_HOME": ""}).home == settings_from({}).home


def test_the_model_cache_is_the_same_whichever_home_is_used(tmp_path: Path) -> None:
    assert settings_from({"LECTUREMILL_HOME": str(tmp_path)}).models == settings_from({}).models


@pytest.mark.parametrize(
    ("asked", "gpus", "expected"),
    [
        ("auto", 0, Device("cpu", "int8", "faster-whisper")),
        ("auto", 1, Device("cuda", "float16", "faster-whisper")),
        ("cpu", 1, Device("cpu", "int8", "faster-whisper")),
        ("cuda", 2, Device("cuda", "float16", "faster-whisper")),
    ],
)
def test_auto_takes_a_gpu_where_there_is_one(
    asked: str, gpus: int, expected: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_bfloat16(monkeypatch)
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(get_cuda_device_count=lambda: gpus))
    assert choose_device(asked) == expected


def no_bfloat16(monkeypatch: pytest.MonkeyPatch, *, has_torch: bool = False) -> None:
    monkeypatch.setattr("pipeline.settings._processor_flags", lambda: frozenset({"avx2"}))
    monkeypatch.setattr("pipeline.settings.find_spec", lambda _: object() if has_torch else None)


def test_a_processor_with_bfloat16_gets_the_fused_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(get_cuda_device_count=lambda: 0))
    monkeypatch.setattr("pipeline.settings._processor_flags", lambda: frozenset({"avx2", "amx_bf16"}))
    assert choose_device("auto") == Device("cpu", "bf16", "fused")
    assert choose_device("cpu", "faster-whisper") == Device("cpu", "int8", "faster-whisper")


def test_an_engine_that_is_asked_for_is_taken_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    no_bfloat16(monkeypatch)
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(get_cuda_device_count=lambda: 1))
    assert choose_device("cpu", "fused") == Device("cpu", "f32", "fused")
    with pytest.raises(UsageError, match="extra 'gpu'"):
        choose_device("auto", "fused")
    with pytest.raises(UsageError, match="auto or one of faster-whisper, fused"):
        choose_device("auto", "whisper.cpp")


@pytest.mark.parametrize(("asked", "said"), [("cuda", "no CUDA device.*doctor"), ("tpu", "auto, cpu or cuda")])
def test_a_device_that_is_not_there_is_wrong_usage(asked: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(get_cuda_device_count=lambda: 0))
    with pytest.raises(UsageError, match=said):
        choose_device(asked)


@pytest.mark.parametrize("home", ["file", "file/below"])
def test_a_home_that_cannot_be_a_folder_is_wrong_usage(home: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = settings_from({"LECTUREMILL_HOME": str(tmp_path / home)})
    with pytest.raises(UsageError, match=r"cannot be written.*LECTUREMILL_HOME"), open_database(settings):
        pass


def test_a_gpu_with_pytorch_gets_the_fused_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    no_bfloat16(monkeypatch, has_torch=True)
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(get_cuda_device_count=lambda: 1))
    assert choose_device("auto") == choose_device("cuda", "fused") == Device("cuda", "float16", "fused")
    assert choose_device("cuda", "faster-whisper") == Device("cuda", "float16", "faster-whisper")
