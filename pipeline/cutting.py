"""Step 4, cutting: blocks of audio in, slices with their samples out, in bounded memory.

The detector hears each block once; the audio is kept only as long as a pending slice may need it (about a minute at
most), so a 10-hour file takes no more memory than a short one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from pipeline.slicing import Cut, Slicer, SlicingRules
from pipeline.speech import Detector, SpeechGate, SpeechRules
from pipeline.values import SAMPLES_PER_MS, Samples, Slice, SliceAudio


class Block(Protocol):
    """A stretch of audio at its place on the media clock; each block begins where the one before ended."""

    @property
    def start_ms(self) -> int: ...

    @property
    def samples(self) -> Samples: ...


def cut_slices(
    media_id: str, blocks: Iterable[Block], detector: Detector, speech: SpeechRules, slicing: SlicingRules
) -> Iterator[SliceAudio]:
    """The slices of one media, in order, each as soon as it is decided."""
    cutter = _Cutter(media_id, detector, SpeechGate(speech, detector.frame_samples), Slicer(slicing))
    for block in blocks:
        yield from cutter.hear(block)
    yield from cutter.finish()


class _Cutter:
    def __init__(self, media_id: str, detector: Detector, gate: SpeechGate, slicer: Slicer) -> None:
        self._media_id, self._detector, self._gate, self._slicer = media_id, detector, gate, slicer
        self._kept: deque[Block] = deque()
        self._heard_ms = 0
        self._next_index = 0

    def hear(self, block: Block) -> Iterator[SliceAudio]:
        self._kept.append(block)
        self._heard_ms = block.start_ms + len(block.samples) // SAMPLES_PER_MS
        cuts = [cut for span in self._gate.push(self._detector.score(block.samples)) for cut in self._slicer.push(span)]
        cuts += self._slicer.advance(self._gate.silent_until_ms)
        yield from map(self._with_audio, cuts)
        self._forget()

    def finish(self) -> Iterator[SliceAudio]:
        spans = [*self._gate.push(self._detector.finish()), *self._gate.finish(self._heard_ms)]
        cuts = [cut for span in spans for cut in self._slicer.push(span)]
        yield from map(self._with_audio, [*cuts, *self._slicer.finish(self._heard_ms)])

    def _with_audio(self, cut: Cut) -> SliceAudio:
        piece = Slice(self._media_id, self._next_index, cut.span, cut.boundary, cut.speech)
        self._next_index += 1
        return SliceAudio(piece, self._samples(cut.span.start_ms, cut.span.end_ms))

    def _samples(self, start_ms: int, end_ms: int) -> Samples:
        parts = [
            block.samples[
                max(0, start_ms - block.start_ms) * SAMPLES_PER_MS : (end_ms - block.start_ms) * SAMPLES_PER_MS
            ]
            for block in self._kept
            if block.start_ms < end_ms
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    def _forget(self) -> None:
        """Drop the blocks that no slice can need any more; a second is kept for the pad before an onset."""
        needed_ms = self._slicer.needed_from_ms
        from_ms = (self._gate.silent_until_ms if needed_ms is None else needed_ms) - 1000
        while len(self._kept) > 1 and self._kept[1].start_ms <= from_ms:
            self._kept.popleft()
