"""What was heard at the end of a word, weighed against what the mark model says of the words: how likely Whisper finds
a mark, and how long it is quiet.

A logistic regression, one for places where Whisper set no mark and one for its marks inside a sentence; where it ended
a sentence there is next to nothing to learn. The weights lie beside this file; ``training.hearing`` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from pipeline.postprocess.mark_model import MARKS
from pipeline.values import Ending

FloatArray = npt.NDArray[np.float64]

ENDS = frozenset("。？！.?!")
NO_MARK, INSIDE, END = range(3)
"""The kinds of marks, in the order of all arrays here."""
MODEL_LEAST = -7.0
"""The mark model's log chances are not taken for lower, nor Whisper's log odds for lower or higher than these."""
ODDS_LEAST, ODDS_MOST = -4.0, 8.0
LANGUAGES = ("zh",)
"""Not English, where Whisper leaves out few marks: lectures of our own had an F1 of 0.953 without and 0.955 with what
was heard, people who read or talk 0.761 and, at the best thresholds, 0.765."""
QUIET_MS = ((30, 90), (90, 150), (150, 250))
"""A longer quiet says more, but not evenly so."""
INPUTS = 5 + len(QUIET_MS)
TINY = 1e-9


def kind_of(mark: str) -> int:
    """The kind of a mark, which may be empty.

    >>> kind_of(""), kind_of("，"), kind_of("?")
    (0, 1, 2)
    """
    return (END if mark in ENDS else INSIDE) if mark else NO_MARK


def by_kind(chances: npt.NDArray[np.floating], language: str) -> FloatArray:
    """The chances of the model's classes ``(places, classes)`` summed by kind, ``(places, 3)``."""
    return chances.astype(np.float64) @ np.eye(3)[[kind_of(mark) for mark in MARKS[language]]]


def evidence(kinds: FloatArray, endings: Sequence[Ending]) -> FloatArray:
    """What the regression is given of each place, ``(places, INPUTS)``: 1; how much likelier than no mark a mark inside
    and an end are by the model; the log odds of both by Whisper; how far the quiet reaches into each of ``QUIET_MS``.

    ``kinds (places, 3)`` are the model's chances.
    """
    model = np.maximum(np.log(np.maximum(kinds, TINY)), MODEL_LEAST)
    heard = np.array(endings, np.float64).reshape(-1, 3)
    none = 1 - heard[:, :1] - heard[:, 1:2]
    odds = np.clip(np.log(np.maximum(heard[:, :2], TINY) / np.maximum(none, TINY)), ODDS_LEAST, ODDS_MOST)
    quiet = [np.clip((heard[:, 2:] - least_ms) / (most_ms - least_ms), 0, 1) for least_ms, most_ms in QUIET_MS]
    return np.concatenate([np.ones((len(kinds), 1)), model[:, 1:] - model[:, :1], odds, *quiet], axis=1)


def moved(kinds: FloatArray, given: FloatArray, weights: FloatArray) -> FloatArray:
    """The chances of the kinds ``(places, 3)``, moved by what is given ``(places, inputs)``.

    ``weights`` are ``(inputs, 2)``, or ``(places, inputs, 2)`` where each place has its own.
    """
    scores = np.log(np.maximum(kinds, TINY))
    scores[:, 1:] += (given[:, None] @ weights)[:, 0]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: FloatArray = powers / powers.sum(axis=1, keepdims=True)
    return shares


def weighed(
    chances: npt.NDArray[np.floating], endings: Sequence[Ending | None], owns: Sequence[str], language: str
) -> npt.NDArray[np.floating]:
    """The chances of the classes ``(places, classes)`` with what was heard; Whisper's own marks are ``owns``.

    A place of which the engine does not tell, or where Whisper ended a sentence, stays as it is. In a kind the model
    decides.
    """
    told = {at: one for at, (one, own) in enumerate(zip(endings, owns, strict=True)) if one and kind_of(own) != END}
    if not told or language not in LANGUAGES:
        return chances
    rows = list(told)
    before = by_kind(chances[rows], language)
    weights = load_hearing(language)[[kind_of(owns[at]) for at in rows]]
    after = moved(before, evidence(before, list(told.values())), weights)
    changed = chances.astype(np.float64)
    changed[rows] *= (after / np.maximum(before, TINY))[:, [kind_of(mark) for mark in MARKS[language]]]
    return changed


@lru_cache
def load_hearing(language: str) -> FloatArray:
    """The weights of one of ``LANGUAGES``, ``(2, INPUTS, 2)``: by Whisper's own kind of mark, and for which kind."""
    table = json.loads((files("pipeline.postprocess") / "mark_hearing.json").read_text("utf-8"))
    return np.array(table[language])
