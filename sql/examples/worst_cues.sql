-- Which subtitles should an editor look at first: those least likely to be right, and what makes them doubtful?
select q.course_id, q.title, q.start_time, replace(q.text, e'\n', ' ') as cue, round(q.score::numeric, 2) as score,
    round(q.expected_errors::numeric, 1) as expected_errors, q.doubtful_words, q.replacements,
    round(q.unheard_ms / 1000.0, 1) as unheard_seconds, q.objection,
    t.uri || '#t=' || q.start_ms / 1000 as link
from quality as q
inner join transcripts as t using (media_id)
order by q.score, q.expected_errors desc, q.title, q.cue_index
limit 100;
