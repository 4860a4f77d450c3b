"""The speech detectors side by side: ``python -m bench.detectors``.

Both run as the line runs them (5-s blocks, one ``SpeechGate``), on one core. References: the sentences of the lectures,
the turns of the meetings; the rest has no speech. The report goes to the terminal and into
``bench/results/<date>-detectors.md``.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from bench.data import CHECKOUT
from bench.detection import PAUSE_MS, REACH_MS, Detection, compare, recordings
from bench.machine import Machine, describe
from bench.scoring import percentile
from pipeline.decoding import AudioBlock, decode, find_ffmpeg
from pipeline.detectors.pyannote import PyannoteDetector, load_pyannote
from pipeline.detectors.silero import SileroDetector, load_silero
from pipeline.errors import LecturemillError, UsageError
from pipeline.media import choose_track, probe
from pipeline.models import default_cache, find_model
from pipeline.speech import Detector, SpeechGate, SpeechRules
from pipeline.values import SAMPLES_PER_MS, Span

COLUMNS = (
    "audio",
    "detector",
    "minutes",
    "error %",
    "missed %",
    "false %",
    "onset ms, median / p90",
    "false s",
    "x real time",
)
LEGEND = (
    "Missed and false: speech not found, and silence taken for speech, in % of the speech; error is their sum, no "
    f"collar. Onset: distance of each reference start after a pause of {PAUSE_MS} ms from the nearest start of a "
    f"span; missed: none within {REACH_MS} ms. False s: seconds of speech heard where there is none. Speed: by the "
    "processor's time on one core, without loading and decoding."
)

Loader = Callable[[], Callable[[], Detector]]


def load_both() -> dict[str, Loader]:
    """Each detector by its name; calling one opens its model, and gives what makes a detector of one media."""

    def silero() -> Callable[[], Detector]:
        model = find_model("silero-vad", default_cache())
        session = load_silero(model.folder / "silero_vad_16k_sequence.onnx")
        return lambda: SileroDetector(session, model.fingerprint)

    def pyannote() -> Callable[[], Detector]:
        model = find_model("pyannote-segmentation", default_cache())
        network = load_pyannote(model.folder / "pytorch_model.bin")
        return lambda: PyannoteDetector(network, model.fingerprint)

    return {"silero": silero, "pyannote": pyannote}


def blocks_of(path: Path) -> Sequence[AudioBlock]:
    """The audio of a file as the line decodes it."""
    info = probe(path)
    track = choose_track(info, None, None).track
    if track is None:
        raise UsageError(f"{path} has no audio to measure on")
    with decode(path, info, track, ffmpeg=find_ffmpeg()) as decoding:
        return tuple(decoding)


def hear(detector: Detector, blocks: Sequence[AudioBlock]) -> tuple[list[Span], float]:
    """The speech spans of one file, and the processor seconds that they took."""
    started = time.process_time()
    gate = SpeechGate(SpeechRules(), detector.frame_samples)
    spans = [span for block in blocks for span in gate.push(detector.score(block.samples))]
    spans += [*gate.push(detector.finish()), *gate.finish(length_ms(blocks))]
    return spans, time.process_time() - started


def length_ms(blocks: Sequence[AudioBlock]) -> int:
    """How much audio the blocks hold."""
    return sum(len(block.samples) for block in blocks) // SAMPLES_PER_MS


def measure(loaders: dict[str, Loader]) -> tuple[dict[tuple[str, str], Detection], list[str]]:
    """The sums by group and detector, and why a detector is not among them."""
    ready, problems = {}, []
    for name, loader in loaders.items():
        try:
            ready[name] = loader()
        except UsageError as error:
            problems.append(f"{name}: not measured: {error.reason}")
    sums: dict[tuple[str, str], Detection] = {}
    for recording in recordings():
        blocks = blocks_of(recording.path)
        for name, make in ready.items():
            heard, worked_s = hear(make(), blocks)
            found = compare(recording.speech, heard, length_ms(blocks))
            key = recording.group, name
            sums[key] = sums.get(key, Detection()) + found + Detection(worked_s=worked_s)
    return sums, problems


def markdown(sums: dict[tuple[str, str], Detection], problems: Sequence[str], machine: Machine) -> str:
    """The table, its legend, and what it was measured with."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([*key, *_cells(found)] for key, found in sums.items())]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return "\n\n".join(["# Speech detectors", table, LEGEND, *problems, _facts(machine)]) + "\n"


def _cells(found: Detection) -> list[str]:
    percents = [
        f"{100 * part_ms / found.speech_ms:.1f}" if found.speech_ms else "–"
        for part_ms in (found.missed_ms + found.false_ms, found.missed_ms, found.false_ms)
    ]
    middle, late = (percentile(found.onsets.errors_ms, percent) for percent in (50, 90))
    onsets = "–" if math.isnan(middle) else f"{middle:.0f} / {late:.0f} ({found.onsets.missed} missed)"
    speed = found.duration_ms / 1000 / found.worked_s
    return [
        f"{found.duration_ms / 60_000:.1f}",
        *percents,
        onsets,
        f"{found.false_ms / 1000:.1f}",
        f"{speed:.0f}",
    ]


def _facts(machine: Machine) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    return f"{machine.date}, commit {machine.commit}; {machine.processor}, one core; {versions}."


def machine_for(measured: Sequence[str]) -> Machine:
    """This machine, with the versions of what only pyannote needs where it was measured."""
    machine = describe(", ".join(measured), threads=1)
    extra = {name: version(name) for name in ("pyannote.audio", "torch") if "pyannote" in measured}
    return replace(machine, versions=machine.versions | extra)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 both measured; 1 one was not, with its reason printed; 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m bench.detectors", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results", help="where the report goes")
    out: Path = parser.parse_args(arguments).out
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        sums, problems = measure(load_both())
    except LecturemillError as error:
        print(error.reason, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    machine = machine_for(list(dict.fromkeys(name for _, name in sums)))
    report = markdown(sums, problems, machine)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{machine.date}-detectors.md").write_text(report, "utf-8")
    print(report)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
