-- Which lectures are spoken slowest? Words (Chinese: characters) per minute of speech.
select
    t.title,
    t.language,
    count(*) as words,
    round(count(*) * 60000.0 / nullif(t.speech_ms, 0), 1) as words_per_minute
from transcripts as t
inner join words as w using (media_id)
group by t.media_id, t.title, t.language, t.speech_ms
order by words_per_minute, t.title;
