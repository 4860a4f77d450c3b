"""Where a stretch of Chinese sounds like a term, exactly or nearly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipeline.postprocess.chinese_claims import RULES, Hit
from pipeline.postprocess.chinese_index import ONE_SYLLABLE_MIN_CHARACTERS, ChineseIndex, SoundTerm
from pipeline.postprocess.sound import by_character, in_context, is_alike, near
from pipeline.postprocess.stretches import Stretch, allows_breaks


def heard(stretch: Stretch, index: ChineseIndex) -> list[Hit]:
    """The strings that sound like a term and are written otherwise, longest first, then the surest rule.

    A string that is equally near to two terms is none.
    """
    pieces = (in_context(piece) for _, piece in stretch.pieces())
    readings = {tuple(syllable for piece in pieces for syllable in piece), by_character(stretch.text)}
    return _unambiguous({hit for reading in readings for hit in _near_sound(stretch, index, reading)})


def _near_sound(stretch: Stretch, index: ChineseIndex, reading: tuple[str, ...]) -> Iterator[Hit]:
    folded = tuple(near(syllable) for syllable in reading)
    for start in range(len(folded) - 1):
        pair = folded[start : start + 2]
        found = [(start, sound) for sound in index.sounds.get(pair, ())]
        found += [(start + 2 - len(sound.term), sound) for sound in index.tails.get(pair, ())]
        for begin, sound in found:
            end = begin + len(sound.term)
            if begin < 0 or end > len(folded) or stretch.text[begin:end] == sound.term:
                continue
            rule = _rule(reading[begin:end], folded[begin:end], sound)
            if rule and allows_breaks(stretch, begin, end, rule):
                yield Hit(begin, end, sound.term, rule)


def _rule(reading: Sequence[str], folded: Sequence[str], sound: SoundTerm) -> str:
    """How near they sound; empty where they do not."""
    if reading == sound.syllables:
        return "homophone"
    if folded == sound.near_syllables:
        return "near-homophone"
    return "one-syllable" if _differs_in_one(reading, sound) else ""


def _differs_in_one(reading: Sequence[str], sound: SoundTerm) -> bool:
    """All syllables but one are the very same, and that one is like the term's: 动量 is not heard for 动能."""
    if len(reading) < ONE_SYLLABLE_MIN_CHARACTERS:
        return False
    differing = [pair for pair in zip(reading, sound.syllables, strict=True) if pair[0] != pair[1]]
    return len(differing) == 1 and is_alike(near(differing[0][0]), near(differing[0][1]))


def _unambiguous(hits: Iterable[Hit]) -> list[Hit]:
    best: dict[tuple[int, int], list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (hit.start - hit.end, RULES.index(hit.rule), hit.start, hit.term)):
        found = best.setdefault((hit.start, hit.end), [])
        if not found or found[0].rule == hit.rule:
            found.append(hit)
    return [found[0] for found in best.values() if len(found) == 1]
