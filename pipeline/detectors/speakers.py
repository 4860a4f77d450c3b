"""The voices of a slice: pyannote says where each talks, CAM++ how it sounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.detectors.campplus import Embedder, load_campplus
from pipeline.detectors.pyannote import (
    FRAME_SAMPLES,
    LEAD_SAMPLES,
    STEP_FRAMES,
    WINDOW_SAMPLES,
    load_local_speakers,
)
from pipeline.diarization import Voice
from pipeline.speaker_runs import Activity, Run, clean_frames, joined, runs_of
from pipeline.values import SAMPLES_PER_MS, Samples, Slice, SliceAudio, Span

MIN_CLEAN_FRAMES = 30
"""A run with less than 0.5 s of its own, beside who talks into it, is embedded with all that is heard."""
EMBEDDED_SAMPLES = 5_000 * SAMPLES_PER_MS
"""Of a longer run, its middle: more tells nothing new, and the embedding is most of the work."""
MIN_EMBEDDED_SAMPLES = 100 * SAMPLES_PER_MS


class SpeakerListener:
    """Hears slices, one after the other; keeps nothing of them."""

    def __init__(self, local_speakers: Callable[[Samples], Activity], embed: Embedder) -> None:
        self._local_speakers, self._embed = local_speakers, embed

    def hear(self, audio: SliceAudio) -> tuple[Voice, ...]:
        """The runs of talk of a slice, on the media clock, each with its embedding."""
        activity = self._activity(audio.samples)
        activity &= _spoken(audio.slice, len(activity))[:, None]
        voices = (self._voice(audio, activity, run) for run in runs_of(activity))
        return tuple(voice for voice in voices if voice is not None)

    def _activity(self, samples: Samples) -> Activity:
        """Who talks in each frame of ``samples``, shape ``(frames, 3)``."""
        frames = -(-samples.size // FRAME_SAMPLES)
        return joined(list(map(self._local_speakers, _windows(samples))), STEP_FRAMES, frames)

    def _voice(self, audio: SliceAudio, activity: Activity, run: Run) -> Voice | None:
        clean = clean_frames(activity, run)
        is_clean = int(clean.sum()) >= MIN_CLEAN_FRAMES
        own = audio.samples[run.first * FRAME_SAMPLES : run.last * FRAME_SAMPLES]
        if is_clean:
            own = own[np.repeat(clean, FRAME_SAMPLES)[: own.size]]
        if own.size < MIN_EMBEDDED_SAMPLES:
            return None
        span = _span(audio, run)
        clean_ms = min(own.size // SAMPLES_PER_MS, span.duration_ms) if is_clean else 0
        return Voice(span, clean_ms, self._embed(_middle(own)))


def _spoken(piece: Slice, frames: int) -> npt.NDArray[np.bool_]:
    """The frames in which the detector of the line hears speech, shape ``(frames,)``."""
    spoken = np.zeros(frames, np.bool_)
    for span in piece.speech:
        first, last = (
            (edge_ms - piece.span.start_ms) * SAMPLES_PER_MS // FRAME_SAMPLES
            for edge_ms in (span.start_ms, span.end_ms)
        )
        spoken[first:last] = True
    return spoken


def _windows(samples: Samples) -> Iterator[Samples]:
    """Windows every ``STEP_FRAMES`` until all is heard; their first frame is the samples' own (``LEAD_SAMPLES``)."""
    led = np.pad(samples, (LEAD_SAMPLES, 0))
    step = STEP_FRAMES * FRAME_SAMPLES
    count = 1 + max(0, -(-(led.size - WINDOW_SAMPLES) // step))
    for number in range(count):
        window = led[number * step : number * step + WINDOW_SAMPLES]
        yield np.pad(window, (0, WINDOW_SAMPLES - window.size))


def _middle(samples: Samples) -> Samples:
    start = max(0, (samples.size - EMBEDDED_SAMPLES) // 2)
    return samples[start : start + EMBEDDED_SAMPLES]


def _span(audio: SliceAudio, run: Run) -> Span:
    whole = audio.slice.span
    start_ms = whole.start_ms + run.first * FRAME_SAMPLES // SAMPLES_PER_MS
    end_ms = whole.start_ms + run.last * FRAME_SAMPLES // SAMPLES_PER_MS
    return Span(min(start_ms, whole.end_ms), min(end_ms, whole.end_ms))


def load_speakers(segmentation: Path, embedding: Path) -> SpeakerListener:
    """Load both models. Raises UsageError where the extra ``diarization`` is not installed."""
    return SpeakerListener(load_local_speakers(segmentation), load_campplus(embedding))
