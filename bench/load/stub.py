"""The transcribe consumer with a stub for its engine: ``python -m bench.load.stub BATCH DELAY_MS``.

Everything but the engine is the product's: the loop, the message and FLAC decoding, the judge, the sending.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from consumers.transcribe import NamedEngine, TranscribeStep, rules_of, topics_of
from consumers.wiring import Surroundings, Wired, run_program
from pipeline.judging import JudgeRules
from pipeline.transcription import LADDER, Decoding, Hypothesis, Request, TranscriptionOptions
from pipeline.values import Priority, Segment, Slice, Word

TEXT = (
    "If a force acts on a body it changes the way the body moves and the change is larger the larger the force is and "
    "smaller the heavier the body is so that a cart which is pushed twice as hard gains speed twice as fast while one "
    "of twice the weight gains only half of it in the same time as before"
)


class StubEngine:
    """The same words for every slice, spread evenly over it; each call takes ``delay_ms``."""

    fingerprint = "stub"

    def __init__(self, delay_ms: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self._delay_ms, self._sleep = delay_ms, sleep

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        self._sleep(self._delay_ms / 1000)
        return [Hypothesis("en", 0.99, _segment(request.audio.slice, decoding.temperature)) for request in requests]


def _segment(piece: Slice, temperature: float) -> Segment:
    words = _words(piece)
    text = "".join(word.text for word in words)
    return Segment(piece.span.start_ms, piece.span.end_ms, text, words, -0.2, 0.02, 1.6, temperature)


def _words(piece: Slice) -> tuple[Word, ...]:
    words, start_ms, whole_ms = TEXT.split(), piece.span.start_ms, piece.span.duration_ms
    edges_ms = [start_ms + whole_ms * at // len(words) for at in range(len(words) + 1)]
    return tuple(Word(f" {text}", *span, 0.93) for text, span in zip(words, pairwise(edges_ms), strict=True))


@contextmanager
def wire(around: Surroundings, batch: int, delay_ms: int) -> Iterator[Wired]:
    named = NamedEngine(StubEngine(delay_ms), "stub")
    options = TranscriptionOptions(LADDER, JudgeRules())
    step = TranscribeStep(lambda _model: named, options, around.metrics, around.tracing)
    yield step, rules_of(topics_of(Priority.NORMAL), batch)


if __name__ == "__main__":
    sys.exit(run_program("transcribe", lambda around: wire(around, int(sys.argv[1]), int(sys.argv[2]))))
