"""Who says each word and each cue, where speakers were told apart."""

from __future__ import annotations

from importlib import import_module

from sql.statements import create_view, execute

revision = "0007"
down_revision = "0006"

UPGRADE = """
alter table lecturemill.word add column speaker text not null default '';
alter table lecturemill.cue add column speaker text not null default '';

create or replace view public.words as
select media_id, word_index, start_ms, end_ms, text, probability, sentence_index, speaker
from lecturemill.word;
comment on column public.words.speaker is
    'teacher (who speaks most), speaker 2, …; empty where speakers were not told apart';

create or replace view public.cues as
select c.media_id, m.course_id, m.title, c.cue_index, c.start_ms, c.end_ms,
    lecturemill.clock(c.start_ms) as start_time, c.text, c.language, c.speaker
from lecturemill.cue as c
join lecturemill.media as m using (media_id);
comment on column public.cues.speaker is
    'teacher (who speaks most), speaker 2, …; empty where speakers were not told apart';
"""


def upgrade() -> None:
    execute(UPGRADE)


def downgrade() -> None:
    execute("""
        drop view public.words, public.cues;
        alter table lecturemill.word drop column speaker;
        alter table lecturemill.cue drop column speaker;
    """)
    before = import_module("sql.versions.0003_views").VIEWS
    for view in ("words", "cues"):
        create_view(view, *before[view])
