"""Made-up media for the chaos: what their slices hold, in which order a careless producer sends them, planted faults.

Everything follows from a seed, so that what was sent can be computed again to be compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import msgspec
import numpy as np

from pipeline.broker import AUDIO_SLICES, SLICE_TRANSCRIPTS, Outgoing, dead_topic
from pipeline.errors import InvalidInputError
from pipeline.messages import MediaSliced, SliceReady, SliceTranscribed, decode_transcript_topic, encode, slice_ready
from pipeline.values import SAMPLES_PER_MS, Boundary, Media, MediaPlan, Priority, Slice, SliceAudio, Span

SLICING, ASR = "5" * 16, "a" * 16
COURSES = 8
END = -1
"""In a script, the end mark; any other number is the index of a slice."""


@dataclass(frozen=True, slots=True)
class Lecture:
    """One media: ``slice_count`` slices of one to two seconds of faint noise, with silence in between."""

    media: Media
    priority: Priority
    slice_count: int
    seed: int

    def piece(self, index: int) -> Slice:
        start_ms = index * 2500
        span = Span(start_ms, start_ms + Random(f"{self.seed} {index}").randrange(1000, 2000))
        boundary = Boundary.END if index + 1 == self.slice_count else Boundary.SILENCE
        return Slice(self.media.media_id, index, span, boundary, (span,))

    def audio(self, index: int) -> SliceAudio:
        """Samples on the grid of 16 bits, which FLAC gives back as they were."""
        piece = self.piece(index)
        random = np.random.default_rng([self.seed, index])
        samples = random.integers(-100, 100, piece.span.duration_ms * SAMPLES_PER_MS) / 32768
        return SliceAudio(piece, samples.astype(np.float32))

    @property
    def plan(self) -> MediaPlan:
        duration_ms = self.slice_count * 2500 + 1000
        missing = (Span(duration_ms - 500, duration_ms),)
        return MediaPlan(
            self.media.media_id, SLICING, ASR, self.slice_count, duration_ms, missing, ("0.5 s lacks",), 700
        )

    def slice_message(self, index: int) -> SliceReady:
        return slice_ready(
            self.audio(index),
            course_id=self.media.course_id,
            language=self.media.language,
            prompts={},
            model="scripted",
            slicing=SLICING,
            asr=ASR,
            priority=self.priority,
            codec="flac",
        )

    @property
    def end_mark(self) -> MediaSliced:
        return MediaSliced.of(self.plan, self.media.course_id)

    def outgoing(self, at: int) -> Outgoing:
        """The message of one entry of a script."""
        message = self.end_mark if at == END else self.slice_message(at)
        return Outgoing(AUDIO_SLICES[self.priority], self.media.course_id, encode(message))


def lecture(seed: int, number: int, slices: range) -> Lecture:
    """The ``number``-th media of a run; its slice count lies in ``slices``."""
    random = Random(f"{seed} lecture {number}")
    name = f"m{number:05}"
    course = f"course-{random.randrange(COURSES)}"
    media = Media(name, course, f"file:///made-up/{name}.mp4", f"第{number}课", "f00", None, "zh")
    return Lecture(media, random.choice(list(Priority)), random.choice(slices), seed * 100_000 + number)


def script(slice_count: int, random: Random) -> list[list[int]]:
    """In which order a careless producer sends a media: a few at a time, some of them twice, end marks anywhere.

    Apart from what was sent before, slices go in order; each is there, and at least one end mark.
    """
    fews: list[list[int]] = []
    sent = 0
    while sent < slice_count:
        few = list(range(sent, min(slice_count, sent + random.randint(1, 16))))
        fews.append(few)
        sent += len(few)
        if random.random() < 0.15:
            fews.append(random.choice(fews))
    fews.append([END])
    if random.random() < 0.3:
        fews.insert(random.randrange(len(fews)), [END])
    return fews


@dataclass(frozen=True, slots=True, order=True)
class DeadLetter:
    """A message that lies with the dead letters, known by what it holds."""

    topic: str
    key: str
    what: str
    """The slice of a transcript, as an engine's time differs from run to run; else a digest of the bytes."""


def dead_letter(topic: str, key: bytes | None, value: bytes) -> DeadLetter:
    """``topic`` is that of the dead letters."""
    return DeadLetter(topic, (key or b"").decode(), _what(topic, value))


def _what(topic: str, value: bytes) -> str:
    if topic == dead_topic(SLICE_TRANSCRIPTS):
        try:
            message = decode_transcript_topic(value)
        except InvalidInputError:
            return _digest(value)
        index = message.slice_index if isinstance(message, SliceTranscribed) else "end mark"
        return f"{message.media_id} {index}"
    return _digest(value)


def _digest(value: bytes) -> str:
    return f"bytes {hashlib.sha256(value).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Planted:
    """Messages that must end among the dead letters, and what will lie there."""

    kind: str
    outgoings: tuple[Outgoing, ...]
    dead: tuple[DeadLetter, ...]


def plant(seed: int, number: int) -> Planted:
    """The ``number``-th planted fault of a run; every kind comes in turn."""
    kinds = list(_FAULTS)
    kind = kinds[number % len(kinds)]
    ghost = lecture(seed, 90_000 + number, range(2, 3))
    outgoings = tuple(_FAULTS[kind](ghost))
    return Planted(kind, outgoings, tuple(_grave(kind, ghost, outgoings)))


def _grave(kind: str, ghost: Lecture, outgoings: tuple[Outgoing, ...]) -> list[DeadLetter]:
    if kind == NOT_RECORDED:
        topic, course = dead_topic(SLICE_TRANSCRIPTS), ghost.media.course_id
        return [DeadLetter(topic, course, f"{ghost.media.media_id} {what}") for what in (0, 1, "end mark")]
    return [dead_letter(dead_topic(one.topic), one.key_bytes, one.value) for one in outgoings]


def _on_audio(ghost: Lecture, value: bytes) -> list[Outgoing]:
    return [Outgoing(AUDIO_SLICES[ghost.priority], ghost.media.course_id, value)]


def _on_transcripts(ghost: Lecture, value: bytes) -> list[Outgoing]:
    return [Outgoing(SLICE_TRANSCRIPTS, ghost.media.course_id, value)]


def _garbage(ghost: Lecture) -> bytes:
    """0xc1 begins nothing in MessagePack (its specification, "Formats")."""
    return b"\xc1" + Random(ghost.seed).randbytes(60)


def _cut_audio(ghost: Lecture) -> bytes:
    message = ghost.slice_message(0)
    return encode(msgspec.structs.replace(message, audio=message.audio[: len(message.audio) // 2]))


NOT_RECORDED = "media that is not recorded"
_FAULTS: dict[str, Callable[[Lecture], list[Outgoing]]] = {
    "garbage for a slice": lambda ghost: _on_audio(ghost, _garbage(ghost)),
    NOT_RECORDED: lambda ghost: [ghost.outgoing(at) for at in (0, 1, END)],
    "slice cut short": lambda ghost: _on_audio(ghost, encode(ghost.slice_message(0))[:-7]),
    "newer slice": lambda ghost: _on_audio(
        ghost, encode(msgspec.structs.replace(ghost.slice_message(1), schema_version=2))
    ),
    "garbage for a transcript": lambda ghost: _on_transcripts(ghost, _garbage(ghost)),
    "damaged audio": lambda ghost: _on_audio(ghost, _cut_audio(ghost)),
    "newer end mark": lambda ghost: _on_transcripts(
        ghost, encode(msgspec.structs.replace(ghost.end_mark, schema_version=2))
    ),
}
