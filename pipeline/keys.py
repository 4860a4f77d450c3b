"""The fingerprints under which slices and transcripts are kept: equal fingerprints, equal work, done once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.identity import digest

if TYPE_CHECKING:  # engines are loaded where neither ffmpeg nor the post-processing is installed
    from pipeline.hearing import HearingRules
    from pipeline.postprocess import Glossary, PostprocessOptions
    from pipeline.transcription import TranscriptionOptions

LINE_VERSION = 3
"""Raised when a step changes what it makes from the same input, so that finished media are made anew."""

_SPEAKERS = "+"
"""Between the key of a result and the fingerprint of what told its speakers apart."""

ENGINE_REVISIONS = {"faster-whisper": 3, "fused": 6}
"""Raised when an engine gives other texts, times or marks from the same weights."""


def engine_key(model_fingerprint: str, engine: str, device: str, arithmetic: str) -> str:
    """What the transcripts of an engine depend on beside what it is asked.

    ``arithmetic`` is the precision that is wanted, and ``device`` a kind of device: where memory or time made the
    engine compute in less, or on which of several GPUs it did, stands in the row of the slice (``engine``).
    """
    return digest(model_fingerprint, engine, ENGINE_REVISIONS[engine], device, str(arithmetic))


def slicing_key(content_fingerprint: str, detector_fingerprint: str, rules: HearingRules) -> str:
    """What the slices of a media depend on; 16 hex digits, like all here."""
    return digest(content_fingerprint, rules.audio_track, detector_fingerprint, rules.speech, rules.slicing)


def asr_key(
    engine_fingerprint: str,
    language: str | None,
    prompts: Mapping[str, str],
    options: TranscriptionOptions,
    batch_slices: int | None = None,
) -> str:
    """What the transcripts of slices depend on; ``batch_slices`` where batches are fixed, not as they come."""
    return digest(engine_fingerprint, language, options.ladder, sorted(prompts.items()), options.judge, batch_slices)


def run_key(
    slicing: str, asr: str, postprocess: PostprocessOptions, glossary: Glossary, cues: str = "", speakers: str = ""
) -> str:
    """What everything that is kept of a finished media depends on; ``cues`` is the fingerprint of its cues' profile.

    ``speakers`` is the one of the models that told speakers apart, empty where none did. It can be read from the key
    (``speakers_of``): who makes a text anew without those models keeps it.
    """
    key = digest(LINE_VERSION, slicing, asr, postprocess.fingerprint, glossary.fingerprint, cues, "")
    return _with_speakers(key, speakers)


def speakers_of(run: str) -> str:
    """What ``run_key`` was told of speakers.

    >>> speakers_of("0123456789abcdef+fedcba9876543210"), speakers_of("0123456789abcdef")
    ('fedcba9876543210', '')
    """
    return run.partition(_SPEAKERS)[2]


def incomplete_key(run: str) -> str:
    """Of a result some slices of which failed: never equal to ``run``, so that the same run again makes it anew."""
    key, _, speakers = run.partition(_SPEAKERS)
    return _with_speakers(digest(key, "incomplete"), speakers)


def _with_speakers(key: str, speakers: str) -> str:
    return f"{key}{_SPEAKERS}{speakers}" if speakers else key
