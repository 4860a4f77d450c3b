"""How Chinese characters sound: toneless pinyin, and the same with the sounds folded that are often
confused.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz.distance import Levenshtein

from pipeline.postprocess.text import HAN, is_han

NEAR_INITIALS = (("zh", "z"), ("ch", "c"), ("sh", "s"), ("n", "l"))
NEAR_FINALS = (("ing", "in"), ("eng", "en"), ("ang", "an"))
_HUSHED = "fa=hua fan=huan fang=huan fei=hui fen=hun feng=hun fo=huo fu=hu"
NEAR_SYLLABLES = dict(pair.split("=") for pair in _HUSHED.split())
"""f and h are confused with the h- syllable that has a rounded vowel (fan and huan, not fan and han)."""

ASPIRATED = ("bp", "dt", "gk", "jq", "zc")
"""Initials of folded syllables that differ in the breath behind them only."""

_RUN = re.compile(f"{HAN}+|(?:(?!{HAN}).)+", re.DOTALL)


@lru_cache(maxsize=4096)
def near(syllable: str) -> str:
    """A syllable with what is often confused folded together: z/zh, c/ch, s/sh, n/l, f/h, in/ing, en/eng,
    an/ang.

    >>> near("zheng") == near("zen"), near("ning") == near("lin"), near("fang") == near("huang")
    (True, True, True)
    >>> near("ding") == near("dang")
    False
    """
    if syllable in NEAR_SYLLABLES:
        return NEAR_SYLLABLES[syllable]
    for initial, folded in NEAR_INITIALS:
        if syllable.startswith(initial) and len(syllable) > len(initial):
            syllable = folded + syllable[len(initial) :]
            break
    for final, folded in NEAR_FINALS:
        if syllable.endswith(final):
            return syllable[: -len(final)] + folded
    return syllable


@lru_cache(maxsize=65_536)
def is_alike(one: str, other: str) -> bool:
    """Whether two folded syllables can be taken for each other.

    Either the finals are one, and the initials differ in their breath only; or the initials are one, and the finals
    share a sound.

    >>> is_alike("li", "lie"), is_alike("hen", "han"), is_alike("ba", "pa"), is_alike("can", "han")
    (True, True, True, False)
    """
    (initial, final), (other_initial, other_final) = _parts(one), _parts(other)
    if final == other_final:
        return any(initial in pair and other_initial in pair for pair in ASPIRATED)
    is_near = Levenshtein.distance(final, other_final, score_cutoff=1) == 1
    return initial == other_initial and is_near and bool(set(final) & set(other_final))


def _parts(syllable: str) -> tuple[str, str]:
    """Initial and final of a folded syllable; y and w count as initials."""
    bare = syllable.lstrip("bpmfdtnlgkhjqxzcsrwy")
    return syllable[: len(syllable) - len(bare)], bare


def in_context(text: str) -> tuple[str, ...]:
    """One toneless syllable a character, with the readings that the phrases of ``text`` ask for.

    A character that is no Chinese one sounds like itself, in lower case.

    >>> in_context("银行X")
    ('yin', 'hang', 'x')
    """
    parts = (_run_in_context(run) if is_han(run[0]) else list(run.lower()) for run in _RUN.findall(text))
    syllables = tuple(syllable for part in parts for syllable in part)
    return syllables if len(syllables) == len(text) else by_character(text)


def by_character(text: str) -> tuple[str, ...]:
    """One toneless syllable a character, each in its commonest reading: a misheard string is no phrase.

    >>> by_character("银行")
    ('yin', 'xing')
    """
    return tuple(_reading(char) for char in text)


def _run_in_context(run: str) -> list[str]:
    """What ``lazy_pinyin(run)`` says; a phrase has one reading, which is looked up once."""
    from pypinyin.seg.mmseg import seg

    return [syllable for phrase in seg.cut(run) for syllable in _phrase(phrase)]


@lru_cache(maxsize=65_536)
def _phrase(phrase: str) -> tuple[str, ...]:
    from pypinyin import lazy_pinyin

    return tuple(lazy_pinyin([phrase]))


@lru_cache(maxsize=65_536)
def _reading(char: str) -> str:
    return _phrase(char)[0] if is_han(char) else char.lower()


@lru_cache(maxsize=65_536)
def tones(char: str) -> frozenset[str]:
    """The tones that a character is read in, ``1`` to ``5``; of one that is no Chinese character, itself.

    >>> sorted(tones("行")), tones("x")
    (['2', '4'], frozenset({'x'}))
    """
    if not is_han(char):
        return frozenset(char)
    from pypinyin import Style, pinyin

    readings = pinyin(char, style=Style.TONE3, heteronym=True, neutral_tone_with_five=True)[0]
    return frozenset(reading[-1] for reading in readings)


@lru_cache(maxsize=65_536)
def has_tones_of(word: str, term: str) -> bool:
    """Whether two words of as many characters, each read as the word that it is, differ in no tone where they are
    written with other characters; a neutral tone is like any.

    >>> has_tones_of("鞋面", "斜面"), has_tones_of("倒数", "导数"), has_tones_of("奇数", "级数")
    (True, False, False)
    """
    from pypinyin import Style, lazy_pinyin

    spoken, meant = (lazy_pinyin(text, style=Style.TONE3, neutral_tone_with_five=True) for text in (word, term))
    pairs = zip(word, term, spoken, meant, strict=True)
    return all(char == own or one[-1] == other[-1] or "5" in one + other for char, own, one, other in pairs)
