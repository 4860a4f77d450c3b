"""Step 6, stitch: the transcripts of a media's slices in order, on the media clock, none twice, none missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pipeline.errors import RetriableError
from pipeline.values import Outcome, Slice, SliceTranscript
from pipeline.word_times import snap_to_speech


def stitch(
    slices: Sequence[Slice], transcripts: Iterable[SliceTranscript]
) -> tuple[tuple[Slice, SliceTranscript], ...]:
    """Each slice with its transcript, in media order, word times snapped to speech.

    Transcripts may come in any order, and some may belong to other slices than ``slices``: those are left out.
    Raises RetriableError where one is missing.
    """
    by_index = {transcript.slice_index: transcript for transcript in transcripts}
    missing = [piece.index for piece in slices if piece.index not in by_index]
    if missing:
        raise RetriableError(f"slices without a transcript: {missing[:10]}; run the same command again")
    ordered = sorted(slices, key=lambda piece: piece.index)
    return tuple((piece, snap_to_speech(by_index[piece.index], piece)) for piece in ordered)


def main_language(stitched: Iterable[tuple[Slice, SliceTranscript]]) -> str:
    """The language of most of the transcribed speech; empty where there is none."""
    spoken: Counter[str] = Counter()
    for piece, transcript in stitched:
        if transcript.outcome is Outcome.TRANSCRIBED:
            spoken[transcript.language] += sum(span.duration_ms for span in piece.speech)
    return spoken.most_common(1)[0][0] if spoken else ""
