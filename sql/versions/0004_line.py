"""What the line over many machines needs: media that wait, plans, glossaries."""

from __future__ import annotations

from importlib import import_module

from sql.statements import create_view, execute

revision = "0004"
down_revision = "0003"

TABLES = """
alter table lecturemill.media
    drop constraint media_state_check,
    add constraint media_state_check check (state in ('waiting', 'running', 'done', 'failed')),
    add column priority text not null default 'normal' check (priority in ('urgent', 'normal', 'bulk')),
    add column audio_track bigint check (audio_track >= 1);

alter table lecturemill.slice_transcript add column engine text not null default '';

alter table lecturemill.transcript
    add column slicing_fingerprint text not null default '',
    add column asr_fingerprint text not null default '';
update lecturemill.transcript as t
set slicing_fingerprint = m.slicing_fingerprint, asr_fingerprint = m.asr_fingerprint
from lecturemill.media as m
where m.media_id = t.media_id;

create table lecturemill.plan (
    media_id text not null references lecturemill.media on delete cascade,
    slicing_fingerprint text not null,
    asr_fingerprint text not null,
    slice_count bigint not null check (slice_count >= 0),
    duration_ms bigint not null check (duration_ms >= 0),
    missing jsonb not null,
    warnings jsonb not null,
    slicing_ms bigint not null check (slicing_ms >= 0),
    primary key (media_id, slicing_fingerprint, asr_fingerprint)
);

create table lecturemill.glossary_term (
    course_id text not null,
    position bigint not null check (position >= 0),
    term text not null,
    aliases text[] not null,
    language text not null,
    note text not null,
    primary key (course_id, position)
);
"""

TRANSCRIPTS = """
create or replace view public.transcripts as
select m.media_id, m.course_id, m.title, m.uri, coalesce(t.language, m.asked_language) as language,
    coalesce(t.duration_ms, m.declared_duration_ms) as duration_ms, t.speech_ms, t.text, m.state,
    m.reason, coalesce(t.warnings, '{}') as warnings,
    (select count(*) from lecturemill.violation as v where v.media_id = m.media_id) as violations,
    m.created_at, m.updated_at, m.finished_at, m.priority
from lecturemill.media as m
left join lecturemill.transcript as t using (media_id);
comment on column public.transcripts.state is 'waiting, running, done or failed';
comment on column public.transcripts.priority is 'urgent, normal or bulk';
"""

GLOSSARIES = (
    "The terms of each course, as they must be written",
    {
        "course_id": "The course that owns the term",
        "position": "Place in the glossary, from 0",
        "term": "The term as it must be written",
        "aliases": "The ways it is misheard or miswritten",
        "language": "In whose speech it is put right (ISO 639-1); empty for every language",
        "note": "What the editor of the glossary notes about it",
    },
    "select course_id, position, term, aliases, language, note from lecturemill.glossary_term",
)


def upgrade() -> None:
    execute(TABLES)
    execute(TRANSCRIPTS)
    create_view("glossaries", *GLOSSARIES)


def downgrade() -> None:
    """Media that wait are running ones again; plans, glossaries and what else is new here go."""
    execute("""
        drop view public.glossaries, public.transcripts;
        drop table lecturemill.glossary_term, lecturemill.plan;
        alter table lecturemill.transcript drop column slicing_fingerprint, drop column asr_fingerprint;
        alter table lecturemill.slice_transcript drop column engine;
        update lecturemill.media set state = 'running' where state = 'waiting';
        alter table lecturemill.media
            drop column priority,
            drop column audio_track,
            drop constraint media_state_check,
            add constraint media_state_check check (state in ('running', 'done', 'failed'));
    """)
    create_view("transcripts", *import_module("sql.versions.0003_views").VIEWS["transcripts"])
