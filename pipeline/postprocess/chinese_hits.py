"""Which terms a run of Chinese holds, written right, under an alias, or only sounding like it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from pipeline.postprocess.chinese_claims import Claims, Hit
from pipeline.postprocess.chinese_hearing import heard
from pipeline.postprocess.chinese_index import ChineseIndex
from pipeline.postprocess.chinese_judging import Judge
from pipeline.postprocess.chinese_spelling import spelled
from pipeline.postprocess.lexicon import load_lexicon
from pipeline.postprocess.sound import has_tones_of
from pipeline.postprocess.stretches import Stretch
from pipeline.postprocess.topic import Topic

NEVER = math.inf
SHORTEST = 2
"""Characters of a term. Two rare characters are found by chance, in names above all: such terms need their context."""
MIN_GAIN_ALONE = {
    "homophone": (NEVER, 7.5),
    "near-homophone": (NEVER, 9.0),
    "one-syllable": (NEVER, 7.0),
}
"""By rule, for the shortest terms and for longer ones: so much likelier, as a natural logarithm, a term that is heard
must be than the words that stand there. Measured, like all here, by ``bench.false_replacements``."""
MIN_GAIN_IN_CONTEXT = {
    "homophone": (10.5, 9.0),
    "near-homophone": (12.5, 10.0),
    "one-syllable": (NEVER, 11.0),
}
"""The same with what the terms around it say: more, because they speak for chance likenesses, too."""
MIN_GAIN_OF_WORDS = 8.5
"""The same where a word of the dictionary stands there and sounds exactly like the term, tones included (倒数 is
no 导数); only rare words are so unlikely. 成绩 for 乘积 has 5, 鞋面 for 斜面 9.5 in a lecture on forces."""
FEW_TERMS, MORE_PER_LOG_TERMS = 100, 1.8
"""Up to so many terms these hold. With more of them chance likenesses are commoner, and this much more is asked for
each factor of e."""


def find_hits(parts: Sequence[Stretch], index: ChineseIndex) -> list[tuple[Stretch, Hit]]:
    """The terms in the stretches of a run, none overlapping another.

    Written ones first, then aliases, then what sounds like a term: first what is likely by itself, then what the
    terms around it make likely.
    """
    searches = [_Search(stretch, index) for stretch in parts]
    if any(search.doubtful for search in searches):
        offsets = list(accumulate((len(stretch.text) for stretch in parts), initial=0))
        topic = Topic(index.relations, list(_mentions(searches, offsets)))
        for search, offset in zip(searches, offsets, strict=False):
            search.admit_likely_here(topic, offset)
    return [(search.stretch, hit) for search in searches for hit in search.claims.hits()]


def _mentions(searches: Iterable[_Search], offsets: Iterable[int]) -> Iterator[tuple[int, str]]:
    for search, offset in zip(searches, offsets, strict=False):
        yield from ((offset + hit.start, hit.term) for hit in search.claims.hits())


class _Search:
    """One stretch. ``doubtful`` is what was heard in it and is not likely by itself."""

    def __init__(self, stretch: Stretch, index: ChineseIndex) -> None:
        self.stretch = stretch
        self._terms = index.relations.size
        self.claims = Claims(len(stretch.text))
        self.claims.admit_all(spelled(stretch, index))
        found = heard(stretch, index)
        self._judge = Judge(stretch, load_lexicon()) if found else None
        self.doubtful = [hit for hit in found if not self._is_admitted_alone(hit)]

    def admit_likely_here(self, topic: Topic, offset: int) -> None:
        """Take in what ``topic`` makes likely; ``offset`` is the place of the stretch in the run."""
        for hit in self.doubtful:
            if self._judge and self.claims.leave_room(hit):
                verdict = self._judge.verdict(
                    hit.start, hit.end, hit.term, topic.log_probability(hit.term, offset + hit.start)
                )
                self._admit(hit, verdict.in_context - self._required_here(hit) - self._more(hit))

    def _is_admitted_alone(self, hit: Hit) -> bool:
        if self._judge is None or not self.claims.leave_room(hit):
            return True
        if self._judge.is_word(hit.start, hit.end):
            return False
        verdict = self._judge.verdict(hit.start, hit.end, hit.term, -math.inf)
        return self._admit(hit, verdict.alone - _required(MIN_GAIN_ALONE, hit) - self._more(hit))

    def _required_here(self, hit: Hit) -> float:
        if self._judge and self._judge.is_word(hit.start, hit.end):
            is_exact = hit.rule == "homophone" and has_tones_of(self.stretch.text[hit.start : hit.end], hit.term)
            return MIN_GAIN_OF_WORDS if is_exact else NEVER
        return _required(MIN_GAIN_IN_CONTEXT, hit)

    def _more(self, hit: Hit) -> float:
        """What a large glossary asks beyond that; twice as much of the shortest terms."""
        more = MORE_PER_LOG_TERMS * max(0.0, math.log(self._terms / FEW_TERMS))
        return more if hit.end - hit.start > SHORTEST else 2 * more

    def _admit(self, hit: Hit, margin: float) -> bool:
        if margin >= 0:
            self.claims.admit(replace(hit, score=_score(margin)))
        return margin >= 0


def _required(least: Mapping[str, tuple[float, float]], hit: Hit) -> float:
    return least[hit.rule][hit.end - hit.start > SHORTEST]


def _score(margin: float) -> float:
    """0.5 where it was just enough, towards 1 where it was much more."""
    return round(1 / (1 + math.exp(-margin)), 4)
