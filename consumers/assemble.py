"""Steps 6 to 9 on Kafka: ``python -m consumers.assemble`` makes the subtitles of each media that is complete.

Transcripts and end marks come on ``slice.transcripts`` in any order, and any of them twice; each batch goes into
PostgreSQL at once, and PostgreSQL says which media are complete. Those are finished as ``lecturemill run`` would.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from consumers.intake import Received
from consumers.loop import LoopRules
from consumers.metrics import Metrics
from consumers.tracing import Headers, Tracing
from consumers.wiring import Surroundings, Wired, run_program
from pipeline.broker import SLICE_TRANSCRIPTS, TRANSCRIPTS_COMPLETED, Outgoing
from pipeline.errors import InvalidInputError
from pipeline.exporting import write_subtitles
from pipeline.finishing import Heard, cost_of, finish
from pipeline.keys import run_key
from pipeline.ledger import failed_ledger, total_ms
from pipeline.messages import SliceTranscribed, TranscriptsCompleted, decode_transcript_topic, encode
from pipeline.postprocess import Glossary
from pipeline.settings import open_database
from pipeline.store_line import Complete, LineStore
from pipeline.subtitle_profiles import SubtitleProfile
from pipeline.subtitles import check_formats
from pipeline.values import Cue, Media, MediaPlan, MediaResult, Outcome, Priority, Sentence, TranscribedSlice, Word

GROUP = "assemble"
FORMATS = "LECTUREMILL_FORMATS"
DEFAULT_FORMATS = "srt,vtt,json"
MAX_BATCH = 100
"""Of 3 kB each; a batch is one transaction."""

Answer = Sequence[Outgoing] | InvalidInputError


@dataclass(frozen=True, slots=True)
class Target:
    """What is written of each media, and at what price it was made."""

    media_store: str
    formats: tuple[str, ...]
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message of ``slice.transcripts``, decoded."""

    received: Received
    value: TranscribedSlice | MediaPlan

    @property
    def media_id(self) -> str:
        return self.value.media_id if isinstance(self.value, MediaPlan) else self.value.slice.media_id


@dataclass(frozen=True, slots=True)
class _Course:
    """What the text of a course's media depends on, beside their transcripts."""

    glossary: Glossary
    profile: SubtitleProfile

    @classmethod
    def of(cls, course_id: str, store: LineStore) -> _Course:
        return cls(store.glossary(course_id), store.profile(course_id))


class AssembleStep:
    """Transcripts and end marks in, one announcement for each media that is complete out."""

    def __init__(self, store: LineStore, target: Target, metrics: Metrics, tracing: Tracing) -> None:
        self._store, self._target, self._metrics, self._tracing = store, target, metrics, tracing

    def prepare(self, message: Received) -> Arrived:
        """Raises InvalidInputError for bytes that are no such message."""
        decoded = decode_transcript_topic(message.value)
        return Arrived(message, decoded.to_value() if isinstance(decoded, SliceTranscribed) else decoded.to_plan())

    def handle(self, batch: Sequence[Arrived]) -> list[Answer]:
        """An answer for each of ``batch``; a media is announced with the last of its messages.

        It is announced again whenever one of its messages comes again, since the announcement may have been what
        was lost. Raises RetriableError where the database or the media store is away.
        """
        parents = [(one.received.headers, {"media_id": one.media_id}) for one in batch]
        with self._tracing.batch("assemble", parents) as headers:
            unknown = self._record(batch)
            answers: list[Answer] = [_refused(one.media_id) if one.media_id in unknown else () for one in batch]
            last = {one.media_id: at for at, one in enumerate(batch) if one.media_id not in unknown}
            for complete in self._store.complete(last):
                at = last[complete.plan.media_id]
                answers[at] = self._announced(complete, headers[at])
            return answers

    def _record(self, batch: Sequence[Arrived]) -> frozenset[str]:
        """The media that are not known; nothing is stored of those."""
        transcripts = [one.value for one in batch if isinstance(one.value, TranscribedSlice)]
        plans = [one.value for one in batch if isinstance(one.value, MediaPlan)]
        unknown = self._store.record_line(transcripts, plans)
        now_ms = _now_ms()
        for one in [one for one in batch if one.media_id not in unknown]:
            if isinstance(one.value, MediaPlan):
                self._metrics.sliced(one.value)
            else:
                self._metrics.stored(one.received.headers, now_ms)
        return unknown

    def _announced(self, complete: Complete, headers: Headers) -> Answer:
        """A media that cannot be finished has failed; the others of the batch have not."""
        media = self._store.media(complete.plan.media_id)
        try:
            result = self._result(media, complete)
            files = write_subtitles(media, result, self._target.media_store, self._target.formats)
            completed = encode(_completed(media, result, files))
        except InvalidInputError as error:
            ledger = failed_ledger(complete.plan.duration_ms, error.reason)
            self._store.record_failure(media.media_id, error.reason, ledger)
            return error
        return [Outgoing(TRANSCRIPTS_COMPLETED, media.course_id, completed, headers)]

    def _result(self, media: Media, complete: Complete) -> MediaResult:
        """The stored one, where it was made of the same transcripts, and as the course wants it now."""
        plan, course = complete.plan, _Course.of(media.course_id, self._store)
        key = run_key(plan.slicing, plan.asr, course.profile.postprocess, course.glossary, course.profile.fingerprint)
        stored = self._store.finished(plan.media_id, key) if complete.fingerprint == key else None
        if stored:
            return stored
        result = self._finished(plan, course)
        version = course.glossary.version
        self._store.record_result(result, key, plan.slicing, plan.asr, glossary_version=version)
        if complete.fingerprint is None:
            self._metrics.completed(self._store.recorded_ms(plan.media_id), _now_ms())
        return result

    def _finished(self, plan: MediaPlan, course: _Course) -> MediaResult:
        pairs = self._store.planned_slices(plan)
        slices, transcripts = [piece for piece, _ in pairs], [transcript for _, transcript in pairs]
        heard = Heard(plan.duration_ms, plan.missing, plan.warnings)
        engine_ms = sum(one.engine_ms for one in transcripts)
        cost = cost_of(engine_ms, plan.slicing_ms, self._target.usd_per_hour)
        text = (course.glossary, course.profile.postprocess)
        result = finish(plan.media_id, slices, transcripts, heard, *text, cost, course.profile)
        _check_forward(result)
        return result


def _check_forward(result: MediaResult) -> None:
    """A message can hold times that run backwards, which no table takes. Raises InvalidInputError."""
    words = [word for sentence in result.sentences for word in sentence.words]
    timed: tuple[Sentence | Word | Cue, ...] = (*result.sentences, *words, *result.cues)
    for one in timed:
        if one.end_ms < one.start_ms:
            raise InvalidInputError(f"times run backwards: {one.text[:40]!a} from {one.start_ms} to {one.end_ms} ms")


def _refused(media_id: str) -> InvalidInputError:
    return InvalidInputError("the media is not recorded; announce it on media.uploaded", source=media_id)


def _completed(media: Media, result: MediaResult, files: tuple[str, ...]) -> TranscriptsCompleted:
    return TranscriptsCompleted(
        course_id=media.course_id,
        media_id=media.media_id,
        title=media.title,
        language=result.language,
        duration_ms=result.duration_ms,
        speech_ms=result.speech_ms,
        cues=len(result.cues),
        violations=len(result.violations),
        filtered_ms=total_ms(result.ledger, Outcome.FILTERED),
        failed_ms=total_ms(result.ledger, Outcome.FAILED),
        files=files,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status is that of ``consumers.wiring``."""
    parser = argparse.ArgumentParser(prog="python -m consumers.assemble", description=__doc__)
    parser.parse_args(arguments)
    return run_program("assemble", wire)


@contextmanager
def wire(around: Surroundings) -> Iterator[Wired]:
    """The step and its rules, over the database of the settings."""
    settings = around.settings
    formats = check_formats(os.environ.get(FORMATS) or DEFAULT_FORMATS, FORMATS)
    target = Target(settings.media_store, formats, settings.usd_per_hour)
    with open_database(settings) as url, LineStore.open(url) as store:
        rules = LoopRules(
            GROUP, {Priority.NORMAL: SLICE_TRANSCRIPTS}, max_batch=MAX_BATCH, buffer_messages=2 * MAX_BATCH
        )
        yield AssembleStep(store, target, around.metrics, around.tracing), rules


if __name__ == "__main__":
    sys.exit(main())
