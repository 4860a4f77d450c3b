"""The tables, each on its natural key.

All times are integer milliseconds on the media clock; spans are half-open. Tables are named in the singular,
views in the plural: for a user named lecturemill this schema comes first, and a table must not hide a view.
"""

from __future__ import annotations

from sql.statements import execute

revision = "0001"
down_revision = None

TABLES = """
create table lecturemill.media (
    media_id text primary key,
    course_id text not null,
    uri text not null,
    title text not null,
    content_fingerprint text not null,
    declared_duration_ms bigint check (declared_duration_ms >= 0),
    asked_language text,
    state text not null check (state in ('running', 'done', 'failed')),
    reason text not null default '',
    slicing_fingerprint text not null default '',
    asr_fingerprint text not null default '',
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    finished_at timestamptz
);
create index on lecturemill.media (course_id);
create index on lecturemill.media (state) where state <> 'done';

create table lecturemill.slice (
    media_id text not null references lecturemill.media on delete cascade,
    slicing_fingerprint text not null,
    slice_index bigint not null check (slice_index >= 0),
    start_ms bigint not null,
    end_ms bigint not null,
    boundary text not null check (boundary in ('silence', 'forced', 'end')),
    speech jsonb not null,
    primary key (media_id, slicing_fingerprint, slice_index),
    check (0 <= start_ms and start_ms <= end_ms)
);

create table lecturemill.slice_transcript (
    media_id text not null,
    slicing_fingerprint text not null,
    slice_index bigint not null,
    asr_fingerprint text not null,
    language text not null,
    language_probability double precision not null,
    segments jsonb not null,
    outcome text not null check (outcome in ('transcribed', 'silence', 'filtered', 'failed')),
    reason text not null,
    attempts bigint not null check (attempts >= 0),
    engine_ms bigint not null check (engine_ms >= 0),
    primary key (media_id, slicing_fingerprint, slice_index, asr_fingerprint),
    foreign key (media_id, slicing_fingerprint, slice_index) references lecturemill.slice on delete cascade
);

create table lecturemill.transcript (
    media_id text primary key references lecturemill.media on delete cascade,
    fingerprint text not null,
    language text not null,
    duration_ms bigint not null check (duration_ms >= 0),
    speech_ms bigint not null check (speech_ms >= 0),
    text text not null,
    warnings text[] not null,
    wall_ms bigint not null check (wall_ms >= 0),
    engine_ms bigint not null check (engine_ms >= 0),
    usd double precision not null
);

create table lecturemill.sentence (
    media_id text not null references lecturemill.media on delete cascade,
    sentence_index bigint not null check (sentence_index >= 0),
    start_ms bigint not null,
    end_ms bigint not null,
    text text not null,
    language text not null,
    primary key (media_id, sentence_index),
    check (0 <= start_ms and start_ms <= end_ms)
);

create table lecturemill.word (
    media_id text not null references lecturemill.media on delete cascade,
    word_index bigint not null check (word_index >= 0),
    sentence_index bigint not null,
    start_ms bigint not null,
    end_ms bigint not null,
    text text not null,
    probability double precision not null,
    primary key (media_id, word_index),
    check (0 <= start_ms and start_ms <= end_ms)
);

create table lecturemill.cue (
    media_id text not null references lecturemill.media on delete cascade,
    cue_index bigint not null check (cue_index >= 0),
    start_ms bigint not null,
    end_ms bigint not null,
    text text not null,
    language text not null,
    following text not null,
    primary key (media_id, cue_index),
    check (0 <= start_ms and start_ms <= end_ms)
);

create table lecturemill.violation (
    media_id text not null references lecturemill.media on delete cascade,
    violation_index bigint not null check (violation_index >= 0),
    cue_index bigint not null,
    rule text not null,
    measured double precision not null,
    allowed double precision not null,
    primary key (media_id, violation_index)
);

create table lecturemill.replacement (
    media_id text not null references lecturemill.media on delete cascade,
    replacement_index bigint not null check (replacement_index >= 0),
    start_ms bigint not null,
    end_ms bigint not null,
    before text not null,
    after text not null,
    rule text not null,
    primary key (media_id, replacement_index),
    check (0 <= start_ms and start_ms <= end_ms)
);

create table lecturemill.ledger_span (
    media_id text not null references lecturemill.media on delete cascade,
    start_ms bigint not null,
    end_ms bigint not null,
    outcome text not null check (outcome in ('transcribed', 'silence', 'filtered', 'failed')),
    reason text not null,
    primary key (media_id, start_ms),
    check (0 <= start_ms and start_ms <= end_ms)
);
"""


def upgrade() -> None:
    execute(TABLES)


def downgrade() -> None:
    execute("""
        drop table lecturemill.ledger_span, lecturemill.replacement, lecturemill.violation, lecturemill.cue,
            lecturemill.word, lecturemill.sentence, lecturemill.transcript, lecturemill.slice_transcript,
            lecturemill.slice, lecturemill.media
    """)
