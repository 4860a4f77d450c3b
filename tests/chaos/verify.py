"""What must hold in the end. Each function gives one line for every fault, none where all is well."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from pipeline.ledger import total_ms
from pipeline.messages import TranscriptsCompleted
from pipeline.values import LedgerSpan, Media, MediaResult, Outcome, SliceTranscript
from tests.chaos.lectures import DeadLetter


def order_faults(slice_counts: Mapping[str, int], seen: Iterable[tuple[str, int]]) -> list[str]:
    """``seen`` is media and slice of each message, by partition in order. The first of each slice are in slice order.

    ``slice_counts`` says how many slices each media has; a media that is not in it is not looked at.
    """
    firsts: dict[str, dict[int, None]] = {media_id: {} for media_id in slice_counts}
    for media_id, index in seen:
        if media_id in firsts:
            firsts[media_id].setdefault(index)
    return [
        f"{media_id}: {fault}"
        for media_id, count in slice_counts.items()
        for fault in _faults_of_one(count, list(firsts[media_id]))
    ]


def _faults_of_one(count: int, firsts: Sequence[int]) -> list[str]:
    lost = sorted(set(range(count)) - set(firsts))
    strange = sorted(set(firsts) - set(range(count)))
    swapped = [(before, after) for before, after in itertools.pairwise(firsts) if before > after]
    return [
        *(f"slice {index} is lost" for index in lost),
        *(f"slice {index} is not one of its {count}" for index in strange),
        *(f"slice {after} came first after slice {before}" for before, after in swapped),
    ]


def duplicates(seen: Iterable[object]) -> int:
    """How many are there again."""
    return sum(count - 1 for count in Counter(seen).values())


def row_faults(media_id: str, expected: Sequence[SliceTranscript], found: Sequence[SliceTranscript]) -> list[str]:
    """One row for each slice, with the text that an undisturbed engine gives; only the engine's time may differ."""
    counts = Counter(one.slice_index for one in found)
    wanted = {one.slice_index: one for one in expected}
    faults = [f"slice {index} has no row" for index in wanted if not counts[index]]
    faults += [f"slice {index} has {count} rows" for index, count in counts.items() if count > 1]
    faults += [
        f"the row of slice {one.slice_index} is another"
        for one in found
        if replace(one, engine_ms=0) != replace(wanted.get(one.slice_index, one), engine_ms=0)
        or one.slice_index not in wanted
    ]
    return [f"{media_id}: {fault}" for fault in faults]


RESULT_FIELDS = (
    "language",
    "duration_ms",
    "speech_ms",
    "sentences",
    "cues",
    "violations",
    "replacements",
    "ledger",
    "warnings",
)
"""All but the id and the cost."""


def result_faults(expected: MediaResult, found: MediaResult) -> list[str]:
    """Words are in the sentences."""
    return [
        f"{expected.media_id}: its {field} are not those of an undisturbed run"
        for field in RESULT_FIELDS
        if getattr(expected, field) != getattr(found, field)
    ] + ledger_faults(expected.media_id, expected.duration_ms, found.ledger)


def ledger_faults(media_id: str, duration_ms: int, ledger: Sequence[LedgerSpan]) -> list[str]:
    """Its spans are adjacent and add up to the media."""
    edges = [0, *(edge for span in ledger for edge in (span.start_ms, span.end_ms)), duration_ms]
    is_exact = all(end == start for end, start in zip(edges[::2], edges[1::2], strict=True))
    return [] if is_exact else [f"{media_id}: its ledger does not add up to {duration_ms} ms"]


def dead_faults(planted: Collection[DeadLetter], found: Iterable[DeadLetter]) -> list[str]:
    """Each planted one at least once, and no other."""
    there = set(found)
    missing, unplanned = sorted(set(planted) - there), sorted(there - set(planted))
    return [f"planted, but not among the dead letters: {one}" for one in missing] + [
        f"an unplanned dead letter: {one}" for one in unplanned
    ]


def completed_faults(expected: Mapping[str, TranscriptsCompleted], found: Iterable[TranscriptsCompleted]) -> list[str]:
    """Each media is announced at least once, always alike but for the place of its files, and no other media is."""
    announced = list(found)
    missing = expected.keys() - {one.media_id for one in announced}
    faults = [f"{media_id}: was not announced" for media_id in sorted(missing)]
    for one in announced:
        wanted = expected.get(one.media_id)
        if wanted is None:
            faults.append(f"{one.media_id}: was announced, but never sent")
        elif msgspec.structs.replace(one, files=()) != wanted:
            faults.append(f"{one.media_id}: was announced as {one}, not as {wanted}")
    return faults


def completed_of(media: Media, result: MediaResult) -> TranscriptsCompleted:
    """The announcement of an undisturbed run, without its files."""
    return TranscriptsCompleted(
        course_id=media.course_id,
        media_id=media.media_id,
        title=media.title,
        language=result.language,
        duration_ms=result.duration_ms,
        speech_ms=result.speech_ms,
        cues=len(result.cues),
        violations=len(result.violations),
        filtered_ms=total_ms(result.ledger, Outcome.FILTERED),
        failed_ms=total_ms(result.ledger, Outcome.FAILED),
        files=(),
    )


def offset_faults(group: str, committed: Mapping[str, int], ends: Mapping[str, int]) -> list[str]:
    """``ends`` and ``committed`` are by partition; a partition without messages needs no offset."""
    return [
        f"group {group} is at {committed.get(place, 0)} of {end} in {place}"
        for place, end in ends.items()
        if committed.get(place, 0) != end
    ]
