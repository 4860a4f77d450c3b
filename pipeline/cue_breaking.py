"""Where a cue or a line may break, and how well: the words of a transcript glued into unbreakable atoms.

An atom is never split: a Latin word, a number with its measure word or unit, a term of the course, the name of a
letter, a Chinese word of jieba's dictionary, a word with its punctuation. What a break before an atom costs follows the
line treatment of the Netflix Timed Text Style Guides: best at the end of a sentence, then of a clause, then before a
phrase (a conjunction, a preposition), never between an article, a preposition or a conjunction and what it governs,
nor between a number with its measure word and what is counted. Which words lean on which: ``cue_words``. Only atoms
wider than a line are taken apart again, at their words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from pipeline.cue_profiles import CueProfile, base_language, half_units
from pipeline.cue_words import (
    DIGITS,
    counts_before,
    holds_number,
    is_label,
    leans_back,
    leans_on,
    letter_names,
    measure_length,
    opens_phrase,
)
from pipeline.postprocess.lexicon import load_lexicon
from pipeline.postprocess.script import WORKING_SCRIPT, converter_of
from pipeline.postprocess.term_spans import TermSpotter
from pipeline.values import Sentence, Word

# Full-width forms are written as escapes: in many fonts they cannot be told from the ASCII ones.
OPENERS = frozenset("([{“‘「『《〈【〔#$¥€£¡¿\uff08\uff3b\uff5b")
CLOSERS = frozenset(
    ",.!?;:)]}%~。、】〕》〉」』”’…—–‰°℃·\uff0c\uff0e\uff01\uff1f\uff1b\uff1a\uff09\uff3d\uff5d\uff05\uff5e"
)
SENTENCE_ENDS = frozenset(".!?。…\uff0e\uff01\uff1f")
CLAUSE_ENDS = frozenset(";:\uff1b\uff1a")
COMMAS = frozenset(",\uff0c")
LESSER_MARKS = frozenset("、—–")

_CLOSERS = "".join(CLOSERS)

INSIDE_CLAUSE = 14
BEFORE_PHRASE = 9
INSIDE_ATOM = 40
BAD_EDGE = 14
PAUSE_MS = 250

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile(r"[\u3040-\u30ff\u31f0-\u31ff]")
_HANGUL = re.compile(r"[\u1100-\u11ff\uac00-\ud7af]")
_FULL_WIDTH_MARK = re.compile(r"[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’…—·]")


@dataclass(frozen=True, slots=True)
class Atom:
    """An unbreakable run of words. ``text`` may begin with one space; it never ends with one."""

    text: str
    start_ms: int
    end_ms: int
    opens_sentence: bool
    profile: CueProfile
    break_cost: int
    """What it costs to end a cue before this atom; 0 is best. A line break costs half."""
    word_count: int
    speaker: str = ""
    """A change of speaker begins a cue; its first atom has a dash."""


def atoms_of(
    sentences: Sequence[Sentence], profile_of: Callable[[str], CueProfile], media_end_ms: int, terms: TermSpotter
) -> tuple[Atom, ...]:
    """Glue the words of all sentences into atoms, in order; ``terms`` are those that must stay whole.

    Times are made to run forward and to stay within the media: a word never starts before the one ahead of
    it. Blank words are dropped; a sentence without words makes no atom.
    """
    atoms: list[Atom] = []
    for sentence in sentences:
        words = _tidy(sentence.words, atoms[-1] if atoms else None, media_end_ms)
        if words and atoms and sentence.speaker != atoms[-1].speaker:
            words[0] = replace(words[0], text=_dashed(words[0].text))
        if words:
            atoms.extend(_atoms_of_sentence(words, sentence, profile_of(sentence.language), terms))
    return tuple(atoms)


def _dashed(text: str) -> str:
    """The first word of another speaker.

    >>> _dashed(" Yes,"), _dashed("老师")
    (' - Yes,', '- 老师')
    """
    return " " * text.startswith(" ") + "- " + text.lstrip()


def _tidy(words: Sequence[Word], before: Atom | None, media_end_ms: int) -> list[Word]:
    earliest_ms = before.start_ms if before else 0
    tail = before.text if before else ""
    space = ""
    tidied: list[Word] = []
    for word in words:
        text = " ".join(word.text.split())
        space = " " if space or word.text[:1].isspace() else ""
        if not text:
            continue
        if not tidied and tail and not (_is_wide(tail[-1]) or _is_wide(text[0])):
            space = " "
        start_ms = min(max(word.start_ms, earliest_ms), max(media_end_ms - 1, 0))
        end_ms = min(max(word.end_ms, start_ms), media_end_ms)
        tidied.append(Word(space + text, start_ms, max(end_ms, start_ms), word.probability))
        earliest_ms = start_ms
        space = " " if word.text[-1:].isspace() else ""
    return tidied


def _atoms_of_sentence(
    words: list[Word], sentence: Sentence, profile: CueProfile, terms: TermSpotter
) -> Iterator[Atom]:
    groups = _groups(words, _may_break(words, sentence.language, terms))
    fitting = [piece for group in groups for piece in _taken_apart(group, profile)]
    before: list[Word] | None = None
    for group, is_inner in fitting:
        text = _joined(group)
        cost = 0 if before is None else INSIDE_ATOM if is_inner else _cost_between(before, group)
        times = group[0].start_ms, group[-1].end_ms
        yield Atom(text, *times, before is None, profile, cost, len(group), sentence.speaker)
        before = group


def _joined(words: Sequence[Word]) -> str:
    return words[0].text if len(words) == 1 else "".join([word.text for word in words])


def _groups(words: list[Word], may_break: list[bool]) -> list[list[Word]]:
    groups: list[list[Word]] = []
    for word, free in zip(words, may_break, strict=True):
        if free or not groups:
            groups.append([word])
        else:
            groups[-1].append(word)
    return groups


def _taken_apart(group: list[Word], profile: CueProfile) -> list[tuple[list[Word], bool]]:
    width = half_units(_joined(group).strip(), profile)
    if width <= 2 * profile.max_units_per_line:
        return [(group, False)]
    return [([word], index > 0) for index, word in enumerate(group)]


def _may_break(words: list[Word], language: str, terms: TermSpotter) -> list[bool]:
    """Say for each word whether a break before it is allowed at all."""
    text = "".join(word.text for word in words)
    simplified = _simplified(text, language)
    boundaries = None
    if simplified is not None:
        boundaries = frozenset(accumulate(map(len, load_lexicon().tokenizer.cut(simplified)), initial=0))
    whole = [*terms.spans(text), *letter_names(simplified or "")]
    inside = {place for start, end in whole for place in range(start + 1, end)}
    allowed, offset = [], 0
    for index, word in enumerate(words):
        is_free = index > 0 and offset not in inside and _is_free(text, offset, boundaries)
        allowed.append(is_free)
        offset += len(word.text)
    return allowed


def _simplified(text: str, language: str) -> str | None:
    """Return the text as jieba's dictionary writes it, or None where that does not know the language.

    The dictionary is simplified; folding keeps the number of characters.
    """
    if base_language(language) in {"ja", "jpn", "ko", "kor"} or not _HAN.search(text):
        return None
    simplified = str(converter_of(WORKING_SCRIPT).convert(text))
    return simplified if len(simplified) == len(text) else text


def _is_free(text: str, offset: int, boundaries: frozenset[int] | None) -> bool:
    before = text[offset - 1]
    is_spaced = text[offset] == " "
    first = text[offset + 1] if is_spaced else text[offset]
    if before in OPENERS or first in CLOSERS or holds_number(text, offset):
        return False
    if is_spaced:
        return True
    if before in DIGITS and (first in DIGITS or _is_measured(text, offset, boundaries)):
        return False
    if not (_is_wide(before) or _is_wide(first)):
        return False
    return offset in boundaries if boundaries is not None else _script(before) != _script(first)


def _is_measured(text: str, offset: int, boundaries: frozenset[int] | None) -> bool:
    """Say whether a measure word or a unit begins here, and not another word that only begins with one."""
    length = measure_length(text, offset)
    end = offset + length
    return length > 0 and (boundaries is None or end in boundaries or end == len(text) or not _is_wide(text[end]))


@cache
def _is_wide(character: str) -> bool:
    return any(p.match(character) for p in (_HAN, _KANA, _HANGUL, _FULL_WIDTH_MARK))


@cache
def _script(character: str) -> str:
    # Without a dictionary (Japanese), words tend to end where hiragana gives way to another script.
    if "\u3040" <= character <= "\u309f":
        return "hiragana"
    names = ((_HAN, "kanji"), (_KANA, "katakana"), (_HANGUL, "hangul"), (_FULL_WIDTH_MARK, "mark"))
    return next((name for pattern, name in names if pattern.match(character)), "narrow")


def _cost_between(before: list[Word], after: list[Word]) -> int:
    left, right = _joined(before).strip(), _joined(after).strip()
    pause_ms = after[0].start_ms - before[-1].end_ms
    bonus = min(8, pause_ms // 125) if pause_ms >= PAUSE_MS else 0
    cost = _mark_cost(left[-1])
    if cost == INSIDE_CLAUSE and opens_phrase(right.rstrip(_CLOSERS)):
        cost = BEFORE_PHRASE
    return max(0, cost - bonus) + (BAD_EDGE if _is_bad_edge(left, right) else 0)


def _mark_cost(last: str) -> int:
    """Grade a break by the character before it.

    >>> [_mark_cost(character) for character in "。;,、好"]
    [0, 1, 2, 5, 14]
    """
    grades = ((SENTENCE_ENDS, 0), (CLAUSE_ENDS, 1), (COMMAS, 2), (LESSER_MARKS, 5))
    return next((cost for marks, cost in grades if last in marks), INSIDE_CLAUSE)


def _is_bad_edge(left: str, right: str) -> bool:
    """Say whether a break would part words that lean on each other.

    >>> _is_bad_edge("the", "triangle"), _is_bad_edge("证明", "的"), _is_bad_edge("the,", "triangle")
    (True, True, False)
    """
    bare = right.rstrip(_CLOSERS)
    if leans_on(left) or leans_back(bare) or counts_before(left):
        return True
    return (left[-1] in DIGITS and _HAN.match(right) is not None) or (is_label(left) and right[0].isdigit())
