"""Where a stretch of Chinese holds a term, written right, under an alias, or only sounding like it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rapidfuzz.distance import Levenshtein

from pipeline.postprocess.chinese_index import (
    NEAR_MIN_CHARACTERS,
    ONE_SYLLABLE_MIN_CHARACTERS,
    ChineseIndex,
    SoundTerm,
)
from pipeline.postprocess.lexicon import Lexicon, load_lexicon
from pipeline.postprocess.sound import by_character, in_context, near
from pipeline.postprocess.stretches import Stretch
from pipeline.postprocess.text import is_han, is_latin

SPURIOUS_COMMA_MAX_PAUSE_MS = 250
SPURIOUS_COMMA_MIN_CHARACTERS = 3

MIN_LOG_GAIN = 4.5
"""A term heard by sound must be 90 times likelier than the words that stand there. Measured on made-up pairs:
rare characters thrown together gain 5 to 18 (购股定理, 加速杜), real words that only sound like a term gain
up to 4 (细胞和 beside 细胞核, 直角变 beside 直角边)."""

_RULES = ("", "case", "alias", "homophone", "near-homophone", "one-syllable")


@dataclass(frozen=True, slots=True)
class Hit:
    """Characters ``start`` to ``end`` of a stretch that are the term ``term``; ``rule`` is empty where
    they are right.
    """

    start: int
    end: int
    term: str
    rule: str

    def covers(self, other: Hit) -> bool:
        return self.start <= other.start and other.end <= self.end


def find_hits(stretch: Stretch, index: ChineseIndex) -> list[Hit]:
    """The terms in a stretch, none overlapping another: written ones, then aliases, then by sound, longest
    first.
    """
    spelled = sorted(_spelled(stretch, index), key=lambda hit: (hit.start - hit.end, hit.start))
    claims = _Claims(len(stretch.text))
    for hit in (hit for hit in spelled if hit.rule != "alias"):
        claims.admit(hit)
    for hit in (hit for hit in spelled if hit.rule == "alias"):
        claims.admit(hit)
    heard = _unambiguous(_heard(stretch, index))
    judge = _Judge(stretch, load_lexicon()) if heard else None
    for hit in heard:
        if judge and _keeps_inner_terms(hit, claims.touched(hit)) and judge.is_likelier(hit):
            claims.admit(hit)
    return claims.hits()


class _Claims:
    """Which hit each character of a stretch belongs to."""

    def __init__(self, size: int) -> None:
        self._owners: list[Hit | None] = [None] * size

    def hits(self) -> list[Hit]:
        return list(dict.fromkeys(owner for owner in self._owners if owner))

    def touched(self, hit: Hit) -> set[Hit]:
        return {owner for owner in self._owners[hit.start : hit.end] if owner}

    def admit(self, hit: Hit) -> None:
        """Add a hit unless it cuts into another one; right spellings that lie inside it are swallowed."""
        if all(hit.covers(other) and other.rule == "" and hit.rule != "" for other in self.touched(hit)):
            self._owners[hit.start : hit.end] = [hit] * (hit.end - hit.start)


def _keeps_inner_terms(hit: Hit, touched: Iterable[Hit]) -> bool:
    """A term that stands inside the heard string must stand in the replacement, at the same place."""
    inner = [other for other in touched if hit.covers(other)]
    return all(hit.term[other.start - hit.start : other.end - hit.start] == other.term for other in inner)


def _spelled(stretch: Stretch, index: ChineseIndex) -> Iterator[Hit]:
    text = stretch.text.lower()
    for start, char in enumerate(text):
        for length in index.lengths.get(char, ()):
            spelling = index.spellings.get(text[start : start + length])
            if spelling is None or start + length > len(text) or _cuts_latin(stretch, start, start + length):
                continue
            rule = spelling.rule or _own_rule(stretch, start, start + length, spelling.letters)
            if _allows_breaks(stretch, start, start + length, rule):
                yield Hit(start, start + length, spelling.letters, rule)


def _own_rule(stretch: Stretch, start: int, end: int, term: str) -> str:
    letters = "".join(char for char in term if char.isalnum())
    if letters != stretch.text[start:end]:
        return "case"
    is_broken = is_han(letters[0]) and any(stretch.breaks[start + 1 : end])
    return "homophone" if is_broken else ""


def _cuts_latin(stretch: Stretch, start: int, end: int) -> bool:
    """Whether a Latin word goes on before or after: ``Java`` is no hit in ``JavaScript``."""
    return any(
        0 < border < len(stretch.text)
        and not stretch.breaks[border]
        and is_latin(stretch.text[border - 1])
        and is_latin(stretch.text[border])
        for border in (start, end)
    )


def _heard(stretch: Stretch, index: ChineseIndex) -> set[Hit]:
    pieces = (in_context(piece) for _, piece in stretch.pieces())
    plain = by_character(stretch.text)
    readings = {tuple(syllable for piece in pieces for syllable in piece), plain}
    hits = {hit for reading in readings for hit in _same_sound(stretch, index, reading)}
    return hits | set(_one_syllable(stretch, index, plain))


def _same_sound(stretch: Stretch, index: ChineseIndex, reading: tuple[str, ...]) -> Iterator[Hit]:
    folded = tuple(near(syllable) for syllable in reading)
    for start in range(len(folded) - 1):
        for sound in index.sounds.get(folded[start : start + 2], ()):
            end = start + len(sound.term)
            if folded[start:end] != sound.near_syllables:
                continue
            rule = "homophone" if reading[start:end] == sound.syllables else "near-homophone"
            is_allowed = rule == "homophone" or (len(sound.term) >= NEAR_MIN_CHARACTERS and not index.is_large)
            if is_allowed and _is_candidate(stretch, start, end, sound.term, rule):
                yield Hit(start, end, sound.term, rule)


def _one_syllable(stretch: Stretch, index: ChineseIndex, reading: Sequence[str]) -> Iterator[Hit]:
    text = stretch.text
    for start in range(len(text) - 1):
        pair = text[start : start + 2]
        candidates = [(sound, start) for sound in index.heads.get(pair, ())]
        candidates += [(sound, start + 2 - len(sound.term)) for sound in index.tails.get(pair, ())]
        for sound, begin in candidates:
            end = begin + len(sound.term)
            if begin >= 0 and end <= len(text) and _differs_in_one(text[begin:end], reading[begin:end], sound):
                hit = Hit(begin, end, sound.term, "one-syllable")
                if _is_candidate(stretch, begin, end, sound.term, hit.rule):
                    yield hit


def _differs_in_one(heard: str, reading: Sequence[str], sound: SoundTerm) -> bool:
    """One character differs, and its folded syllable by one letter: 动量 is not heard for 动能."""
    differing = [at for at, (char, own) in enumerate(zip(heard, sound.term, strict=True)) if char != own]
    if len(differing) != 1 or len(heard) < ONE_SYLLABLE_MIN_CHARACTERS:
        return False
    at = differing[0]
    return Levenshtein.distance(near(reading[at]), sound.near_syllables[at], score_cutoff=1) == 1


def _is_candidate(stretch: Stretch, start: int, end: int, term: str, rule: str) -> bool:
    heard = stretch.text[start:end]
    return heard != term and _allows_breaks(stretch, start, end, rule)


def _allows_breaks(stretch: Stretch, start: int, end: int, rule: str) -> bool:
    """Spaces may stand inside a term; commas only in a longer one of exactly its sound, spoken without a
    pause.
    """
    for at in range(start + 1, end):
        marks = stretch.break_texts[at]
        if marks and rule in ("one-syllable", "near-homophone"):
            return False
        is_short = end - start < SPURIOUS_COMMA_MIN_CHARACTERS
        is_pause = stretch.gaps_ms[at] >= SPURIOUS_COMMA_MAX_PAUSE_MS
        if marks.strip(" -") and (rule != "homophone" or is_short or is_pause or marks.strip() != "，"):
            return False
    return True


def _unambiguous(hits: set[Hit]) -> list[Hit]:
    """Longest first, then the surest rule; a window that is equally near to two terms is left alone."""
    best: dict[tuple[int, int], list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (hit.start - hit.end, _RULES.index(hit.rule), hit.start)):
        found = best.setdefault((hit.start, hit.end), [])
        if not found or found[0].rule == hit.rule:
            found.append(hit)
    return [found[0] for found in best.values() if len(found) == 1]


class _Judge:
    """Weighs what was heard against a term, by the words of the stretch; they are cut once."""

    def __init__(self, stretch: Stretch, lexicon: Lexicon) -> None:
        self._text = stretch.text
        self._lexicon = lexicon
        self._words = [word for _, piece in stretch.pieces() for word in lexicon.cut(piece)]
        self._ends = list(accumulate(len(word) for word in self._words))

    def is_likelier(self, hit: Hit) -> bool:
        """Whether the heard string is no word, and the term a likelier reading of the words that it touches.

        The touched words begin and end on word boundaries; where the heard string cuts through words, what is
        left of them counts against the term. So 是能 in 重点是能看懂 stays, though it sounds like 势能.
        """
        heard = self._text[hit.start : hit.end]
        if heard == hit.term or self._lexicon.is_word(heard):
            return heard == hit.term
        first, last = bisect_right(self._ends, hit.start), bisect_left(self._ends, hit.end)
        words = self._words[first : last + 1]
        start, end = self._ends[first] - len(words[0]), self._ends[last]
        rest = [*self._cut(start, hit.start), *self._cut(hit.end, end)]
        gain = self._lexicon.log_probability([*rest, hit.term]) - self._lexicon.log_probability(words)
        return gain >= MIN_LOG_GAIN

    def _cut(self, start: int, end: int) -> list[str]:
        return self._lexicon.cut(self._text[start:end]) if start < end else []
