"""New terms for old lectures: a media's text made anew from the transcripts that are stored, without a model.

The result is what the line itself would have made of the same transcripts with the glossary that the course has now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from pipeline.finishing import Heard, finish
from pipeline.keys import incomplete_key, run_key, speakers_of
from pipeline.ledger import NO_AUDIO
from pipeline.store_line import LineStore, MadeUnder
from pipeline.values import Media, MediaResult, Outcome, Sentence, Span, Turn


class State(StrEnum):
    """What became of one media."""

    CHANGED = "changed"
    SAME = "same text"
    """Another glossary, and the text did not change by it."""
    UP_TO_DATE = "up to date"
    NOT_DONE = "not done"


@dataclass(frozen=True, slots=True)
class Change:
    """Sentences that became others; either side may be empty."""

    start_ms: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reapplied:
    """One media with the present glossary. ``result`` is None where nothing was to be made."""

    media: Media
    state: State
    glossary_version: int | None
    changes: tuple[Change, ...] = ()
    result: MediaResult | None = None


def reapply(media_id: str, store: LineStore, *, is_dry: bool) -> Reapplied:
    """Make the text of a media anew where its course's glossary, profile or our rules have changed since.

    All rows of the media change in one transaction, or none where ``is_dry``. Raises InvalidInputError for a media that
    is not known, RetriableError where the database is away or the media was made anew meanwhile.
    """
    media, made = store.media(media_id), store.made_under(media_id)
    if not made.fingerprint or made.slicing is None or made.asr is None:
        return Reapplied(media, State.NOT_DONE, None)
    glossary, profile = store.glossary(media.course_id), store.profile(media.course_id)
    pairs = store.made_of(media_id, made.slicing, made.asr)
    old = store.result(media_id)
    kept = profile.fingerprint, speakers_of(made.fingerprint)
    wanted = run_key(made.slicing, made.asr, profile.postprocess, glossary, *kept)
    if _is_incomplete(made, store, [transcript.outcome for _, transcript in pairs]):
        wanted = incomplete_key(wanted)
    if made.fingerprint == wanted:
        return Reapplied(media, State.UP_TO_DATE, glossary.version)
    slices, transcripts = [piece for piece, _ in pairs], [transcript for _, transcript in pairs]
    cost, heard, turns = old.cost, _heard(old), tuple(_turns(old.sentences))
    new = finish(media_id, slices, transcripts, heard, glossary, profile.postprocess, cost, profile, turns)
    if not is_dry:
        version, stands = glossary.version, made.fingerprint
        store.record_result(new, wanted, made.slicing, made.asr, glossary_version=version, replacing=stands)
    changes = tuple(_changes(old.sentences, new.sentences))
    return Reapplied(media, State.CHANGED if changes else State.SAME, glossary.version, changes, new)


def _is_incomplete(made: MadeUnder, store: LineStore, outcomes: Sequence[Outcome]) -> bool:
    """``run`` tries failed slices again, and keeps its result as incomplete; the distributed line does not."""
    is_of_run = store.planned(made.media_id, made.slicing or "", made.asr or "") is None
    return is_of_run and Outcome.FAILED in outcomes


def _heard(old: MediaResult) -> Heard:
    missing = [
        Span(span.start_ms, span.end_ms)
        for span in old.ledger
        if span.outcome is Outcome.FAILED and span.reason == NO_AUDIO
    ]
    return Heard(old.duration_ms, tuple(missing), tuple(old.warnings))


def _turns(sentences: Sequence[Sentence]) -> Iterator[Turn]:
    """Who talks when, as the words say; none where speakers were not told apart."""
    for sentence in sentences:
        yield from (Turn(word.start_ms, word.end_ms, word.speaker) for word in sentence.words if word.speaker)


def _changes(before: Sequence[Sentence], after: Sequence[Sentence]) -> Iterator[Change]:
    old, new = [one.text for one in before], [one.text for one in after]
    for tag, start, end, to_start, to_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and end - start == to_end - to_start:
            pairs = zip(before[start:end], after[to_start:to_end], strict=True)
            yield from (Change(min(a.start_ms, b.start_ms), (a.text,), (b.text,)) for a, b in pairs)
        elif tag != "equal":
            touched = [*before[start:end], *after[to_start:to_end]]
            start_ms = min(one.start_ms for one in touched)
            yield Change(start_ms, tuple(old[start:end]), tuple(new[to_start:to_end]))
