-- How much was filtered or failed, for which reason, and in how many media?
select
    outcome,
    reason,
    count(distinct media_id) as media,
    round(sum(duration_ms) / 60000.0, 2) as minutes
from ledger
where outcome in ('filtered', 'failed')
group by outcome, reason
order by minutes desc, outcome, reason;
