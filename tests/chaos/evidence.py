"""What lies in Kafka and PostgreSQL in the end, read from the beginning, and what is wrong with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from kafka.admin import OffsetSpec
from kafka.structs import TopicPartition

from consumers.draining import drain
from consumers.intake import Received
from pipeline.broker import AUDIO_SLICES, SLICE_TRANSCRIPTS, TRANSCRIPTS_COMPLETED, admin, dead_topic
from pipeline.broker_state import GROUPS
from pipeline.errors import InvalidInputError
from pipeline.messages import (
    SliceReady,
    SliceTranscribed,
    TranscriptsCompleted,
    decode_audio_topic,
    decode_completed,
    decode_transcript_topic,
)
from pipeline.store_line import LineStore
from tests.chaos import verify
from tests.chaos.engine import undisturbed, undisturbed_transcripts
from tests.chaos.lectures import ASR, SLICING, DeadLetter, Lecture, dead_letter
from tests.chaos.producer import Sent

T = TypeVar("T")

LOOKED_AT = ("transcribe", "assemble")
SHOWN_FAULTS = 30


@dataclass(slots=True)
class Findings:
    """What was counted, and one line for every fault."""

    slices: int = 0
    duplicates: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def examine(brokers: str, store: LineStore, sent: Sent) -> Findings:
    """The line must be at rest."""
    findings = Findings(slices=sum(one.slice_count for one in sent.lectures))
    expected: dict[str, TranscriptsCompleted] = {}
    for lecture in sent.lectures:
        faults, completed = _media_faults(store, lecture)
        findings.faults += faults
        expected[lecture.media.media_id] = completed
    _examine_order(brokers, sent, findings)
    _examine_dead(brokers, sent, findings)
    _examine_completed(brokers, expected, findings)
    findings.faults += offset_faults(brokers)
    return findings


def _media_faults(store: LineStore, lecture: Lecture) -> tuple[list[str], TranscriptsCompleted]:
    transcripts = undisturbed_transcripts(lecture)
    expected = undisturbed(lecture, transcripts)
    media_id = lecture.media.media_id
    faults = verify.row_faults(media_id, transcripts, store.slice_transcripts(media_id, SLICING, ASR))
    try:
        faults += verify.result_faults(expected, store.result(media_id))
    except InvalidInputError as error:
        faults.append(f"{media_id}: {error.reason}")
    return faults, verify.completed_of(lecture.media, expected)


def _examine_order(brokers: str, sent: Sent, findings: Findings) -> None:
    """In the topics of slices, too: where the producer loses the order, no consumer can keep it."""
    counts = {one.media.media_id: one.slice_count for one in sent.lectures}
    for topics in (tuple(AUDIO_SLICES.values()), (SLICE_TRANSCRIPTS,)):
        seen = [at for topic in topics for at in _slices_in(brokers, topic)]
        findings.faults += [f"{topics[0]}: {fault}" for fault in verify.order_faults(counts, seen)]
        name = "audio.slices.*" if len(topics) > 1 else topics[0]
        findings.duplicates[name] = verify.duplicates(seen)


def _slices_in(brokers: str, topic: str) -> list[tuple[str, int]]:
    decode = decode_transcript_topic if topic == SLICE_TRANSCRIPTS else decode_audio_topic
    slices = everything_in(brokers, topic, lambda one: _slice_of(one, decode))
    return [one for one in slices if one]


def _slice_of(message: Received, decode: Callable[[bytes], object]) -> tuple[str, int] | None:
    """None for an end mark, and for what was planted."""
    try:
        decoded = decode(message.value)
    except InvalidInputError:
        return None
    return (decoded.media_id, decoded.slice_index) if isinstance(decoded, SliceReady | SliceTranscribed) else None


def _examine_dead(brokers: str, sent: Sent, findings: Findings) -> None:
    topics = [dead_topic(topic) for topic in (*AUDIO_SLICES.values(), SLICE_TRANSCRIPTS)]
    found = [grave for topic in topics for grave in everything_in(brokers, topic, _grave)]
    findings.faults += verify.dead_faults([grave for one in sent.planted for grave in one.dead], found)
    findings.duplicates["dead letters"] = verify.duplicates(found)


def _examine_completed(brokers: str, expected: dict[str, TranscriptsCompleted], findings: Findings) -> None:
    found = everything_in(brokers, TRANSCRIPTS_COMPLETED, lambda one: decode_completed(one.value))
    findings.faults += verify.completed_faults(expected, found)
    findings.duplicates[TRANSCRIPTS_COMPLETED] = verify.duplicates(one.media_id for one in found)
    files = {file for one in found for file in one.files}
    findings.faults += [f"{file}: is empty, or not there" for file in sorted(files) if not _has_text(file)]


def _has_text(uri: str) -> bool:
    path = Path(unquote(urlsplit(uri).path))
    return path.is_file() and path.stat().st_size > 0


def everything_in(brokers: str, topic: str, of: Callable[[Received], T]) -> list[T]:
    """What ``of`` makes of each message, from the beginning, by partition in order."""
    found: list[tuple[int, int, T]] = []

    def keep(batch: Sequence[Received]) -> int:
        found.extend((one.partition, one.offset, of(one)) for one in batch)
        return len(batch)

    drain(brokers, topic, f"chaos-reader-{random.getrandbits(64):x}", keep, keeps_place=True)
    return [one for _, _, one in sorted(found, key=itemgetter(0, 1))]


def _grave(message: Received) -> DeadLetter:
    return dead_letter(message.topic, message.key, message.value)


def offset_faults(brokers: str) -> list[str]:
    """Raises RetriableError where no broker answers."""
    faults = []
    with admin(brokers) as client:
        there = client.describe_topics([topic for group in LOOKED_AT for topic in GROUPS[group]])
        places = [TopicPartition(one["name"], part["partition_index"]) for one in there for part in one["partitions"]]
        found = client.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        for group in LOOKED_AT:
            ends = {_name(place): at.offset for place, at in found.items() if place.topic in GROUPS[group]}
            committed = client.list_group_offsets([group])[group]
            faults += verify.offset_faults(group, {_name(place): at.offset for place, at in committed.items()}, ends)
    return faults


def _name(place: TopicPartition) -> str:
    return f"{place.topic}[{place.partition}]"
