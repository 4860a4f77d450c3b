"""How good each cue and each media is, for editors; and how each course wants its subtitles."""

from __future__ import annotations

from importlib import import_module

from sql.statements import create_view, execute

revision = "0006"
down_revision = "0005"

TABLES = """
create table lecturemill.cue_quality (
    media_id text not null references lecturemill.media on delete cascade,
    cue_index bigint not null check (cue_index >= 0),
    score double precision not null check (score between 0 and 1),
    expected_errors double precision not null check (expected_errors >= 0),
    words bigint not null check (words >= 0),
    doubtful_words bigint not null check (doubtful_words >= 0),
    replacements bigint not null check (replacements >= 0),
    unheard_ms bigint not null check (unheard_ms >= 0),
    objection text not null,
    primary key (media_id, cue_index)
);
create index on lecturemill.cue_quality (score);

alter table lecturemill.transcript add column quality double precision check (quality between 0 and 1);

create table lecturemill.course_profile (
    course_id text primary key,
    profile jsonb not null,
    updated_at timestamptz not null default now()
);
"""

QUALITY = (
    "How likely each subtitle is right as it stands; the lowest score first is what an editor wants",
    {
        "media_id": "Key of the media",
        "course_id": "The course that owns the media",
        "title": "Title of the media",
        "cue_index": "The subtitle (see cues)",
        "start_ms": "Start in milliseconds on the media clock",
        "start_time": "Start as hh:mm:ss,mmm",
        "text": "One or two lines",
        "score": "The chance that nothing in it is wrong, 0 to 1",
        "expected_errors": "How many wrong or missing words to expect in it",
        "words": "Its words (characters, in Chinese)",
        "doubtful_words": "Words that are more likely wrong than right",
        "replacements": "Terms that the glossary put right in it",
        "unheard_ms": "Speech in it that no word covers, in milliseconds",
        "objection": "What was found against the text around it; empty if nothing",
    },
    """
    select q.media_id, m.course_id, m.title, q.cue_index, c.start_ms, lecturemill.clock(c.start_ms) as start_time,
        c.text, q.score, q.expected_errors, q.words, q.doubtful_words, q.replacements, q.unheard_ms, q.objection
    from lecturemill.cue_quality as q
    join lecturemill.cue as c using (media_id, cue_index)
    join lecturemill.media as m using (media_id)
    """,
)

TRANSCRIPTS = """
create or replace view public.transcripts as
select m.media_id, m.course_id, m.title, m.uri, coalesce(t.language, m.asked_language) as language,
    coalesce(t.duration_ms, m.declared_duration_ms) as duration_ms, t.speech_ms, t.text, m.state,
    m.reason, coalesce(t.warnings, '{}') as warnings,
    (select count(*) from lecturemill.violation as v where v.media_id = m.media_id) as violations,
    m.created_at, m.updated_at, m.finished_at, m.priority, t.quality
from lecturemill.media as m
left join lecturemill.transcript as t using (media_id);
comment on column public.transcripts.quality is
    'Share of what was said that is expected to be right, 0 to 1; null until it is done, and where nothing was said';
"""


def upgrade() -> None:
    execute(TABLES)
    execute(TRANSCRIPTS)
    create_view("quality", *QUALITY)
    execute(
        "comment on view public.replacements is 'What glossary, homophones, numbers and fillers changed, by which rule'"
    )


def downgrade() -> None:
    execute("""
        drop view public.quality, public.transcripts;
        drop table lecturemill.cue_quality, lecturemill.course_profile;
        alter table lecturemill.transcript drop column quality;
    """)
    before = import_module("sql.versions.0003_views").VIEWS
    create_view("transcripts", *before["transcripts"])
    execute(import_module("sql.versions.0004_line").TRANSCRIPTS)
    execute(f"comment on view public.replacements is '{before['replacements'][0]}'")
