"""Search that finds Chinese as well as English.

PostgreSQL's parsers cut Chinese nowhere, and a trigram index is blind to a term of two characters, the
commonest length. So three indexes serve one function: pairs of adjacent Chinese characters, trigrams, and
English word stems. What a cue is searched by is its text and the beginning of what follows, so that a phrase
is found across cues.
"""

from __future__ import annotations

from sql.statements import execute

revision = "0002"
down_revision = "0001"

# CJK radicals to unified ideographs (kana among them), compatibility ideographs, supplementary planes.
CJK = r"\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# ASCII but for letters, digits, # and + (C++, C#); general and CJK punctuation but for 々 and 〇.
PUNCTUATION = r"\s!-\"$-*,-/:-@[-`{-~\u00a1-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u303f"

EXTENSION = "create extension if not exists pg_trgm"

FUNCTIONS = r"""
create function lecturemill.squash(t text) returns text
language sql immutable strict parallel safe as $$
    select trim(regexp_replace(
        regexp_replace(lower(normalize(t, NFKC)), '[PUNCTUATION]+', ' ', 'g'),
        '(?<=[CJK]) | (?=[CJK])', '', 'g'
    ))
$$;
comment on function lecturemill.squash(text) is
    'What search compares: lower case, compatibility forms folded, no punctuation, no spaces beside Chinese';

create function lecturemill.pairs(t text) returns text[]
language sql immutable strict parallel safe as $$
    select coalesce(array_agg(distinct a[i] || a[i + 1]), '{}')
    from (select string_to_array(t, null) as a) as characters, generate_series(1, cardinality(a) - 1) as i
    where a[i] >= U&'\2E80' collate "C" and a[i + 1] >= U&'\2E80' collate "C"
$$;
comment on function lecturemill.pairs(text) is 'The pairs of adjacent Chinese characters in a squashed text';

create function lecturemill.clock(ms bigint) returns text
language sql immutable strict parallel safe as $$
    select to_char(ms / 3600000, 'FM999900') || to_char(ms / 60000 % 60, '":"FM00')
        || to_char(ms / 1000 % 60, '":"FM00') || to_char(ms % 1000, '","FM000')
$$;
comment on function lecturemill.clock(bigint) is 'Milliseconds as 01:02:03,456, the way SRT writes them';

alter table lecturemill.cue add column search_text text not null
    generated always as (lecturemill.squash(text || ' ' || following)) stored;
alter table lecturemill.cue add column own_length integer not null
    generated always as (length(lecturemill.squash(text))) stored;

create index cue_pairs on lecturemill.cue using gin (lecturemill.pairs(search_text));
create index cue_trigrams on lecturemill.cue using gin (search_text gin_trgm_ops);
create index cue_stems on lecturemill.cue using gin (to_tsvector('english', text));
create index transcript_trigrams on lecturemill.transcript using gin (text gin_trgm_ops);
""".replace("PUNCTUATION", PUNCTUATION).replace("CJK", CJK)

SEARCH = r"""
create function public.search(query text, max_rows integer default 100)
returns table (
    media_id text, course_id text, title text, cue_index bigint, start_ms bigint, end_ms bigint,
    start_time text, text text, language text, match text, rank real
)
language plpgsql stable
-- A plan made for the query at hand knows whether the pairs or the trigrams narrow it down.
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
    q text := lecturemill.squash(query);
begin
    if q is null or q = '' then
        return;
    end if;
    return query
    with phrase as (
        select c.media_id, c.cue_index, 1::real as score
        from lecturemill.cue as c
        where c.search_text like '%' || q || '%'
            and lecturemill.pairs(c.search_text) @> lecturemill.pairs(q)
            and strpos(c.search_text, q) <= c.own_length
    ), stems as (
        select c.media_id, c.cue_index,
            ts_rank(to_tsvector('english', c.text), websearch_to_tsquery('english', query)) as score
        from lecturemill.cue as c
        where to_tsvector('english', c.text) @@ websearch_to_tsquery('english', query)
    ), best as (
        select h.media_id, h.cue_index, sum(h.score)::real as score, min(h.match) as match
        from (select *, 'words' as match from stems union all select *, 'phrase' from phrase) as h
        group by 1, 2
    )
    select c.media_id, m.course_id, m.title, c.cue_index, c.start_ms, c.end_ms,
        lecturemill.clock(c.start_ms), c.text, c.language, best.match, best.score
    from best
    join lecturemill.cue as c using (media_id, cue_index)
    join lecturemill.media as m using (media_id)
    order by best.score desc, m.title, c.media_id, c.cue_index
    limit max_rows;
    if found then
        return;
    end if;
    return query
    select c.media_id, m.course_id, m.title, c.cue_index, c.start_ms, c.end_ms,
        lecturemill.clock(c.start_ms), c.text, c.language, 'similar', word_similarity(q, c.search_text)
    from lecturemill.cue as c
    join lecturemill.media as m using (media_id)
    where q <% c.search_text
    order by word_similarity(q, c.search_text) desc, m.title, c.media_id, c.cue_index
    limit max_rows;
end
$$;
comment on function public.search(text, integer) is
    'Cues that say the query, best first; match says how: phrase (as written, also where it runs on '
    'into the next cues), words (English, any inflection), similar (only where nothing else matches)';
"""


def upgrade() -> None:
    execute(EXTENSION)
    execute(FUNCTIONS)
    execute(SEARCH)


def downgrade() -> None:
    execute("""
        drop function public.search(text, integer);
        drop index lecturemill.transcript_trigrams;
        alter table lecturemill.cue drop column search_text, drop column own_length;
        drop function lecturemill.clock(bigint), lecturemill.pairs(text), lecturemill.squash(text);
    """)
