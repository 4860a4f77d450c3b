"""What PostgreSQL remembers for the line over many machines: what waits, what is complete, glossaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from pipeline import store_glossary
from pipeline import store_rows as rows
from pipeline import store_statements as statements
from pipeline import store_tables as tables
from pipeline.errors import InvalidInputError
from pipeline.postprocess.terms import Glossary
from pipeline.store import MediaStatus, Store, media_values, unknown
from pipeline.store_rows import checked_key, clean
from pipeline.subtitle_profiles import NETFLIX, SubtitleProfile, profile_from_json, profile_to_json
from pipeline.values import Media, MediaPlan, Outcome, Priority, Slice, SliceTranscript, TranscribedSlice


@dataclass(frozen=True, slots=True)
class Asked:
    """How a media was asked for, beside its language."""

    priority: Priority
    audio_track: int | None
    """Counted from 1; None leaves the choice to the line."""


@dataclass(frozen=True, slots=True)
class Complete:
    """A media of which every slice is transcribed, and the run key of its stored result; None where there is none."""

    plan: MediaPlan
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Missing:
    """What a media lacks under the fingerprints that are wanted of it."""

    plan: MediaPlan | None
    """None until its end mark has come; ``untranscribed`` is empty till then."""
    untranscribed: tuple[int, ...]
    """Indexes of the slices without a transcript."""
    failed: tuple[int, ...]
    """Indexes of the slices whose transcript is a failure."""
    is_assembled: bool
    """Whether the stored result is made under these fingerprints."""


@dataclass(frozen=True, slots=True)
class MadeUnder:
    """The fingerprints that the stored result of a media was made under; None where there is no result."""

    media_id: str
    slicing: str | None
    asr: str | None
    fingerprint: str | None
    """The run key."""


class LineStore(Store):
    """The store of the programs on both sides of Kafka."""

    def announce(self, media: Media, priority: Priority, audio_track: int | None) -> None:
        """State waiting, for a media that is new. A known one keeps its state and rows; what is asked is asked anew.

        Raises InvalidInputError where the media belongs to another course.
        """
        values = {**media_values(media), "priority": str(priority), "audio_track": audio_track}
        with self._transaction() as connection:
            if not connection.execute(text(statements.ANNOUNCE), values).rowcount:
                raise InvalidInputError("the media belongs to another course", source=media.media_id)

    def asked(self, media_id: str) -> Asked:
        """Raises InvalidInputError where the media is not known."""
        with self._transaction() as connection:
            row = connection.execute(text(statements.ASKED), {"media_id": media_id}).one_or_none()
        if row is None:
            raise unknown(media_id)
        return Asked(Priority(row.priority), row.audio_track)

    def reopen(self, media_id: str, failed_at: datetime) -> None:
        """State waiting again, for a media that failed then and on which no run has begun since; else nothing."""
        with self._transaction() as connection:
            connection.execute(text(statements.REOPEN), {"media_id": media_id, "failed_at": failed_at})

    def recorded_ms(self, media_id: str) -> int:
        """When it was first announced, in milliseconds since 1970. Raises InvalidInputError where it is not known."""
        with self._transaction() as connection:
            recorded_ms: int | None = connection.scalar(text(statements.RECORDED), {"media_id": media_id})
        if recorded_ms is None:
            raise unknown(media_id)
        return recorded_ms

    def begin_slicing(self, media: Media, slicing: str, asr: str) -> None:
        """State running (a done media stays done), and from now on wanted under these fingerprints."""
        self.record_media(media, slicing, asr)

    def record_line(self, transcripts: Sequence[TranscribedSlice], plans: Sequence[MediaPlan]) -> frozenset[str]:
        """All at once, of any number of media; of two with one key, the later. Returns the media that are not recorded.

        Nothing is stored of those. What is wanted of a media stays as it is: a late message of an older run must
        not change it.
        """
        named = {one.slice.media_id for one in transcripts} | {plan.media_id for plan in plans}
        if not named:
            return frozenset()
        with self._transaction() as connection:
            known = set(connection.scalars(text(statements.TOUCH_MEDIA), {"media_ids": sorted(named)}))
            for table, new in _line_rows(transcripts, plans):
                tables.upsert_of_many(connection, table, [row for row in new if row[0] in known])
        return frozenset(named - known)

    def complete(self, media_ids: Collection[str]) -> tuple[Complete, ...]:
        """Of ``media_ids``, by id, those with an end mark and every slice under the fingerprints that are wanted.

        Also of a media that was assembled before: a message that comes again must be answered again.
        """
        with self._transaction() as connection:
            found = connection.execute(text(statements.COMPLETE), {"media_ids": list(media_ids)}).all()
        return tuple(Complete(rows.plan(media_id, tuple(row)), fingerprint) for media_id, fingerprint, *row in found)

    def planned(self, media_id: str, slicing: str, asr: str) -> MediaPlan | None:
        """None until the end mark of the media has come."""
        with self._transaction() as connection:
            keys = {"media_id": media_id, "slicing": slicing, "asr": asr}
            row = connection.execute(text(statements.PLANNED), keys).one_or_none()
        return None if row is None else rows.plan(media_id, tuple(row))

    def planned_slices(self, plan: MediaPlan) -> list[tuple[Slice, SliceTranscript]]:
        """The slices of a plan that are transcribed, in order."""
        return self._slices(plan.media_id, plan.slicing, plan.asr, plan.slice_count)

    def _slices(
        self, media_id: str, slicing: str, asr: str, slice_count: int | None
    ) -> list[tuple[Slice, SliceTranscript]]:
        values = {"media_id": media_id, "slicing": slicing, "asr": asr, "slice_count": slice_count}
        with self._transaction() as connection:
            found = connection.execute(text(statements.PLANNED_SLICES), values).all()
        return [
            (rows.slice_(media_id, tuple(row[:5])), rows.slice_transcript(media_id, (row[0], *row[5:])))
            for row in found
        ]

    def missing(self, media_id: str) -> Missing:
        """Raises InvalidInputError where the media is not known."""
        with self._transaction() as connection:
            wanted = connection.execute(text(statements.WANTED), {"media_id": media_id}).one_or_none()
            if wanted is None:
                raise unknown(media_id)
            keys = {"media_id": media_id, "slicing": wanted.slicing, "asr": wanted.asr}
            row = connection.execute(text(statements.PLANNED), keys).one_or_none()
            outcomes = {one.slice_index: one.outcome for one in connection.execute(text(statements.OUTCOMES), keys)}
        plan = None if row is None else rows.plan(media_id, tuple(row))
        untranscribed = tuple(sorted(set(range(plan.slice_count if plan else 0)) - outcomes.keys()))
        failed = tuple(index for index, outcome in outcomes.items() if outcome == Outcome.FAILED)
        return Missing(plan, untranscribed, failed, wanted.is_assembled)

    def unfinished(self, course_id: str | None, older_than_s: int, limit: int) -> tuple[MediaStatus, ...]:
        """Media of a course, or of all, that wait, run, or are done under other fingerprints than are wanted.

        Only those of which nothing was heard for ``older_than_s`` seconds; the longest silent first.
        """
        values = {"course_id": course_id, "older_than_s": older_than_s, "limit": limit}
        with self._transaction() as connection:
            return tuple(MediaStatus(*row) for row in connection.execute(text(statements.UNFINISHED), values))

    def course_media(self, course_id: str) -> tuple[MadeUnder, ...]:
        """All media of a course, the oldest first, so that what was made under other fingerprints can be made anew."""
        with self._transaction() as connection:
            found = connection.execute(text(statements.COURSE_MEDIA), {"course_id": course_id})
            return tuple(MadeUnder(*row) for row in found)

    def stored_fingerprint(self, media_id: str) -> str:
        """The run key of the stored result; empty where there is none, or where it is to be made anew."""
        with self._transaction() as connection:
            return connection.scalar(text(statements.STORED_FINGERPRINT), {"media_id": media_id}) or ""

    def forget_work(self, media_id: str, slicing: str, asr: str) -> None:
        """So that the slices of a media are transcribed anew; until they are, the result that is stored stays."""
        keys = {"media_id": media_id, "slicing": slicing, "asr": asr}
        with self._transaction() as connection:
            for statement in statements.FORGET_WORK:
                connection.execute(text(statement), keys)

    def record_glossary(self, course_id: str, glossary: Glossary, source: str = "") -> int:
        """The newest version of the course's glossary from now on; returns its number. An equal one is not kept twice.

        ``source`` names, for people, the file that it came from.
        """
        with self._transaction() as connection:
            return store_glossary.record_glossary(connection, course_id, glossary, source)

    def record_profile(self, course_id: str, profile: SubtitleProfile) -> None:
        """In place of the subtitle profile that the course had."""
        values = {"course_id": checked_key(course_id), "profile": clean(profile_to_json(profile))}
        with self._transaction() as connection:
            connection.execute(text(statements.RECORD_PROFILE), values)

    def profile(self, course_id: str) -> SubtitleProfile:
        """How the course wants its subtitles; Netflix's rules where it never said."""
        with self._transaction() as connection:
            raw = connection.scalar(text(statements.PROFILE), {"course_id": course_id})
        return profile_from_json(raw) if raw else NETFLIX

    def glossary(self, course_id: str, version: int | None = None) -> Glossary:
        """The newest version, empty where the course has none; or ``version``.

        Raises InvalidInputError where the course has no such version.
        """
        with self._transaction() as connection:
            found = store_glossary.load_glossary(connection, course_id, version)
        if found is None and version is not None:
            raise InvalidInputError(f"its glossary has no version {version}", source=course_id)
        return found or Glossary.empty()

    def made_under(self, media_id: str) -> MadeUnder:
        """The fingerprints of its result. Raises InvalidInputError where the media is not known."""
        with self._transaction() as connection:
            row = connection.execute(text(statements.MADE_UNDER), {"media_id": media_id}).one_or_none()
        if row is None:
            raise unknown(media_id)
        return MadeUnder(*row)

    def made_of(self, media_id: str, slicing: str, asr: str) -> list[tuple[Slice, SliceTranscript]]:
        """The slices that are transcribed under these fingerprints, in order."""
        return self._slices(media_id, slicing, asr, None)


def _line_rows(
    transcripts: Sequence[TranscribedSlice], plans: Sequence[MediaPlan]
) -> list[tuple[tables.Table, list[tables.Row]]]:
    """Rows with the media id in front."""
    slices = [(one.slice.media_id, *rows.slice_row(one.slice, one.slicing)) for one in transcripts]
    texts = [
        (one.slice.media_id, *rows.slice_transcript_row(one.transcript, one.slicing, one.asr, one.engine))
        for one in transcripts
    ]
    ends = [(plan.media_id, *rows.plan_row(plan)) for plan in plans]
    return [(tables.SLICES, slices), (tables.SLICE_TRANSCRIPTS, texts), (tables.PLANS, ends)]
