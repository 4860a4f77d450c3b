"""Terms of languages with spaces: written right by exact spelling, by alias, by nearly the same letters, by sound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rapidfuzz import fuzz, process

from pipeline.postprocess.english_hearing import SoundIndex, heard_as, sound_index
from pipeline.postprocess.english_lexicon import load_english_lexicon
from pipeline.postprocess.english_tokens import Token, fold_letters, split_token
from pipeline.postprocess.terms import Corrected, Glossary, Term
from pipeline.values import Replacement, Word

FUZZY_MIN_SCORE = 92
"""Of 100. Lower scores are left to ``english_hearing``, which knows words from strings that are none."""
FUZZY_MIN_LETTERS = 7
LONGEST_PAUSE_MS = 500

_INFLECTIONS = ("s", "es", "ed", "d", "ing", "ly", "al")

EVERYDAY_FREQUENCY = 100_000_000
"""Of the list's 83,000 words 768 are as common: go, may, will, windows, but not python, swift or newton."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way a term is written, in folded words."""

    words: tuple[str, ...]
    term: str
    rule: str


@dataclass(frozen=True, slots=True)
class EnglishIndex:
    """``spellings`` by their first word, longest first; ``fuzzy`` by first letter and number of letters of
    what may be near enough, each with the letters and the term."""

    spellings: Mapping[str, tuple[Spelling, ...]]
    fuzzy: Mapping[tuple[str, int], Mapping[str, str]]
    sounds: SoundIndex
    longest: int


@dataclass(frozen=True, slots=True)
class Hit:
    start: int
    end: int
    term: str
    rule: str
    score: float


def correct_english(words: Sequence[Word], language: str, glossary: Glossary) -> Corrected:
    """The words of a run with the terms of ``glossary`` written right."""
    index = english_index(glossary, language)
    tokens = [split_token(word.text) for word in words]
    hits = _spelled(words, tokens, index)
    hits += _fuzzy(words, tokens, index, hits)
    hits = sorted(hits + _heard(words, tokens, index, hits), key=lambda hit: hit.start)
    return _rewritten(words, tokens, hits)


@lru_cache(maxsize=16)
def english_index(glossary: Glossary, language: str) -> EnglishIndex:
    """The index of the terms that are spoken in ``language``; kept for the last glossaries used."""
    terms = [term for term in glossary.terms if term.is_spoken_in(language)]
    groups: dict[str, list[Spelling]] = defaultdict(list)
    for spelling in (spelling for term in terms for spelling in _spellings(term)):
        groups[spelling.words[0]].append(spelling)
    ordered = {first: tuple(sorted(group, key=lambda item: -len(item.words))) for first, group in groups.items()}
    longest = max((len(spelling.words) for group in groups.values() for spelling in group), default=0)
    sounds = sound_index(
        [(term.term, [token.letters for token in _tokens(term.term.replace("-", " "))]) for term in terms]
    )
    return EnglishIndex(ordered, _fuzzy_index(terms), sounds, longest)


def _spellings(term: Term) -> Iterator[Spelling]:
    for spelling, rule in ((term.term, "case"), *((alias, "alias") for alias in term.aliases)):
        words = tuple(token.letters for token in _tokens(spelling))
        if words:
            yield Spelling(words, term.term, rule)


def _tokens(spelling: str) -> list[Token]:
    return [token for token in map(split_token, spelling.split()) if token.letters]


def _fuzzy_index(terms: Sequence[Term]) -> dict[tuple[str, int], dict[str, str]]:
    """Two texts of a and b letters score at most 200 * min(a, b) / (a + b)."""
    near = FUZZY_MIN_SCORE / (200 - FUZZY_MIN_SCORE)
    index: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for term in terms:
        letters = fold_letters(term.term)
        if letters.isascii() and (len(letters) >= FUZZY_MIN_LETTERS or (letters and " " in term.term.strip())):
            for size in range(int(len(letters) * near), int(len(letters) / near) + 2):
                index[letters[0], size][letters] = term.term
    return dict(index)


def _spelled(words: Sequence[Word], tokens: Sequence[Token], index: EnglishIndex) -> list[Hit]:
    hits, position = [], 0
    while position < len(tokens):
        hit = next(_spelled_at(words, tokens, position, index), None)
        if hit:
            hits.append(hit)
        position = hit.end if hit else position + 1
    return hits


def _spelled_at(words: Sequence[Word], tokens: Sequence[Token], start: int, index: EnglishIndex) -> Iterator[Hit]:
    for spelling in index.spellings.get(tokens[start].letters, ()):
        end = start + len(spelling.words)
        heard = tuple(token.letters for token in tokens[start:end])
        if heard == spelling.words and _is_unbroken(words, tokens, start, end):
            yield Hit(start, end, spelling.term, _rule(tokens[start:end], spelling), 100)


def _rule(tokens: Sequence[Token], spelling: Spelling) -> str:
    """Empty where nothing is to be done: a term without capitals does not lower those of a sentence."""
    heard = " ".join(token.text for token in tokens)
    is_as_good = spelling.rule == "case" and (spelling.term.islower() or _is_everyday(spelling))
    return "" if heard == spelling.term or is_as_good else spelling.rule


def _is_everyday(spelling: Spelling) -> bool:
    """Whether a name is also a word of every text: the language Go does not make "we go" "we Go"."""
    frequency = load_english_lexicon().frequencies.get(spelling.term.casefold(), 0)
    return spelling.term.istitle() and frequency >= EVERYDAY_FREQUENCY


def _fuzzy(words: Sequence[Word], tokens: Sequence[Token], index: EnglishIndex, taken: Sequence[Hit]) -> list[Hit]:
    free = _free(tokens, taken)
    return _apart([hit for start in free for hit in _near(words, tokens, start, index)], taken)


def _heard(words: Sequence[Word], tokens: Sequence[Token], index: EnglishIndex, taken: Sequence[Hit]) -> list[Hit]:
    if not index.sounds.exact:
        return []
    lexicon, found = load_english_lexicon(), []
    for start in _free(tokens, taken):
        for end in range(start + 1, min(start + index.longest + 1, len(tokens)) + 1):
            letters = [token.letters for token in tokens[start:end]]
            alike = heard_as(letters, index.sounds, lexicon) if _is_unbroken(words, tokens, start, end) else None
            if alike and not _is_inflected("".join(letters), fold_letters(alike[0])):
                found.append(Hit(start, end, alike[0], "sound", alike[1]))
    return _apart(found, taken)


def _free(tokens: Sequence[Token], taken: Sequence[Hit]) -> list[int]:
    occupied = {position for hit in taken for position in range(hit.start, hit.end)}
    return [position for position, token in enumerate(tokens) if position not in occupied and token.letters]


def _apart(found: Sequence[Hit], taken: Sequence[Hit]) -> list[Hit]:
    """The best of the hits that overlap, none of them over one that is taken."""
    occupied = {position for hit in taken for position in range(hit.start, hit.end)}
    hits = []
    for hit in sorted(found, key=lambda hit: (-hit.score, hit.start - hit.end, hit.start)):
        if occupied.isdisjoint(range(hit.start, hit.end)):
            occupied.update(range(hit.start, hit.end))
            hits.append(hit)
    return hits


def _near(words: Sequence[Word], tokens: Sequence[Token], start: int, index: EnglishIndex) -> Iterator[Hit]:
    letters = ""
    for end in range(start + 1, min(start + index.longest + 1, len(tokens)) + 1):
        letters += tokens[end - 1].letters
        choices = index.fuzzy.get((letters[:1], len(letters)))
        if choices and _is_unbroken(words, tokens, start, end):
            best = _best(letters, choices)
            if best and _is_alike(letters, end - start, *best):
                yield Hit(start, end, choices[best[0]], "fuzzy", best[1])


def _best(letters: str, choices: Mapping[str, str]) -> tuple[str, float] | None:
    """The nearest term and its score, unless a second one is as near."""
    found = process.extract(letters, choices.keys(), scorer=fuzz.ratio, score_cutoff=FUZZY_MIN_SCORE, limit=2)
    if not found or (len(found) == 2 and found[0][1] == found[1][1]):
        return None
    return found[0][0], found[0][1]


def _is_alike(heard: str, word_count: int, term: str, score: float) -> bool:
    """Whether ``heard`` can be a misspelling: no inflected form, and of a single word, no word of the dictionary
    and one that ends alike.
    """
    if heard == term:
        return word_count > 1
    if _is_inflected(heard, term) or (word_count == 1 and load_english_lexicon().is_word(heard)):
        return False
    return score >= FUZZY_MIN_SCORE and (word_count > 1 or heard[-2:] == term[-2:])


def _is_inflected(heard: str, term: str) -> bool:
    return any(heard + ending == term or term + ending == heard for ending in _INFLECTIONS)


def _is_unbroken(words: Sequence[Word], tokens: Sequence[Token], start: int, end: int) -> bool:
    """No mark and no long pause between the words."""
    return all(
        not tokens[at - 1].after
        and not tokens[at].before.strip()
        and words[at].start_ms - words[at - 1].end_ms < LONGEST_PAUSE_MS
        for at in range(start + 1, end)
    )


def _rewritten(words: Sequence[Word], tokens: Sequence[Token], hits: Sequence[Hit]) -> Corrected:
    result: list[Word] = []
    replacements: list[Replacement] = []
    inside: set[int] = set()
    position = 0
    for hit in hits:
        result += words[position : hit.start]
        window = words[hit.start : hit.end]
        written = _retimed(window, tokens[hit.start : hit.end], hit.term) if hit.rule else tuple(window)
        inside.update(range(len(result), len(result) + len(written) - 1))
        result += written
        if hit.rule:
            before = " ".join(token.text for token in tokens[hit.start : hit.end])
            replacements.append(
                Replacement(window[0].start_ms, window[-1].end_ms, before, hit.term, hit.rule, hit.score / 100)
            )
        position = hit.end
    return Corrected((*result, *words[position:]), tuple(replacements), frozenset(inside))


def _retimed(window: Sequence[Word], tokens: Sequence[Token], term: str) -> tuple[Word, ...]:
    """The term over the time of the window: word by word, or by number of letters where the counts differ."""
    parts = term.split()
    texts = [(" " if at else tokens[0].before) + part for at, part in enumerate(parts)]
    texts[-1] += tokens[-1].after
    if len(parts) == len(window):
        return tuple(replace(word, text=text) for text, word in zip(texts, window, strict=True))
    start_ms, duration_ms = window[0].start_ms, window[-1].end_ms - window[0].start_ms
    sizes = [len(part) for part in parts]
    ends = [start_ms + duration_ms * sum(sizes[: at + 1]) // sum(sizes) for at in range(len(sizes))]
    probability = min(word.probability for word in window)
    return tuple(
        Word(text, begin, end, probability, ending=window[-1].ending if end == ends[-1] else None)
        for text, begin, end in zip(texts, [start_ms, *ends[:-1]], ends, strict=True)
    )
