-- Where is a term said, as links that open the player there (media fragments, in seconds)?
select s.title, s.start_time, t.uri || '#t=' || s.start_ms / 1000 as link
from search('直角三角形') as s
inner join transcripts as t using (media_id)
order by s.rank desc, s.title, s.start_ms;
