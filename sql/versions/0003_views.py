"""The views that people read, in ``public``, every column with its unit."""

from __future__ import annotations

from sql.statements import create_view, execute

revision = "0003"
down_revision = "0002"

VIEWS: dict[str, tuple[str, dict[str, str], str]] = {
    "transcripts": (
        "One row per media: what it is, how far it is, and its whole text",
        {
            "media_id": "Key of the media",
            "course_id": "The course that owns it",
            "title": "Title, or the file name",
            "uri": "Where the source file lies",
            "language": "Language of most of the speech; the asked-for one until the media is done",
            "duration_ms": "Length in milliseconds; as the file declares it until the media is done",
            "speech_ms": "Speech in it, in milliseconds; null until it is done",
            "text": "All sentences, one a line; null until it is done",
            "state": "running, done or failed",
            "reason": "Why it failed; empty otherwise",
            "warnings": "What was odd about the file, one line each",
            "violations": "Number of broken subtitle rules (see violations)",
            "created_at": "When it was first seen",
            "updated_at": "When anything about it last changed",
            "finished_at": "When it was done or failed; null before",
        },
        """
        select m.media_id, m.course_id, m.title, m.uri, coalesce(t.language, m.asked_language) as language,
            coalesce(t.duration_ms, m.declared_duration_ms) as duration_ms, t.speech_ms, t.text, m.state,
            m.reason, coalesce(t.warnings, '{}') as warnings,
            (select count(*) from lecturemill.violation as v where v.media_id = m.media_id) as violations,
            m.created_at, m.updated_at, m.finished_at
        from lecturemill.media as m
        left join lecturemill.transcript as t using (media_id)
        """,
    ),
    "cues": (
        "One row per subtitle",
        {
            "media_id": "Key of the media",
            "course_id": "The course that owns the media",
            "title": "Title of the media",
            "cue_index": "Place in the media, from 0",
            "start_ms": "Start in milliseconds on the media clock",
            "end_ms": "End in milliseconds on the media clock",
            "start_time": "Start as hh:mm:ss,mmm",
            "text": "One or two lines",
            "language": "Language of the sentence that it begins in",
        },
        """
        select c.media_id, m.course_id, m.title, c.cue_index, c.start_ms, c.end_ms,
            lecturemill.clock(c.start_ms) as start_time, c.text, c.language
        from lecturemill.cue as c
        join lecturemill.media as m using (media_id)
        """,
    ),
    "words": (
        "One row per word (per character, in Chinese)",
        {
            "media_id": "Key of the media",
            "word_index": "Place in the media, from 0",
            "start_ms": "Start in milliseconds on the media clock",
            "end_ms": "End in milliseconds on the media clock",
            "text": "The word with its punctuation and the space before it",
            "probability": "How sure the recognizer was, 0 to 1",
            "sentence_index": "The sentence it stands in, from 0",
        },
        """
        select media_id, word_index, start_ms, end_ms, text, probability, sentence_index
        from lecturemill.word
        """,
    ),
    "ledger": (
        "What became of every millisecond: the spans of one media are adjacent and add up to its duration",
        {
            "media_id": "Key of the media",
            "course_id": "The course that owns the media",
            "start_ms": "Start in milliseconds on the media clock",
            "end_ms": "End in milliseconds on the media clock",
            "duration_ms": "Length of the span in milliseconds",
            "outcome": "transcribed, silence, filtered or failed",
            "reason": "Why it was filtered or failed; empty otherwise",
        },
        """
        select l.media_id, m.course_id, l.start_ms, l.end_ms, l.end_ms - l.start_ms as duration_ms,
            l.outcome, l.reason
        from lecturemill.ledger_span as l
        join lecturemill.media as m using (media_id)
        """,
    ),
    "cost": (
        "What each finished media took",
        {
            "media_id": "Key of the media",
            "course_id": "The course that owns the media",
            "title": "Title of the media",
            "audio_minutes": "Length of the media in minutes",
            "wall_seconds": "Seconds from start to finish",
            "engine_seconds": "Seconds of the recognizer alone",
            "x_real_time": "Length divided by wall time: 60 means an hour in a minute",
            "usd": "Wall time at the price of the machine, in US dollars",
            "usd_per_audio_hour": "US dollars per hour of media",
        },
        """
        select m.media_id, m.course_id, m.title, t.duration_ms / 60000.0 as audio_minutes,
            t.wall_ms / 1000.0 as wall_seconds, t.engine_ms / 1000.0 as engine_seconds,
            t.duration_ms::numeric / nullif(t.wall_ms, 0) as x_real_time, t.usd,
            t.usd * 3600000 / nullif(t.duration_ms, 0) as usd_per_audio_hour
        from lecturemill.transcript as t
        join lecturemill.media as m using (media_id)
        """,
    ),
    "replacements": (
        "What the glossary changed, and by which rule",
        {
            "media_id": "Key of the media",
            "course_id": "The course that owns the media",
            "start_ms": "Start in milliseconds on the media clock",
            "end_ms": "End in milliseconds on the media clock",
            "before": "What the recognizer wrote",
            "after": "What stands there now",
            "rule": "The rule that matched",
        },
        """
        select r.media_id, m.course_id, r.start_ms, r.end_ms, r.before, r.after, r.rule
        from lecturemill.replacement as r
        join lecturemill.media as m using (media_id)
        """,
    ),
    "violations": (
        "Subtitles that break a rule of their profile",
        {
            "media_id": "Key of the media",
            "cue_index": "The subtitle (see cues)",
            "rule": "The broken rule",
            "measured": "What was measured, in the unit of the rule",
            "allowed": "What the rule allows, in the same unit",
        },
        "select media_id, cue_index, rule, measured, allowed from lecturemill.violation",
    ),
}


def upgrade() -> None:
    for view, (comment, columns, query) in VIEWS.items():
        create_view(view, comment, columns, query)


def downgrade() -> None:
    execute(f"drop view {', '.join(f'public.{view}' for view in VIEWS)}")
