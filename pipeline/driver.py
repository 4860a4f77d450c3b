"""The line in one process: probe, decode, slice, transcribe, stitch, post-process, cue, store, export.

The steps live in their own files and know nothing of each other; this file only chains them. Work is kept in the
store batch by batch, so a run that was stopped anywhere goes on at the batch where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from pipeline import media as probing
from pipeline.diarization import Voice, diarize
from pipeline.errors import InvalidInputError
from pipeline.finishing import Heard, cost_of, finish
from pipeline.hearing import HearingRules, hear
from pipeline.identity import media_id_of
from pipeline.keys import asr_key, incomplete_key, run_key, slicing_key
from pipeline.ledger import failed_ledger
from pipeline.memory import trim_heap
from pipeline.postprocess import Glossary, PostprocessOptions
from pipeline.speech import Detector
from pipeline.stopping import in_thread
from pipeline.store import Store
from pipeline.store_line import LineStore
from pipeline.subtitle_profiles import NETFLIX, SubtitleProfile
from pipeline.transcription import Engine, Request, TranscriptionOptions, label_of, transcribe
from pipeline.values import Cost, Media, MediaInfo, MediaResult, Outcome, Slice, SliceAudio, SliceTranscript

RUN_BATCH_SLICES = 4


@dataclass(frozen=True, slots=True)
class LineOptions:
    """What the rows depend on. Equal options and equal files give equal rows."""

    course_id: str
    hearing: HearingRules
    glossary: Glossary
    prompts: Mapping[str, str]
    """What Whisper is told before it listens, by language."""
    transcription: TranscriptionOptions
    postprocess: PostprocessOptions
    batch_slices: int = RUN_BATCH_SLICES
    """Slices per call of the engine, and per transaction."""
    profile: SubtitleProfile = NETFLIX
    """Of which the rules for cues count; the text's are ``postprocess``."""
    speakers: bool = False
    """Whether speakers are told apart; needs ``LineTools.listener``."""


@dataclass(frozen=True, slots=True)
class LineTools:
    """What the steps work with, opened once by the entry point."""

    engine: Callable[[], Engine]
    """Called when the first slice needs it: what is finished already needs no model."""
    engine_fingerprint: str
    detector: Callable[[], Detector]
    """Makes the detector of one media."""
    detector_fingerprint: str
    store: LineStore
    ffmpeg: str
    usd_per_hour: float
    """What one hour of this machine costs."""
    listener: Callable[[], Listener] | None = None
    """Loads what hears voices."""
    listener_fingerprint: str = ""


class Listener(Protocol):
    """Hears who talks, one slice after the other."""

    def hear(self, audio: SliceAudio) -> Sequence[Voice]:
        """The runs of talk in a slice, on the media clock."""


class Progress(Protocol):
    """Told how far one media is; a driver's caller shows it."""

    def begin(self, media: Media) -> None: ...

    def advance(self, done_ms: int) -> None:
        """Everything before ``done_ms`` of the media clock is done."""

    def say(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Finished:
    """One media is done; ``was_done`` where an earlier run had done it under the same options."""

    media: Media
    result: MediaResult
    was_done: bool
    failed: tuple[str, ...] = ()
    """Why slices could not be transcribed, a reason each; the same run again tries those anew."""


def run_media(path: Path, options: LineOptions, tools: LineTools, progress: Progress) -> Finished:
    """Take one file through the whole line.

    Raises InvalidInputError where the file is at fault; its failure is in the store by then. RetriableError
    where the surroundings are; what was done is kept.
    """
    uri = path.resolve().as_uri()
    media_id = media_id_of(options.course_id, uri)
    media = Media(media_id, options.course_id, uri, path.stem, "", None, options.hearing.language)
    try:
        info = probing.probe(path)
    except InvalidInputError as error:
        if path.exists():  # a mistyped name is no media, and an unmounted disk must not cost its media their rows
            _record_failure(tools.store, media, error)
        raise
    media = replace(media, content_fingerprint=info.content_fingerprint, duration_ms=info.duration_ms)
    made_under = _keys(info, options, tools)
    key = run_key(
        *made_under, options.postprocess, options.glossary, options.profile.fingerprint, _speakers_key(options, tools)
    )
    tools.store.record_media(media, *made_under)
    progress.begin(media)
    done = tools.store.finished(media_id, key)
    if done:
        progress.advance(done.duration_ms)
        return Finished(media, done, was_done=True)
    try:
        result, failed = _Run(path, media, info, options, tools, progress).result()
    except InvalidInputError as error:
        _record_failure(tools.store, media, error)
        raise
    made_key, version = incomplete_key(key) if failed else key, options.glossary.version
    tools.store.record_result(result, made_key, *made_under, glossary_version=version)
    progress.advance(result.duration_ms)
    return Finished(media, result, was_done=False, failed=failed)


def _record_failure(store: Store, media: Media, error: InvalidInputError) -> None:
    store.record_media(media)
    store.record_failure(media.media_id, error.reason, failed_ledger(media.duration_ms, error.reason))


def _keys(info: MediaInfo, options: LineOptions, tools: LineTools) -> tuple[str, str]:
    """The fingerprints of slicing and of transcribing."""
    slicing = slicing_key(info.content_fingerprint, tools.detector_fingerprint, options.hearing)
    asr = asr_key(
        tools.engine_fingerprint, options.hearing.language, options.prompts, options.transcription, options.batch_slices
    )
    return slicing, asr


def _speakers_key(options: LineOptions, tools: LineTools) -> str:
    return tools.listener_fingerprint if options.speakers else ""


class _Run:
    """One media's way down the line."""

    def __init__(
        self,
        path: Path,
        media: Media,
        info: MediaInfo,
        options: LineOptions,
        tools: LineTools,
        progress: Progress,
    ) -> None:
        self._path, self._media, self._info = path, media, info
        self._options, self._tools, self._progress = options, tools, progress
        self._slicing_key, self._asr_key = _keys(info, options, tools)
        self._started = time.perf_counter()
        kept = tools.store.slice_transcripts(media.media_id, self._slicing_key, self._asr_key)
        self._kept = {one.slice_index: one for one in kept if one.outcome is not Outcome.FAILED}

    def result(self) -> tuple[MediaResult, tuple[str, ...]]:
        """What was made, and why slices of it failed."""
        slices, transcripts, voices, heard = self._transcribe_all()
        trim_heap()  # what the engine needed beside its weights makes room for dictionaries
        options, nothing = self._options, Cost(0, 0, 0.0)
        text = (options.glossary, options.postprocess)
        result = finish(
            self._media.media_id, slices, transcripts, heard, *text, nothing, options.profile, diarize(voices)
        )
        failed = tuple(one.reason for one in transcripts if one.outcome is Outcome.FAILED)
        return replace(result, cost=self._cost(transcripts)), failed

    def _transcribe_all(self) -> tuple[list[Slice], list[SliceTranscript], list[Voice], Heard]:
        slices: list[Slice] = []
        transcripts: list[SliceTranscript] = []
        voices: list[Voice] = []
        rules, tools = self._options.hearing, self._tools
        with hear(self._media.media_id, self._path, self._info, rules, tools.detector, tools.ffmpeg) as hearing:
            self._progress.say(hearing.why)
            for batch in _in_batches(iter(hearing), self._options.batch_slices):
                slices += [one.slice for one in batch]
                transcripts += self._batch(batch)
                voices += self._voices(batch)
                self._progress.advance(batch[-1].slice.span.end_ms)
            return slices, transcripts, voices, hearing.heard

    def _voices(self, batch: Sequence[SliceAudio]) -> list[Voice]:
        """Heard anew in every run: that costs less than keeping them would."""
        load = self._tools.listener
        if load is None or not self._options.speakers:
            return []
        listener = load()
        return in_thread(lambda: [voice for audio in batch for voice in listener.hear(audio)])

    def _batch(self, batch: Sequence[SliceAudio]) -> Sequence[SliceTranscript]:
        """Transcribe and keep a batch, or take it from the store if an earlier run kept it.

        A batch is kept whole or not at all: the same slices meet the engine together in every run, so a run
        that was killed and taken up again gives the very same text.
        """
        stored = [self._kept[one.slice.index] for one in batch if one.slice.index in self._kept]
        if len(stored) == len(batch):
            return stored
        requests = [Request(one, self._options.hearing.language, self._options.prompts) for one in batch]
        transcripts = in_thread(lambda: transcribe(self._tools.engine(), requests, self._options.transcription))
        pairs = [(one.slice, transcript) for one, transcript in zip(batch, transcripts, strict=True)]
        engine = label_of(self._tools.engine())
        self._tools.store.record_slices(self._media.media_id, self._slicing_key, self._asr_key, pairs, engine)
        return transcripts

    def _cost(self, transcripts: Iterable[SliceTranscript]) -> Cost:
        """Wall time of this run; where an earlier one did part of the work, at least the engine's time of both."""
        engine_ms = sum(one.engine_ms for one in transcripts)
        wall_ms = round((time.perf_counter() - self._started) * 1000)
        return cost_of(engine_ms, wall_ms - engine_ms, self._tools.usd_per_hour)


def _in_batches(audio: Iterator[SliceAudio], size: int) -> Iterator[list[SliceAudio]]:
    while batch := list(islice(audio, size)):
        yield batch
