"""How the benchmark of the quality score counts."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from bench.quality import auc, cue_errors, with_noise
from bench.values import Item, Timed
from pipeline.values import Cost, Cue, MediaResult


def _errors(reference: str, *cues: str) -> list[float]:
    shown = tuple(Cue(at * 1000, at * 1000 + 900, (text,)) for at, text in enumerate(cues))
    result = MediaResult("m", "zh", 9000, 9000, (), shown, (), (), (), (), Cost(0, 0, 0.0))
    errors = cue_errors(Item("m", Path("m"), "zh", 9000, reference, True, (Timed(reference, 0, 9000),)), result)
    return [errors[index] for index in range(len(cues))]


def test_an_edit_counts_for_the_cue_that_it_is_in() -> None:
    assert _errors("勾股定理很重要", "购股定理", "很重要") == [1, 0]
    assert _errors("勾股定理很重要", "勾股定理", "很很重") == [0, 2]


def test_a_word_that_was_dropped_counts_for_the_cue_behind_it() -> None:
    assert _errors("勾股定理很重要", "勾股", "很重要") == [0, 2]
    assert _errors("勾股定理很重要", "勾股定理") == [3]


def test_auc_is_one_where_every_wrong_cue_scores_below_every_right_one() -> None:
    assert auc([0.1, 0.2, 0.9], [True, True, False]) == 1
    assert auc([0.5, 0.5], [True, False]) == 0.5
    assert math.isnan(auc([0.5], [True]))


@pytest.mark.parametrize("colour", ["white", "pink"])
def test_noise_lies_as_far_below_the_speech_as_was_asked(colour: str) -> None:
    speech = 0.2 * np.sign(np.sin(np.arange(16_000)))
    noise = with_noise(speech, colour, 8) / 0.6 - speech
    assert 10 * math.log10(np.mean(speech**2) / np.mean(noise**2)) == pytest.approx(8, abs=0.01)
