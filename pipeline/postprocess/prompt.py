"""What Whisper is told before it listens: a whole, punctuated sentence that holds terms of the course.

Measured: such a sentence lowers the error and keeps the punctuation; terms joined by spaces destroy it. Slices are
sent to the engine before earlier ones are heard, so of what a lecture is about only its title is known: where not all
terms find room, those that the title names come first, then their neighbours in the course's graph.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.postprocess.relations import relations
from pipeline.postprocess.term_spans import spotter
from pipeline.postprocess.terms import Glossary, Term
from pipeline.postprocess.text import HAN, is_han

TERMS_IN_SENTENCE = 6
TOKENS_PER_HAN, TOKENS_PER_OTHER = 1.43, 0.4
"""Whisper's multilingual tokenizer makes 1.34 to 1.42 of a Mandarin character or mark, 0.3 of an English letter."""

_HAN_OR_MARK = re.compile(rf"{HAN}|[\u3000-\u303f\uff00-\uffef]")
_RUN = re.compile(rf"{HAN}{{2,}}|[a-z]{{3,}}")
_GENERIC = {
    "zh": "大家好，今天我们开始上课。那么，我们先来看一个问题：",
    "en": "Good morning. In this university lecture on mathematics and physics, we study theorems, matrices, energy, "
    "and momentum.",
}


def prompt_sentence(glossary: Glossary, language: str, max_tokens: int, title: str = "") -> str:
    """Sentences in ``language`` (``zh`` or ``en``) with as many whole terms as fit, those of the ``title`` first.

    Without a term, a sentence as a lecturer would begin with; empty where that is too long, too, or the
    language is another one. At most ``max_tokens`` tokens of Whisper's long.

    >>> from pipeline.postprocess.terms import Term
    >>> prompt_sentence(Glossary((Term("斜边"), Term("勾股定理"))), "zh", 40)
    '本节课讲斜边和勾股定理。'
    >>> prompt_sentence(Glossary((Term("抛物线"), Term("斜边"), Term("直角边"))), "zh", 18, title="第三课 斜边")
    '本节课讲斜边和直角边。'
    >>> prompt_sentence(Glossary((Term("rank"), Term("basis"), Term("span"))), "en", 80)
    'In this lecture we cover rank, basis, and span.'
    """
    if language not in _GENERIC:
        return ""
    terms = [term for term in glossary.terms if term.is_spoken_in(language)]
    chosen: list[str] = []
    for term in _by_relevance(terms, title):
        if tokens_at_most(_sentences([*chosen, term], language)) <= max_tokens:
            chosen.append(term)
    sentence = _sentences(chosen, language) if chosen else _GENERIC[language]
    return sentence if tokens_at_most(sentence) <= max_tokens else ""


def tokens_at_most(text: str) -> float:
    """More tokens than Whisper's tokenizer makes of a sentence, which is not at hand where prompts are made.

    >>> tokens_at_most("机械能守恒定律、勾股定理和直角三角形。") >= 27
    True
    """
    wide = len(_HAN_OR_MARK.findall(text))
    return TOKENS_PER_HAN * wide + TOKENS_PER_OTHER * (len(text) - wide)


def _by_relevance(terms: Sequence[Term], title: str) -> list[str]:
    """The terms in the glossary's order, but first those in the title, then what shares a part with it or is tied to
    them, the nearest first.
    """
    names = list(dict.fromkeys(term.term for term in terms))
    named = dict.fromkeys(title[start:end] for start, end in spotter(names).spans(title))
    parts = _parts(title)
    if not parts:
        return names
    graph = relations(terms)
    near = {name: len(parts & _parts(name)) + sum(graph.step(one, name) for one in named) for name in names}
    return sorted(names, key=lambda name: (name not in named, -near[name]))


def _parts(text: str) -> set[str]:
    """Pairs of Chinese characters, and words of other scripts."""
    runs = _RUN.findall(text.casefold())
    return {run[at : at + 2] if is_han(run[0]) else run for run in runs for at in range(max(1, len(run) - 1))}


def _sentences(terms: Sequence[str], language: str) -> str:
    groups = [terms[at : at + TERMS_IN_SENTENCE] for at in range(0, len(terms), TERMS_IN_SENTENCE)]
    if language == "zh":
        return "".join(
            ("接着讲" if at else "本节课讲") + _chinese_list(group) + "。" for at, group in enumerate(groups)
        )
    openings = ("Then we turn to", "In this lecture we cover")
    return " ".join(f"{openings[at == 0]} {_english_list(group)}." for at, group in enumerate(groups))


def _chinese_list(terms: Sequence[str]) -> str:
    return "和".join(part for part in ("、".join(terms[:-1]), terms[-1]) if part)


def _english_list(terms: Sequence[str]) -> str:
    if len(terms) < 3:
        return " and ".join(terms)
    return f"{', '.join(terms[:-1])}, and {terms[-1]}"
