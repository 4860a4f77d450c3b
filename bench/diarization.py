"""How well speakers are told apart, and what it costs: ``python -m bench.diarization``.

Needs the extra ``diarization``. Error rates by pyannote.metrics, without a collar, overlaps counted: a dialogue in
three voices with exact turns, joins of read speech by two speakers (made here, turn by turn), meetings of far-field
microphones. Everything runs as the line runs it, on one core: slices by Silero, runs and embeddings for each slice,
one clustering for each file.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import CHECKOUT, SHARED_DATA
from bench.detectors import blocks_of
from bench.machine import describe
from pipeline.cutting import cut_slices
from pipeline.decoding import AudioBlock
from pipeline.detectors.silero import SileroDetector, load_silero
from pipeline.detectors.speakers import SpeakerListener, load_speakers
from pipeline.diarization import diarize
from pipeline.errors import LecturemillError, UsageError
from pipeline.models import default_cache, find_model
from pipeline.slicing import SlicingRules
from pipeline.speech import Detector, SpeechRules
from pipeline.values import SAMPLE_RATE_HZ, SAMPLES_PER_MS, Samples, SliceAudio, Turn

COLUMNS = ("audio", "seconds", "speakers", "found", "DER %", "missed %", "false %", "confused %", "x real time")
LEGEND = (
    "DER: missed, false and confused speech over all speech (no collar, overlaps counted). Missed and false are the "
    "segmentation's, confused the clustering's. Speed: by the processor's time on one core, both models and the "
    "clustering, without loading, decoding and slicing. Joins: reference turns are whole recordings with their own "
    "silence at both ends, which counts as missed."
)
JOIN_PAUSE_MS = 400


@dataclass(frozen=True, slots=True)
class Talk:
    """A recording and its reference turns."""

    name: str
    blocks: Sequence[AudioBlock]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one recording; parts in milliseconds."""

    talk: Talk
    found: int
    total_ms: float
    missed_ms: float
    false_ms: float
    confused_ms: float
    worked_s: float


def talks(shared_data: Path) -> Iterator[Talk]:
    """All recordings, in a fixed order."""
    lectures, meetings = shared_data / "lectures", shared_data / "en" / "ami_meetings"
    dialogue = lectures / "zh_dialog3.opus"
    yield Talk("dialogue, 3 voices", blocks_of(dialogue), rttm(lectures / "zh_dialog3.rttm", dialogue.stem))
    aishell, libri = shared_data / "zh" / "aishell1", shared_data / "en" / "librispeech"
    by_speaker = [sorted(aishell.glob(f"*{name}*.flac"))[:8] for name in ("S0150", "S0252")]
    yield join("AISHELL-1, 2 speakers joined", [path for pair in zip(*by_speaker, strict=False) for path in pair], 11)
    readers = sorted(path for path in libri.iterdir() if path.suffix in (".flac", ".wav"))
    for one, other in ((readers[0], readers[1]), (readers[0], readers[3]), (readers[1], readers[4])):
        first, second = one.name.split("-")[0], other.name.split("-")[0]
        yield pieces(f"LibriSpeech {first} and {second}, pieces of 4 s joined", one, other)
    for path in sorted(meetings.glob("*.flac")):
        turns = rttm(meetings / "ami.rttm", path.stem)
        yield Talk(f"meeting {path.stem}, {len({turn.speaker for turn in turns})} far voices", blocks_of(path), turns)


def rttm(path: Path, uri: str) -> tuple[Turn, ...]:
    """The turns of one file in an RTTM (NIST RT-09)."""
    rows = (line.split() for line in path.read_text("utf-8").splitlines())
    return tuple(
        Turn(round(float(row[3]) * 1000), round((float(row[3]) + float(row[4])) * 1000), row[7])
        for row in rows
        if row[:2] == ["SPEAKER", uri]
    )


def join(name: str, paths: Sequence[Path], speaker_at: int) -> Talk:
    """Recordings one after the other; the speaker is told by the name's characters before ``speaker_at``."""
    return _laid([(path.name[:speaker_at], _samples(path)) for path in paths], name)


def pieces(name: str, one: Path, other: Path) -> Talk:
    """Pieces of two recordings in turn."""
    sounds = [(path.name.split("-")[0], _samples(path)) for path in (one, other)]
    size = 4 * SAMPLE_RATE_HZ
    cut = [
        (speaker, sound[at : at + size])
        for at in range(0, max(len(sound) for _, sound in sounds), size)
        for speaker, sound in sounds
        if len(sound) - at >= SAMPLE_RATE_HZ
    ]
    return _laid(cut, name)


def _laid(parts: Sequence[tuple[str, Samples]], name: str) -> Talk:
    pause = np.zeros(JOIN_PAUSE_MS * SAMPLES_PER_MS, np.float32)
    at_ms, turns, sounds = 0, [], []
    for speaker, sound in parts:
        turns.append(Turn(at_ms, at_ms + sound.size // SAMPLES_PER_MS, speaker))
        sounds += [sound[: sound.size // SAMPLES_PER_MS * SAMPLES_PER_MS], pause]
        at_ms = turns[-1].end_ms + JOIN_PAUSE_MS
    return Talk(name, (AudioBlock(0, np.concatenate(sounds)),), tuple(turns))


def _samples(path: Path) -> Samples:
    return np.concatenate([block.samples for block in blocks_of(path)])


def slices_of(talk: Talk, make_detector: Callable[[], Detector]) -> list[SliceAudio]:
    """The slices as the line cuts them."""
    return list(cut_slices("bench", talk.blocks, make_detector(), SpeechRules(), SlicingRules()))


def tell(talk: Talk, listener: SpeakerListener, make_detector: Callable[[], Detector]) -> Told:
    """Tell the speakers of one recording apart and count the errors."""
    slices = slices_of(talk, make_detector)
    started = time.process_time()
    turns = diarize([voice for one in slices for voice in listener.hear(one)])
    worked_s = time.process_time() - started
    errors = _errors(talk.turns, turns)
    total, missed, false, confused = (
        1000 * errors[part] for part in ("total", "missed detection", "false alarm", "confusion")
    )
    return Told(talk, len({turn.speaker for turn in turns}), total, missed, false, confused, worked_s)


def _errors(wanted: Sequence[Turn], given: Sequence[Turn]) -> Any:
    from pyannote.metrics.diarization import DiarizationErrorRate

    return DiarizationErrorRate(collar=0.0, skip_overlap=False)(_annotation(wanted), _annotation(given), detailed=True)


def _annotation(turns: Sequence[Turn]) -> Any:
    from pyannote.core import Annotation, Segment

    annotation = Annotation()
    for number, turn in enumerate(turns):
        annotation[Segment(turn.start_ms / 1000, turn.end_ms / 1000), number] = turn.speaker
    return annotation


def row(told: Told) -> tuple[str, ...]:
    """One line of the table."""
    length_s = sum(block.samples.size for block in told.talk.blocks) / SAMPLE_RATE_HZ
    parts = (told.missed_ms, told.false_ms, told.confused_ms)
    shares = [f"{100 * part / told.total_ms:.1f}" for part in (sum(parts), *parts)]
    speakers = len({turn.speaker for turn in told.talk.turns})
    return (
        told.talk.name,
        f"{length_s:.0f}",
        str(speakers),
        str(told.found),
        *shares,
        f"{length_s / told.worked_s:.0f}",
    )


def load_all() -> tuple[SpeakerListener, Callable[[], Detector]]:
    """Both speaker models and the detector, from the cache."""
    cache = default_cache()
    segmentation, embedding, silero = (
        find_model(name, cache) for name in ("pyannote-segmentation", "campplus", "silero-vad")
    )
    listener = load_speakers(segmentation.folder / "pytorch_model.bin", embedding.folder / "campplus_cn_en_common.pt")
    session = load_silero(next(silero.folder.glob("*.onnx")))
    return listener, lambda: SileroDetector(session, silero.fingerprint)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 measured; 1 could not be; 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m bench.diarization", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / "results", help="where the report goes")
    out: Path = parser.parse_args(arguments).out
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        listener, make_detector = load_all()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rows = [row(tell(talk, listener, make_detector)) for talk in talks(SHARED_DATA)]
    except LecturemillError as error:
        print(error.reason, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    machine = describe("pyannote-segmentation, campplus", threads=1)
    facts = (
        f"{machine.date}, commit {machine.commit}; {machine.processor}, one core; peak memory {peak // 1024} MiB, of "
        f"which {before // 1024} MiB with the models loaded and nothing heard yet."
    )
    report = "\n\n".join(["# Speakers told apart", table, LEGEND, facts]) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{machine.date}-speakers.md").write_text(report, "utf-8")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
