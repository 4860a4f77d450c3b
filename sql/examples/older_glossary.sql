-- Which finished lectures were made with an older glossary than their course has now?
select course_id, title, glossary_version, newest_version
from made_with
where newest_version is not null and glossary_version is distinct from newest_version
order by course_id, title, media_id;
