-- Who talks how much in each lecture? Only where it was run with --speakers.
select
    t.title,
    w.speaker,
    round(sum(w.end_ms - w.start_ms) / 1000.0, 1) as seconds,
    round(100.0 * sum(w.end_ms - w.start_ms) / sum(sum(w.end_ms - w.start_ms)) over (partition by t.media_id), 1)
        as percent
from transcripts as t
inner join words as w using (media_id)
where w.speaker <> ''
group by t.media_id, t.title, w.speaker
order by t.title, seconds desc;
