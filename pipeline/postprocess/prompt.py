"""What Whisper is told before it listens: a whole, punctuated sentence that holds the terms of the course.

Measured: such a sentence lowers the error and keeps the punctuation; terms joined by spaces destroy it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.postprocess.terms import Glossary

TERMS_IN_SENTENCE = 6

_GENERIC = {
    "zh": "大家好，今天我们开始上课。那么，我们先来看一个问题：",
    "en": "Good morning. In this university lecture on mathematics and physics, we study theorems, matrices, energy, "
    "and momentum.",
}


def prompt_sentence(glossary: Glossary, language: str, max_characters: int) -> str:
    """Sentences in ``language`` (``zh`` or ``en``) with as many whole terms, in the glossary's order, as fit.

    Without a term, a sentence as a lecturer would begin with; empty where that is too long, too, or the
    language is another one. At most ``max_characters`` long.

    >>> from pipeline.postprocess.terms import Term
    >>> prompt_sentence(Glossary((Term("斜边"), Term("勾股定理"))), "zh", 40)
    '本节课讲斜边和勾股定理。'
    >>> prompt_sentence(Glossary((Term("rank"), Term("basis"), Term("span"))), "en", 80)
    'In this lecture we cover rank, basis, and span.'
    """
    if language not in _GENERIC:
        return ""
    chosen: list[str] = []
    for term in (term.term for term in glossary.terms if term.is_spoken_in(language)):
        if len(_sentences([*chosen, term], language)) <= max_characters:
            chosen.append(term)
    sentence = _sentences(chosen, language) if chosen else _GENERIC[language]
    return sentence if len(sentence) <= max_characters else ""


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
