-- In which finished lectures is the smallest share speech (a wrong track, a broken microphone, a break)?
select title, round(duration_ms / 60000.0, 1) as minutes, round(100.0 * speech_ms / nullif(duration_ms, 0), 1) as speech_percent
from transcripts
where state = 'done'
order by speech_percent nulls first, title
limit 20;
