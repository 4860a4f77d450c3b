"""A stub of an engine: what it hears follows from the sound and the place of a slice alone, whatever its batch."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence

from pipeline.finishing import Heard, cost_of, finish
from pipeline.judging import JudgeRules
from pipeline.postprocess import Glossary, PostprocessOptions
from pipeline.transcription import LADDER, Decoding, Hypothesis, Request, TranscriptionOptions, transcribe
from pipeline.values import MediaResult, Segment, SliceTranscript, Word
from tests.chaos.lectures import Lecture
from tests.integration.speaking import CHARACTERS

OPTIONS = TranscriptionOptions(LADDER, JudgeRules())


class ScriptedEngine:
    """A stub: hears a character every 200 ms, chosen by a checksum of the sound; takes ``delay_s`` for each batch."""

    fingerprint = "scripted"

    def __init__(self, delay_s: float = 0) -> None:
        self._delay_s = delay_s

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        time.sleep(self._delay_s)
        return [_heard(request, decoding) for request in requests]


def _heard(request: Request, decoding: Decoding) -> Hypothesis:
    piece = request.audio.slice
    checksum = zlib.crc32(request.audio.samples.tobytes()) + piece.index
    starts = range(piece.span.start_ms, piece.span.end_ms - 200, 200)
    texts = [CHARACTERS[(checksum + start_ms * 7 // 100) % len(CHARACTERS)] for start_ms in starts]
    words = tuple(Word(text, at, at + 150, 0.95) for text, at in zip(texts, starts, strict=True))
    segment = Segment(starts[0], words[-1].end_ms, "".join(texts), words, -0.1, 0.0, 1.0, decoding.temperature)
    return Hypothesis("zh", 1.0, segment)


def undisturbed_transcripts(lecture: Lecture) -> list[SliceTranscript]:
    """What the line makes of each slice, in this process."""
    requests = [Request(lecture.audio(at), lecture.media.language, {}) for at in range(lecture.slice_count)]
    return transcribe(ScriptedEngine(), requests, OPTIONS)


def undisturbed(lecture: Lecture, transcripts: Sequence[SliceTranscript]) -> MediaResult:
    """What the line makes of the whole media, in this process."""
    plan = lecture.plan
    pieces = [lecture.piece(at) for at in range(lecture.slice_count)]
    heard = Heard(plan.duration_ms, plan.missing, plan.warnings)
    glossary, options = Glossary.empty(), PostprocessOptions()
    return finish(plan.media_id, pieces, transcripts, heard, glossary, options, cost_of(0, plan.slicing_ms, 0))
