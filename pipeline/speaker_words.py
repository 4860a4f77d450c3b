"""Step 6, speakers on words: each word is said by whose turn it lies in, and a sentence has one speaker."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby

from pipeline.postprocess.text import CHARACTER_LANGUAGES, closing_mark
from pipeline.values import Sentence, Turn, Word

_ENDS = frozenset("。？！.?!…")
SLIP_MS = 400
"""Inside a sentence, a change of speaker for less than this is a slip: "嗯" of a listener is not the sentence's."""


def with_speakers(sentences: Sequence[Sentence], turns: Sequence[Turn]) -> tuple[Sentence, ...]:
    """The sentences with speakers on their words, cut where the speaker changes; as they are without ``turns``.

    A word belongs to the turn that it shares most time with, else to the nearest one.
    """
    if not turns:
        return tuple(sentences)
    lookup = _Lookup(turns)
    return tuple(part for sentence in sentences for part in _parts(sentence, lookup))


class _Lookup:
    """Turns by time, which may overlap."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = sorted(turns, key=lambda turn: turn.start_ms)
        self._starts = [turn.start_ms for turn in self._turns]
        self._latest_ends = list(accumulate((turn.end_ms for turn in self._turns), max))

    def speaker_of(self, word: Word) -> str:
        """Whose turn shares most time with the word; a word in no turn goes to the nearest one."""
        shared: dict[str, int] = defaultdict(int)
        for turn in self._around(word):
            shared[turn.speaker] += min(turn.end_ms, word.end_ms) - max(turn.start_ms, word.start_ms)
        return max(shared, key=lambda speaker: shared[speaker])

    def _around(self, word: Word) -> Sequence[Turn]:
        """The turns that touch the word; where none does, the one that is nearest."""
        last = bisect_left(self._starts, word.end_ms)
        first = bisect_left(self._latest_ends, word.start_ms, 0, last)
        touching = [turn for turn in self._turns[first:last] if turn.end_ms > word.start_ms]
        if touching:
            return touching
        beside = self._turns[max(0, last - 1) : last + 1]
        return [min(beside, key=lambda turn: max(turn.start_ms - word.end_ms, word.start_ms - turn.end_ms))]


def _parts(sentence: Sentence, lookup: _Lookup) -> Iterator[Sentence]:
    speakers = _smoothed(sentence.words, [lookup.speaker_of(word) for word in sentence.words])
    words = [replace(word, speaker=speaker) for word, speaker in zip(sentence.words, speakers, strict=True)]
    groups = [tuple(group) for _, group in groupby(words, key=lambda word: word.speaker)]
    if len(groups) <= 1:
        yield replace(sentence, words=tuple(words))
        return
    for at, group in enumerate(groups):
        whole = _closed(group, sentence.language) if at + 1 < len(groups) else group
        text = "".join(word.text for word in whole).strip()
        yield Sentence(whole[0].start_ms, whole[-1].end_ms, text, sentence.language, whole)


def _closed(words: tuple[Word, ...], language: str) -> tuple[Word, ...]:
    """The words before a change of speaker end a sentence: with a mark, and not with a comma.

    >>> _closed((Word("好，", 0, 300, 0.9),), "zh")[0].text, _closed((Word(" yes", 0, 300, 0.9),), "en")[0].text
    ('好。', ' yes.')
    """
    text = words[-1].text.rstrip()
    mark = closing_mark(text)
    if mark in _ENDS:
        return words
    full_stop = "。" if language in CHARACTER_LANGUAGES else "."
    return (*words[:-1], replace(words[-1], text=(text[:-1] if mark and text.endswith(mark) else text) + full_stop))


def _smoothed(words: Sequence[Word], speakers: Sequence[str]) -> list[str]:
    """The speakers of a sentence's words without slips: those go with the words before them, the first with the next.

    >>> said = [Word("对", 0, 200, 0.9), Word("你", 200, 900, 0.9), Word("好", 900, 1100, 0.9)]
    >>> _smoothed(said, ["speaker 2", "teacher", "speaker 2"])
    ['teacher', 'teacher', 'teacher']
    """
    runs: list[tuple[str, int]] = []
    for speaker, group in groupby(range(len(words)), key=lambda at: speakers[at]):
        places = list(group)
        is_slip = words[places[-1]].end_ms - words[places[0]].start_ms < SLIP_MS
        runs.append(("" if is_slip else speaker, len(places)))
    current = next((speaker for speaker, _ in runs if speaker), "")
    if not current:
        return list(speakers)
    smoothed: list[str] = []
    for speaker, count in runs:
        current = speaker or current
        smoothed += [current] * count
    return smoothed
