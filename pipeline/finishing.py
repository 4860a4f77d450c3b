"""Steps 6 to 9 in a row: from the slice transcripts of a whole media to everything that is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.cues import lay_out
from pipeline.ledger import make_ledger
from pipeline.postprocess import Glossary, PostprocessOptions, postprocess
from pipeline.postprocess.rendering import terms_as_shown
from pipeline.postprocess.term_spans import spotter
from pipeline.quality import judge_cues, media_quality
from pipeline.speaker_words import with_speakers
from pipeline.stitching import main_language, stitch
from pipeline.subtitle_profiles import NETFLIX, SubtitleProfile
from pipeline.values import Cost, MediaResult, Slice, SliceTranscript, Span, Turn


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
    profile: SubtitleProfile = NETFLIX,
    turns: Sequence[Turn] = (),
) -> MediaResult:
    """The result of a media; of the ``profile`` only the rules for cues count, ``options`` are given beside it.

    ``turns`` say who talks when, where that was asked for.

    Raises RetriableError where a slice has no transcript.
    """
    stitched = stitch(slices, transcripts)
    written = postprocess([one for _, one in stitched], glossary, options)
    sentences = with_speakers(written.sentences, turns)
    terms = spotter(terms_as_shown(glossary, options.script))
    sheet = lay_out(sentences, profile.cues_for, heard.duration_ms, terms)
    ledger = make_ledger(heard.duration_ms, stitched, heard.missing)
    qualities = judge_cues(sheet.word_counts, sentences, stitched, written.replacements)
    return MediaResult(
        media_id=media_id,
        language=main_language(stitched),
        duration_ms=heard.duration_ms,
        speech_ms=sum(span.duration_ms for piece in slices for span in piece.speech),
        sentences=sentences,
        cues=sheet.cues,
        violations=sheet.violations,
        replacements=written.replacements,
        ledger=ledger,
        warnings=heard.warnings,
        cost=cost,
        qualities=qualities,
        quality=media_quality(qualities, ledger),
    )


def cost_of(engine_ms: int, other_ms: int, usd_per_hour: float) -> Cost:
    """``other_ms`` is the wall time beside the engine's."""
    wall_ms = engine_ms + max(0, other_ms)
    return Cost(wall_ms, engine_ms, wall_ms / 3_600_000 * usd_per_hour)
