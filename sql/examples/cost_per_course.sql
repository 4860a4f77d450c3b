-- What did each course cost, how many hours is it, and how much faster than playing it were we?
select
    course_id,
    count(*) as media,
    round(sum(audio_minutes) / 60, 2) as audio_hours,
    round(sum(usd)::numeric, 4) as usd,
    round((sum(usd) * 60 / nullif(sum(audio_minutes), 0))::numeric, 4) as usd_per_audio_hour,
    round(sum(audio_minutes) * 60 / nullif(sum(wall_seconds), 0), 1) as x_real_time
from cost
group by course_id
order by usd desc, course_id;
