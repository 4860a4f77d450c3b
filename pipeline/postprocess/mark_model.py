"""How likely each mark is after each unit of a text: a small convolutional network, in NumPy.

Its weights lie beside this file, one set a language, and come from ``training/`` (data, licences and figures are told
there). It hears what the line knows: the units themselves, the pause after each, how stretched it is, the mark that
Whisper set, and capitals. It reaches 33 units to either side in Mandarin, 17 in English.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

from pipeline.one_thread import one_thread
from pipeline.postprocess.mark_units import EN_MARKS, ZH_MARKS, Vocabulary

LANGUAGES = ("zh", "en")
MARKS = {"zh": ZH_MARKS, "en": EN_MARKS}
HEARD_MARKS = ("", "，", "、", "。", "？", "！", "：", "；")
"""The order in which the network takes Whisper's marks, for both languages."""

CHUNK_UNITS = 4096
"""So many units are computed at once: a lecture of ten hours takes no more memory than one of ten minutes."""

EXPECTED_MS = {"zh": (0, 175), "en": (120, 60)}
"""What a unit takes to say: so much, and so much for each syllable (zh) or letter (en). It need not be exact: the
network was trained with a spread of a third around it."""

LATIN_SYLLABLES = 0.7
"""Of one letter or digit inside Chinese."""

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HeardUnit:
    """A unit of text with what was heard of it. ``mark`` is one of ``HEARD_MARKS``."""

    text: str
    duration_ms: float
    pause_ms: int
    """The silence between its end and the next unit."""
    mark: str


@dataclass(frozen=True, slots=True)
class _Layer:
    weight: FloatArray
    """(3, in, out): the taps before, at and after the unit."""
    bias: FloatArray
    dilation: int


class MarkModel:
    """The weights of one language, in single precision."""

    def __init__(self, language: str, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
        self.language = language
        self.vocabulary = Vocabulary(tuple(str(arrays["units"]).split("\n")))
        self._tables = {name: _widened(arrays, name) for name in ("unit", "pair", "ending")}
        self._pause_edges = arrays["pause_edges_ms"].astype(np.float32)
        self._stretch_edges = arrays["stretch_edges"].astype(np.float32)
        self._pair_multipliers = [int(number) for number in arrays["pair_multipliers"].tolist()]
        self._layers = [
            _Layer(_single(arrays, f"layer{at}_weight"), _single(arrays, f"layer{at}_bias"), int(dilation))
            for at, dilation in enumerate(arrays["dilations"].tolist())
        ]
        self._enter = _single(arrays, "enter_weight"), _single(arrays, "enter_bias")
        self._leave = _single(arrays, "leave_weight"), _single(arrays, "leave_bias")

    @property
    def reach_units(self) -> int:
        """How far to either side the network looks; one more for the pair before the farthest unit."""
        return sum(layer.dilation for layer in self._layers) + 1

    def chances(self, units: Sequence[HeardUnit]) -> FloatArray:
        """The chance of each class of ``MARKS`` after each unit, shape ``(units, classes)``, rows adding up to 1."""
        if not units:
            return np.zeros((0, len(MARKS[self.language])), np.float32)
        with one_thread():
            return np.concatenate([self._chunk(units, start) for start in range(0, len(units), CHUNK_UNITS)])

    def _chunk(self, units: Sequence[HeardUnit], start: int) -> FloatArray:
        first = max(0, start - self.reach_units)
        seen = units[first : start + CHUNK_UNITS + self.reach_units]
        return self._scored(seen)[start - first : start - first + CHUNK_UNITS]

    def _scored(self, units: Sequence[HeardUnit]) -> FloatArray:
        weight, bias = self._enter
        state = np.maximum(self._entered(units) @ weight + bias, 0)
        for layer in self._layers:
            state = state + np.maximum(_convolved(state, layer), 0)
        weight, bias = self._leave
        return _softmax(state @ weight + bias)

    def _entered(self, units: Sequence[HeardUnit]) -> FloatArray:
        numbers = np.array(self.vocabulary.numbers([unit.text for unit in units]))
        before = np.concatenate(([0], numbers[:-1]))
        first, second = self._pair_multipliers
        pairs = (before * first + numbers * second) % len(self._tables["pair"])
        shapes = np.array([self.vocabulary.shape(unit.text) for unit in units])
        pauses = np.array([[unit.pause_ms] for unit in units]) >= self._pause_edges
        stretch = np.array([[_stretch(unit, self.language)] for unit in units]) >= self._stretch_edges
        marks = np.array([[unit.mark] for unit in units]) == np.array(HEARD_MARKS)
        known = [self._tables["unit"][numbers], self._tables["pair"][pairs], self._tables["ending"][shapes[:, 1]]]
        return np.concatenate([*known, pauses, stretch, marks, shapes[:, 2:]], axis=1, dtype=np.float32)


@lru_cache(maxsize=len(LANGUAGES))
def load_marks(language: str) -> MarkModel:
    """The weights of ``zh`` or ``en``, read once."""
    with as_file(files("pipeline.postprocess") / f"marks.{language}.npz") as path, np.load(path) as arrays:
        return MarkModel(language, dict(arrays))


def _stretch(unit: HeardUnit, language: str) -> float:
    fixed, each = EXPECTED_MS[language]
    is_latin = language == "zh" and unit.text.isascii()
    syllables = max(1.0, len(unit.text) * LATIN_SYLLABLES) if is_latin else len(unit.text)
    return unit.duration_ms / (fixed + each * syllables)


def _widened(arrays: dict[str, npt.NDArray[np.generic]], name: str) -> FloatArray:
    return _single(arrays, f"{name}_table") * _single(arrays, f"{name}_scale")


def _single(arrays: dict[str, npt.NDArray[np.generic]], name: str) -> FloatArray:
    return arrays[name].astype(np.float32)


def _convolved(state: FloatArray, layer: _Layer) -> FloatArray:
    """Three matrix products over rows shifted by the dilation; beyond the ends stands nothing."""
    step = layer.dilation
    sums = state @ layer.weight[1] + layer.bias
    sums[step:] += state[:-step] @ layer.weight[0]
    sums[:-step] += state[step:] @ layer.weight[2]
    return np.asarray(sums, np.float32)


def _softmax(scores: FloatArray) -> FloatArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)
