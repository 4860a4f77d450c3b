-- What is said in one lecture, as a list with times?
select start_time, replace(text, E'\n', ' ') as text
from cues
where title = 'Geometry 1'
order by cue_index;
