"""What PostgreSQL remembers: media, slices, transcripts, cues, the ledger.

Each method is one transaction and an upsert on natural keys, so that doing a thing twice is harmless. What writes
locks the row of its media first, so that two writers wait for each other and do not deadlock. Every method
raises RetriableError where the database cannot be reached, and InvalidInputError for rows of a media that is
not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, text

from pipeline import store_rows as rows
from pipeline import store_statements as statements
from pipeline import store_tables as tables
from pipeline.database import connect, database_errors
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.store_rows import checked_key, clean
from pipeline.values import Cost, LedgerSpan, Media, MediaResult, Slice, SliceTranscript


@dataclass(frozen=True, slots=True)
class MediaStatus:
    """How far one media is. ``state`` is waiting, running, done or failed; ``reason`` says why it failed."""

    media_id: str
    course_id: str
    title: str
    uri: str
    state: str
    duration_ms: int | None
    """Declared by the file until the media is done, then exact; None where neither is known."""
    speech_ms: int | None
    """None until the media is done."""
    slices_done: int
    """Slices with a transcript under the fingerprints that were last worked with."""
    cues: int
    violations: int
    failed_ms: int
    filtered_ms: int
    reason: str
    updated_at: datetime
    slices_planned: int | None
    """How many slices must be transcribed; None until the whole media is sliced, and where ``run`` works on it."""
    finished_at: datetime | None = None
    """When it was done, or failed; None before."""


class Store:
    """One database. Threads may share it."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self._url = url

    @classmethod
    def open(cls, url: str) -> Self:
        """Connect. Raises UsageError where this version's ``pipeline.database.upgrade`` was not run on the database."""
        store = cls(connect(url), url)
        with store._transaction() as connection:
            known = connection.scalar(text(statements.IS_UP_TO_DATE))
        if not known:
            store.close()
            raise UsageError("the database lacks tables of this version; run: lecturemill db upgrade")
        return store

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with database_errors(self._url), self._engine.begin() as connection:
            yield connection

    def record_media(self, media: Media, slicing: str | None = None, asr: str | None = None) -> None:
        """State running (a done media stays done). An earlier failure, with its ledger, is forgotten.

        ``slicing`` and ``asr`` are the fingerprints under which the media is wanted from now on, where they are given.
        """
        values = {**media_values(media), "slicing": slicing, "asr": asr}
        with self._transaction() as connection:
            connection.execute(text(statements.RECORD_MEDIA), values)
            connection.execute(text(statements.FORGET_FAILURE), {"media_id": media.media_id})

    def record_slices(
        self, media_id: str, slicing: str, asr: str, batch: Sequence[tuple[Slice, SliceTranscript]], engine: str = ""
    ) -> None:
        """All of ``batch`` or nothing; ``slicing`` and ``asr`` are the fingerprints it was made under.

        ``engine`` is for people: what computed it, in which precision.
        """
        # Once each (a message may come twice), and in one order, so that two writers cannot deadlock.
        pairs = sorted({slice_.index: (slice_, done) for slice_, done in batch}.items())
        slices = [rows.slice_row(slice_, slicing) for _, (slice_, _) in pairs]
        transcripts = [rows.slice_transcript_row(done, slicing, asr, engine) for _, (_, done) in pairs]
        with self._transaction() as connection:
            connection.execute(text(statements.RECORD_PROGRESS), {"media_id": media_id, "slicing": slicing, "asr": asr})
            tables.upsert(connection, tables.SLICES, media_id, slices)
            tables.upsert(connection, tables.SLICE_TRANSCRIPTS, media_id, transcripts)

    def slice_transcripts(self, media_id: str, slicing: str, asr: str) -> tuple[SliceTranscript, ...]:
        """What has been transcribed under these fingerprints, in slice order."""
        keys = {"media_id": media_id, "slicing": slicing, "asr": asr}
        with self._transaction() as connection:
            found = connection.execute(text(statements.SLICE_TRANSCRIPTS), keys).all()
        return tuple(rows.slice_transcript(media_id, tuple(row)) for row in found)

    def record_result(
        self,
        result: MediaResult,
        fingerprint: str,
        slicing: str | None = None,
        asr: str | None = None,
        *,
        glossary_version: int | None = None,
        replacing: str | None = None,
    ) -> None:
        """State done, and everything of ``result`` in place of whatever an earlier run left.

        ``slicing`` and ``asr`` are the fingerprints of the slice transcripts that it is made of; those under which the
        media is wanted, where they are not given. ``glossary_version`` is that of the course's glossary that it is made
        with. Where ``replacing`` is given, raises RetriableError if the result there has another fingerprint by now.
        """
        media_id = result.media_id
        values = {**_transcript_values(result, fingerprint), "slicing": slicing, "asr": asr}
        values["glossary_version"] = glossary_version
        with self._transaction() as connection:
            if replacing is not None:
                _check_replacing(connection, media_id, replacing)
            connection.execute(text(statements.RECORD_STATE), {"media_id": media_id, "state": "done", "reason": ""})
            connection.execute(text(statements.RECORD_TRANSCRIPT), values)
            for table, new in _parts(result):
                tables.replace(connection, table, media_id, new)

    def record_failure(self, media_id: str, reason: str, ledger: Sequence[LedgerSpan]) -> None:
        """State failed, with ``ledger`` for its account.

        The result of an earlier run goes, so that rows and ledger tell one story; its slice transcripts stay,
        and the result can be made of them again.
        """
        with self._transaction() as connection:
            state = {"media_id": media_id, "state": "failed", "reason": clean(reason)}
            if not connection.execute(text(statements.RECORD_STATE), state).rowcount:
                raise unknown(media_id)
            connection.execute(
                text("delete from lecturemill.transcript where media_id = :media_id"), {"media_id": media_id}
            )
            for table in tables.PARTS_OF_A_RESULT:
                tables.replace(connection, table, media_id, [])
            tables.replace(connection, tables.LEDGER, media_id, rows.ledger_rows(ledger))

    def finished(self, media_id: str, fingerprint: str) -> MediaResult | None:
        """The stored result, as it was given, if the media was finished under that fingerprint."""
        with self._transaction() as connection:
            return _result(connection, media_id, fingerprint)

    def result(self, media_id: str) -> MediaResult:
        """The stored result. Raises InvalidInputError where the media is not known or not done."""
        with self._transaction() as connection:
            result = _result(connection, media_id, None)
        if result is None:
            raise InvalidInputError(f"{self.media(media_id).title} is not done yet", source=media_id)
        return result

    def media(self, media_id: str) -> Media:
        """Raises InvalidInputError where it is not known."""
        with self._transaction() as connection:
            row = connection.execute(text(statements.MEDIA), {"media_id": media_id}).one_or_none()
        if row is None:
            raise unknown(media_id)
        return Media(*row)

    def status(self, media_id: str | None = None) -> tuple[MediaStatus, ...]:
        """Of one media (empty where it is not known) or of all, the oldest first."""
        with self._transaction() as connection:
            found = connection.execute(text(statements.STATUS), {"media_id": media_id})
            return tuple(MediaStatus(*row) for row in found)

    def ledger(self, media_id: str) -> tuple[LedgerSpan, ...]:
        """By time; empty while the media is running. Raises InvalidInputError where it is not known."""
        self.media(media_id)
        with self._transaction() as connection:
            return rows.ledger(tables.select(connection, tables.LEDGER, media_id))


def unknown(media_id: str) -> InvalidInputError:
    return InvalidInputError("no such media; `lecturemill status` lists them", source=media_id)


def media_values(media: Media) -> dict[str, Any]:
    """The parameters of a statement that writes a media. Raises InvalidInputError where an id cannot be stored."""
    return {
        "media_id": checked_key(media.media_id),
        "course_id": checked_key(media.course_id),
        "uri": clean(media.uri),
        "title": clean(media.title),
        "content_fingerprint": clean(media.content_fingerprint),
        "duration_ms": media.duration_ms,
        "language": media.language,
    }


def _check_replacing(connection: Connection, media_id: str, replacing: str) -> None:
    if connection.scalar(text(statements.LOCK_RESULT), {"media_id": media_id}) != replacing:
        raise RetriableError(f"{media_id}: its result was made anew meanwhile; try again")


def _transcript_values(result: MediaResult, fingerprint: str) -> dict[str, Any]:
    return {
        "media_id": result.media_id,
        "fingerprint": fingerprint,
        "language": clean(result.language),
        "duration_ms": result.duration_ms,
        "speech_ms": result.speech_ms,
        "text": "\n".join(clean(sentence.text) for sentence in result.sentences),
        "warnings": [clean(warning) for warning in result.warnings],
        "wall_ms": result.cost.wall_ms,
        "engine_ms": result.cost.engine_ms,
        "usd": result.cost.usd,
        "quality": result.quality,
    }


def _parts(result: MediaResult) -> list[tuple[tables.Table, list[tables.Row]]]:
    return [
        (tables.SENTENCES, rows.sentence_rows(result.sentences)),
        (tables.WORDS, rows.word_rows(result.sentences)),
        (tables.CUES, rows.cue_rows(result.cues, result.sentences, result.language)),
        (tables.VIOLATIONS, rows.violation_rows(result.violations)),
        (tables.REPLACEMENTS, rows.replacement_rows(result.replacements)),
        (tables.QUALITIES, rows.quality_rows(result.qualities)),
        (tables.LEDGER, rows.ledger_rows(result.ledger)),
    ]


def _result(connection: Connection, media_id: str, fingerprint: str | None) -> MediaResult | None:
    """The result under ``fingerprint``, or under any if that is None."""
    row = connection.execute(text(statements.RESULT), {"media_id": media_id}).one_or_none()
    if row is None or fingerprint not in (None, row.fingerprint):
        return None
    sentences, words, cues, violations, replacements, qualities = (
        tables.select(connection, table, media_id) for table in tables.PARTS_OF_A_RESULT
    )
    return MediaResult(
        media_id=media_id,
        language=row.language,
        duration_ms=row.duration_ms,
        speech_ms=row.speech_ms,
        sentences=rows.sentences(sentences, words),
        cues=rows.cues(cues),
        violations=rows.violations(violations),
        replacements=rows.replacements(replacements),
        ledger=rows.ledger(tables.select(connection, tables.LEDGER, media_id)),
        warnings=tuple(row.warnings),
        cost=Cost(row.wall_ms, row.engine_ms, row.usd),
        qualities=rows.qualities(qualities),
        quality=row.quality,
    )
