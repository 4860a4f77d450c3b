"""Is the quality score worth an editor's time? Scores of cues beside the errors that are in them.

``python -m bench.quality``: the lectures as they are and under noise, the derived long files and the real lecture.
Transcripts are kept (``bench.transcripts``), so that only the first run needs the engine.
"""

from __future__ import annotations

import math
import subprocess
import wave
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from bench.data import load
from bench.folding import plain_text, tokens_of
from bench.transcripts import FOLDER, transcripts_of
from bench.values import Item, Timed
from pipeline.decoding import find_ffmpeg
from pipeline.finishing import finish
from pipeline.values import Cost, CueQuality, MediaResult

NOISES_DB = {"white": 8, "pink": 3}
"""How far the speech is above the noise."""
WORST_SHARE = 0.2
BINS = 5


@dataclass(frozen=True, slots=True)
class JudgedCue:
    """A cue with its score and the edits that its text needs."""

    group: str
    quality: CueQuality
    errors: float


def main() -> None:
    """Print the tables."""
    cues = [cue for item, group in _items() for cue in judged(item, group)]
    columns = (
        "cues of",
        "number",
        "with errors",
        "AUC",
        "errors expected",
        "made",
        "in the worst fifth",
        "wrong there",
    )
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for group in (*sorted({cue.group for cue in cues}), "all"):
        print(_row(group, [cue for cue in cues if group in ("all", cue.group)]))
    print("\n| score | cues | mean score | without an error |\n|---|---|---|---|")
    for part in _bins(cues):
        right = sum(not cue.errors for cue in part) / len(part)
        low, high = part[0].quality.score, part[-1].quality.score
        mean = sum(cue.quality.score for cue in part) / len(part)
        print(f"| {low:.2f} to {high:.2f} | {len(part)} | {mean:.2f} | {right:.2f} |")


def judged(item: Item, group: str) -> Iterator[JudgedCue]:
    """The cues that the line makes of a file. An edit that drops a word counts for the cue behind it."""
    kept = transcripts_of(item, with_glossary=True)
    text = (kept.options.glossary, kept.options.postprocess)
    result = finish(item.name, kept.slices, kept.transcripts, kept.heard, *text, Cost(0, 0, 0.0), kept.options.profile)
    errors = cue_errors(item, result)
    for index, quality in enumerate(result.qualities):
        yield JudgedCue(group, quality, errors[index])


def cue_errors(item: Item, result: MediaResult) -> Counter[int]:
    """Edits by cue, from the least number of edits between the reference and the cues."""
    cues = [Timed(cue.text, cue.start_ms, cue.end_ms) for cue in result.cues]
    reference = item.sentences or (Timed(item.text, 0, item.duration_ms),)
    context = plain_text(tokens_of(cues, item.language, joint="\n"), item.language)
    wanted = tokens_of(reference, item.language, joint="\n", context=context)
    heard = tokens_of(cues, item.language, joint="\n", context=plain_text(wanted, item.language))
    errors: Counter[int] = Counter()
    for step in Levenshtein.opcodes([token.text for token in wanted], [token.text for token in heard]):
        if step.tag != "equal" and heard:
            places = range(step.dest_start, step.dest_end) or [min(step.dest_start, len(heard) - 1)]
            edits = max(step.src_end - step.src_start, step.dest_end - step.dest_start)
            errors.update({heard[place].piece: 0 for place in places})
            errors[heard[places[0]].piece] += edits
    return errors


def auc(scores: Sequence[float], is_wrong: Sequence[bool]) -> float:
    """How often a wrong one scores below a right one (ties count half); nan where there are not both."""
    wrong = [score for score, one in zip(scores, is_wrong, strict=True) if one]
    right = [score for score, one in zip(scores, is_wrong, strict=True) if not one]
    if not wrong or not right:
        return math.nan
    below = sum((bad < good) + (bad == good) / 2 for bad in wrong for good in right)
    return below / (len(wrong) * len(right))


def _row(group: str, cues: Sequence[JudgedCue]) -> str:
    worst = sorted(cues, key=lambda cue: cue.quality.score)[: math.ceil(WORST_SHARE * len(cues))]
    made = sum(cue.errors for cue in cues)
    figures = (
        f"{sum(cue.errors > 0 for cue in cues) / len(cues):.0%}",
        f"{auc([cue.quality.score for cue in cues], [cue.errors > 0 for cue in cues]):.2f}",
        f"{sum(cue.quality.expected_errors for cue in cues):.0f}",
        f"{made:.0f}",
        f"{sum(cue.errors for cue in worst) / max(1, made):.0%}",
        f"{sum(cue.errors > 0 for cue in worst) / len(worst):.0%}",
    )
    return f"| {group} | {len(cues)} | {' | '.join(figures)} |"


def _bins(cues: Sequence[JudgedCue]) -> Iterator[Sequence[JudgedCue]]:
    ordered = sorted(cues, key=lambda cue: cue.quality.score)
    for index in range(BINS):
        yield ordered[index * len(ordered) // BINS : (index + 1) * len(ordered) // BINS]


def _items() -> Iterator[tuple[Item, str]]:
    for name in ("lectures", "derived", "swc"):
        yield from ((item, name) for item in load(name))
    for item in load("lectures"):
        for colour, snr_db in NOISES_DB.items():
            path = FOLDER / f"{item.name}-{colour}.wav"
            if not path.is_file():
                FOLDER.mkdir(parents=True, exist_ok=True)
                _write(path, with_noise(_samples(item.path), colour, snr_db))
            yield replace(item, name=f"{item.name}-{colour}", path=path), f"lectures, {colour} noise at {snr_db} dB"


def with_noise(samples: npt.NDArray[np.float64], colour: str, snr_db: float) -> npt.NDArray[np.float64]:
    """The samples with noise so far below the level of their louder parts; the same noise each time."""
    noise = np.random.default_rng(1).standard_normal(len(samples))
    if colour == "pink":
        spectrum = np.fft.rfft(noise)
        noise = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), len(samples))
    speech = samples[np.abs(samples) > 0.01]
    level = math.sqrt(float(np.mean(speech**2)) / float(np.mean(noise**2))) * 10 ** (-snr_db / 20)
    return np.clip((samples + level * noise) * 0.6, -1, 1)


def _samples(path: Path) -> npt.NDArray[np.float64]:
    command = [find_ffmpeg(), "-v", "error", "-nostdin", "-i", str(path), "-vn", "-ac", "1", "-ar", "16000"]
    done = subprocess.run([*command, "-f", "s16le", "-"], capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.int16) / 32768


def _write(path: Path, samples: Iterable[float]) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes((np.asarray(samples) * 32767).astype(np.int16).tobytes())


if __name__ == "__main__":
    main()
