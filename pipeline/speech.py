"""Step 3, speech: from a detector's frame probabilities to speech spans, streaming.

A ``Detector`` scores frames; a ``SpeechGate`` opens and closes on them with hysteresis. Nothing here holds more
than one span's probabilities, so a 10-hour file takes no more memory than a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline.values import Samples, Span

Probabilities = npt.NDArray[np.float32]
"""Speech probability per frame, shape ``(frames,)``, in [0, 1]."""


class Detector(Protocol):
    """Scores audio in order; carries its own state from block to block, so one detector serves one media."""

    frame_samples: int
    """Samples (16 kHz) between the starts of two frames."""
    fingerprint: str
    """Changes with the weights."""

    def score(self, samples: Samples) -> Probabilities:
        """The probabilities of all frames that ``samples`` completes."""

    def finish(self) -> Probabilities:
        """The probabilities of what is left, the last frame padded with zeros."""


@dataclass(frozen=True, slots=True)
class SpeechRules:
    """When speech begins and ends. Thresholds are Silero's own defaults; times in milliseconds."""

    threshold: float = 0.5
    release_threshold: float = 0.35
    min_speech_ms: int = 100
    """A shorter burst is a click, not speech. The shortest word worth a cue ("好") lasts longer."""
    min_silence_ms: int = 160
    """A shorter dip is inside speech (a plosive's closure lasts up to 150 ms)."""
    max_speech_ms: int = 29_600
    """An open span is split here at its weakest frame: with its pads it must fit a slice."""
    search_ms: int = 10_000
    """How far back from the maximum the weakest frame may lie."""


class SpeechGate:
    """Turns frame probabilities into closed speech spans, in order.

    >>> gate = SpeechGate(SpeechRules(min_silence_ms=64), frame_samples=512)
    >>> [*gate.push(np.array([0, 1, 1, 1, 1, 0, 0, 0], np.float32)), *gate.finish(256)]
    [Span(start_ms=32, end_ms=160)]
    """

    def __init__(self, rules: SpeechRules, frame_samples: int) -> None:
        self._rules = rules
        self._frame_ms = frame_samples * 1000 / 16_000
        self._frame = 0
        self._open_at: int | None = None
        self._is_rest = False
        self._last_speech = 0
        self._history: list[float] = []

    @property
    def silent_until_ms(self) -> int:
        """No span that starts before this will come any more (the open span's start, or what was heard)."""
        return self._ms(self._frame if self._open_at is None else self._open_at)

    def push(self, probabilities: Probabilities) -> list[Span]:
        """Feed the next frames; returns the spans that they close."""
        closed: list[Span] = []
        for probability in probabilities.tolist():
            span = self._step(probability)
            self._frame += 1
            if span is not None:
                closed.append(span)
        return closed

    def finish(self, media_end_ms: int) -> list[Span]:
        """Close what is open at the end of the audio; no span reaches beyond ``media_end_ms``."""
        span = self._close(self._last_speech) if self._open_at is not None else None
        if span is None or span.start_ms >= media_end_ms:
            return []
        return [Span(span.start_ms, min(span.end_ms, media_end_ms))]

    def _step(self, probability: float) -> Span | None:
        rules = self._rules
        if self._open_at is None:
            if probability < rules.threshold:
                return None
            self._open_at, self._is_rest = self._frame, False
            self._history.clear()
        self._history.append(probability)
        if probability >= rules.release_threshold:
            self._last_speech = self._frame + 1
            return self._split() if self._length_ms(self._last_speech) >= rules.max_speech_ms else None
        if (self._frame + 1 - self._last_speech) * self._frame_ms >= rules.min_silence_ms:
            return self._close(self._last_speech)
        return None

    def _close(self, end_frame: int) -> Span | None:
        start, self._open_at = self._open_at, None
        assert start is not None
        span = Span(self._ms(start), self._ms(end_frame))
        return span if self._is_rest or span.duration_ms >= self._rules.min_speech_ms else None

    def _split(self) -> Span:
        """Cut the open span at its weakest frame; the rest stays open, so the two spans touch.

        The rest is speech however short it turns out to be: it belongs to what was cut off.
        """
        assert self._open_at is not None
        window = min(len(self._history) - 1, int(self._rules.search_ms / self._frame_ms))
        tail = np.asarray(self._history[-window:])
        weakest = len(self._history) - window + int(tail.argmin())
        cut = self._open_at + weakest
        span = Span(self._ms(self._open_at), self._ms(cut))
        self._open_at, self._is_rest = cut, True
        self._history = self._history[weakest:]
        return span

    def _length_ms(self, end_frame: int) -> float:
        assert self._open_at is not None
        return (end_frame - self._open_at) * self._frame_ms

    def _ms(self, frame: int) -> int:
        return round(frame * self._frame_ms)
