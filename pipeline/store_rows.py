"""Values of the line as rows of the tables, and back, exactly.

PostgreSQL holds neither NUL nor lone surrogates (undecodable bytes of a file name): text loses the former and
gets U+FFFD for the latter; a key with either is refused, for two keys must not become one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from pipeline.errors import InvalidInputError
from pipeline.store_tables import Row
from pipeline.values import (
    Boundary,
    Cue,
    CueQuality,
    Ending,
    LedgerSpan,
    MediaPlan,
    Outcome,
    Replacement,
    Segment,
    Sentence,
    Slice,
    SliceTranscript,
    Span,
    Violation,
    Word,
)

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
FOLLOWING_CHARACTERS = 40
"""How much of the next cues a cue is searched by as well: the longest phrase found wherever it is broken."""


def clean(text: str) -> str:
    """``text`` as PostgreSQL can hold it.

    >>> clean("lecture\\x00 1"), clean("caf\\udce9.mp4")
    ('lecture 1', 'caf\ufffd.mp4')
    """
    return UNSTORABLE.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text)


def checked_key(key: str) -> str:
    """``key`` if PostgreSQL can hold it. Raises InvalidInputError."""
    if UNSTORABLE.search(key):
        raise InvalidInputError("an id must not hold NUL or undecodable bytes", source=ascii(key))
    return key


class _Word(msgspec.Struct, array_like=True, frozen=True):
    text: str
    start_ms: int
    end_ms: int
    probability: float | str
    ending: Ending | None = None


class _Segment(msgspec.Struct, frozen=True):
    start_ms: int
    end_ms: int
    text: str
    words: tuple[_Word, ...]
    avg_logprob: float | str
    no_speech_probability: float | str
    compression_ratio: float | str
    temperature: float | str


def _number(value: float) -> float | str:
    """JSON knows no infinity and no NaN; engines do."""
    return value if math.isfinite(value) else str(value)


def segments_to_json(segments: Iterable[Segment]) -> str:
    """Segments as JSON text; ``segments_from_json`` gives the same back."""
    stored = [
        _Segment(
            segment.start_ms,
            segment.end_ms,
            clean(segment.text),
            tuple(_Word(clean(w.text), w.start_ms, w.end_ms, _number(w.probability), w.ending) for w in segment.words),
            _number(segment.avg_logprob),
            _number(segment.no_speech_probability),
            _number(segment.compression_ratio),
            _number(segment.temperature),
        )
        for segment in segments
    ]
    return msgspec.json.encode(stored).decode()


def segments_from_json(raw: str) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            stored.start_ms,
            stored.end_ms,
            stored.text,
            tuple(Word(w.text, w.start_ms, w.end_ms, float(w.probability), ending=w.ending) for w in stored.words),
            float(stored.avg_logprob),
            float(stored.no_speech_probability),
            float(stored.compression_ratio),
            float(stored.temperature),
        )
        for stored in msgspec.json.decode(raw, type=list[_Segment])
    )


def slice_row(slice_: Slice, slicing: str) -> Row:
    span = slice_.span
    return (slicing, slice_.index, span.start_ms, span.end_ms, str(slice_.boundary), _spans_to_json(slice_.speech))


def slice_(media_id: str, row: Row) -> Slice:
    """From index, start, end, boundary and speech, the last as text."""
    index, start_ms, end_ms, boundary, speech = row
    return Slice(media_id, index, Span(start_ms, end_ms), Boundary(boundary), _spans_from_json(speech))


def _spans_to_json(spans: Iterable[Span]) -> str:
    return msgspec.json.encode([(span.start_ms, span.end_ms) for span in spans]).decode()


def _spans_from_json(raw: str) -> tuple[Span, ...]:
    return tuple(Span(*pair) for pair in msgspec.json.decode(raw, type=list[tuple[int, int]]))


def plan_row(plan: MediaPlan) -> Row:
    warnings = msgspec.json.encode([clean(warning) for warning in plan.warnings]).decode()
    missing = _spans_to_json(plan.missing)
    return (plan.slicing, plan.asr, plan.slice_count, plan.duration_ms, missing, warnings, plan.slicing_ms)


def plan(media_id: str, row: Row) -> MediaPlan:
    """From the columns of ``store_tables.PLANS``, missing and warnings as text."""
    slicing, asr, slice_count, duration_ms, missing, warnings, slicing_ms = row
    said = msgspec.json.decode(warnings, type=tuple[str, ...])
    return MediaPlan(media_id, slicing, asr, slice_count, duration_ms, _spans_from_json(missing), said, slicing_ms)


def slice_transcript_row(transcript: SliceTranscript, slicing: str, asr: str, engine: str = "") -> Row:
    return (
        slicing,
        transcript.slice_index,
        asr,
        clean(transcript.language),
        transcript.language_probability,
        segments_to_json(transcript.segments),
        str(transcript.outcome),
        clean(transcript.reason),
        transcript.attempts,
        transcript.engine_ms,
        clean(engine),
    )


def slice_transcript(media_id: str, row: Row) -> SliceTranscript:
    """From the columns of ``store_statements.SLICE_TRANSCRIPTS``, segments as text."""
    index, language, probability, segments, outcome, reason, attempts, engine_ms = row
    return SliceTranscript(
        media_id,
        index,
        language,
        probability,
        segments_from_json(segments),
        Outcome(outcome),
        reason,
        attempts,
        engine_ms,
    )


def sentence_rows(sentences: Sequence[Sentence]) -> list[Row]:
    return [(i, s.start_ms, s.end_ms, clean(s.text), clean(s.language)) for i, s in enumerate(sentences)]


def word_rows(sentences: Sequence[Sentence]) -> list[Row]:
    """The words of all sentences, numbered through."""
    words = ((index, word) for index, sentence in enumerate(sentences) for word in sentence.words)
    return [
        (i, sentence, w.start_ms, w.end_ms, clean(w.text), w.probability, w.speaker)
        for i, (sentence, w) in enumerate(words)
    ]


def sentences(rows: Sequence[Row], words: Sequence[Row]) -> tuple[Sentence, ...]:
    by_sentence: dict[int, list[Word]] = {}
    for _, sentence, *word in words:
        start_ms, end_ms, text, probability, speaker = word
        by_sentence.setdefault(sentence, []).append(Word(text, start_ms, end_ms, probability, speaker))
    return tuple(
        Sentence(start_ms, end_ms, text, language, tuple(by_sentence.get(index, ())))
        for index, start_ms, end_ms, text, language in rows
    )


def cue_rows(cues: Sequence[Cue], sentences: Sequence[Sentence], language: str) -> list[Row]:
    """Each cue with the language of the sentence that it begins in, and what follows it (for search)."""
    by_start = sorted(sentences, key=lambda sentence: sentence.start_ms)
    starts = [sentence.start_ms for sentence in by_start]
    rows: list[Row] = []
    for index, cue in enumerate(cues):
        place = bisect_right(starts, cue.start_ms)
        spoken = by_start[place - 1].language if place else language
        ahead = " ".join(later.text for later in cues[index + 1 : index + 1 + FOLLOWING_CHARACTERS])
        following = clean(ahead)[:FOLLOWING_CHARACTERS]
        rows.append((index, cue.start_ms, cue.end_ms, clean(cue.text), clean(spoken), following, cue.speaker))
    return rows


def cues(rows: Sequence[Row]) -> tuple[Cue, ...]:
    """A line never holds a line break, so the text splits into the lines it was made of."""
    return tuple(
        Cue(start_ms, end_ms, tuple(text.split("\n")) if text else (), speaker)
        for _, start_ms, end_ms, text, _, _, speaker in rows
    )


def violation_rows(violations: Sequence[Violation]) -> list[Row]:
    # psycopg takes no array of mixed numbers, and some rules count while others divide.
    return [(i, v.cue_index, clean(v.rule), float(v.measured), float(v.limit)) for i, v in enumerate(violations)]


def violations(rows: Sequence[Row]) -> tuple[Violation, ...]:
    return tuple(Violation(*rest) for _, *rest in rows)


def replacement_rows(replacements: Sequence[Replacement]) -> list[Row]:
    return [
        (i, r.start_ms, r.end_ms, clean(r.before), clean(r.after), clean(r.rule), float(r.score))
        for i, r in enumerate(replacements)
    ]


def replacements(rows: Sequence[Row]) -> tuple[Replacement, ...]:
    return tuple(Replacement(*rest) for _, *rest in rows)


def quality_rows(qualities: Sequence[CueQuality]) -> list[Row]:
    return [
        (
            i,
            q.score,
            q.expected_errors,
            q.words,
            q.doubtful_words,
            q.replacements,
            q.unheard_ms,
            clean(q.objection),
        )
        for i, q in enumerate(qualities)
    ]


def qualities(rows: Sequence[Row]) -> tuple[CueQuality, ...]:
    return tuple(CueQuality(*rest) for _, *rest in rows)


def ledger_rows(spans: Sequence[LedgerSpan]) -> list[Row]:
    """One row for each start: where an empty span shares it with a longer one, the longer one."""
    by_start = {span.start_ms: span for span in sorted(spans, key=lambda span: span.end_ms)}
    return [(s.start_ms, s.end_ms, str(s.outcome), clean(s.reason)) for _, s in sorted(by_start.items())]


def ledger(rows: Sequence[Row]) -> tuple[LedgerSpan, ...]:
    return tuple(LedgerSpan(start, end, Outcome(outcome), reason) for start, end, outcome, reason in rows)
