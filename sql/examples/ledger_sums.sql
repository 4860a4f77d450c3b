-- Which finished media have a ledger that does not account for every millisecond, once? Expected: none.
with spans as (
    select
        media_id,
        start_ms,
        end_ms,
        start_ms - lag(end_ms, 1, 0::bigint) over (partition by media_id order by start_ms) as step_ms
    from ledger
)
select
    t.media_id,
    t.title,
    t.duration_ms,
    coalesce(sum(s.end_ms - s.start_ms), 0) as accounted_ms,
    coalesce(sum(greatest(s.step_ms, 0)), 0) as missing_ms,
    coalesce(sum(greatest(-s.step_ms, 0)), 0) as counted_twice_ms
from transcripts as t
left join spans as s using (media_id)
where t.state = 'done'
group by t.media_id, t.title, t.duration_ms
having coalesce(sum(s.end_ms - s.start_ms), 0) <> t.duration_ms or bool_or(s.step_ms <> 0)
order by t.media_id;
