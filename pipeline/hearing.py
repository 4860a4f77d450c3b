"""Steps 1 to 4 in a row: a probed file in, its slices with their samples out, and what was found on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.cutting import cut_slices
from pipeline.decoding import Decoding, decode
from pipeline.finishing import Heard
from pipeline.media import choose_track
from pipeline.slicing import SlicingRules
from pipeline.speech import Detector, SpeechRules
from pipeline.values import MediaInfo, SliceAudio


@dataclass(frozen=True, slots=True)
class HearingRules:
    """What the slices depend on beside the file and the detector."""

    language: str | None
    audio_track: int | None
    """Counted from 1; None leaves the choice to the policy of ``choose_track``."""
    speech: SpeechRules = field(default_factory=SpeechRules)
    slicing: SlicingRules = field(default_factory=SlicingRules)


class Hearing:
    """One media being heard. Iterate it once; ``heard`` is there after the last slice."""

    def __init__(self, why: str, duration_ms: int, decoding: Decoding | None, slices: Iterator[SliceAudio]) -> None:
        self.why = why
        """Which track was taken, and why."""
        self._duration_ms, self._decoding, self._slices = duration_ms, decoding, slices

    def __iter__(self) -> Iterator[SliceAudio]:
        return self._slices

    @property
    def heard(self) -> Heard:
        if self._decoding is None:
            return Heard(self._duration_ms, (), (self.why,))
        report = self._decoding.report
        return Heard(report.duration_ms, report.missing, report.warnings)


@contextmanager
def hear(
    media_id: str, path: Path, info: MediaInfo, rules: HearingRules, detector: Callable[[], Detector], ffmpeg: str
) -> Iterator[Hearing]:
    """Decode and slice; the ffmpeg child ends with the context. Raises InvalidInputError for a file at fault."""
    choice = choose_track(info, rules.audio_track, rules.language)
    if choice.track is None:
        yield Hearing(choice.why, info.duration_ms or 0, None, iter(()))
        return
    with decode(path, info, choice.track, ffmpeg=ffmpeg) as decoding:
        slices = cut_slices(media_id, decoding, detector(), rules.speech, rules.slicing)
        yield Hearing(choice.why, 0, decoding, slices)
