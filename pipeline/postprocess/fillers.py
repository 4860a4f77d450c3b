"""Fillers and stutters taken out of the text, never anything that carries meaning; only where it is asked for.

What goes: sounds of hesitation (嗯, 呃, um, uh); 那个, 这个 and ``you know`` where they are a clause of
their own inside a sentence; a function word that is said again at once (我我我们, the the). What stays: an
answer (嗯 after a question, or as all of a sentence), repeated verbs and adjectives (看看, very very), and
repetitions that grammar makes (is is, that that). The stored slice transcripts keep every word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pipeline.postprocess.lexicon import load_lexicon
from pipeline.postprocess.rewriting import Edit, joined, rewrite, without_overlaps
from pipeline.postprocess.term_spans import TermSpotter
from pipeline.values import Replacement, Word

STYLES = ("verbatim", "clean")

FILLER, REPEAT = "filler", "repeat"
CLAUSE_PAUSE_MS = 250
"""A pause from here on parts clauses as a comma does; the same as in ``punctuation``."""

_COMMA, _END = "，,、…", "。？！.?!"
_CHINESE_SOUND = re.compile("(?:[嗯唔]|呃(?!逆))+|(?<![\u4e00-\u9fff])[额啊诶欸哎]+(?![\u4e00-\u9fff])")
_CHINESE_CLAUSE = re.compile("那个|这个")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CHINESE_REPEATED = _listed(
    "我 你 他 她 它 我们 你们 他们 她们 它们 咱们 这 那 这个 那个 这些 那些 这样 那样 就 就是 在 和 跟 把 被 "
    "从 对 对于 关于 因为 所以 如果 但是 然后 其实 或者 而且 以及 那么 比如 比如说 可以 需要 首先"
)
_ENGLISH_SOUND = re.compile(r"(?<!-)\b(?:u+[mh]+m*|uhm+|e+rm*|e+r{3,}m*|hmm+)\b(?!-\w| (?:huh|oh)\b)-?", re.IGNORECASE)
"""Not: uh-huh, uh-oh, to err."""
_ENGLISH_CLAUSE = re.compile(r"\byou know\b", re.IGNORECASE)
_ENGLISH_REPEATED = _listed(
    "the a an i we he she they my your our their this these those of to at for with from and but or if because when "
    "i'm we're they're it's there's let's"
)
_ENGLISH_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?-?")
_GAP = re.compile(r"[\s，,、…]*")


def drop_fillers(
    words: Sequence[Word], language: str, terms: TermSpotter
) -> tuple[tuple[Word, ...], tuple[Replacement, ...]]:
    """The words of a run in ``zh`` or ``en`` without fillers and stutters, and each of those; others pass as they are.

    The words that stay keep their times. A mark that ends a sentence stays, too, with the word before.
    """
    find = {"zh": _chinese, "en": _english}.get(language)
    if find is None or not words:
        return tuple(words), ()
    text = joined(words)
    pauses = _pauses(words)
    protected = terms.spans(text)
    found = without_overlaps(list(find(text, pauses.__contains__)))
    edits = [edit for edit in found if not any(edit.start < last and first < edit.end for first, last in protected)]
    kept, replacements = rewrite(words, _with_neighbours(text, edits))
    return kept, tuple(one for one in replacements if one.rule)


def _pauses(words: Sequence[Word]) -> frozenset[int]:
    """The places in the joined text where a pause lies."""
    places, at = {0}, 0
    for index, word in enumerate(words):
        if index and word.start_ms - words[index - 1].end_ms >= CLAUSE_PAUSE_MS:
            places.add(at)
        at += len(word.text)
    return frozenset(places | {at})


def _chinese(text: str, is_pause: Callable[[int], bool]) -> Iterator[Edit]:
    for found in _CHINESE_SOUND.finditer(text):
        if not _is_answer(text, *found.span()):
            yield Edit(*found.span(), "", FILLER)
    yield from _clauses(_CHINESE_CLAUSE, text, is_pause)
    if any(word * 2 in text or re.search(f"{word}[，、]{word}", text) for word in _CHINESE_REPEATED):
        yield from _repeats(_chinese_words(text), text, _CHINESE_REPEATED)


def _english(text: str, is_pause: Callable[[int], bool]) -> Iterator[Edit]:
    for found in _ENGLISH_SOUND.finditer(text):
        if not found.group().isupper() and not _is_answer(text, *found.span()):
            yield Edit(*found.span(), "", FILLER)
    yield from _clauses(_ENGLISH_CLAUSE, text, is_pause)
    yield from _repeats([found.span() for found in _ENGLISH_WORD.finditer(text)], text, _ENGLISH_REPEATED)


def _is_answer(text: str, start: int, end: int) -> bool:
    """Whether it is all of a sentence, or what answers a question."""
    before, after = text[:start].rstrip()[-1:], text[end:].lstrip()[:1]
    return before in ("？", "?") or ((not before or before in _END) and (not after or after in _END))


def _clauses(pattern: re.Pattern[str], text: str, is_pause: Callable[[int], bool]) -> Iterator[Edit]:
    """What stands between two marks or pauses, not at the end of its sentence."""
    for found in pattern.finditer(text):
        start, end = found.span()
        spaced = len(text[:start].rstrip())
        before, after = text[spaced - 1 : spaced] if spaced else "", text[end : end + 1]
        opens = is_pause(start) or is_pause(spaced) or before in _COMMA + _END
        goes_on = bool(text[end:].strip(" " + _COMMA)) and after not in _END
        if opens and goes_on and before not in ("？", "?") and ((after and after in _COMMA) or is_pause(end)):
            yield Edit(start, end, "", FILLER)


def _chinese_words(text: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for word in load_lexicon().cut(text):
        spans.append((at, at + len(word)))
        at += len(word)
    return [span for span in spans if text[span[0]].isalnum()]


def _repeats(spans: Sequence[tuple[int, int]], text: str, repeated: frozenset[str]) -> Iterator[Edit]:
    """A function word before itself, or before a longer one that begins with it; the last one stays."""
    for index in range(len(spans) - 1):
        (start, end), (next_start, next_end) = spans[index], spans[index + 1]
        word, following = text[start:end].lower(), text[next_start:next_end].lower()
        is_broken_off = word.endswith("-") and len(word) > 1 and following.startswith(word[:-1])
        is_again = (
            word in repeated
            and not _is_symbol(text[start:end], text[next_start:next_end])
            and (following == word or (following in repeated and _grows(word, following)))
        )
        gap = _GAP.match(text, end)
        if (is_broken_off or is_again) and gap and gap.end() == next_start:
            yield Edit(start, end, "", REPEAT)


def _is_symbol(word: str, following: str) -> bool:
    """A A transpose, an OR or a NOT."""
    return (following.isupper() and following != "I") or (len(word) > 1 and word.isupper())


def _grows(word: str, following: str) -> bool:
    return not word.isascii() and following.startswith(word)


def _with_neighbours(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """The edits with the marks that go with them, and what the words beside them inherit (edits without a rule)."""
    widened: list[Edit] = []
    for edit in edits:
        end = edit.end + len(text[edit.end :]) - len(text[edit.end :].lstrip(_COMMA))
        is_end = text[end : end + 1] != "" and text[end] in _END
        widened.append(Edit(edit.start, end + is_end, "", edit.rule))
        if is_end:
            widened.extend(_inherited_mark(text, edit.start, text[end]))
        heir = re.match(r"\s*[a-z](?![A-Z])", text[end + is_end :])  # not iPhone, pH
        if text[edit.start].isupper() and heir:
            at = end + is_end + heir.end()
            widened.append(Edit(at - 1, at, text[at - 1].upper(), ""))
    return without_overlaps(widened)


def _inherited_mark(text: str, start: int, mark: str) -> Iterator[Edit]:
    """The mark that ended the sentence goes to the word before, in place of its comma."""
    before = text[:start].rstrip()
    if before and before[-1] not in _END:
        kept = "" if before[-1] in _COMMA else before[-1]
        yield Edit(len(before) - 1, len(before), kept + mark, "")
