"""Text into arrays: ``python -m training.prepare CORPUS OUT``. What ``training.train`` needs lies in ``OUT`` then."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pipeline.postprocess.mark_units import EN_MARKS, ZH_MARKS, Vocabulary, units_of
from training.lectures import made_up, scripts

VOCABULARY_UNITS = {"zh": 3500, "en": 7000}
LEAST_COUNT = 3
HOMOPHONES = 8
MADE_UP_CHARACTERS = {"zh": 1_600_000, "en": 3_000_000}
_OPENERS_EN = (
    "in on at of to for with from by that which who where when and or but is are was were equals has have had can will "
    "must may should does do as than into through over under between because while only so if"
)
OPENERS = {
    "zh": list("在是和与跟把由对从向而也都就才又将被用到为会能可要有以并或及来去使让给比于等所如因但"),
    "en": _OPENERS_EN.split(),
}
"""Units before which a voice may pause though nobody writes a mark."""


def marked_units(text: str, language: str) -> tuple[list[str], list[int]]:
    """The units of a paragraph, and for each the number of the mark after it (0 none)."""
    marks = ZH_MARKS if language == "zh" else EN_MARKS
    units, labels = [], []
    for unit, mark in units_of(text, language):
        units.append(unit)
        labels.append(marks.index(mark) if mark in marks else 0)
    return units, labels


def homophones(vocabulary: Vocabulary) -> np.ndarray:
    """For each unit up to eight others with the same syllable, tone aside; itself where there is none."""
    from pypinyin import Style, lazy_pinyin

    by_sound: dict[str, list[int]] = {}
    for number, unit in enumerate(vocabulary.units):
        if len(unit) == 1 and "\u4e00" <= unit <= "\u9fff":
            by_sound.setdefault(lazy_pinyin(unit, style=Style.NORMAL)[0], []).append(number)
    table = np.repeat(np.arange(len(vocabulary.units))[:, None], HOMOPHONES, 1)
    for numbers in by_sound.values():
        for number in numbers:
            others = [other for other in numbers if other != number][:HOMOPHONES] or [number]
            table[number] = [others[at % len(others)] for at in range(HOMOPHONES)]
    return table.astype(np.int32)


def coded(
    texts: Iterable[str], language: str, vocabulary: Vocabulary
) -> Iterator[tuple[int, int, tuple[int, int, int]]]:
    """(number, mark, shape) of each unit; a paragraph without a last mark ends in a period."""
    for text in texts:
        units, marks = marked_units(text, language)
        if marks and not marks[-1]:
            marks[-1] = 3
        yield from zip(vocabulary.numbers(units), marks, map(vocabulary.shape, units), strict=True)


def prepare(corpus: Path, language: str, out: Path) -> None:
    """Write ``OUT/<language>.npz``."""
    parts = {part: (corpus / f"{language}.{part}.txt").read_text("utf-8").splitlines() for part in ("train", "held")}
    parts["spoken"] = made_up(language, MADE_UP_CHARACTERS[language], seed=1)
    parts |= {"scripts": scripts(language, is_held_out=False), "held_scripts": scripts(language, is_held_out=True)}
    seen = (
        unit for part in ("train", "spoken", "scripts") for text in parts[part] for unit, _ in units_of(text, language)
    )
    vocabulary = Vocabulary.of(Counter(unit.casefold() for unit in seen), VOCABULARY_UNITS[language], LEAST_COUNT)
    arrays: dict[str, np.ndarray] = {"units": np.array(vocabulary.units)}
    for part, texts in parts.items():
        ids, labels, shapes = zip(*coded(texts, language, vocabulary), strict=True)
        arrays[f"{part}_ids"] = np.array(ids, np.int32)
        arrays[f"{part}_labels"] = np.array(labels, np.int8)
        arrays[f"{part}_shapes"] = np.array(shapes, np.int16)
        print(language, part, len(ids), np.bincount(labels), flush=True)
    arrays["homophones"] = homophones(vocabulary) if language == "zh" else np.zeros((0, HOMOPHONES), np.int32)
    arrays["openers"] = np.isin(arrays["units"], OPENERS[language])
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / f"{language}.npz", **arrays)  # type: ignore[arg-type, unused-ignore]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--language", choices=("zh", "en"), action="append")
    arguments = parser.parse_args()
    for language in arguments.language or ("zh", "en"):
        prepare(arguments.corpus, language, arguments.out)


if __name__ == "__main__":
    main()
