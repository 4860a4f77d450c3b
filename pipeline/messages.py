"""The messages on Kafka: what they hold, how they become bytes and values of the line.

``media.uploaded`` and ``transcripts.completed`` are JSON, for other systems; the rest is MessagePack, for this program.
docs/contracts.md describes each field and how messages may change; tests/contract holds the bytes of each message.
Where a message holds something impossible, making or decoding it raises InvalidInputError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self, TypeAlias

import msgspec

from pipeline import audio_codec
from pipeline.announcements import MediaUploaded as MediaUploaded
from pipeline.announcements import TranscriptsCompleted as TranscriptsCompleted
from pipeline.audio_codec import Codec
from pipeline.message_bytes import JSON_HEAD, MSGPACK_HEAD, decoded, encoded
from pipeline.message_checks import (
    SCHEMA_VERSION,
    Spans,
    Whole,
    check_forward,
    check_key,
    check_language,
    check_slice,
)
from pipeline.message_segments import SegmentSpoken
from pipeline.transcription import Request
from pipeline.values import (
    SAMPLES_PER_MS,
    Boundary,
    MediaPlan,
    Outcome,
    Priority,
    Slice,
    SliceAudio,
    SliceTranscript,
    Span,
    TranscribedSlice,
)


class SliceReady(msgspec.Struct, frozen=True, tag_field="kind", tag="slice"):
    """A slice to transcribe, with its audio and all that its transcript depends on."""

    course_id: str
    media_id: str
    slice_index: Whole
    start_ms: Whole
    end_ms: Whole
    boundary: Boundary
    speech: Spans
    language: str | None
    """None to detect it."""
    prompts: dict[str, str]
    """A sentence per language that Whisper is told before it listens."""
    model: str
    slicing: str
    """The slicing fingerprint."""
    asr: str
    """The ASR fingerprint."""
    priority: Priority
    codec: Codec
    audio: bytes
    """Mono, 16 kHz, as long as the slice: a whole FLAC or Ogg Opus file."""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        _check_keys(self)
        check_key("model", self.model)
        check_language("language", self.language)
        check_slice(self.start_ms, self.end_ms, self.speech)

    def to_request(self) -> Request:
        """Decodes the audio. Raises InvalidInputError where it is damaged or not as long as the slice."""
        piece = _slice(self)
        samples = audio_codec.decode(self.audio, self.codec, piece.span.duration_ms * SAMPLES_PER_MS)
        return Request(SliceAudio(piece, samples), self.language, self.prompts)


class MediaSliced(msgspec.Struct, frozen=True, tag_field="kind", tag="sliced"):
    """The end mark behind the slices of a media: how many there are."""

    course_id: str
    media_id: str
    slicing: str
    asr: str
    slice_count: Whole
    duration_ms: Whole
    missing: Spans
    """Stretches of which the file holds no audio."""
    warnings: tuple[str, ...]
    slicing_ms: Whole
    """Wall time of decoding and slicing."""
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        _check_keys(self)
        check_forward("missing", self.missing)

    @classmethod
    def of(cls, plan: MediaPlan, course_id: str) -> Self:
        missing = _pairs(plan.missing)
        counts = (plan.slice_count, plan.duration_ms, missing, plan.warnings, plan.slicing_ms)
        return cls(course_id, plan.media_id, plan.slicing, plan.asr, *counts)

    def to_plan(self) -> MediaPlan:
        counts = (self.slice_count, self.duration_ms, _spans(self.missing), self.warnings, self.slicing_ms)
        return MediaPlan(self.media_id, self.slicing, self.asr, *counts)


class SliceTranscribed(msgspec.Struct, frozen=True, tag_field="kind", tag="transcript"):
    """What became of a slice, with all that the slice's row needs."""

    course_id: str
    media_id: str
    slice_index: Whole
    start_ms: Whole
    end_ms: Whole
    boundary: Boundary
    speech: Spans
    slicing: str
    asr: str
    engine: str
    """For people: the engine's name, model, device and arithmetic."""
    language: str
    language_probability: float
    segments: tuple[SegmentSpoken, ...]
    outcome: Outcome
    reason: str
    attempts: Whole
    engine_ms: Whole
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        _check_keys(self)
        check_slice(self.start_ms, self.end_ms, self.speech)

    def to_value(self) -> TranscribedSlice:
        transcript = SliceTranscript(
            media_id=self.media_id,
            slice_index=self.slice_index,
            language=self.language,
            language_probability=self.language_probability,
            segments=tuple(segment.to_value() for segment in self.segments),
            outcome=self.outcome,
            reason=self.reason,
            attempts=self.attempts,
            engine_ms=self.engine_ms,
        )
        return TranscribedSlice(self.slicing, self.asr, self.engine, _slice(self), transcript)


def slice_ready(
    audio: SliceAudio,
    *,
    course_id: str,
    language: str | None,
    prompts: Mapping[str, str],
    model: str,
    slicing: str,
    asr: str,
    priority: Priority,
    codec: Codec,
) -> SliceReady:
    """The message that asks for the transcript of ``audio``; encodes the audio."""
    piece = audio.slice
    return SliceReady(
        course_id=course_id,
        media_id=piece.media_id,
        slice_index=piece.index,
        start_ms=piece.span.start_ms,
        end_ms=piece.span.end_ms,
        boundary=piece.boundary,
        speech=_pairs(piece.speech),
        language=language,
        prompts=dict(prompts),
        model=model,
        slicing=slicing,
        asr=asr,
        priority=priority,
        codec=codec,
        audio=audio_codec.encode(audio.samples, codec),
    )


def slice_transcribed(ready: SliceReady, transcript: SliceTranscript, engine: str) -> SliceTranscribed:
    """The answer to ``ready``."""
    return SliceTranscribed(
        course_id=ready.course_id,
        media_id=ready.media_id,
        slice_index=ready.slice_index,
        start_ms=ready.start_ms,
        end_ms=ready.end_ms,
        boundary=ready.boundary,
        speech=ready.speech,
        slicing=ready.slicing,
        asr=ready.asr,
        engine=engine,
        language=transcript.language,
        language_probability=transcript.language_probability,
        segments=tuple(SegmentSpoken.of(segment) for segment in transcript.segments),
        outcome=transcript.outcome,
        reason=transcript.reason,
        attempts=transcript.attempts,
        engine_ms=transcript.engine_ms,
    )


Message: TypeAlias = MediaUploaded | SliceReady | MediaSliced | SliceTranscribed | TranscriptsCompleted

_UPLOADED = msgspec.json.Decoder(MediaUploaded)
_COMPLETED = msgspec.json.Decoder(TranscriptsCompleted)
_AUDIO: msgspec.msgpack.Decoder[SliceReady | MediaSliced] = msgspec.msgpack.Decoder(SliceReady | MediaSliced)
_TRANSCRIPTS: msgspec.msgpack.Decoder[SliceTranscribed | MediaSliced] = msgspec.msgpack.Decoder(
    SliceTranscribed | MediaSliced
)


def encode(message: Message) -> bytes:
    """The value of a Kafka message. Raises InvalidInputError where a text cannot be UTF-8."""
    return encoded(message, as_json=isinstance(message, MediaUploaded | TranscriptsCompleted))


def decode_uploaded(data: bytes) -> MediaUploaded:
    """From ``media.uploaded``. All four raise InvalidInputError, and nothing else, whatever ``data`` is."""
    return decoded(data, "media.uploaded", JSON_HEAD, _UPLOADED)


def decode_audio_topic(data: bytes) -> SliceReady | MediaSliced:
    """From ``audio.slices.<priority>``; the audio inside is decoded by ``SliceReady.to_request`` only."""
    return decoded(data, "audio.slices", MSGPACK_HEAD, _AUDIO)


def decode_transcript_topic(data: bytes) -> SliceTranscribed | MediaSliced:
    """From ``slice.transcripts``."""
    return decoded(data, "slice.transcripts", MSGPACK_HEAD, _TRANSCRIPTS)


def decode_completed(data: bytes) -> TranscriptsCompleted:
    """From ``transcripts.completed``."""
    return decoded(data, "transcripts.completed", JSON_HEAD, _COMPLETED)


def _slice(message: SliceReady | SliceTranscribed) -> Slice:
    span = Span(message.start_ms, message.end_ms)
    return Slice(message.media_id, message.slice_index, span, message.boundary, _spans(message.speech))


def _spans(pairs: Spans) -> tuple[Span, ...]:
    return tuple(Span(start_ms, end_ms) for start_ms, end_ms in pairs)


def _pairs(spans: Iterable[Span]) -> Spans:
    return tuple((span.start_ms, span.end_ms) for span in spans)


def _check_keys(message: SliceReady | MediaSliced | SliceTranscribed) -> None:
    for field in ("course_id", "media_id", "slicing", "asr"):
        check_key(field, getattr(message, field))
