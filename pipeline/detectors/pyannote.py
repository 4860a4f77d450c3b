"""pyannote segmentation 3.0 as a detector: 10-s windows every 5 s, the inner frames of each kept.

The model tells which of three speakers talk, alone or in pairs ("powerset": Plaquet and Bredin, Interspeech 2023);
speech is everything but its first class, nobody. Needs the extra ``diarization``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import UsageError
from pipeline.speaker_runs import Activity
from pipeline.speech import Probabilities
from pipeline.values import SAMPLE_RATE_HZ, Samples

FRAME_SAMPLES = 270
"""The stride of the model's convolutions and poolings: 10 * 3 * 3 * 3."""
WINDOW_SAMPLES = 10 * SAMPLE_RATE_HZ
"""What the model was trained on. Shorter audio is padded with zeros: left short it gave half as much false speech
again."""
WINDOW_FRAMES = 589
RECEPTIVE_SAMPLES = 991
LEAD_SAMPLES = (RECEPTIVE_SAMPLES - FRAME_SAMPLES) // 2
"""Zeros before the audio. They put the middle of the model's first receptive field on the middle of frame 0;
windows start at multiples of a frame, so every frame then lies where it is counted, in a file of any length."""
STEP_FRAMES = 296
"""5 s: each moment is heard with 2.5 s on either side. Steps of 1 and 2.5 s, or averaging the overlap, changed
the error on the lectures by less than 0.3 points, for two to five times the work; 8 s missed a third more."""
MARGIN_FRAMES = (WINDOW_FRAMES - STEP_FRAMES) // 2

POWERSET: Activity = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)], np.bool_)
"""The classes of the model: which of three local speakers talk."""

Segmentation = Callable[[Samples], Probabilities]
"""One window, shape ``(WINDOW_SAMPLES,)``, to its speech probabilities, shape ``(WINDOW_FRAMES,)``."""


class PyannoteDetector:
    """One detector for one media; frames of 16.875 ms, given at the latest 10 s after they were heard.

    Windows lie at fixed places, so the probabilities do not depend on the size of the blocks.
    """

    frame_samples = FRAME_SAMPLES

    def __init__(self, model: Segmentation, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._model = model
        self._audio = np.zeros(LEAD_SAMPLES, np.float32)
        """From the start of the next window on."""
        self._heard = 0
        self._window_at = 0
        self._given = 0

    def score(self, samples: Samples) -> Probabilities:
        """Probabilities, shape ``(frames,)``, of the frames that ``samples``, shape ``(n,)``, decide."""
        self._heard += samples.size
        self._audio = np.concatenate((self._audio, samples))
        parts = [np.zeros(0, np.float32)]
        while self._audio.size >= WINDOW_SAMPLES:
            parts.append(self._next_window())
        return np.concatenate(parts)

    def finish(self) -> Probabilities:
        """The rest, heard with zeros after it: in all one frame for every 270 samples begun."""
        rest = -(-self._heard // FRAME_SAMPLES) - self._given
        parts = [np.zeros(0, np.float32)]
        while sum(part.size for part in parts) < rest:
            self._audio = np.pad(self._audio, (0, max(0, WINDOW_SAMPLES - self._audio.size)))
            parts.append(self._next_window())
        return np.concatenate(parts)[:rest]

    def _next_window(self) -> Probabilities:
        scores = self._model(self._audio[:WINDOW_SAMPLES])
        known = scores[self._given - self._window_at : WINDOW_FRAMES - MARGIN_FRAMES]
        self._audio = self._audio[STEP_FRAMES * FRAME_SAMPLES :]
        self._window_at += STEP_FRAMES
        self._given += known.size
        return known


def load_pyannote(checkpoint: Path) -> Segmentation:
    """Load ``pytorch_model.bin`` as a detector of speech. Raises as ``load_local_speakers`` does."""
    log_probabilities = _load(checkpoint)

    def segment(window: Samples) -> Probabilities:
        return np.asarray(-np.expm1(log_probabilities(window)[:, 0]), np.float32)

    return segment


def load_local_speakers(checkpoint: Path) -> Callable[[Samples], Activity]:
    """Load ``pytorch_model.bin`` to tell speakers apart: a window, shape ``(WINDOW_SAMPLES,)``, to who of three talks
    in it, shape ``(WINDOW_FRAMES, 3)``.

    Raises:
        UsageError: the extra is not installed, or the checkpoint is of another kind of model.
    """
    log_probabilities = _load(checkpoint)
    return lambda window: POWERSET[log_probabilities(window).argmax(axis=1)]


def _load(checkpoint: Path) -> Callable[[Samples], Probabilities]:
    """The model, whose digest the registry has checked: it is a pickle, and could run code.

    Torch gets one thread in this process: at 80 x real time it needs no more, and several wait for one another
    where the machine is busy.
    """
    os.environ["PYANNOTE_METRICS_ENABLED"] = "false"  # read at import; without it every use is reported to its makers
    try:
        import torch
        from pyannote.audio import Model
    except ModuleNotFoundError as error:
        raise UsageError(
            "the pyannote model needs the extra 'diarization': pip install 'lecturemill[diarization]'"
        ) from error
    torch.set_num_threads(1)
    network = Model.from_pretrained(checkpoint).eval()
    _require_segmentation(network, checkpoint)

    def log_probabilities(window: Samples) -> Probabilities:
        with torch.inference_mode():
            return np.asarray(network(torch.from_numpy(window)[None, None])[0], np.float32)

    return log_probabilities


def _require_segmentation(network: Any, checkpoint: Path) -> None:
    field = network.receptive_field
    found = (
        network.specifications.powerset,
        network.num_frames(WINDOW_SAMPLES),
        round(field.step * SAMPLE_RATE_HZ),
        round(field.duration * SAMPLE_RATE_HZ),
    )
    if found != (True, WINDOW_FRAMES, FRAME_SAMPLES, RECEPTIVE_SAMPLES):
        raise UsageError(f"{checkpoint} is no powerset segmentation of 10 s: use pyannote segmentation-3.0")
