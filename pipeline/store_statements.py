"""The statements of the store that are not an upsert of rows (for those: ``store_tables``)."""

from __future__ import annotations

# The newest thing of the schema.
IS_UP_TO_DATE = """
    select exists (select from information_schema.columns
        where table_schema = 'lecturemill' and table_name = 'cue' and column_name = 'speaker')
"""
RECORD_MEDIA = """
    insert into lecturemill.media as m (media_id, course_id, uri, title, content_fingerprint,
        declared_duration_ms, asked_language, state, slicing_fingerprint, asr_fingerprint)
    values (:media_id, :course_id, :uri, :title, :content_fingerprint, :duration_ms, :language, 'running',
        coalesce(cast(:slicing as text), ''), coalesce(cast(:asr as text), ''))
    on conflict (media_id) do update set course_id = excluded.course_id, uri = excluded.uri,
        title = excluded.title, content_fingerprint = excluded.content_fingerprint,
        declared_duration_ms = excluded.declared_duration_ms, asked_language = excluded.asked_language,
        state = case m.state when 'done' then 'done' else 'running' end, reason = '', updated_at = now(),
        finished_at = case m.state when 'done' then m.finished_at end,
        slicing_fingerprint = coalesce(cast(:slicing as text), m.slicing_fingerprint),
        asr_fingerprint = coalesce(cast(:asr as text), m.asr_fingerprint)
"""
FORGET_FAILURE = """
    delete from lecturemill.ledger_span as l using lecturemill.media as m
    where l.media_id = :media_id and m.media_id = :media_id and m.state = 'running'
"""
RECORD_PROGRESS = """
    update lecturemill.media set slicing_fingerprint = :slicing, asr_fingerprint = :asr, updated_at = now()
    where media_id = :media_id
"""
RECORD_STATE = """
    update lecturemill.media set state = :state, reason = :reason, updated_at = now(), finished_at = now()
    where media_id = :media_id
"""
SLICE_TRANSCRIPTS = """
    select slice_index, language, language_probability, segments::text, outcome, reason, attempts, engine_ms
    from lecturemill.slice_transcript
    where media_id = :media_id and slicing_fingerprint = :slicing and asr_fingerprint = :asr
    order by slice_index
"""
RECORD_TRANSCRIPT = """
    insert into lecturemill.transcript (media_id, fingerprint, slicing_fingerprint, asr_fingerprint, language,
        duration_ms, speech_ms, text, warnings, wall_ms, engine_ms, usd, quality, glossary_version)
    values (:media_id, :fingerprint,
        coalesce(:slicing, (select slicing_fingerprint from lecturemill.media where media_id = :media_id), ''),
        coalesce(:asr, (select asr_fingerprint from lecturemill.media where media_id = :media_id), ''),
        :language, :duration_ms, :speech_ms, :text, cast(:warnings as text[]), :wall_ms, :engine_ms, :usd,
        cast(:quality as double precision), cast(:glossary_version as bigint))
    on conflict (media_id) do update set fingerprint = excluded.fingerprint,
        slicing_fingerprint = excluded.slicing_fingerprint, asr_fingerprint = excluded.asr_fingerprint,
        language = excluded.language, duration_ms = excluded.duration_ms, speech_ms = excluded.speech_ms,
        text = excluded.text, warnings = excluded.warnings, wall_ms = excluded.wall_ms,
        engine_ms = excluded.engine_ms, usd = excluded.usd, quality = excluded.quality,
        glossary_version = excluded.glossary_version
"""
RESULT = """
    select t.fingerprint, t.language, t.duration_ms, t.speech_ms, t.warnings, t.wall_ms, t.engine_ms, t.usd, t.quality
    from lecturemill.transcript as t where t.media_id = :media_id
"""
MEDIA = """
    select media_id, course_id, uri, title, content_fingerprint, declared_duration_ms, asked_language
    from lecturemill.media where media_id = :media_id
"""
_STATUS = """
    select m.media_id, m.course_id, m.title, m.uri, m.state,
        coalesce(t.duration_ms, m.declared_duration_ms) as duration_ms,
        t.speech_ms,
        (select count(*) from lecturemill.slice_transcript as s where s.media_id = m.media_id
            and s.slicing_fingerprint = m.slicing_fingerprint and s.asr_fingerprint = m.asr_fingerprint),
        (select count(*) from lecturemill.cue as c where c.media_id = m.media_id),
        (select count(*) from lecturemill.violation as v where v.media_id = m.media_id),
        coalesce(l.failed_ms, 0)::bigint, coalesce(l.filtered_ms, 0)::bigint, m.reason, m.updated_at,
        (select p.slice_count from lecturemill.plan as p where p.media_id = m.media_id
            and p.slicing_fingerprint = m.slicing_fingerprint and p.asr_fingerprint = m.asr_fingerprint),
        m.finished_at
    from lecturemill.media as m
    left join lecturemill.transcript as t using (media_id)
    left join lateral (
        select sum(end_ms - start_ms) filter (where outcome = 'failed') as failed_ms,
            sum(end_ms - start_ms) filter (where outcome = 'filtered') as filtered_ms
        from lecturemill.ledger_span where media_id = m.media_id
    ) as l on true
"""
STATUS = f"""{_STATUS}
    where cast(:media_id as text) is null or m.media_id = :media_id
    order by m.created_at, m.media_id
"""
UNFINISHED = f"""{_STATUS}
    where (m.state in ('waiting', 'running') or m.state = 'done' and
            (t.slicing_fingerprint, t.asr_fingerprint) <> (m.slicing_fingerprint, m.asr_fingerprint))
        and m.updated_at < now() - make_interval(secs => :older_than_s)
        and (cast(:course_id as text) is null or m.course_id = :course_id)
    order by m.updated_at, m.media_id
    limit :limit
"""
ANNOUNCE = """
    insert into lecturemill.media as m (media_id, course_id, uri, title, content_fingerprint, asked_language,
        state, priority, audio_track)
    values (:media_id, :course_id, :uri, :title, '', :language, 'waiting', :priority, :audio_track)
    on conflict (media_id) do update set uri = excluded.uri, title = excluded.title,
        asked_language = excluded.asked_language, priority = excluded.priority,
        audio_track = excluded.audio_track, updated_at = now()
    where m.course_id = excluded.course_id
"""
# Unless another run has begun since, or failed again.
REOPEN = """
    update lecturemill.media set state = 'waiting', reason = '', updated_at = now(), finished_at = null
    where media_id = :media_id and state = 'failed' and finished_at = :failed_at
"""
ASKED = """
    select priority, audio_track from lecturemill.media where media_id = :media_id
"""
# The rows are locked in the order of their ids, so that two writers of the same media cannot deadlock.
TOUCH_MEDIA = """
    update lecturemill.media as m set updated_at = now()
    from (
        select media_id from lecturemill.media where media_id = any(cast(:media_ids as text[]))
        order by media_id for no key update
    ) as locked
    where m.media_id = locked.media_id
    returning m.media_id
"""
_PLAN = """
    p.slicing_fingerprint, p.asr_fingerprint, p.slice_count, p.duration_ms, p.missing::text, p.warnings::text,
    p.slicing_ms
"""
# The slices are counted last, and only of media whose end mark is there.
COMPLETE = f"""
    select p.media_id, t.fingerprint, {_PLAN}
    from lecturemill.media as m
    join lecturemill.plan as p using (media_id, slicing_fingerprint, asr_fingerprint)
    left join lecturemill.transcript as t using (media_id)
    where m.media_id = any(cast(:media_ids as text[])) and p.slice_count = (
        select count(*) from lecturemill.slice_transcript as s
        where s.media_id = p.media_id and s.slicing_fingerprint = p.slicing_fingerprint
            and s.asr_fingerprint = p.asr_fingerprint and s.slice_index < p.slice_count
    )
    order by p.media_id
"""
PLANNED = f"""
    select {_PLAN} from lecturemill.plan as p
    where p.media_id = :media_id and p.slicing_fingerprint = :slicing and p.asr_fingerprint = :asr
"""
PLANNED_SLICES = """
    select slice_index, s.start_ms, s.end_ms, s.boundary, s.speech::text, t.language, t.language_probability,
        t.segments::text, t.outcome, t.reason, t.attempts, t.engine_ms
    from lecturemill.slice as s
    join lecturemill.slice_transcript as t using (media_id, slicing_fingerprint, slice_index)
    where media_id = :media_id and slicing_fingerprint = :slicing and t.asr_fingerprint = :asr
        and (cast(:slice_count as bigint) is null or slice_index < :slice_count)
    order by slice_index
"""
WANTED = """
    select m.slicing_fingerprint as slicing, m.asr_fingerprint as asr,
        coalesce((t.slicing_fingerprint, t.asr_fingerprint) = (m.slicing_fingerprint, m.asr_fingerprint), false)
            as is_assembled
    from lecturemill.media as m
    left join lecturemill.transcript as t using (media_id)
    where m.media_id = :media_id
"""
OUTCOMES = """
    select slice_index, outcome from lecturemill.slice_transcript
    where media_id = :media_id and slicing_fingerprint = :slicing and asr_fingerprint = :asr
    order by slice_index
"""
RECORDED = """
    select cast(extract(epoch from created_at) * 1000 as bigint) from lecturemill.media where media_id = :media_id
"""
COURSE_MEDIA = """
    select m.media_id, t.slicing_fingerprint, t.asr_fingerprint, t.fingerprint
    from lecturemill.media as m
    left join lecturemill.transcript as t using (media_id)
    where m.course_id = :course_id
    order by m.created_at, m.media_id
"""
STORED_FINGERPRINT = "select fingerprint from lecturemill.transcript where media_id = :media_id"
FORGET_WORK = (
    """
    delete from lecturemill.plan
    where media_id = :media_id and slicing_fingerprint = :slicing and asr_fingerprint = :asr
    """,
    """
    delete from lecturemill.slice_transcript
    where media_id = :media_id and slicing_fingerprint = :slicing and asr_fingerprint = :asr
    """,
    """
    update lecturemill.transcript set fingerprint = '', asr_fingerprint = '' where media_id = :media_id
    """,
)
RECORD_PROFILE = """
    insert into lecturemill.course_profile (course_id, profile) values (:course_id, cast(:profile as jsonb))
    on conflict (course_id) do update set profile = excluded.profile, updated_at = now()
"""
PROFILE = "select profile::text from lecturemill.course_profile where course_id = :course_id"
# One import at a time; readers see the old glossary until it is done.
LOCK_GLOSSARIES = "lock table lecturemill.glossary_version in share row exclusive mode"
NEW_GLOSSARY = """
    insert into lecturemill.glossary_version (course_id, version, source)
    values (:course_id, :version, :source)
"""
RECORD_TERMS = """
    insert into lecturemill.glossary_term (course_id, version, position, term, aliases, language, note)
    values (:course_id, :version, :position, :term, :aliases, :language, :note)
"""
GLOSSARY_VERSION = """
    select max(version) from lecturemill.glossary_version
    where course_id = :course_id and (cast(:version as bigint) is null or version = :version)
"""
GLOSSARY = """
    select term, aliases, language, note from lecturemill.glossary_term
    where course_id = :course_id and version = :version order by position
"""
MADE_UNDER = """
    select m.media_id, t.slicing_fingerprint, t.asr_fingerprint, t.fingerprint
    from lecturemill.media as m
    left join lecturemill.transcript as t using (media_id)
    where m.media_id = :media_id
"""
LOCK_RESULT = """
    select t.fingerprint from lecturemill.media as m left join lecturemill.transcript as t using (media_id)
    where m.media_id = :media_id for no key update of m
"""
