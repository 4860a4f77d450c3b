"""Where a cue or a line may break, and how well: the words of a transcript glued into unbreakable atoms.

An atom is never split: a Latin word or a number, a Chinese word of jieba's dictionary, a word with the
punctuation that belongs to it. What a break before an atom costs follows the line treatment of the Netflix
Timed Text Style Guides: best after punctuation, never between an article, a preposition or a conjunction
and what it governs. Only atoms wider than a line are taken apart again, at their words.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.cue_profiles import CueProfile, base_language, half_units
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

INSIDE_CLAUSE = 14
INSIDE_ATOM = 40
BAD_EDGE = 14
PAUSE_MS = 250


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Particles that lean on the word before them, and words that lean on the word after them.
_ZH_LEANS_BACK = _words("的 了 吗 呢 吧 啊 呀 嘛 着 过 得 地 们 之 等 里 上 中 下 时 者")
_ZH_LEANS_ON = _words(
    "和 与 跟 或 及 而 在 把 被 从 对 向 给 让 为 以 用 由 于 将 比 因为 所以 但是 如果 而且 或者 "
    "不 很 更 最 就 也 都 这 那 这个 那个 这些 那些 这种 那种 一个 一种 一些 每 每个 第 某个 "
)
_EN_LEANS_ON = _words(
    "a an the of in on at to for with from by into onto over under about as than through between "
    "without within during before after against among and or but nor so yet if that because while "
    "although when where which who whose whether until unless since my your his her its our their "
    "this these those very no not i we you he she they it is are was were be am will would can could "
    "should must may might have has had do does did "
)
_DIGITS = frozenset("0123456789零〇一二三四五六七八九十百千万亿两点")
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


def atoms_of(
    sentences: Sequence[Sentence], profile_of: Callable[[str], CueProfile], media_end_ms: int
) -> tuple[Atom, ...]:
    """Glue the words of all sentences into atoms, in order.

    Times are made to run forward and to stay within the media: a word never starts before the one ahead of
    it. Blank words are dropped; a sentence without words makes no atom.
    """
    atoms: list[Atom] = []
    for sentence in sentences:
        words = _tidy(sentence.words, atoms[-1] if atoms else None, media_end_ms)
        if words:
            atoms.extend(_atoms_of_sentence(words, sentence.language, profile_of(sentence.language)))
    return tuple(atoms)


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


def _atoms_of_sentence(words: list[Word], language: str, profile: CueProfile) -> Iterator[Atom]:
    groups = _groups(words, _may_break(words, language))
    fitting = [piece for group in groups for piece in _taken_apart(group, profile)]
    before: list[Word] | None = None
    for group, is_inner in fitting:
        text = "".join(word.text for word in group)
        cost = 0 if before is None else INSIDE_ATOM if is_inner else _cost_between(before, group)
        yield Atom(text, group[0].start_ms, group[-1].end_ms, before is None, profile, cost)
        before = group


def _groups(words: list[Word], may_break: list[bool]) -> list[list[Word]]:
    groups: list[list[Word]] = []
    for word, free in zip(words, may_break, strict=True):
        if free or not groups:
            groups.append([word])
        else:
            groups[-1].append(word)
    return groups


def _taken_apart(group: list[Word], profile: CueProfile) -> list[tuple[list[Word], bool]]:
    width = half_units("".join(word.text for word in group).strip(), profile)
    if width <= 2 * profile.max_units_per_line:
        return [(group, False)]
    return [([word], index > 0) for index, word in enumerate(group)]


def _may_break(words: list[Word], language: str) -> list[bool]:
    """Say for each word whether a break before it is allowed at all."""
    text = "".join(word.text for word in words)
    boundaries = _dictionary_boundaries(text, language)
    allowed, offset = [], 0
    for index, word in enumerate(words):
        before = words[index - 1].text[-1] if index else ""
        allowed.append(index > 0 and _is_free(before, word.text, offset, boundaries))
        offset += len(word.text)
    return allowed


def _dictionary_boundaries(text: str, language: str) -> frozenset[int] | None:
    """Return the offsets between jieba's words, or None where its dictionary does not know the language."""
    if base_language(language) in {"ja", "jpn", "ko", "kor"} or not _HAN.search(text):
        return None
    return frozenset(start for _, start, _ in _tokenizer().tokenize(text))


@cache
def _tokenizer() -> Any:
    # jieba chatters on its own logger and imports the deprecated pkg_resources where setuptools is installed.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba

        logger = jieba.default_logger
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            jieba.dt.initialize()
        finally:
            logger.setLevel(level)
    return jieba.dt


def _is_free(before: str, text: str, offset: int, boundaries: frozenset[int] | None) -> bool:
    first = text.lstrip()[0]
    if before in OPENERS or first in CLOSERS:
        return False
    if text[0] == " ":
        return True
    if before in _DIGITS and first in _DIGITS:
        return False
    if not (_is_wide(before) or _is_wide(first)):
        return False
    return offset in boundaries if boundaries is not None else _script(before) != _script(first)


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
    left = "".join(word.text for word in before).strip()
    right = "".join(word.text for word in after).strip()
    pause_ms = after[0].start_ms - before[-1].end_ms
    bonus = min(8, pause_ms // 125) if pause_ms >= PAUSE_MS else 0
    return max(0, _mark_cost(left[-1]) - bonus) + (BAD_EDGE if _is_bad_edge(left, right) else 0)


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
    if left.lower() in _EN_LEANS_ON or left in _ZH_LEANS_ON:
        return True
    bare = right.rstrip("".join(CLOSERS))
    return bare in _ZH_LEANS_BACK or (left[-1] in _DIGITS and _HAN.match(right) is not None)
