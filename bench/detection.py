"""What the speech detectors are measured on, and how one is scored: the files, where speech is in them, the errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.data import SHARED_DATA, load
from bench.scoring import StartErrors
from pipeline.values import Span

SPEECHLESS = {
    "silence": (
        "fixtures/androidx/mp4_silent-black-25s.mp4",
        "fixtures/auto_editor/only-video_man-on-green-screen.mp4",
        "fixtures/whisper_timestamped/empty.mp3",
    ),
    "film sound": (
        "fixtures/androidx/mkv_bbb_1ch_48kHz_q10_opus.webm",
        "fixtures/lhotse/big_buck_bunny_small.mp4",
    ),
    "song": ("other/song/paulallen_70s.opus",),
}
PAUSE_MS = 300
"""Onsets are looked for after a pause at least this long: a shorter one may be left inside speech."""
REACH_MS = 500
"""An onset with no span that starts within this is missed: the detector bridged the pause before it."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A file and where speech is in it, ordered and apart."""

    group: str
    path: Path
    speech: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Detection:
    """One detector on one file, or on several: everything adds up."""

    duration_ms: int = 0
    speech_ms: int = 0
    missed_ms: int = 0
    false_ms: int = 0
    onsets: StartErrors = field(default_factory=StartErrors)
    worked_s: float = 0.0

    def __add__(self, other: Detection) -> Detection:
        return Detection(
            self.duration_ms + other.duration_ms,
            self.speech_ms + other.speech_ms,
            self.missed_ms + other.missed_ms,
            self.false_ms + other.false_ms,
            self.onsets + other.onsets,
            self.worked_s + other.worked_s,
        )


def recordings(shared_data: Path = SHARED_DATA) -> Iterator[Recording]:
    """All files, in a fixed order; UsageError where the shared folder is not there."""
    for item in load("lectures", shared_data):
        speech = (Span(sentence.start_ms, sentence.end_ms) for sentence in item.sentences)
        yield Recording("lectures", item.path, merged(speech))
    meetings = shared_data / "en" / "ami_meetings"
    turns = (meetings / "ami.rttm").read_text("utf-8")
    for path in sorted(meetings.glob("*.flac")):
        yield Recording("meetings", path, merged(rttm_spans(turns, path.stem)))
    for group, names in SPEECHLESS.items():
        yield from (Recording(group, shared_data / name, ()) for name in names)


def rttm_spans(turns: str, uri: str) -> Iterator[Span]:
    """The speaker turns of one file out of an RTTM (NIST RT-09: type, file, channel, start and duration in seconds).

    >>> list(rttm_spans("SPEAKER a 1 0.8 1.25 <NA> <NA> x <NA> <NA>", "a"))
    [Span(start_ms=800, end_ms=2050)]
    """
    for fields in map(str.split, turns.splitlines()):
        if fields[:2] == ["SPEAKER", uri]:
            start_ms = round(float(fields[3]) * 1000)
            yield Span(start_ms, start_ms + round(float(fields[4]) * 1000))


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The union of spans, ordered and apart.

    >>> merged([Span(5, 9), Span(0, 3), Span(2, 4)])
    (Span(start_ms=0, end_ms=4), Span(start_ms=5, end_ms=9))
    """
    union: list[Span] = []
    for span in sorted(spans):
        if union and span.start_ms <= union[-1].end_ms:
            union[-1] = Span(union[-1].start_ms, max(union[-1].end_ms, span.end_ms))
        else:
            union.append(span)
    return tuple(union)


def compare(speech: Sequence[Span], heard: Sequence[Span], duration_ms: int) -> Detection:
    """What was missed and made up, to the millisecond.

    >>> found = compare([Span(100, 500)], [Span(150, 600)], duration_ms=1000)
    >>> found.speech_ms, found.missed_ms, found.false_ms, found.onsets.errors_ms
    (400, 50, 100, (50,))
    """
    wanted, given = _mask(speech, duration_ms), _mask(heard, duration_ms)
    missed_ms, false_ms = int((wanted & ~given).sum()), int((given & ~wanted).sum())
    return Detection(duration_ms, int(wanted.sum()), missed_ms, false_ms, _onsets(speech, heard))


def _mask(spans: Sequence[Span], duration_ms: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(duration_ms, np.bool_)
    for span in spans:
        mask[span.start_ms : span.end_ms] = True
    return mask


def _onsets(speech: Sequence[Span], heard: Sequence[Span]) -> StartErrors:
    ends_ms = [-PAUSE_MS, *(span.end_ms for span in speech)]
    starts = [
        span.start_ms for span, end_ms in zip(speech, ends_ms, strict=False) if span.start_ms - end_ms >= PAUSE_MS
    ]
    nearest = [min((abs(span.start_ms - start) for span in heard), default=REACH_MS + 1) for start in starts]
    found = tuple(distance for distance in nearest if distance <= REACH_MS)
    return StartErrors(found, len(starts) - len(found))
