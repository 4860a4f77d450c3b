"""Silero VAD 6.2 in its sequence form: many frames in one ONNX call, the LSTM's state carried between calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from pipeline.speech import Probabilities
from pipeline.values import Samples

FRAME_SAMPLES = 512
_CONTEXT_SAMPLES = 64
_MAX_FRAMES = 512  # 16 s a call: more brings no speed and costs memory


class SileroDetector:
    """One detector for one media; frames of 32 ms, each seen with the 4 ms before it, as the model was trained."""

    frame_samples = FRAME_SAMPLES

    def __init__(self, session: onnxruntime.InferenceSession, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._session = session
        self._hidden = np.zeros((1, 1, 128), np.float32)
        self._cell = np.zeros((1, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT_SAMPLES, np.float32)
        self._rest = np.zeros(0, np.float32)

    def score(self, samples: Samples) -> Probabilities:
        """Probabilities, shape ``(frames,)``, of the frames completed by ``samples``, shape ``(n,)``."""
        audio = np.concatenate((self._rest, samples))
        whole = audio.size // FRAME_SAMPLES * FRAME_SAMPLES
        self._rest = audio[whole:]
        frames = audio[:whole].reshape(-1, FRAME_SAMPLES)
        parts = [self._run(frames[at : at + _MAX_FRAMES]) for at in range(0, len(frames), _MAX_FRAMES)]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def finish(self) -> Probabilities:
        if not self._rest.size:
            return np.zeros(0, np.float32)
        return self.score(np.zeros(FRAME_SAMPLES - self._rest.size, np.float32))

    def _run(self, frames: Samples) -> Probabilities:
        contexts = np.vstack((self._context[None], frames[:-1, -_CONTEXT_SAMPLES:]))
        self._context = frames[-1, -_CONTEXT_SAMPLES:]
        inputs = {"input": np.hstack((contexts, frames)), "h": self._hidden, "c": self._cell}
        scores, self._hidden, self._cell = self._session.run(["speech_probs", "hn", "cn"], inputs)
        return np.asarray(scores, np.float32).reshape(-1)


def load_silero(weights: Path) -> onnxruntime.InferenceSession:
    """Load the sequence model (``silero_vad_16k_sequence.onnx``). One thread: at 500 x real time it needs no more."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
