"""How good a result is: errors, punctuation, when sentences start, and which cues are hard to read.

All pure. Every system, ours and the peers, is judged by these functions on the same references.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Levenshtein

from bench.folding import Mark, Token, plain_text, tokens_of
from bench.values import Hypothesis, Item, Timed
from pipeline.cues import check_cues, profile_for
from pipeline.glossary_file import load_glossary
from pipeline.values import Cue

START_REACH_TOKENS = 3
"""A sentence start is looked for at its first tokens only; further in, the time is of something else."""


@dataclass(frozen=True, slots=True)
class ErrorCount:
    """Substitutions, deletions and insertions against the number of reference tokens."""

    errors: int = 0
    tokens: int = 0

    def __add__(self, other: ErrorCount) -> ErrorCount:
        return ErrorCount(self.errors + other.errors, self.tokens + other.tokens)

    @property
    def rate(self) -> float:
        """Errors over reference tokens (character or word error rate); nan where there is no reference."""
        return self.errors / self.tokens if self.tokens else math.nan


@dataclass(frozen=True, slots=True)
class MarkCount:
    """Marks that are right, that the system wrote, and that the reference has."""

    right: int = 0
    given: int = 0
    expected: int = 0

    def __add__(self, other: MarkCount) -> MarkCount:
        return MarkCount(self.right + other.right, self.given + other.given, self.expected + other.expected)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; nan where neither text has a mark."""
        total = self.given + self.expected
        return 2 * self.right / total if total else math.nan


@dataclass(frozen=True, slots=True)
class StartErrors:
    """How far sentence starts are off, in ms, in any order; ``missed`` sentences have no heard start."""

    errors_ms: tuple[int, ...] = ()
    missed: int = 0

    def __add__(self, other: StartErrors) -> StartErrors:
        return StartErrors(self.errors_ms + other.errors_ms, self.missed + other.missed)


@dataclass(frozen=True, slots=True)
class Score:
    """Everything that is said of one result; scores of several files add up."""

    error: ErrorCount = field(default_factory=ErrorCount)
    marks: MarkCount = field(default_factory=MarkCount)
    questions: MarkCount = field(default_factory=MarkCount)
    by_mark: dict[str, MarkCount] = field(default_factory=dict)
    """Each mark by itself, exchanged for no other."""
    terms: MarkCount = field(default_factory=MarkCount)
    """Terms of the glossary: those in the reference, and those of them that stand at their place."""
    word_starts: StartErrors = field(default_factory=StartErrors)
    cue_starts: StartErrors = field(default_factory=StartErrors)
    cues: int = 0
    violations: tuple[str, ...] = ()
    """The rule of each violation; one cue may break several."""

    def __add__(self, other: Score) -> Score:
        return Score(
            self.error + other.error,
            self.marks + other.marks,
            self.questions + other.questions,
            _added(self.by_mark, other.by_mark),
            self.terms + other.terms,
            self.word_starts + other.word_starts,
            self.cue_starts + other.cue_starts,
            self.cues + other.cues,
            self.violations + other.violations,
        )


def score(item: Item, shown: Hypothesis, timed: Hypothesis) -> Score:
    """Judge one file: text, marks and cues of ``shown``, word times of ``timed``.

    The two are the same result where a system has word times anyway. Peers are run a second time for them,
    because asking for word times makes them slower and changes their segments.
    """
    language = item.language
    reference, heard = _both(_reference(item), shown.cues, language, joint="\n")
    marks, questions = punctuation(reference, heard) if item.is_punctuated else (MarkCount(), MarkCount())
    return Score(
        error=error_count(reference, heard),
        marks=marks,
        questions=questions,
        by_mark=marks_by_sign(reference, heard) if item.is_punctuated else {},
        terms=terms_right(item, reference, heard),
        word_starts=start_errors(item.sentences, timed.words, language, joint=""),
        cue_starts=start_errors(item.sentences, shown.cues, language, joint="\n"),
        cues=len(shown.cues),
        violations=cue_violations(shown.cues, language, item.duration_ms),
    )


def error_count(reference: Sequence[Token], heard: Sequence[Token]) -> ErrorCount:
    """The least number of edits from one to the other (Levenshtein 1966), each of cost 1."""
    edits = Levenshtein.distance([token.text for token in reference], [token.text for token in heard])
    return ErrorCount(edits, len(reference))


def align(reference: Sequence[Token], heard: Sequence[Token]) -> tuple[int | None, ...]:
    """For each reference token the index of its counterpart (the same or a mistaken one), or None."""
    places: list[int | None] = [None] * len(reference)
    operations = Levenshtein.opcodes([token.text for token in reference], [token.text for token in heard])
    for operation in operations:
        if operation.tag in ("equal", "replace"):
            for offset in range(operation.src_end - operation.src_start):
                places[operation.src_start + offset] = operation.dest_start + offset
    return tuple(places)


def punctuation(reference: Sequence[Token], heard: Sequence[Token]) -> tuple[MarkCount, MarkCount]:
    """Marks compared by class (end of sentence, comma), and questions alone.

    A mark is right if it stands after the counterpart of the token that it follows in the reference. The
    counterpart may be a mistaken one: this judges punctuation, not hearing. ``?`` ends a sentence like ``.``
    in the first count.
    """
    pairs = [(index, place) for index, place in enumerate(align(reference, heard)) if place is not None]
    both = [(reference[index].mark, heard[place].mark) for index, place in pairs]
    right = sum(1 for wanted, given in both if wanted and _same_class(wanted, given))
    asked = sum(1 for wanted, given in both if wanted is given is Mark.QUESTION)
    return (
        MarkCount(right, sum(bool(t.mark) for t in heard), sum(bool(t.mark) for t in reference)),
        MarkCount(asked, _questions(heard), _questions(reference)),
    )


def marks_wanted(item: Item, pieces: Sequence[Timed]) -> list[Mark | None]:
    """The mark that the reference has after each piece, None for a piece that has no counterpart there."""
    reference, heard = _both(_reference(item), pieces, item.language, joint="")
    sources = {place: index for index, place in enumerate(align(reference, heard)) if place is not None}
    lasts = {token.piece: place for place, token in enumerate(heard)}
    found = (sources.get(lasts[at]) if at in lasts else None for at in range(len(pieces)))
    return [None if index is None else reference[index].mark for index in found]


def marks_by_sign(reference: Sequence[Token], heard: Sequence[Token]) -> dict[str, MarkCount]:
    """Each mark that either text has, right only where the very same one stands after the counterpart."""
    pairs = (
        (reference[index], heard[place]) for index, place in enumerate(align(reference, heard)) if place is not None
    )
    right = Counter(wanted.sign for wanted, given in pairs if wanted.sign == given.sign)
    given, expected = (Counter(token.sign for token in tokens if token.sign) for tokens in (heard, reference))
    return {sign: MarkCount(right[sign], given[sign], expected[sign]) for sign in sorted(given | expected)}


def terms_right(item: Item, reference: Sequence[Token], heard: Sequence[Token]) -> MarkCount:
    """Each term of the glossary in the reference, the longest where several overlap, and whether it is heard there.

    It is right if the counterparts of its tokens are the term, with nothing between them.
    """
    terms = [tokens for tokens in map(tuple, _term_tokens(item)) if tokens]
    texts, heard_texts = [token.text for token in reference], [token.text for token in heard]
    places = align(reference, heard)
    expected = right = at = 0
    while at < len(texts):
        found = max((term for term in terms if tuple(texts[at : at + len(term)]) == term), key=len, default=())
        if found:
            first = places[at]
            expected += 1
            right += first is not None and tuple(heard_texts[first : first + len(found)]) == found
        at += len(found) or 1
    return MarkCount(right, expected, expected)


def _term_tokens(item: Item) -> Iterator[Iterator[str]]:
    if item.glossary is None:
        return
    for term in load_glossary(item.glossary).terms:
        if term.is_spoken_in(item.language):
            yield (token.text for token in tokens_of([Timed(term.term, 0, 0)], item.language))


def start_errors(sentences: Sequence[Timed], pieces: Sequence[Timed], language: str, *, joint: str) -> StartErrors:
    """How far the start of each reference sentence is from the start of the piece that holds its first token.

    With words as ``pieces`` that is how well words are timed; with cues, how long before or after it is said
    a sentence comes on the screen. No pieces, no errors: a system without word times has no such figure.
    """
    if not pieces:
        return StartErrors()
    reference, heard = _both(sentences, pieces, language, joint=joint)
    places = align(reference, heard)
    firsts: dict[int, int] = {}
    for index, token in enumerate(reference):
        firsts.setdefault(token.piece, index)
    errors: list[int] = []
    for number, first in firsts.items():
        reach = range(first, min(first + START_REACH_TOKENS, len(reference)))
        place = next((places[i] for i in reach if places[i] is not None and reference[i].piece == number), None)
        if place is not None:
            errors.append(abs(pieces[heard[place].piece].start_ms - sentences[number].start_ms))
    return StartErrors(tuple(errors), len(firsts) - len(errors))


def cue_violations(cues: Sequence[Timed], language: str, media_end_ms: int) -> tuple[str, ...]:
    """The rule of every violation that the line's own judge finds, by the profile of the language."""
    judged = [Cue(cue.start_ms, cue.end_ms, tuple(cue.text.strip().split("\n"))) for cue in cues]
    found = check_cues(judged, profile_for(language), media_end_ms=media_end_ms)
    return tuple(violation.rule for violation in found)


def percentile(values: Sequence[int], percent: int) -> float:
    """The nearest-rank percentile: the least value that ``percent`` of all values do not exceed; nan of none.

    >>> percentile([10, 20, 30, 40], 50), percentile([10, 20, 30, 40], 90)
    (20, 40)
    """
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def _added(one: dict[str, MarkCount], other: dict[str, MarkCount]) -> dict[str, MarkCount]:
    return {sign: one.get(sign, MarkCount()) + other.get(sign, MarkCount()) for sign in sorted({*one, *other})}


def _reference(item: Item) -> Sequence[Timed]:
    return item.sentences or (Timed(item.text, 0, item.duration_ms),)


def _both(
    reference: Sequence[Timed], heard: Sequence[Timed], language: str, *, joint: str
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Tokens of both, each with the other as the context that decides how its numbers are read."""
    context = plain_text(tokens_of(heard, language, joint=joint), language)
    wanted = tokens_of(reference, language, joint="\n", context=context)
    return wanted, tokens_of(heard, language, joint=joint, context=plain_text(wanted, language))


def _same_class(wanted: Mark, given: Mark) -> bool:
    return (wanted is Mark.COMMA) == (given is Mark.COMMA) and given is not Mark.NONE


def _questions(tokens: Sequence[Token]) -> int:
    return sum(token.mark is Mark.QUESTION for token in tokens)
