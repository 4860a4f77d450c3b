"""The chances of marks at a step."""

from __future__ import annotations

import numpy as np

from pipeline.engines.mark_tokens import MarkTokens

MARKS = MarkTokens((11, 171), (13,))


def test_the_chances_of_a_kind_are_those_of_its_tokens_together() -> None:
    best = np.array([[500, 11, 13, 171], [500, 501, 502, 503]])
    logprobs = np.log(np.array([[0.5, 0.25, 0.1, 0.0625], [0.9, 0.01, 0.01, 0.01]], np.float32))
    assert MARKS.chances(best, logprobs) == [(0.312, 0.1), (0.0, 0.0)]


def test_a_sum_that_is_rounded_up_is_no_more_than_1() -> None:
    assert MARKS.chances(np.array([[11, 171]]), np.log(np.array([[0.9, 0.101]]))) == [(1.0, 0.0)]


def test_what_a_failing_device_gave_is_no_chance() -> None:
    assert MARKS.chances(np.array([[11, 13]]), np.array([[np.nan, -np.inf]], np.float32)) == [(0.0, 0.0)]
