-- How often was each term of a glossary put right, and in how many media?
select
    g.course_id,
    g.term,
    count(r.media_id) as replacements,
    count(distinct r.media_id) as media
from glossaries as g
left join replacements as r on r.course_id = g.course_id and r.after = g.term
group by g.course_id, g.position, g.term
order by g.course_id, replacements desc, g.position;
