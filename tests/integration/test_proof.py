"""The proof over the real engines of this machine, in small: few windows, batches of up to three."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.assembly import present_model, wanted_of
from pipeline.devices import choose_device
from pipeline.engine_loading import Wanted, load_guarded, load_plain, verdicts_of
from pipeline.engines.faster_whisper import FasterWhisperEngine
from pipeline.errors import OutOfMemoryError, UsageError
from pipeline.guarding import Watch
from pipeline.precision import Precision
from pipeline.proof import report
from pipeline.proof.batches import BatchProof
from pipeline.proof.report import prove
from pipeline.proof.speech import slices_for
from pipeline.proof.verdicts import Verdicts
from pipeline.settings import settings_from
from pipeline.transcription import LADDER, Decoding, Hypothesis, Request


def wanted(engine: str, precision: Precision, model: str = "base") -> Wanted:
    settings = replace(settings_from(os.environ), threads=2)
    try:
        found = present_model(model, settings, print)
    except UsageError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return wanted_of(found, choose_device("cpu", engine, precision), settings)


@pytest.fixture(autouse=True)
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(report.WINDOWS, "cpu", 5)
    monkeypatch.setattr(report, "_TEXTS", 2)
    monkeypatch.setattr(report, "_SOUNDS", 3)


@pytest.mark.parametrize("engine", ["faster-whisper", "fused"])
def test_eight_bits_are_as_near_to_float32_as_they_must_be(engine: str, tmp_path: Path) -> None:
    asked = wanted(engine, Precision.INT8, "tiny.en")
    found = list(prove(asked, 2, tmp_path, print))
    assert [one for one in found if not one.holds] == []
    label = f"{engine} tiny.en int8 cpu"
    assert [one.what for one in found] == [*[label] * 3, *(f"{label}, batch 2, beam {beam}" for beam in (5, 1))]
    assert len(verdicts_of(asked, Precision.INT8, tmp_path).all) == 3


class MixedUp(FasterWhisperEngine):
    """Wrong as CTranslate2 was seen to be: from a size on, slices get texts of others, and no error."""

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        found = super().transcribe(requests, decoding)
        return found[::-1] if len(requests) >= 3 else found


def test_a_batch_that_is_silently_wrong_never_reaches_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = wanted("faster-whisper", Precision.INT8, "tiny.en")
    monkeypatch.setattr("pipeline.engines.faster_whisper.FasterWhisperEngine", MixedUp)
    refused: list[int] = []
    watch: Any = Watch()
    watch.refused = lambda slices, *_: refused.append(slices)
    engine = load_guarded(asked, home=tmp_path, target_ms=None, watch=watch)
    requests = slices_for(4, ("en",))
    alone = [load_plain(asked, Precision.INT8).transcribe([one], LADDER[0])[0] for one in requests]
    found = engine.transcribe(requests, LADDER[0])
    assert [one.segment.text for one in found if isinstance(one, Hypothesis)] == [
        one.segment.text for one in alone if isinstance(one, Hypothesis)
    ]
    assert refused == [4, 3]


def test_memory_that_runs_out_inside_ctranslate2_halves_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = wanted("faster-whisper", Precision.INT8, "tiny.en")
    engine = load_guarded(asked, home=tmp_path, target_ms=None, watch=Watch())
    search = FasterWhisperEngine._search

    def failing(self: Any, encoded: Any, prompts: Sequence[Sequence[int]], decoding: Decoding) -> Any:
        if len(prompts) > 1:
            raise RuntimeError("CUDA failed with error out of memory")
        return search(self, encoded, prompts, decoding)

    monkeypatch.setattr(FasterWhisperEngine, "_search", failing)
    found = engine.transcribe(slices_for(2, ("en",)), LADDER[0])
    assert all(isinstance(one, Hypothesis) and one.segment.text for one in found)
    assert engine.most_slices == 1


def test_the_proof_of_an_engine_tells_a_lack_of_memory_from_a_wrong_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = load_plain(wanted("faster-whisper", Precision.INT8, "tiny.en"), Precision.INT8)

    def full(*_: object) -> Any:
        raise MemoryError("Unable to allocate 2.00 GiB")

    monkeypatch.setattr(FasterWhisperEngine, "_search", full)
    proof = BatchProof(engine, Verdicts(None))
    assert not proof.can_work()
    with pytest.raises(OutOfMemoryError, match="Unable to allocate"):
        proof.of_size(2, 3)
