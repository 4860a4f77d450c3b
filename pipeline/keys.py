"""The fingerprints under which slices and transcripts are kept: equal fingerprints, equal work, done once."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.hearing import HearingRules
from pipeline.identity import digest
from pipeline.postprocess import Glossary, PostprocessOptions
from pipeline.transcription import TranscriptionOptions

LINE_VERSION = 2
"""Raised when a step changes what it makes from the same input, so that finished media are made anew."""

ENGINE_REVISIONS = {"faster-whisper": 2, "fused": 2}
"""Raised when an engine gives other texts or times from the same weights."""


def engine_key(model_fingerprint: str, engine: str, device: str, arithmetic: str) -> str:
    """What the transcripts of an engine depend on beside what it is asked."""
    return digest(model_fingerprint, engine, ENGINE_REVISIONS[engine], device, arithmetic)


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


def run_key(slicing: str, asr: str, postprocess: PostprocessOptions, glossary: Glossary) -> str:
    """What everything that is kept of a finished media depends on."""
    return digest(LINE_VERSION, slicing, asr, postprocess.fingerprint, glossary.fingerprint)
