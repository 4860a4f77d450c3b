"""The proof of precisions and batch sizes: what is judged how, what is kept, and what doctor says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.devices import Device
from pipeline.engine_loading import Wanted, verdicts_of
from pipeline.errors import OutOfMemoryError, UsageError
from pipeline.precision import Precision
from pipeline.proof import report
from pipeline.proof.batches import DISTINCT_SLICES, BatchProof
from pipeline.proof.judgement import (
    Verdict,
    difference,
    judge_batch,
    judge_encoder,
    judge_first_tokens,
    judge_texts,
    relative_l2,
)
from pipeline.proof.speech import LANGUAGES, slices_for, windows
from pipeline.proof.verdicts import Verdicts, proof_key
from pipeline.transcription import Decoding, Hypothesis, Look, Request
from tests.unit.guarded_parts import a_hypothesis

LINE = "今天我们讲勾股定理，它说的是直角三角形。"


@dataclass
class ProofEngine:
    """Writes a text for each slice; from ``wrong_from`` slices on, the last one of a batch gets another's.

    ``blur`` is how far off its encoder is, ``odd`` how many first tokens are.
    """

    wrong_from: int = 1000
    fits: int = 1000
    blur: float = 0.0
    odd: int = 0
    english_only: bool = False
    fingerprint: str = "proof"
    calls: int = 0
    looked: int = 0

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:  # noqa: ARG002
        if self.english_only and any(request.language != "en" for request in requests):
            raise UsageError("the model speaks English only")
        if len(requests) > self.fits:
            raise OutOfMemoryError("out of memory")
        self.calls += 1
        made = [a_hypothesis(request, f"{request.language} {request.audio.slice.index} {LINE}") for request in requests]
        if len(made) >= self.wrong_from:
            made[-1] = replace(made[-1], segment=replace(made[-1].segment, text="谢谢观看"))
        return made

    def look(self, requests: Sequence[Request], *, with_sound: bool) -> list[Look]:
        looks = []
        for request in requests:
            self.looked += 1
            sound = request.audio.samples[:1000] * (1 + self.blur)
            looks.append(Look(sound if with_sound else None, 7 if self.looked > self.odd else 8))
        return looks


def proof_of(engine: ProofEngine, verdicts: Verdicts | None = None) -> BatchProof:
    return BatchProof(engine, verdicts or Verdicts(None))


def test_texts_are_compared_pair_by_pair() -> None:
    found = difference([LINE, "abc"], [LINE, "abd"])
    assert (found.differing, found.texts) == (1, 2)
    assert found.worst_cer == pytest.approx(1 / 3)
    assert found.cer == pytest.approx(1 / (len(LINE) + 3))


@given(st.lists(st.text(max_size=20), max_size=8))
def test_equal_texts_do_not_differ(texts: list[str]) -> None:
    assert judge_batch(difference(texts, texts)).holds


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30).filter(lambda values: any(abs(v) > 1e-3 for v in values)))
def test_the_relative_error_is_that_of_the_length(values: list[float]) -> None:
    right = [np.array(values)]
    assert relative_l2([right[0] * 1.25], right) == pytest.approx(0.25)


def test_an_output_that_is_no_number_is_infinitely_wrong() -> None:
    assert relative_l2([np.array([np.nan, 1.0])], [np.array([1.0, 1.0])]) == float("inf")
    assert not judge_encoder(Precision.INT8, float("inf")).holds


@pytest.mark.parametrize(
    ("precision", "holding", "failing"),
    [(Precision.FP16, 0.0099, 0.0101), (Precision.BF16, 0.049, 0.051), (Precision.INT8, 0.099, 0.101)],
)
def test_each_precision_has_its_limit(precision: Precision, holding: float, failing: float) -> None:
    assert judge_encoder(precision, holding).holds
    assert not judge_encoder(precision, failing).holds


def test_first_tokens_must_agree_as_often_as_the_precision_demands() -> None:
    right = [5] * 512
    assert judge_first_tokens(Precision.FP16, [6, *right[1:]], right).holds
    assert not judge_first_tokens(Precision.FP16, [6, 6, *right[2:]], right).holds
    assert judge_first_tokens(Precision.INT8, [6] * 12 + right[12:], right).holds
    assert not judge_first_tokens(Precision.INT8, [6] * 13 + right[13:], right).holds


def test_another_text_is_no_rounding() -> None:
    assert judge_texts(difference([LINE[:-1]], [LINE])).holds
    assert not judge_texts(difference(["谢谢观看"], [LINE])).holds


def test_a_word_that_was_rounded_otherwise_is_borne_and_a_wrong_slice_is_not() -> None:
    right = [LINE * 2] * 8
    assert judge_batch(difference([LINE * 2, *right[1:]], right)).said == "all 8 texts as alone"
    rounded = judge_batch(difference([(LINE * 2)[:-1] + "！", *right[1:]], right))
    assert rounded.holds
    assert "1 of 8 texts differ" in rounded.said
    assert not judge_batch(difference(["谢谢观看", *right[1:]], right)).holds


def test_one_wrong_slice_in_a_large_batch_is_found() -> None:
    right = [LINE] * 256
    assert not judge_batch(difference([*right[:-1], "谢谢观看"], right)).holds


def test_a_size_is_wrong_where_its_texts_are_not_those_of_its_slices_alone() -> None:
    proof = proof_of(ProofEngine(wrong_from=64))
    assert [proof.of_size(size, 3).holds for size in (1, 2, 48, 64, 128)] == [True, True, True, False, False]


def test_a_size_is_proven_once_and_kept_for_the_next_process(tmp_path: Path) -> None:
    first = ProofEngine()
    proof_of(first, Verdicts(tmp_path / "proof.json")).of_size(8, 3)
    second = ProofEngine()
    proof = proof_of(second, Verdicts(tmp_path / "proof.json"))
    assert proof.of_size(8, 3) == Verdict(True, "all 8 texts as alone")
    assert second.calls == 0
    proof.of_size(8, 5)
    assert second.calls > 0


def test_a_proof_on_demand_is_made_anew(tmp_path: Path) -> None:
    verdicts = Verdicts(tmp_path / "proof.json")
    verdicts.put("batch 8, beam 3", Verdict(True, "long ago"))
    assert not proof_of(ProofEngine(wrong_from=8), verdicts).of_size(8, 3, anew=True).holds
    assert not proof_of(ProofEngine(), Verdicts(tmp_path / "proof.json")).of_size(8, 3).holds


def test_a_lack_of_memory_is_no_verdict(tmp_path: Path) -> None:
    proof = proof_of(ProofEngine(fits=4), verdicts := Verdicts(tmp_path / "proof.json"))
    with pytest.raises(OutOfMemoryError):
        proof.of_size(8, 3)
    assert verdicts.get("batch 8, beam 3") is None
    assert proof.can_work()
    assert not proof_of(ProofEngine(fits=0)).can_work()


def test_a_model_of_one_language_is_proven_in_that() -> None:
    proof = proof_of(ProofEngine(english_only=True))
    assert proof.languages == ("en",)
    assert proof.of_size(16, 3).holds


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"batch 8, beam 3": {"holds": 1}}'])
def test_a_damaged_file_of_verdicts_is_as_none(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "proof.json").write_bytes(damage)
    verdicts = Verdicts(tmp_path / "proof.json")
    assert verdicts.get("batch 8, beam 3") is None
    verdicts.put("batch 4, beam 3", Verdict(True, "as alone"))
    assert Verdicts(tmp_path / "proof.json").get("batch 4, beam 3") == Verdict(True, "as alone")


def test_two_processes_keep_each_other_s_verdicts(tmp_path: Path) -> None:
    one, other = Verdicts(tmp_path / "proof.json"), Verdicts(tmp_path / "proof.json")
    one.put("batch 4, beam 3", Verdict(True, "x"))
    other.put("batch 8, beam 3", Verdict(False, "y"))
    assert set(Verdicts(tmp_path / "proof.json").all) == {"batch 4, beam 3", "batch 8, beam 3"}
    assert [path.name for path in tmp_path.iterdir()] == ["proof.json"]


def test_verdicts_that_cannot_be_written_are_known_to_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    verdicts = Verdicts(tmp_path / "file" / "proof.json")
    verdicts.put("batch 4, beam 3", Verdict(True, "x"))
    assert verdicts.get("batch 4, beam 3") == Verdict(True, "x")


def test_whatever_computes_otherwise_is_proven_anew() -> None:
    known = ("weights", "fused", "cpu", "some processor")
    assert proof_key(*known) == proof_key(*known)
    others = [("w", *known[1:]), ("weights", "faster-whisper", *known[2:]), (*known[:3], "another processor")]
    assert len({proof_key(*one) for one in [known, *others]}) == 4


def test_the_speech_is_short_and_long_slices_in_both_languages() -> None:
    slices = slices_for(DISTINCT_SLICES)
    assert {request.language for request in slices} == set(LANGUAGES)
    lengths = [request.audio.slice.span.duration_ms for request in slices]
    assert min(lengths) < 5_000
    assert 15_000 < max(lengths) <= 30_000
    assert len({(request.language, request.audio.slice.span) for request in slices}) == DISTINCT_SLICES
    assert all(len(request.audio.samples) == request.audio.slice.span.duration_ms * 16 for request in slices)


def test_windows_are_many() -> None:
    found = windows(512)
    assert len({(request.language, request.audio.slice.span) for request in found}) > 400
    assert max(request.audio.slice.span.duration_ms for request in found) <= 30_000


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, ProofEngine]:
    """What is loaded by precision; ``exact`` is what the others are compared with."""
    loaded = {"exact": ProofEngine(), "bf16": ProofEngine(blur=0.01), "int8": ProofEngine(blur=0.08)}
    monkeypatch.setattr(report, "load_exact", lambda _: loaded["exact"])
    monkeypatch.setattr(report, "load_plain", lambda _, precision: loaded[precision])
    monkeypatch.setattr(report, "rungs_of", lambda _: (Precision.BF16, Precision.INT8))
    return loaded


WANTED = Wanted(Path("/models/base"), "f" * 16, Device("cpu", Precision.BF16, "fused"), 2)


def test_the_whole_proof_tries_each_precision_and_each_size_up_to_the_bound(
    engines: dict[str, ProofEngine], tmp_path: Path
) -> None:
    found = list(report.prove(WANTED, 8, tmp_path, lambda _: None))
    assert all(one.holds and not one.remedy for one in found)
    sizes = ["2, beam 5", "3, beam 5", "4, beam 5", "6, beam 5", "8, beam 5", "8, beam 1"]
    for precision in ("bf16", "int8"):
        label = f"fused base {precision} cpu"
        assert [one.what for one in found if precision in one.what] == [
            *[label] * 3,
            *(f"{label}, batch {size}" for size in sizes),
        ]
    assert engines["exact"].looked == report.WINDOWS["cpu"]


def test_what_does_not_hold_has_a_remedy_and_the_engine_knows_it(
    engines: dict[str, ProofEngine], tmp_path: Path
) -> None:
    engines["bf16"].blur, engines["int8"].wrong_from = 0.06, 8
    wrong = [one for one in report.prove(WANTED, 8, tmp_path, lambda _: None) if not one.holds]
    assert [one.what for one in wrong] == [
        "fused base bf16 cpu",
        *(f"fused base int8 cpu, batch 8, beam {beam}" for beam in (5, 1)),
    ]
    assert wrong[0].said == "encoder output off by 6.00 %, 5 % allowed"
    assert "LECTUREMILL_PRECISION" in wrong[0].remedy
    assert "batches of 8 are not used" in wrong[1].remedy
    kept = {precision: verdicts_of(WANTED, precision, tmp_path) for precision in (Precision.BF16, Precision.INT8)}
    precision = BatchProof(engines["bf16"], kept[Precision.BF16]).precision
    assert precision
    assert not precision.holds
    assert not BatchProof(engines["int8"], kept[Precision.INT8]).of_size(8, 5).holds


def test_a_batch_that_does_not_fit_is_said_to_be_so_and_is_no_fault(
    engines: dict[str, ProofEngine], tmp_path: Path
) -> None:
    engines["int8"].fits = 4
    found = {one.what: one for one in report.prove(WANTED, 8, tmp_path, lambda _: None)}
    one = found["fused base int8 cpu, batch 8, beam 5"]
    assert one.holds
    assert "does not fit into the memory" in one.said


def test_first_tokens_that_differ_are_a_finding(engines: dict[str, ProofEngine], tmp_path: Path) -> None:
    engines["bf16"].odd = 3
    wrong = [one.said for one in report.prove(WANTED, 2, tmp_path, lambda _: None) if not one.holds]
    assert wrong == ["first tokens agree in 77 of 80, 97.5 % wanted"]
