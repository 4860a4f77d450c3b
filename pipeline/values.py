"""The values that travel down the line. All frozen; a step returns a new value and edits none.

Times are integer milliseconds on the media clock (0 is what a player shows as 0:00), spans are half-open.
Audio is mono float32 in [-1, 1] at ``SAMPLE_RATE_HZ``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ = 16_000
SAMPLES_PER_MS = SAMPLE_RATE_HZ // 1000

Samples = npt.NDArray[np.float32]
"""Mono audio, shape ``(n,)``, float32 in [-1, 1], 16 kHz."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open stretch ``[start_ms, end_ms)`` of the media clock.

    >>> Span(500, 2000).duration_ms
    1500
    """

    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        if not 0 <= self.start_ms <= self.end_ms:
            raise ValueError(f"a span must run forward from 0 ms or later, not {self.start_ms}..{self.end_ms}")

    @property
    def duration_ms(self) -> int:
        return self.end_ms - self.start_ms


class Boundary(StrEnum):
    """How a slice ends: in silence, inside speech because 30 s were full, or with the media."""

    SILENCE = "silence"
    FORCED = "forced"
    END = "end"


class Outcome(StrEnum):
    """What became of a stretch of media; the kinds of the ledger."""

    TRANSCRIBED = "transcribed"
    SILENCE = "silence"
    FILTERED = "filtered"
    FAILED = "failed"


class Priority(StrEnum):
    """How urgent a media is; each has a topic of its own."""

    URGENT = "urgent"
    NORMAL = "normal"
    BULK = "bulk"


@dataclass(frozen=True, slots=True)
class AudioTrack:
    """One audio stream of a container. ``start_ms`` and ``duration_ms`` are as declared, on the media clock."""

    index: int
    """The stream index in the container, as ffmpeg counts."""
    codec: str
    channels: int
    sample_rate_hz: int
    start_ms: int
    duration_ms: int | None
    """None where the container does not declare a duration for this stream."""
    language: str | None
    """ISO 639 code as written in the file, or None."""
    is_default: bool
    is_decodable: bool


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """What probing found in a file, before anything was decoded."""

    container: str
    """ffmpeg's name of the format, e.g. ``mov,mp4,m4a,3gp,3g2,mj2``."""
    size_bytes: int
    duration_ms: int | None
    """Declared by the container; None where it is unknown or only guessed from the bit rate."""
    tracks: tuple[AudioTrack, ...]
    has_video: bool
    content_fingerprint: str
    """Hex digest over the size and sampled blocks of the file: equal content, equal fingerprint."""
    start_us: int = 0
    """The container's own time stamp, in microseconds, of what is 0 on the media clock."""


@dataclass(frozen=True, slots=True)
class Media:
    """One source file as the project knows it; ``media_id`` is derived from course and URI or given."""

    media_id: str
    course_id: str
    uri: str
    title: str
    content_fingerprint: str
    duration_ms: int | None
    """The declared duration; the exact one comes with the result."""
    language: str | None
    """The asked-for language (``zh``, ``en``), or None to detect it in each slice."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of at most 30 s of one media: the unit of work and of retry. Slices never overlap."""

    media_id: str
    index: int
    span: Span
    boundary: Boundary
    speech: tuple[Span, ...]
    """Where the detector hears speech, on the media clock, inside ``span``."""


@dataclass(frozen=True, slots=True)
class SliceAudio:
    """A slice with its samples, shape ``(slice.span.duration_ms * 16,)``."""

    slice: Slice
    samples: Samples = field(repr=False)


class Ending(NamedTuple):
    """What was heard at the end of a word that speaks for a punctuation mark."""

    inside: float
    """How likely Whisper finds that a mark inside the sentence follows, 0 to 1."""
    end: float
    """How likely it finds that the sentence ends, 0 to 1."""
    quiet_ms: int
    """The longest quiet stretch between the middles of this word and the next one of the slice."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as it is displayed (a character, in Chinese), punctuation attached, with its time.

    ``text`` keeps the leading space that separates it from the word before, where the script uses one.
    """

    text: str
    start_ms: int
    end_ms: int
    probability: float
    speaker: str = ""
    """Who says it, as ``Turn`` has it; empty where speakers were not told apart."""
    ending: Ending | None = None
    """None where the engine does not tell, and in finished text."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of words with Whisper's own measures; after post-processing, one sentence."""

    start_ms: int
    end_ms: int
    text: str
    words: tuple[Word, ...]
    avg_logprob: float
    no_speech_probability: float
    compression_ratio: float
    temperature: float


@dataclass(frozen=True, slots=True)
class SliceTranscript:
    """What the engine and its judge made of one slice."""

    media_id: str
    slice_index: int
    language: str
    language_probability: float
    segments: tuple[Segment, ...]
    """On the media clock. Kept (as evidence) also where the slice was filtered."""
    outcome: Outcome
    reason: str
    """Why the slice was filtered or failed, or what the judge objected to before a retry; empty if nothing."""
    attempts: int
    """How often it was decoded: 1, or more where the judge asked for it."""
    engine_ms: int
    """Its share of the engine's time."""


@dataclass(frozen=True, slots=True)
class TranscribedSlice:
    """A slice with its transcript, the fingerprints it was cut and transcribed under, and the engine that did it."""

    slicing: str
    asr: str
    engine: str
    """For people: the engine's name, model, device and arithmetic."""
    slice: Slice
    transcript: SliceTranscript


@dataclass(frozen=True, slots=True)
class MediaPlan:
    """What slicing a whole media found: how many slices must be transcribed before it is complete."""

    media_id: str
    slicing: str
    asr: str
    slice_count: int
    duration_ms: int
    missing: tuple[Span, ...]
    """Stretches of which the file holds no audio."""
    warnings: tuple[str, ...]
    slicing_ms: int
    """Wall time of decoding and slicing."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the finished transcript, words on the media clock."""

    start_ms: int
    end_ms: int
    text: str
    language: str
    words: tuple[Word, ...]

    @property
    def speaker(self) -> str:
        """Who says it: a sentence whose words were given speakers has one."""
        return self.words[0].speaker if self.words else ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One speaker's stretch of talk. ``speaker`` is ``teacher``, who speaks most, or ``speaker 2``, ``speaker 3``, …"""

    start_ms: int
    end_ms: int
    speaker: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """A change that the glossary made: what stood there, what stands there now, by which rule, where."""

    start_ms: int
    end_ms: int
    before: str
    after: str
    rule: str
    score: float = 1.0
    """How sure the rule is, 0 to 1; 1 for what needs no judgement."""


@dataclass(frozen=True, slots=True)
class Cue:
    """One timed subtitle of one or two lines."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]
    speaker: str = ""
    """Empty where speakers were not told apart."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Violation:
    """A cue that breaks a rule of its profile: which rule, what was measured, what was allowed."""

    cue_index: int
    rule: str
    measured: float
    limit: float


@dataclass(frozen=True, slots=True)
class CueQuality:
    """How likely a cue is right as it stands, and why not (the formula: ``pipeline.quality``)."""

    score: float
    """The chance that nothing in the cue is wrong, 0 to 1."""
    expected_errors: float
    words: int
    doubtful_words: int
    """Words that are more likely wrong than right."""
    replacements: int
    """Terms that the glossary put right in it."""
    unheard_ms: int
    """Speech between its words that no word covers."""
    objection: str
    """What the judge had against the text of its slice; empty if nothing."""


@dataclass(frozen=True, slots=True)
class LedgerSpan:
    """What became of one stretch. A media's ledger spans are adjacent and add up to its duration."""

    start_ms: int
    end_ms: int
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What one media took. ``usd`` is the wall time on one machine at that machine's price."""

    wall_ms: int
    engine_ms: int
    usd: float


@dataclass(frozen=True, slots=True)
class MediaResult:
    """Everything that the line made of one media."""

    media_id: str
    language: str
    """The language of most of the speech; empty where there is none."""
    duration_ms: int
    speech_ms: int
    sentences: Sequence[Sentence]
    cues: Sequence[Cue]
    violations: Sequence[Violation]
    replacements: Sequence[Replacement]
    ledger: Sequence[LedgerSpan]
    warnings: Sequence[str]
    cost: Cost
    qualities: Sequence[CueQuality] = ()
    """One for each cue; none of a result that was made before there were any."""
    quality: float | None = None
    """The share of what was said that is expected to be right; None where nothing was said."""
