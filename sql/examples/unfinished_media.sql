-- Which media are not done yet, the most urgent and longest waiting first?
select course_id, title, priority, state, now() - created_at as waited_for
from transcripts
where state in ('waiting', 'running')
order by array_position(array['urgent', 'normal', 'bulk'], priority), created_at, media_id;
