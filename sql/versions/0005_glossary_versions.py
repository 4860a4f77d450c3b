"""Glossaries in versions: each import is a new one, and a result says which one it was made with."""

from __future__ import annotations

from importlib import import_module

from sql.statements import create_view, execute

revision = "0005"
down_revision = "0004"

TABLES = """
create table lecturemill.glossary_version (
    course_id text not null,
    version bigint not null check (version >= 1),
    source text not null,
    imported_at timestamptz not null default now(),
    primary key (course_id, version)
);
insert into lecturemill.glossary_version (course_id, version, source)
select distinct course_id, 1, '' from lecturemill.glossary_term;

alter table lecturemill.glossary_term add column version bigint not null default 1;
alter table lecturemill.glossary_term
    alter column version drop default,
    drop constraint glossary_term_pkey,
    add primary key (course_id, version, position),
    add foreign key (course_id, version) references lecturemill.glossary_version on delete cascade;

alter table lecturemill.transcript add column glossary_version bigint;
alter table lecturemill.replacement
    add column score double precision not null default 1 check (score between 0 and 1);
"""

GLOSSARIES = """
create or replace view public.glossaries as
select t.course_id, t.position, t.term, t.aliases, t.language, t.note, t.version
from lecturemill.glossary_term as t
where t.version = (select max(v.version) from lecturemill.glossary_version as v where v.course_id = t.course_id);
comment on view public.glossaries is 'The terms of each course, as they must be written; of its newest glossary';
comment on column public.glossaries.version is 'The version of the glossary, from 1';
"""

REPLACEMENTS = """
create or replace view public.replacements as
select r.media_id, m.course_id, r.start_ms, r.end_ms, r.before, r.after, r.rule, r.score
from lecturemill.replacement as r
join lecturemill.media as m using (media_id);
comment on column public.replacements.score is 'How sure the rule was, 0 to 1; 1 for what is spelled out';
"""

VERSIONS = (
    "Every glossary that was imported, and how many media are made with it",
    {
        "course_id": "The course that owns it",
        "version": "Counted from 1; the highest is in use",
        "terms": "Number of its terms",
        "source": "The file that it came from",
        "imported_at": "When it was imported",
        "media": "Media whose text is made with it",
    },
    """
    select v.course_id, v.version,
        (select count(*) from lecturemill.glossary_term as t
            where t.course_id = v.course_id and t.version = v.version) as terms,
        v.source, v.imported_at,
        (select count(*) from lecturemill.transcript as t join lecturemill.media as m using (media_id)
            where m.course_id = v.course_id and t.glossary_version = v.version) as media
    from lecturemill.glossary_version as v
    """,
)

MADE_WITH = (
    "Which glossary each finished media was made with, and whether a newer one waits to be brought to it",
    {
        "media_id": "Key of the media",
        "course_id": "The course that owns the media",
        "title": "Title of the media",
        "glossary_version": "The version that it was made with; null for none, or a file given to run",
        "newest_version": "The version that its course has now; null for none",
    },
    """
    select m.media_id, m.course_id, m.title, t.glossary_version,
        (select max(v.version) from lecturemill.glossary_version as v where v.course_id = m.course_id)
            as newest_version
    from lecturemill.transcript as t
    join lecturemill.media as m using (media_id)
    """,
)


def upgrade() -> None:
    execute(TABLES)
    execute(GLOSSARIES)
    execute(REPLACEMENTS)
    create_view("glossary_versions", *VERSIONS)
    create_view("made_with", *MADE_WITH)


def downgrade() -> None:
    """Only the newest glossary of each course stays."""
    execute("""
        drop view public.made_with, public.glossary_versions, public.glossaries, public.replacements;
        delete from lecturemill.glossary_version as v
        where v.version < (
            select max(w.version) from lecturemill.glossary_version as w where w.course_id = v.course_id
        );
        alter table lecturemill.replacement drop column score;
        alter table lecturemill.transcript drop column glossary_version;
        alter table lecturemill.glossary_term drop column version, add primary key (course_id, position);
        drop table lecturemill.glossary_version;
    """)
    create_view("glossaries", *import_module("sql.versions.0004_line").GLOSSARIES)
    create_view("replacements", *import_module("sql.versions.0003_views").VIEWS["replacements"])
