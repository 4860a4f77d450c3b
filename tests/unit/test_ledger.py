"""The ledger: adjacent spans that add up to the duration, whatever was heard and whatever is missing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ledger import NO_AUDIO, NO_SPEECH, failed_ledger, make_ledger, total_ms
from pipeline.values import Boundary, LedgerSpan, Outcome, Slice, SliceTranscript, Span

Told = tuple[Outcome, str]
SILENT: Told = (Outcome.SILENCE, NO_SPEECH)
MISSING: Told = (Outcome.FAILED, NO_AUDIO)


def heard(*speech: tuple[int, int], outcome: Outcome, reason: str = "") -> tuple[Slice, SliceTranscript]:
    spans = tuple(Span(start_ms, end_ms) for start_ms, end_ms in speech)
    piece = Slice("m", 0, Span(spans[0].start_ms, spans[-1].end_ms), Boundary.SILENCE, spans)
    return piece, SliceTranscript("m", 0, "zh", 1.0, (), outcome, reason, 1, 0)


def told(span: LedgerSpan) -> Told:
    return span.outcome, span.reason


def by_millisecond(ledger: tuple[LedgerSpan, ...]) -> list[Told]:
    return [told(span) for span in ledger for _ in range(span.end_ms - span.start_ms)]


@st.composite
def pieces(draw: st.DrawFn) -> list[tuple[Slice, SliceTranscript]]:
    """Slices in order, their speech apart or touching; the last may reach beyond the media."""
    ends = sorted(draw(st.lists(st.integers(0, 80), min_size=0, max_size=12, unique=True)))
    spans = list(zip(ends[::2], ends[1::2], strict=False))
    slices = []
    while spans:
        taken, spans = spans[: draw(st.integers(1, 3))], spans[draw(st.integers(1, 3)) :]
        outcome = draw(st.sampled_from([Outcome.TRANSCRIBED, Outcome.FILTERED, Outcome.FAILED]))
        reason = draw(st.sampled_from(["", "too fast", "unsure"]))
        slices.append(heard(*taken, outcome=outcome, reason=reason))
        spans = [span for span in spans if span[0] >= taken[-1][1]]
    return slices


holes = st.lists(
    st.tuples(st.integers(0, 90), st.integers(0, 30)).map(lambda at: Span(at[0], at[0] + at[1])), max_size=4
)


@given(st.integers(0, 70), pieces(), holes)
def test_the_spans_are_adjacent_and_add_up_to_the_duration(
    duration_ms: int, slices: list[tuple[Slice, SliceTranscript]], missing: list[Span]
) -> None:
    ledger = make_ledger(duration_ms, slices, missing)
    edges = [0, *(span.end_ms for span in ledger)]
    assert [span.start_ms for span in ledger] == edges[:-1]
    assert edges[-1] == duration_ms
    assert all(span.start_ms < span.end_ms for span in ledger)
    assert all(told(before) != told(after) for before, after in pairwise(ledger))
    assert sum(total_ms(ledger, outcome) for outcome in Outcome) == duration_ms


@given(st.integers(0, 70), pieces(), holes)
def test_every_millisecond_is_missing_else_what_became_of_its_slice_else_silent(
    duration_ms: int, slices: list[tuple[Slice, SliceTranscript]], missing: list[Span]
) -> None:
    expected: list[Told] = [SILENT] * 200
    for piece, transcript in slices:
        reason = "" if transcript.outcome is Outcome.TRANSCRIBED else transcript.reason
        for span in piece.speech:
            expected[span.start_ms : span.end_ms] = [(transcript.outcome, reason)] * span.duration_ms
    for span in missing:
        expected[span.start_ms : span.end_ms] = [MISSING] * span.duration_ms
    assert by_millisecond(make_ledger(duration_ms, slices, missing)) == expected[:duration_ms]


def test_silence_between_two_spans_of_one_slice_stays_silence() -> None:
    said = heard((100, 300), (500, 900), outcome=Outcome.TRANSCRIBED)
    assert make_ledger(1_000, [said], []) == (
        LedgerSpan(0, 100, Outcome.SILENCE, NO_SPEECH),
        LedgerSpan(100, 300, Outcome.TRANSCRIBED, ""),
        LedgerSpan(300, 500, Outcome.SILENCE, NO_SPEECH),
        LedgerSpan(500, 900, Outcome.TRANSCRIBED, ""),
        LedgerSpan(900, 1_000, Outcome.SILENCE, NO_SPEECH),
    )


def test_an_objection_that_did_not_filter_a_slice_is_not_its_reason() -> None:
    (_, span, _) = make_ledger(1_000, [heard((100, 300), outcome=Outcome.TRANSCRIBED, reason="skipped speech")], [])
    assert span.reason == ""


def test_a_filtered_slice_keeps_its_reason() -> None:
    (_, span, _) = make_ledger(1_000, [heard((100, 300), outcome=Outcome.FILTERED, reason="repetitive")], [])
    assert told(span) == (Outcome.FILTERED, "repetitive")


def test_a_media_of_no_length_has_an_empty_ledger() -> None:
    assert make_ledger(0, [], [Span(0, 100)]) == ()


def test_a_media_that_failed_is_failed_from_end_to_end_where_its_duration_is_known() -> None:
    assert failed_ledger(5_000, "no codec") == (LedgerSpan(0, 5_000, Outcome.FAILED, "no codec"),)
    assert failed_ledger(None, "no codec") == failed_ledger(0, "no codec") == ()
