"""Homophones: words of the dictionary that were heard as other characters of the same sound (Chinese).

A word that Whisper does not know well comes out as characters that sound like it: 光核作用 for 光合作用. Where the
heard characters are no word and one of the dictionary has their sound, that one is written, if two things together
speak for it: how much likelier it makes the text (in nats, of words drawn at random with their frequencies), and how
unsure Whisper was of the characters that change. Neither knows the subject, so the bar is high; the course's own terms,
which come before, know it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pipeline.postprocess.lexicon import Lexicon, load_lexicon
from pipeline.postprocess.stretches import Stretch, stretches
from pipeline.values import Replacement, Word

LONGEST_CHARACTERS = 8
MIN_FREQUENCY = 3
"""Rarer entries of the dictionary are misprints as often as words."""
_AROUND_CHARACTERS = 6
"""How far the words around are weighed again: a new word may take a character from its neighbours."""
_SUREST = 0.97
"""Characters that come out right have this probability on average; one says no more for being surer."""
_NAME_CHARACTERS = 3
_NAME_HANDICAP_NATS = 10.0
_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟"
    "熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
"""The hundred commonest: a name is no word, and sounds like one of the dictionary's names."""


@dataclass(frozen=True, slots=True)
class Sounds:
    """The words of the dictionary by their sound."""

    rule: str
    bar_nats: float
    """What speaks for a word must be more than this. Measured on clean text (bench/false_replacements.py)."""
    shortest_characters: int
    table: Mapping[int, str] = field(repr=False)
    """For each character's code one that stands for its syllable."""
    words: Mapping[str, tuple[str, ...]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Hit:
    """Characters ``[start, end)`` of a stretch that are heard as ``word``."""

    start: int
    end: int
    word: str
    rule: str
    over_nats: float
    """How far above the bar."""


def correct_homophones(
    words: Sequence[Word], protected: frozenset[int]
) -> tuple[tuple[Word, ...], tuple[Replacement, ...]]:
    """The words of a Chinese run with such words written right, each character in its place, and what was changed.

    ``protected``: the indices of words that stay.
    """
    grid = [list(word.text) for word in words]
    replacements = []
    for stretch in stretches(words):
        for hit in _best(_hits(words, stretch, protected)):
            places = stretch.places[hit.start : hit.end]
            for (word, char), letter in zip(places, hit.word, strict=True):
                grid[word][char] = letter
            replacements.append(_replacement(words, stretch, hit))
    changed = (
        word if word.text == text else replace(word, text=text)
        for word, text in zip(words, map("".join, grid), strict=True)
    )
    return tuple(changed), tuple(replacements)


def _hits(words: Sequence[Word], stretch: Stretch, protected: frozenset[int]) -> Iterator[_Hit]:
    for sounds in load_sounds():
        syllables = stretch.text.translate(sounds.table)
        for start, end, word in _candidates(stretch, syllables, sounds):
            changed = [at for at in range(start, end) if stretch.text[at] != word[at - start]]
            if protected.isdisjoint(stretch.places[at][0] for at in range(start, end)):
                surest = min(words[stretch.places[at][0]].probability for at in changed)
                over = _gain_nats(stretch.text, start, word) + _doubt_nats(surest) - sounds.bar_nats
                if over > _handicap_nats(stretch.text[start:end], word):
                    yield _Hit(start, end, word, sounds.rule, over)


def _candidates(stretch: Stretch, syllables: str, sounds: Sounds) -> Iterator[tuple[int, int, str]]:
    """The words that sound like what is no word itself, between marks."""
    lexicon, shortest = load_lexicon(), sounds.shortest_characters
    for first, piece in stretch.pieces():
        last = first + len(piece)
        for start in range(first, last - shortest + 1):
            for end in range(start + shortest, min(last, start + LONGEST_CHARACTERS) + 1):
                found = sounds.words.get(syllables[start:end])
                if found and not lexicon.is_word(stretch.text[start:end]):
                    yield from ((start, end, word) for word in found)


def _gain_nats(text: str, start: int, word: str) -> float:
    """How much likelier the text around is with ``word`` at ``start``."""
    lexicon, end = load_lexicon(), start + len(word)
    before, after = text[max(0, start - _AROUND_CHARACTERS) : start], text[end : end + _AROUND_CHARACTERS]
    heard, written = (before + middle + after for middle in (text[start:end], word))
    return lexicon.log_probability(lexicon.cut(written)) - lexicon.log_probability(lexicon.cut(heard))


def _doubt_nats(probability: float) -> float:
    """The odds that a character is wrong."""
    sure = min(max(probability, 1 - _SUREST), _SUREST)
    return math.log((1 - sure) / sure)


def _handicap_nats(heard: str, word: str) -> float:
    """More must speak against what may be somebody's name."""
    is_name = len(heard) == _NAME_CHARACTERS and heard[0] == word[0] and heard[0] in _SURNAMES
    return _NAME_HANDICAP_NATS if is_name else 0.0


def _best(hits: Iterable[_Hit]) -> list[_Hit]:
    """Of hits that overlap the likeliest; in order."""
    kept: list[_Hit] = []
    for hit in sorted(hits, key=lambda one: (-one.over_nats, one.start)):
        if all(hit.end <= other.start or other.end <= hit.start for other in kept):
            kept.append(hit)
    return sorted(kept, key=lambda one: one.start)


def _replacement(words: Sequence[Word], stretch: Stretch, hit: _Hit) -> Replacement:
    first, last = words[stretch.places[hit.start][0]], words[stretch.places[hit.end - 1][0]]
    score = round(1 / (1 + math.exp(-hit.over_nats)), 3)
    before = stretch.text[hit.start : hit.end]
    return Replacement(first.start_ms, last.end_ms, before, hit.word, hit.rule, score)


@lru_cache(maxsize=1)
def load_sounds() -> tuple[Sounds, Sounds]:
    """The dictionary by sound with tones, words of 3 characters and more, and without, of 4 and more.

    In about half a second and 40 MB. A character sounds as it does alone: in a word heard wrong there is no context.
    """
    lexicon = load_lexicon()
    return (
        _sounds(lexicon, "word-same-tones", 7.5, shortest=3, fold=str),
        _sounds(lexicon, "word-other-tones", 12.0, shortest=4, fold=_toneless),
    )


def _sounds(lexicon: Lexicon, rule: str, bar_nats: float, *, shortest: int, fold: Callable[[str], str]) -> Sounds:
    from pypinyin.constants import PINYIN_DICT

    signs: dict[str, str] = {}
    table = {
        code: signs.setdefault(fold(readings.partition(",")[0]), chr(0xF0000 + len(signs)))
        for code, readings in PINYIN_DICT.items()
    }
    words = [
        word
        for word, frequency in lexicon.frequencies.items()
        if frequency >= MIN_FREQUENCY and shortest <= len(word) <= LONGEST_CHARACTERS
    ]
    grouped: dict[str, tuple[str, ...]] = {}
    for key, word in zip("\n".join(words).translate(table).split("\n"), words, strict=True):
        grouped[key] = (*grouped.get(key, ()), word)
    return Sounds(rule, bar_nats, shortest, table, grouped)


def _toneless(syllable: str) -> str:
    """A syllable without its tone; ü keeps its dots.

    >>> _toneless("lǜ"), _toneless("hé")
    ('lü', 'he')
    """
    apart = unicodedata.normalize("NFD", syllable)
    bare = "".join(char for char in apart if not unicodedata.combining(char) or char == "\u0308")
    return unicodedata.normalize("NFC", bare)
