"""Whether a result is accounted for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.values import Cost, Cue, LedgerSpan, MediaResult, Outcome
from pipeline.verifying import complaints

CUE = Cue(0, 900, ("天地",))


def result(duration_ms: int, *spans: tuple[int, int, Outcome], cues: tuple[Cue, ...] = (CUE,)) -> MediaResult:
    ledger = [LedgerSpan(start_ms, end_ms, outcome, "") for start_ms, end_ms, outcome in spans]
    return MediaResult("m", "zh", duration_ms, 0, (), cues, (), (), ledger, (), Cost(0, 0, 0.0))


@given(st.lists(st.tuples(st.integers(1, 10_000), st.sampled_from(Outcome)), max_size=20))
def test_adjacent_spans_that_add_up_are_no_cause_for_complaint(parts: list[tuple[int, Outcome]]) -> None:
    spans, at_ms = [], 0
    for length_ms, outcome in parts:
        spans.append((at_ms, at_ms + length_ms, outcome))
        at_ms += length_ms
    assert complaints(result(at_ms, *spans)) == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (result(5), "its ledger is empty, its duration 5 ms"),
        (result(9, (0, 8, Outcome.SILENCE)), "its ledger covers 0..8 ms, its duration is 9 ms"),
        (result(9, (1, 9, Outcome.SILENCE)), "its ledger covers 1..9 ms, its duration is 9 ms"),
        (
            result(9, (0, 4, Outcome.SILENCE), (5, 9, Outcome.FAILED)),
            "its ledger goes from 4 ms to 5 ms",
        ),
        (
            result(9, (0, 5, Outcome.SILENCE), (4, 9, Outcome.FAILED)),
            "its ledger goes from 5 ms to 4 ms",
        ),
        (
            result(9, (0, 9, Outcome.TRANSCRIBED), cues=()),
            "9 ms of speech are transcribed, and there is no cue",
        ),
    ],
)
def test_what_does_not_add_up_is_named_with_its_numbers(wrong: MediaResult, said: str) -> None:
    assert complaints(wrong) == (said,)
