"""What the slicing task does: decode a media, cut it, send each slice with its audio, then the end mark.

Slices go out a few at a time and each few is acknowledged before the next is cut, so ten hours take no more memory
than ten minutes. Every message has a natural key, so whoever is killed anywhere in here is simply called again; what
is transcribed by then is cut again, but not sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pipeline.admission import Opened
from pipeline.assembly import prompts_for
from pipeline.audio_codec import Codec
from pipeline.broker import AUDIO_SLICES, Outgoing
from pipeline.finishing import Heard
from pipeline.hearing import HearingRules, hear
from pipeline.identity import digest
from pipeline.judging import JudgeRules
from pipeline.keys import asr_key, run_key, slicing_key
from pipeline.messages import MediaSliced, encode, slice_ready
from pipeline.postprocess import Glossary
from pipeline.speech import Detector
from pipeline.store_line import Asked, LineStore
from pipeline.subtitle_profiles import NETFLIX, SubtitleProfile
from pipeline.transcription import LADDER, TranscriptionOptions
from pipeline.values import Media, MediaPlan, Outcome, Priority, SliceAudio

IN_FLIGHT_SLICES = 16
"""With their samples and their FLAC these are at most 50 MB."""


@dataclass(frozen=True, slots=True)
class PublishingOptions:
    """What the messages of one media say beside its audio."""

    hearing: HearingRules
    prompts: Mapping[str, str]
    model: str
    slicing: str
    asr: str
    result: str
    """The fingerprint of the result that these slices become; a media that has it needs no slicing."""
    priority: Priority
    headers: tuple[tuple[str, bytes], ...] = ()
    """Those of the trace that the messages belong to."""
    codec: Codec = "flac"


@dataclass(frozen=True, slots=True)
class PublishingTools:
    """What slicing works with, opened once by the task."""

    store: LineStore
    send: Callable[[Sequence[Outgoing]], None]
    """Returns when each is acknowledged (``Sender.send``)."""
    detector: Callable[[], Detector]
    """Makes the detector of one media."""
    ffmpeg: str


@dataclass(frozen=True, slots=True)
class Published:
    """What was found, and how many slices had to be sent."""

    plan: MediaPlan
    sent: int


def publishing_options(
    media: Media,
    glossary: Glossary,
    *,
    detector_fingerprint: str,
    model: str,
    asked: Asked,
    headers: tuple[tuple[str, bytes], ...] = (),
    profile: SubtitleProfile = NETFLIX,
) -> PublishingOptions:
    """The options of a probed ``media`` as its course has them now."""
    hearing = HearingRules(media.language, asked.audio_track)
    prompts = prompts_for(glossary, media.title)
    slicing = slicing_key(media.content_fingerprint, detector_fingerprint, hearing)
    # Which machine will transcribe is not known here, so the model's name stands for the engine.
    asr = asr_key(digest("model", model), media.language, prompts, TranscriptionOptions(LADDER, JudgeRules()))
    result = run_key(slicing, asr, profile.postprocess, glossary, profile.fingerprint)
    return PublishingOptions(hearing, prompts, model, slicing, asr, result, asked.priority, headers)


def publish_media(
    opened: Opened, options: PublishingOptions, tools: PublishingTools, say: Callable[[str], None]
) -> Published:
    """Send the slices of a media that are not transcribed yet, then how many there are in all.

    A media without audio has no slices; the end mark alone makes its result. Raises InvalidInputError where the
    file is at fault, RetriableError where the broker or the database is; what was sent may be sent again.
    """
    started_s = time.perf_counter()
    media = opened.media
    tools.store.begin_slicing(media, options.slicing, options.asr)
    done = _transcribed(media, options, tools.store)
    slice_count, sent = 0, 0
    with hear(media.media_id, opened.path, opened.info, options.hearing, tools.detector, tools.ffmpeg) as hearing:
        say(hearing.why)
        for few in _in_fews(iter(hearing)):
            slice_count += len(few)
            wanted = [one for one in few if one.slice.index not in done]
            _send(tools, [_slice_message(one, media, options) for one in wanted])
            sent += len(wanted)
        heard = hearing.heard
    plan = _plan(media, options, slice_count, heard, round((time.perf_counter() - started_s) * 1000))
    _send(tools, [_message(encode(MediaSliced.of(plan, media.course_id)), media, options)])
    say(f"{sent} of {slice_count} slices sent to {AUDIO_SLICES[options.priority]}, then the end mark")
    return Published(plan, sent)


def _transcribed(media: Media, options: PublishingOptions, store: LineStore) -> frozenset[int]:
    """The indexes of the slices that need not be sent again; a failure is no transcript."""
    kept = store.slice_transcripts(media.media_id, options.slicing, options.asr)
    return frozenset(one.slice_index for one in kept if one.outcome is not Outcome.FAILED)


def _in_fews(audio: Iterator[SliceAudio]) -> Iterator[list[SliceAudio]]:
    while few := list(islice(audio, IN_FLIGHT_SLICES)):
        yield few


def _send(tools: PublishingTools, outgoings: Sequence[Outgoing]) -> None:
    if outgoings:
        tools.send(outgoings)


def _slice_message(audio: SliceAudio, media: Media, options: PublishingOptions) -> Outgoing:
    ready = slice_ready(
        audio,
        course_id=media.course_id,
        language=media.language,
        prompts=options.prompts,
        model=options.model,
        slicing=options.slicing,
        asr=options.asr,
        priority=options.priority,
        codec=options.codec,
    )
    return _message(encode(ready), media, options)


def _message(value: bytes, media: Media, options: PublishingOptions) -> Outgoing:
    """The end mark has the slices' topic and key, too: so it comes after them."""
    return Outgoing(AUDIO_SLICES[options.priority], media.course_id, value, options.headers)


def _plan(media: Media, options: PublishingOptions, slice_count: int, heard: Heard, slicing_ms: int) -> MediaPlan:
    return MediaPlan(
        media_id=media.media_id,
        slicing=options.slicing,
        asr=options.asr,
        slice_count=slice_count,
        duration_ms=heard.duration_ms,
        missing=heard.missing,
        warnings=heard.warnings,
        slicing_ms=slicing_ms,
    )
