"""Script, second half: the finished words in the script of the course, with the words of its region where wanted.

Everything was simplified first (``script``), so a lecture never flips between scripts. A term of the course stands as
its glossary writes it: its characters may change, its words never do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from rapidfuzz.distance import Levenshtein

from pipeline.postprocess.rewriting import Edit, joined, rewrite
from pipeline.postprocess.script import WORKING_SCRIPT, chunks, converter_of
from pipeline.postprocess.term_spans import TermSpotter, spotter
from pipeline.postprocess.terms import Glossary, Term
from pipeline.postprocess.text import split_at
from pipeline.values import Replacement, Word

_CHARACTERS = {"s2t": "s2t", "s2tw": "s2tw", "s2twp": "s2tw", "s2hk": "s2hk", "s2hkp": "s2hk"}
"""The conversion of single characters that a traditional script begins with; each keeps their number."""
_WORDS = {"s2twp": ("s2twp",), "s2hkp": ("s2hkp",), "tw2sp": ("s2tw", "tw2sp"), "hk2sp": ("s2hk", "hk2sp")}
"""The conversions, from the working form, that also change words."""
JOINING_CHARACTERS = 2
"""What only adds or only drops characters is one change with what it stands so near to."""


def write_script(words: Sequence[Word], language: str, script: str, glossary: Glossary) -> tuple[Word, ...]:
    """The words in ``script`` (one of ``script.SCRIPTS``), from the working form; other languages pass as they are.

    Each word keeps its time; words that a longer or shorter word of the region replaces become one.

    >>> words = [Word(character, 0, 0, 1.0) for character in "用内存"]
    >>> [word.text for word in write_script(words, "zh", "s2twp", Glossary.empty())]
    ['用', '記憶體']
    """
    if language != "zh" or (script not in _CHARACTERS and script not in _WORDS):
        return tuple(words)
    shown = shown_terms(glossary, script)
    terms = spotter(shown)
    written: list[Word] = []
    position = 0
    for chunk in chunks([word.text for word in words]):
        written.extend(_written(words[position : position + len(chunk)], script, shown, terms))
        position += len(chunk)
    return tuple(written)


def _written(words: Sequence[Word], script: str, shown: Mapping[str, str], terms: TermSpotter) -> tuple[Word, ...]:
    working = joined(words)
    base = _in_characters(working, script)
    spans = terms.spans(working)
    characters = list(base)
    edits: list[Edit] = []
    for start, end, text in _changed_words(working, base, script):
        if any(start < last and first < end for first, last in spans):
            continue
        if len(text) == end - start:
            characters[start:end] = text
        else:
            edits.append(Edit(start, end, text, ""))
    for start, end in spans:
        characters[start:end] = shown[working[start:end]]
    texts = split_at("".join(characters), [len(word.text) for word in words])
    in_script = [
        word if word.text == text else replace(word, text=text) for word, text in zip(words, texts, strict=True)
    ]
    return rewrite(in_script, edits)[0]


def _changed_words(working: str, base: str, script: str) -> Iterator[tuple[int, int, str]]:
    """The spans of ``base`` that the region says in other words, none of them empty, with those words."""
    converted = working
    for name in _WORDS.get(script, ()):
        converted = converter_of(name).convert(converted)
    if converted == base or script not in _WORDS:
        return
    blocks: list[list[int]] = []
    for step in Levenshtein.opcodes(base, converted):
        if step.tag == "equal":
            continue
        gap = step.src_start - blocks[-1][1] if blocks else JOINING_CHARACTERS + 1
        if gap == 0 or (gap <= JOINING_CHARACTERS and _is_one_sided(blocks[-1])):
            blocks[-1][1], blocks[-1][3] = step.src_end, step.dest_end
        else:
            blocks.append([step.src_start, step.src_end, step.dest_start, step.dest_end])
    for start, end, new_start, new_end in blocks:
        if start < end and new_start < new_end:
            yield start, end, converted[new_start:new_end]
        else:  # with the character before it, or the one behind it at the start of a text
            before = 1 if start else 0
            yield start - before, end + 1 - before, converted[new_start - before : new_end + 1 - before]


def _is_one_sided(block: Sequence[int]) -> bool:
    start, end, new_start, new_end = block
    return start == end or new_start == new_end


def folded(glossary: Glossary) -> Glossary:
    """The glossary in the working form, in which the steps compare it with the text."""
    return _folded(glossary)


@lru_cache(maxsize=16)
def _folded(glossary: Glossary) -> Glossary:
    return Glossary(tuple(_folded_term(term) if term.is_spoken_in("zh") else term for term in glossary.terms))


def _folded_term(term: Term) -> Term:
    convert = converter_of(WORKING_SCRIPT).convert
    return replace(term, term=convert(term.term), aliases=tuple(map(convert, term.aliases)))


@lru_cache(maxsize=64)
def shown_terms(glossary: Glossary, script: str) -> Mapping[str, str]:
    """Each Chinese term in the working form, and as it is shown in ``script``.

    A term that its editor wrote in traditional characters is shown as it is written where those are asked for.
    """
    shown = {}
    for term in glossary.terms:
        if term.is_spoken_in("zh"):
            working = converter_of(WORKING_SCRIPT).convert(term.term)
            is_traditional = script in _CHARACTERS and working != term.term and len(working) == len(term.term)
            shown[working] = term.term if is_traditional else _in_characters(working, script)
    return shown


def terms_as_shown(glossary: Glossary, script: str) -> tuple[str, ...]:
    """The terms as they stand in the finished text."""
    written = [term.term for term in glossary.terms if script == "none" or not term.is_spoken_in("zh")]
    return (*written, *(shown_terms(glossary, script).values() if script != "none" else ()))


def write_replacement(replacement: Replacement, language: str, script: str, glossary: Glossary) -> Replacement:
    """A replacement as the text beside it is written."""
    if language != "zh" or script not in _CHARACTERS:
        return replacement
    after = shown_terms(glossary, script).get(replacement.after) or _in_characters(replacement.after, script)
    return replace(replacement, before=_in_characters(replacement.before, script), after=after)


def _in_characters(text: str, script: str) -> str:
    """The text in the characters of a traditional script; as it is, where one would change their number."""
    converted = str(converter_of(_CHARACTERS[script]).convert(text)) if script in _CHARACTERS else text
    return converted if len(converted) == len(text) else text
