"""What doctor says of the engine: which one is taken and why, and what its proof found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline import doctor, doctor_engine
from pipeline.cli import app
from pipeline.devices import Device
from pipeline.doctor_engine import examine_engine
from pipeline.errors import OutOfMemoryError, UsageError
from pipeline.models import LocalModel
from pipeline.precision import Precision
from pipeline.proof.report import Proven
from pipeline.settings import Settings

DEVICE = Device("cpu", Precision.BF16, "fused", "this processor computes in bfloat16 (amx_bf16)")
WRONG = Proven("fused base bf16 cpu, batch 8, beam 3", False, "3 of 8 texts differ", "batches of 8 are not used")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for module in (doctor, doctor_engine):
        monkeypatch.setattr(module, "choose_device", lambda *_: DEVICE)
    monkeypatch.setattr(doctor, "rungs_of", lambda _: (Precision.BF16, Precision.INT8))
    monkeypatch.setattr(doctor_engine, "find_model", lambda *_: LocalModel("base", tmp_path / "base", "f" * 16))
    return Settings(tmp_path, tmp_path, None, 2)


def proving(monkeypatch: pytest.MonkeyPatch, *found: Proven, most: list[int] | None = None) -> None:
    def prove(_wanted: object, most_slices: int, *_: object) -> Iterator[Proven]:
        if most is not None:
            most.append(most_slices)
        yield from found

    monkeypatch.setattr(doctor_engine, "prove", prove)


def test_doctor_says_which_engine_is_taken_with_its_ladder_and_why(settings: Settings) -> None:
    said = doctor._device(settings)
    assert said.is_ok
    assert said.detail == ("fused on cpu, bf16 then int8, 2 cores: this processor computes in bfloat16 (amx_bf16)")


def test_an_engine_that_is_not_to_be_had_is_a_finding(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Device:
        raise UsageError("--engine fused on a GPU needs PyTorch and Triton: install the extra 'gpu'")

    monkeypatch.setattr(doctor, "choose_device", refuse)
    said = doctor._device(settings)
    assert not said.is_ok
    assert "install the extra 'gpu'" in said.detail
    assert "LECTUREMILL_ENGINE" in said.remedy


def test_what_the_proof_finds_is_found_by_doctor(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []
    proving(monkeypatch, WRONG, most=most)
    (finding,) = examine_engine(settings, "auto", {"LECTUREMILL_BATCH_SLICES": "6"}, print)
    assert (finding.what, finding.is_ok, finding.detail, finding.remedy) == (
        WRONG.what,
        False,
        WRONG.said,
        WRONG.remedy,
    )
    assert most == [6]


@pytest.mark.parametrize("error", [UsageError("the model is damaged"), OutOfMemoryError("no memory for it")])
def test_an_engine_that_cannot_be_loaded_is_a_finding_with_a_remedy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, error: UsageError | OutOfMemoryError
) -> None:
    def fail(*_: object) -> Iterator[Proven]:
        raise error

    monkeypatch.setattr(doctor_engine, "prove", fail)
    (finding,) = examine_engine(settings, "auto", {}, print)
    assert (finding.is_ok, finding.detail) == (False, error.reason)
    assert finding.remedy


@pytest.mark.parametrize(("found", "status"), [((), 0), ((WRONG,), 1)])
def test_the_exit_status_says_whether_all_was_proven(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, found: tuple[Proven, ...], status: int
) -> None:
    proving(monkeypatch, *found)
    monkeypatch.setattr(doctor, "examine", lambda _: iter(()))
    monkeypatch.setenv("LECTUREMILL_BROKERS", "")
    done = CliRunner().invoke(app, ["doctor", "--engine", "--json"])
    assert done.exit_code == status
    assert [one["what"] for one in json.loads(done.stdout)] == [one.what for one in found]
    assert settings.threads == 2
