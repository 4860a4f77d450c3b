"""Segments and words inside a message: arrays, for a name at each field of each word would double the message."""

from __future__ import annotations

from typing import Annotated, Self, TypeAlias

import msgspec

from pipeline.message_checks import Whole
from pipeline.values import Ending, Segment, Word

Chance: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""No infinity and no NaN, which a stored transcript could not hold."""


class WordSpoken(msgspec.Struct, frozen=True, array_like=True):
    """One word with its time on the media clock."""

    text: str
    start_ms: Whole
    end_ms: Whole
    probability: float
    ending: tuple[Chance, Chance, Whole] | None = None

    @classmethod
    def of(cls, word: Word) -> Self:
        return cls(word.text, word.start_ms, word.end_ms, word.probability, word.ending)

    def to_value(self) -> Word:
        ending = Ending(*self.ending) if self.ending else None
        return Word(self.text, self.start_ms, self.end_ms, self.probability, ending=ending)


class SegmentSpoken(msgspec.Struct, frozen=True, array_like=True):
    """One segment of Whisper's, with its measures."""

    start_ms: Whole
    end_ms: Whole
    text: str
    words: tuple[WordSpoken, ...]
    avg_logprob: float
    no_speech_probability: float
    compression_ratio: float
    temperature: float

    @classmethod
    def of(cls, segment: Segment) -> Self:
        return cls(
            segment.start_ms,
            segment.end_ms,
            segment.text,
            tuple(map(WordSpoken.of, segment.words)),
            segment.avg_logprob,
            segment.no_speech_probability,
            segment.compression_ratio,
            segment.temperature,
        )

    def to_value(self) -> Segment:
        return Segment(
            self.start_ms,
            self.end_ms,
            self.text,
            tuple(word.to_value() for word in self.words),
            self.avg_logprob,
            self.no_speech_probability,
            self.compression_ratio,
            self.temperature,
        )
