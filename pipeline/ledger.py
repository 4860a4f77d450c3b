"""The ledger: for each media, adjacent spans that add up to its duration exactly.

Speech is what the slices' detector heard; it is transcribed, filtered or failed with its slice. What was missing in
the file is failed, over everything else. All the rest is silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipeline.values import LedgerSpan, Outcome, Slice, SliceTranscript, Span

NO_SPEECH = "no speech"
NO_AUDIO = "no audio in the file for this stretch"


def make_ledger(
    duration_ms: int, slices: Iterable[tuple[Slice, SliceTranscript]], missing: Sequence[Span]
) -> tuple[LedgerSpan, ...]:
    """Spans from 0 to ``duration_ms``, each touching the next; equal neighbours are one.

    >>> [(s.start_ms, s.end_ms, s.outcome.value) for s in make_ledger(9_000, [], [Span(5_000, 9_000)])]
    [(0, 5000, 'silence'), (5000, 9000, 'failed')]
    """
    heard = [_heard(span, transcript) for piece, transcript in slices for span in piece.speech]
    spoken = _fill(sorted(heard, key=_start), duration_ms, LedgerSpan(0, 0, Outcome.SILENCE, NO_SPEECH))
    holes = [LedgerSpan(span.start_ms, span.end_ms, Outcome.FAILED, NO_AUDIO) for span in missing]
    return tuple(_merged(_covered(spoken, sorted(holes, key=_start), duration_ms)))


def failed_ledger(duration_ms: int | None, reason: str) -> tuple[LedgerSpan, ...]:
    """The ledger of a media that could not be processed; empty where not even its duration is known."""
    return (LedgerSpan(0, duration_ms, Outcome.FAILED, reason),) if duration_ms else ()


def total_ms(ledger: Iterable[LedgerSpan], outcome: Outcome) -> int:
    """How much of the media had this outcome, in milliseconds."""
    return sum(span.end_ms - span.start_ms for span in ledger if span.outcome is outcome)


def _start(span: LedgerSpan) -> int:
    return span.start_ms


def _heard(span: Span, transcript: SliceTranscript) -> LedgerSpan:
    reason = "" if transcript.outcome is Outcome.TRANSCRIBED else transcript.reason
    return LedgerSpan(span.start_ms, span.end_ms, transcript.outcome, reason)


def _fill(spans: Iterable[LedgerSpan], duration_ms: int, filler: LedgerSpan) -> Iterator[LedgerSpan]:
    """The spans, cut to the media and to each other, with ``filler`` between them."""
    at = 0
    for span in spans:
        start_ms, end_ms = max(span.start_ms, at), min(span.end_ms, duration_ms)
        if start_ms >= end_ms:
            continue
        if at < start_ms:
            yield LedgerSpan(at, start_ms, filler.outcome, filler.reason)
        yield LedgerSpan(start_ms, end_ms, span.outcome, span.reason)
        at = end_ms
    if at < duration_ms:
        yield LedgerSpan(at, duration_ms, filler.outcome, filler.reason)


def _covered(spans: Iterable[LedgerSpan], holes: Sequence[LedgerSpan], duration_ms: int) -> Iterator[LedgerSpan]:
    """The spans with the holes laid over them."""
    for span in spans:
        at = span.start_ms
        for hole in holes:
            start_ms, end_ms = max(hole.start_ms, at), min(hole.end_ms, span.end_ms, duration_ms)
            if start_ms >= end_ms:
                continue
            if at < start_ms:
                yield LedgerSpan(at, start_ms, span.outcome, span.reason)
            yield LedgerSpan(start_ms, end_ms, hole.outcome, hole.reason)
            at = end_ms
        if at < span.end_ms:
            yield LedgerSpan(at, span.end_ms, span.outcome, span.reason)


def _merged(spans: Iterable[LedgerSpan]) -> Iterator[LedgerSpan]:
    last: LedgerSpan | None = None
    for span in spans:
        if last and (last.outcome, last.reason) == (span.outcome, span.reason):
            last = LedgerSpan(last.start_ms, span.end_ms, last.outcome, last.reason)
            continue
        if last:
            yield last
        last = span
    if last:
        yield last
