"""The speech that engines are proven on: the sound of the demo lectures, cut at its sentences or anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle, islice

from pipeline.audio_codec import decode
from pipeline.transcription import Request
from pipeline.values import SAMPLES_PER_MS, Boundary, Samples, Slice, SliceAudio, Span

LANGUAGES = ("zh", "en")
_LONGEST_MS = 29_500
_RUNS = (1, 2, 1, 1, 4, 1, 3)
"""Sentences of one slice, in turns: a batch must hold short slices beside long ones."""
_WINDOWS_MS = (7_000, 12_000, 16_500)
_EARLIER_MS, _TURNS = 37, 11


@dataclass(frozen=True, slots=True)
class Speech:
    """A lecture: its sound, and the spans of its sentences."""

    language: str
    samples: Samples
    sentences: tuple[Span, ...]


@cache
def speech_of(language: str) -> Speech:
    """The lecture in ``zh`` or ``en``."""
    folder = files("pipeline.proof") / "speech"
    said = json.loads((folder / "speech.json").read_text(encoding="utf-8"))[language]
    sentences = tuple(Span(start_ms, end_ms) for start_ms, end_ms, _ in said)
    sound = decode((folder / f"{language}.opus").read_bytes(), "opus", _end_ms(sentences) * SAMPLES_PER_MS)
    return Speech(language, sound, sentences)


def _end_ms(sentences: Sequence[Span]) -> int:
    return sentences[-1].end_ms


def slices_for(count: int, languages: Sequence[str] = LANGUAGES) -> list[Request]:
    """``count`` slices of one to five sentences, in the languages in turns; after some dozens they come again."""
    turns = [_runs(speech_of(language)) for language in languages]
    mixed = [request for some in zip(*turns, strict=False) for request in some]
    return list(islice(cycle(mixed), count))


def _runs(speech: Speech) -> Iterator[Request]:
    for first, run in zip(range(len(speech.sentences)), cycle(_RUNS), strict=False):
        last = min(first + run, len(speech.sentences)) - 1
        span = Span(speech.sentences[first].start_ms, speech.sentences[last].end_ms)
        yield _request(speech, Span(span.start_ms, min(span.end_ms, span.start_ms + _LONGEST_MS)), first)


def windows(count: int, languages: Sequence[str] = LANGUAGES) -> list[Request]:
    """``count`` windows, each from a pause on, as slices begin: in many places, of several lengths."""
    starts = [(speech_of(language), span.start_ms) for language in languages for span in speech_of(language).sentences]
    return [_window(*starts[at % len(starts)], at // len(starts), at) for at in range(count)]


def _window(speech: Speech, start_ms: int, turn: int, index: int) -> Request:
    """In each turn it begins a little earlier in the pause, and is longer or shorter."""
    begin_ms = max(0, start_ms - _EARLIER_MS * (turn % _TURNS))
    length_ms = _WINDOWS_MS[turn % len(_WINDOWS_MS)]
    return _request(speech, Span(begin_ms, min(begin_ms + length_ms, _end_ms(speech.sentences))), index)


def _request(speech: Speech, span: Span, index: int) -> Request:
    piece = Slice(f"proof-{speech.language}", index, span, Boundary.SILENCE, (span,))
    sound = speech.samples[span.start_ms * SAMPLES_PER_MS : span.end_ms * SAMPLES_PER_MS]
    return Request(SliceAudio(piece, sound), speech.language, {})
