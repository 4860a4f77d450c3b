"""How much counts what was heard at the end of a word: ``python -m training.hearing LECTURES [MORE …]``.

Each is a folder of lectures that are in no benchmark set: ``zh_name.wav``, beside it ``zh_name.json`` with what is said
(``[{"text", "start_ms", "end_ms"}, …]``) and, if there is one, its glossary ``zh_name.csv``. They go through the line
once; what it hears is kept beside them. Writers differ in how many commas they set: those of the first folder are
followed, and a folder more has a constant of its own, which is not kept.

Prints the log loss of a place in the first folder without and with what was heard, each lecture weighed by what the
others gave, and writes ``pipeline/postprocess/mark_hearing.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.data import item_of
from bench.folding import Mark
from bench.scoring import marks_wanted
from bench.transcripts import transcripts_of
from bench.values import Item, Timed
from pipeline.postprocess import postprocess
from pipeline.postprocess.mark_choice import chances_after, own_mark
from pipeline.postprocess.mark_hearing import END, INPUTS, INSIDE, LANGUAGES, NO_MARK, evidence, kind_of, moved
from pipeline.postprocess.punctuation import tidied
from pipeline.stitching import stitch
from pipeline.values import Ending, Word

Floats = npt.NDArray[np.float64]
_Row = tuple[tuple[float, float, float], Ending, int]
"""The mark model's chances by kind, what was heard, and the kind that the reference has."""

FOLDS = 8
PENALTY = 3.0
"""Of the square of a weight, over inputs of unit variance."""
MORE_SHARE = 0.3
"""How much a lecture of a folder more counts beside one of the first."""
STEPS = 20
OUT = Path(__file__).parents[1] / "pipeline" / "postprocess" / "mark_hearing.json"


@dataclass(frozen=True, slots=True)
class Places:
    """Places of one lecture after which Whisper set the same kind of mark."""

    evidence: Floats
    kinds: Floats
    """The mark model's chances, ``(places, 3)``."""
    wanted: npt.NDArray[np.int64]
    shares: Floats
    """How much each place counts: a lecture that was heard twice does not count twice."""


def lectures(folder: Path, language: str) -> Iterator[Item]:
    for path in sorted(folder.glob(f"{language}_*.json")):
        rows = json.loads(path.read_text("utf-8"))
        sentences = tuple(Timed(row["text"], round(row["start_ms"]), round(row["end_ms"])) for row in rows)
        glossary = path.with_suffix(".csv")
        audio = path.with_suffix(".wav")
        yield item_of(audio, language, sentences, glossary=glossary if glossary.is_file() else None)


def places_of(item: Item, kept: Path, habits: Sequence[float]) -> dict[int, list[Places]]:
    """By Whisper's kind of mark, the places of a lecture without and with its glossary.

    ``habits`` are inputs more: all 0 for the first folder, 1 for the lecture's own of the others.
    """
    found: dict[int, list[Places]] = {NO_MARK: [], INSIDE: []}
    ways = (False, True) if item.glossary else (False,)
    counts = MORE_SHARE if any(habits) else 1.0
    for with_glossary in ways:
        heard = _heard(item, kept, with_glossary=with_glossary)
        for own, places in _of_words(item, heard, habits, counts / len(ways)).items():
            found[own].append(places)
    return found


def _heard(item: Item, kept: Path, *, with_glossary: bool) -> list[Word]:
    """The words as the step that sets marks is given them."""
    heard = transcripts_of(item, with_glossary=with_glossary, folder=kept)
    options = replace(heard.options.postprocess, punctuation=False, numbers=False)
    slices = [one for _, one in stitch(heard.slices, heard.transcripts) if one.language == item.language]
    done = postprocess(slices, heard.options.glossary, options)
    return [word for sentence in done.sentences for word in sentence.words]


def _of_words(item: Item, words: Sequence[Word], habits: Sequence[float], share: float) -> dict[int, Places]:
    language = item.language
    texts = tidied([word.text for word in words], language)
    chances = chances_after([replace(word, ending=None) for word in words], texts, language, None)
    pieces = [Timed(text, word.start_ms, word.end_ms) for text, word in zip(texts, words, strict=True)]
    rows: dict[int, list[_Row]] = {NO_MARK: [], INSIDE: []}
    for word, text, row, mark in list(zip(words, texts, chances, marks_wanted(item, pieces), strict=True))[:-1]:
        own = kind_of(own_mark(text, language))
        if row is not None and mark is not None and word.ending is not None and own != END:
            kinds = row.none, row.of_kind(is_end=False), row.of_kind(is_end=True)
            rows[own].append((kinds, word.ending, _kind_of_reference(mark)))
    return {own: _places(some, habits, share) for own, some in rows.items() if some}


def _places(rows: Sequence[_Row], habits: Sequence[float], share: float) -> Places:
    kinds, endings, wanted = zip(*rows, strict=True)
    given = evidence(np.array(kinds), endings)
    more = np.tile(np.array(habits), (len(rows), 1))
    return Places(np.concatenate([given, more], axis=1), np.array(kinds), np.array(wanted), np.full(len(rows), share))


def _kind_of_reference(mark: Mark) -> int:
    if mark is Mark.NONE:
        return NO_MARK
    return INSIDE if mark is Mark.COMMA else END


def fitted(places: Sequence[Places]) -> Floats:
    """The weights ``(inputs, 2)`` of the likeliest regression, by Newton's method with steps that never go uphill."""
    together = _joined(places)
    spread = together.evidence.std(axis=0)
    spread[spread == 0] = 1.0
    scaled = replace(together, evidence=together.evidence / spread)
    weights: Floats = np.zeros((len(spread), 2))
    for _ in range(STEPS):
        step = _newton(scaled, weights)
        while _penalised(scaled, weights - step) > _penalised(scaled, weights) and np.abs(step).max() > 1e-9:
            step = step / 2
        weights = weights - step
    unscaled: Floats = weights / spread[:, None]
    return unscaled


def _newton(places: Places, weights: Floats) -> Floats:
    """The gradient of the penalised loss, divided by its curvature."""
    guessed = moved(places.kinds, places.evidence, weights)[:, 1:]
    off = (guessed - np.eye(3)[places.wanted][:, 1:]) * places.shares[:, None]
    slope = places.evidence.T @ off + PENALTY * weights
    bend = guessed[:, :, None] * (np.eye(2) - guessed[:, None, :]) * places.shares[:, None, None]
    curve = np.einsum("pi,pkl,pj->ikjl", places.evidence, bend, places.evidence).reshape(slope.size, slope.size)
    step: Floats = np.linalg.solve(curve + PENALTY * np.eye(slope.size), slope.ravel()).reshape(slope.shape)
    return step


def _penalised(places: Places, weights: Floats) -> float:
    return loss(places, weights) + PENALTY / 2 * float(np.square(weights).sum())


def loss(places: Places, weights: Floats) -> float:
    """Minus the log chance of what stood there, summed."""
    return -float(
        places.shares
        @ np.log(moved(places.kinds, places.evidence, weights)[np.arange(len(places.wanted)), places.wanted])
    )


def _joined(places: Sequence[Places]) -> Places:
    return Places(
        np.concatenate([one.evidence for one in places]),
        np.concatenate([one.kinds for one in places]),
        np.concatenate([one.wanted for one in places]),
        np.concatenate([one.shares for one in places]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="LECTURES")
    folders: list[Path] = parser.parse_args().folders
    table = {}
    for language in LANGUAGES:
        heard = [
            [places_of(item, folder / "kept", _habits(at, len(folders))) for item in lectures(folder, language)]
            for at, folder in enumerate(folders)
        ]
        table[language] = [
            _learnt([[one[kind] for one in some] for some in heard], f"{language} {kind}") for kind in (NO_MARK, INSIDE)
        ]
    OUT.write_text(json.dumps(table, indent=1) + "\n", "utf-8")


def _habits(folder: int, folders: int) -> list[float]:
    return [float(folder == other) for other in range(1, folders)]


def _learnt(folders: Sequence[Sequence[Sequence[Places]]], name: str) -> list[list[float]]:
    """The weights that all lectures give, and a line that says how good those of some are for the others."""
    first, more = folders[0], [one for folder in folders[1:] for some in folder for one in some]
    before = after = counted = 0.0
    for fold in range(FOLDS):
        weights = fitted([one for at, some in enumerate(first) for one in some if at % FOLDS != fold] + more)
        left_out = _joined([one for some in first[fold::FOLDS] for one in some])
        before += loss(left_out, np.zeros_like(weights))
        after += loss(left_out, weights)
        counted += float(left_out.shares.sum())
    print(f"{name}: {counted:.0f} places, log loss {before / counted:.4f} -> {after / counted:.4f}")
    rounded: list[list[float]] = fitted([*(one for some in first for one in some), *more])[:INPUTS].round(4).tolist()
    return rounded


if __name__ == "__main__":
    main()
