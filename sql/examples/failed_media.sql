-- Which media failed, why, and when?
select course_id, title, uri, reason, finished_at
from transcripts
where state = 'failed'
order by finished_at desc, title;
