-- Which words was the recognizer unsure of (below 40 %), to listen to again?
select t.title, w.start_ms, trim(w.text) as word, round(w.probability::numeric, 2) as probability
from words as w
inner join transcripts as t using (media_id)
where w.probability < 0.4
order by w.probability, t.title, w.word_index
limit 100;
