"""Whether a finished media is accounted for: every millisecond once, and cues where there is speech."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pipeline.ledger import total_ms
from pipeline.values import MediaResult, Outcome


def complaints(result: MediaResult) -> tuple[str, ...]:
    """What is wrong, with its numbers; empty where nothing is."""
    return tuple(_complaints(result))


def _complaints(result: MediaResult) -> Iterator[str]:
    spans = result.ledger
    if result.duration_ms and not spans:
        yield f"its ledger is empty, its duration {result.duration_ms} ms"
    elif spans and (spans[0].start_ms, spans[-1].end_ms) != (0, result.duration_ms):
        covered = f"{spans[0].start_ms}..{spans[-1].end_ms} ms"
        yield f"its ledger covers {covered}, its duration is {result.duration_ms} ms"
    for before, after in pairwise(spans):
        if before.end_ms != after.start_ms:
            yield f"its ledger goes from {before.end_ms} ms to {after.start_ms} ms"
    transcribed_ms = total_ms(spans, Outcome.TRANSCRIBED)
    if transcribed_ms and not result.cues:
        yield f"{transcribed_ms} ms of speech are transcribed, and there is no cue"
