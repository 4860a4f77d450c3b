"""An engine under guard: halves what does not fit, uses only sizes that are proven, keeps its pace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.memory_faults import failure_of, is_out_of_memory
from pipeline.errors import DeviceLostError, OutOfMemoryError, RetriableError, UsageError
from pipeline.guarding import NO_MEMORY
from pipeline.judging import JudgeRules
from pipeline.precision import Precision
from pipeline.proof.batches import SIZES
from pipeline.proof.judgement import Verdict
from pipeline.transcription import (
    Adaptive,
    Decoding,
    Failed,
    Hypothesis,
    TranscriptionOptions,
    label_of,
    transcribe,
)
from pipeline.values import Outcome
from tests.unit.guarded_parts import Machine, NumberingEngine, requests

GREEDY = Decoding(beam_size=1)
OPTIONS = TranscriptionOptions((GREEDY,), JudgeRules())


def texts(answers: Sequence[Hypothesis | Failed]) -> list[str]:
    return [one.reason if isinstance(one, Failed) else one.segment.text for one in answers]


def sizes(engine: NumberingEngine) -> list[int]:
    return [len(batch) for batch in engine.batches]


def test_a_batch_that_does_not_fit_is_halved_until_it_does_and_no_slice_is_lost() -> None:
    machine = Machine()
    machine.engines[Precision.FP16].fits = lambda numbers: len(numbers) <= 5
    guard = machine.guard()
    assert texts(guard.transcribe(requests(16), GREEDY)) == [str(number) for number in range(16)]
    assert sizes(machine.engines[Precision.FP16]) == [4, 4, 4, 4]
    assert machine.watch.told == [("ran out", 16), ("ran out", 8)]
    assert guard.most_slices == 4


def test_a_slice_that_does_not_fit_alone_fails_with_its_reason_and_the_others_are_done() -> None:
    machine = Machine()
    machine.engines[Precision.FP16].fits = lambda numbers: 2 not in numbers
    done = transcribe(machine.guard(), requests(4), OPTIONS)
    assert [(one.outcome, one.reason) for one in done if one.slice_index == 2] == [(Outcome.FAILED, NO_MEMORY)]
    assert [one.segments[0].text for one in done if one.slice_index != 2] == ["0", "1", "3"]
    assert [one.slice_index for one in done] == [0, 1, 2, 3]
    assert done[2].segments == ()


def test_where_the_device_can_do_no_slice_at_all_none_is_at_fault() -> None:
    machine = Machine()
    machine.engines[Precision.FP16].fits = lambda _: False
    machine.proofs[Precision.FP16].works = False
    with pytest.raises(RetriableError, match="out of memory"):
        machine.guard().transcribe(requests(3), GREEDY)


@given(st.integers(0, 300), st.integers(1, 256), st.sets(st.sampled_from(SIZES[1:])), st.integers(1, 300))
def test_only_sizes_that_are_proven_are_used_and_every_slice_is_answered_in_order(
    count: int, most: int, wrong: set[int], fitting: int
) -> None:
    machine = Machine(most=most)
    machine.proofs[Precision.FP16].wrong = frozenset(wrong)
    machine.engines[Precision.FP16].fits = lambda numbers: len(numbers) <= fitting
    answers = machine.guard().transcribe(requests(count), GREEDY)
    assert texts(answers) == [str(number) for number in range(count)]
    used = set(sizes(machine.engines[Precision.FP16]))
    assert used <= set(SIZES) - wrong
    assert max(used, default=0) <= min(most, fitting)
    assert list(chain.from_iterable(machine.engines[Precision.FP16].batches)) == list(range(count))


def test_a_wrong_size_is_told_of_once_and_smaller_ones_are_used() -> None:
    machine = Machine()
    machine.proofs[Precision.FP16].wrong = frozenset({256, 192})
    guard = machine.guard()
    for _ in range(2):
        guard.transcribe(requests(256), GREEDY)
    assert sizes(machine.engines[Precision.FP16]) == [128, 128, 128, 128]
    assert machine.watch.told == [("refused", size, "fused base fp16 cuda", "other texts") for size in (256, 192)]


def test_a_size_is_proven_for_the_beam_that_it_is_used_with() -> None:
    machine = Machine()
    guard = machine.guard()
    guard.transcribe(requests(8), Decoding(beam_size=3))
    guard.transcribe(requests(8), Decoding(beam_size=5))
    assert machine.proofs[Precision.FP16].asked == [(8, 3), (8, 5)]


def test_a_proof_that_does_not_fit_into_the_memory_is_no_verdict_but_a_bound() -> None:
    machine = Machine()
    machine.proofs[Precision.FP16].too_large = 32
    assert texts(machine.guard().transcribe(requests(48), GREEDY)) == [str(number) for number in range(48)]
    assert max(sizes(machine.engines[Precision.FP16])) == 24
    assert ("ran out", 48) in machine.watch.told


def test_memory_that_is_short_is_a_step_down_which_the_next_batch_is_done_in() -> None:
    machine = Machine("fp16", "int8")
    guard = machine.guard()
    assert isinstance(guard, Adaptive)
    machine.free = 0.05
    transcribe(guard, requests(2), OPTIONS)
    assert label_of(guard) == "fused base fp16 cuda"  # what that batch was done in
    assert machine.watch.told == [("down", Precision.INT8, "fused base int8 cuda", "5.0 % of the memory free")]
    machine.free = 0.5
    transcribe(guard, requests(2), OPTIONS)
    assert label_of(guard) == "fused base int8 cuda"
    assert (machine.engines[Precision.FP16].batches, machine.engines[Precision.INT8].batches) == ([[0, 1]], [[0, 1]])


def test_when_it_is_calm_again_the_precision_that_is_wanted_comes_back() -> None:
    machine = Machine("fp16", "int8", calm_batches=2)
    guard = machine.guard()
    machine.free = 0.05
    guard.settle(1, 10)
    machine.free = 0.5
    guard.settle(1, 10)
    guard.settle(1, 10)
    assert machine.loads == ["fp16", "int8", "fp16"]
    assert machine.watch.told[-1] == ("up", Precision.FP16, "fused base fp16 cuda", "2 calm batches")
    assert guard.fingerprint == "wanted"


def test_at_the_last_rung_batches_are_halved_and_it_is_told() -> None:
    machine = Machine(most=16)
    guard = machine.guard()
    machine.free = 0.01
    guard.settle(16, 10)
    assert machine.watch.told == [("bounded", 8, "1.0 % of the memory free")]
    assert guard.most_slices == 8


def test_three_late_batches_are_a_step_down_and_the_bound_follows_the_target() -> None:
    machine = Machine("bf16", "int8", most=16, target_ms=1000)
    guard = machine.guard()
    for _ in range(3):
        guard.settle(16, 4000)
    assert guard.most_slices == 4
    assert [one[:2] for one in machine.watch.told] == [("down", Precision.INT8)]


def test_a_rung_that_cannot_be_loaded_is_left_out_and_the_one_before_comes_back() -> None:
    machine = Machine("fp16", "int8")
    guard = machine.guard()
    machine.lacking[Precision.INT8] = OutOfMemoryError("no room")
    machine.free = 0.05
    guard.settle(1, 10)
    assert texts(guard.transcribe(requests(1), GREEDY)) == ["0"]
    assert (guard.label, machine.watch.told) == ("fused base fp16 cuda", [])


def test_an_engine_that_does_not_fit_begins_one_rung_lower() -> None:
    machine = Machine("fp16", "int8")
    machine.lacking[Precision.FP16] = OutOfMemoryError("no room")
    assert machine.guard().label == "fused base int8 cuda"


def test_where_no_rung_can_be_loaded_it_is_said_at_once() -> None:
    machine = Machine("fp16", "int8")
    machine.lacking = dict.fromkeys(machine.engines, UsageError("the model is damaged"))
    with pytest.raises(UsageError, match="damaged"):
        machine.guard()


def test_where_all_that_is_wanted_was_found_wrong_something_more_exact_is_taken() -> None:
    machine = Machine("int8", "fp32")
    machine.proofs[Precision.INT8].precision = Verdict(False, "encoder output off by 30 %")
    assert machine.guard(rungs=1).label == "fused base fp32 cuda"
    machine.proofs[Precision.INT8].precision = None
    assert machine.guard(rungs=1).label == "fused base int8 cuda"


def test_a_step_that_loads_nothing_costs_no_batch_and_the_next_one_waits_until_there_is_room() -> None:
    machine = Machine("fp16", "int8")
    guard = machine.guard()
    machine.lacking = dict.fromkeys(machine.engines, OutOfMemoryError("no room"))
    machine.free = 0.01
    assert transcribe(guard, requests(1), OPTIONS)[0].segments[0].text == "0"
    with pytest.raises(RetriableError, match="no room"):
        guard.transcribe(requests(1), GREEDY)
    machine.lacking = {}
    assert texts(guard.transcribe(requests(1), GREEDY)) == ["0"]
    assert guard.label == "fused base int8 cuda"


def test_a_size_can_be_proven_ahead() -> None:
    machine = Machine()
    machine.guard().prove(8, 3)
    assert machine.proofs[Precision.FP16].asked == [(8, 3)]
    assert machine.engines[Precision.FP16].batches == []


def test_a_precision_that_doctor_found_wrong_is_not_used() -> None:
    machine = Machine("fp16", "int8")
    machine.proofs[Precision.FP16].precision = Verdict(False, "encoder output off by 30 %")
    assert machine.guard().label == "fused base int8 cuda"
    machine.proofs[Precision.INT8].precision = Verdict(False, "encoder output off by 40 %")
    with pytest.raises(UsageError, match=r"int8 cuda is refused: encoder output off by 40 %; run: lecturemill doctor"):
        machine.guard()


class TorchLikeError(RuntimeError):
    """As PyTorch's class: it is known by its name, since PyTorch is not imported to ask."""


TorchLikeError.__name__ = "OutOfMemoryError"


@pytest.mark.parametrize(
    "error",
    [
        TorchLikeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        TorchLikeError("whatever it says"),
        RuntimeError("CUDA failed with error out of memory"),
        RuntimeError("cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("Exception from src/inference/src/cpp/infer_request.cpp:223: bad allocation"),
        MemoryError("Unable to allocate 2.00 GiB for an array"),
    ],
)
def test_a_lack_of_memory_is_known_whoever_says_it(error: Exception) -> None:
    assert is_out_of_memory(error)
    assert isinstance(failure_of(error, 3), OutOfMemoryError)


@pytest.mark.parametrize(
    "said",
    [
        "CUDA failed with error an illegal memory access was encountered",
        "CUDA error: unspecified launch failure",
        # CTranslate2, in whatever it does after it ran out of memory
        "parallel_for failed: cudaErrorInvalidDevice: invalid device ordinal",
    ],
)
def test_a_device_that_is_lost_is_known_and_no_guard_tries_again(said: str) -> None:
    machine = Machine("fp16", "int8")
    asked: list[int] = []

    def loses(numbers: Sequence[int]) -> bool:
        asked.append(len(numbers))
        raise failure_of(RuntimeError(said), len(numbers))

    machine.engines[Precision.FP16].fits = loses
    with pytest.raises(DeviceLostError, match=said):
        machine.guard().transcribe(requests(8), Decoding())
    assert asked == [8]


@pytest.mark.parametrize("error", [RuntimeError("CUDA failed with error no kernel image"), ValueError("shape")])
def test_other_failures_are_none_of_memory(error: Exception) -> None:
    failure = failure_of(error, 3)
    assert type(failure) is RetriableError
    assert failure.reason == f"the engine failed on a batch of 3 slices: {error}"
