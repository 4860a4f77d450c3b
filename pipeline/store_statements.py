"""The statements of the store that are not an upsert of rows (for those: ``store_tables``)."""

from __future__ import annotations

RECORD_MEDIA = """
    insert into lecturemill.media as m (media_id, course_id, uri, title, content_fingerprint,
        declared_duration_ms, asked_language, state)
    values (:media_id, :course_id, :uri, :title, :content_fingerprint, :duration_ms, :language, 'running')
    on conflict (media_id) do update set course_id = excluded.course_id, uri = excluded.uri,
        title = excluded.title, content_fingerprint = excluded.content_fingerprint,
        declared_duration_ms = excluded.declared_duration_ms, asked_language = excluded.asked_language,
        state = case m.state when 'done' then 'done' else 'running' end, reason = '', updated_at = now(),
        finished_at = case m.state when 'done' then m.finished_at end
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
    insert into lecturemill.transcript (media_id, fingerprint, language, duration_ms, speech_ms, text,
        warnings, wall_ms, engine_ms, usd)
    values (:media_id, :fingerprint, :language, :duration_ms, :speech_ms, :text, cast(:warnings as text[]),
        :wall_ms, :engine_ms, :usd)
    on conflict (media_id) do update set fingerprint = excluded.fingerprint, language = excluded.language,
        duration_ms = excluded.duration_ms, speech_ms = excluded.speech_ms, text = excluded.text,
        warnings = excluded.warnings, wall_ms = excluded.wall_ms, engine_ms = excluded.engine_ms,
        usd = excluded.usd
"""
RESULT = """
    select t.fingerprint, t.language, t.duration_ms, t.speech_ms, t.warnings, t.wall_ms, t.engine_ms, t.usd
    from lecturemill.transcript as t where t.media_id = :media_id
"""
MEDIA = """
    select media_id, course_id, uri, title, content_fingerprint, declared_duration_ms, asked_language
    from lecturemill.media where media_id = :media_id
"""
STATUS = """
    select m.media_id, m.course_id, m.title, m.uri, m.state,
        coalesce(t.duration_ms, m.declared_duration_ms) as duration_ms,
        t.speech_ms,
        (select count(*) from lecturemill.slice_transcript as s where s.media_id = m.media_id
            and s.slicing_fingerprint = m.slicing_fingerprint and s.asr_fingerprint = m.asr_fingerprint),
        (select count(*) from lecturemill.cue as c where c.media_id = m.media_id),
        (select count(*) from lecturemill.violation as v where v.media_id = m.media_id),
        coalesce(l.failed_ms, 0)::bigint, coalesce(l.filtered_ms, 0)::bigint, m.reason, m.updated_at
    from lecturemill.media as m
    left join lecturemill.transcript as t using (media_id)
    left join lateral (
        select sum(end_ms - start_ms) filter (where outcome = 'failed') as failed_ms,
            sum(end_ms - start_ms) filter (where outcome = 'filtered') as filtered_ms
        from lecturemill.ledger_span where media_id = m.media_id
    ) as l on true
    where cast(:media_id as text) is null or m.media_id = :media_id
    order by m.created_at, m.media_id
"""
