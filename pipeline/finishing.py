"""Steps 6 to 9 in a row: from the slice transcripts of a whole media to everything that is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.cue_profiles import profile_for
from pipeline.cues import make_cues
from pipeline.ledger import make_ledger
from pipeline.postprocess import Glossary, PostprocessOptions, postprocess
from pipeline.stitching import main_language, stitch
from pipeline.values import Cost, MediaResult, Slice, SliceTranscript, Span


@dataclass(frozen=True, slots=True)
class Heard:
    """What decoding and slicing a media found beside its slices."""

    duration_ms: int
    missing: tuple[Span, ...]
    """Stretches of which the file holds no audio."""
    warnings: tuple[str, ...]


def finish(
    media_id: str,
    slices: Sequence[Slice],
    transcripts: Iterable[SliceTranscript],
    heard: Heard,
    glossary: Glossary,
    options: PostprocessOptions,
    cost: Cost,
) -> MediaResult:
    """The result of a media. Raises RetriableError where a slice has no transcript."""
    stitched = stitch(slices, transcripts)
    written = postprocess([one for _, one in stitched], glossary, options)
    cues, violations = make_cues(written.sentences, profile_for, heard.duration_ms)
    return MediaResult(
        media_id=media_id,
        language=main_language(stitched),
        duration_ms=heard.duration_ms,
        speech_ms=sum(span.duration_ms for piece in slices for span in piece.speech),
        sentences=written.sentences,
        cues=cues,
        violations=violations,
        replacements=written.replacements,
        ledger=make_ledger(heard.duration_ms, stitched, heard.missing),
        warnings=heard.warnings,
        cost=cost,
    )


def cost_of(engine_ms: int, other_ms: int, usd_per_hour: float) -> Cost:
    """``other_ms`` is the wall time beside the engine's."""
    wall_ms = engine_ms + max(0, other_ms)
    return Cost(wall_ms, engine_ms, wall_ms / 3_600_000 * usd_per_hour)
