-- Where is a term said, best match first? Chinese from two characters on, English in any inflection;
-- a phrase is found also where it runs on into the next subtitle.
select title, start_time, text, match, round(rank::numeric, 2) as rank
from search('勾股定理')
order by rank desc, title, start_time;
