"""Step 6, speakers: the voices of all slices of a media, brought together by how they sound.

Each run of talk has an embedding, a vector that is alike for one person and unlike for two. Runs long enough to be
sure of are joined into speakers by centroid linkage; the short ones go to the speaker whose voice is nearest, in sound
and in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pipeline.values import Span, Turn

Embedding = npt.NDArray[np.float32]
"""How a voice sounds, shape ``(n,)``, of length 1: the product of two is their cosine."""

TEACHER = "teacher"
"""The one who speaks most."""
MIN_LIKENESS = 0.5
"""Groups of runs are joined down to this cosine of their means. Runs of 1 s by one person have 0.56 with each other and
more with a mean; two persons never had more than 0.42 (AISHELL-1, LibriSpeech and a dialogue in three voices)."""
SURE_MS = 1_000
"""A shorter run's embedding says too little to found a speaker on."""
HEARD_MS = 400
"""And one shorter than this says nothing: it goes to who talks nearest to it."""
NEIGHBOUR_BONUS = 0.15
"""How much more alike a short run counts to who talks beside it."""
MIN_SPEAKER_MS = 2_000
"""Who talks less than this in the whole media is no speaker of their own, but a run that sounds odd."""
MAX_CLUSTERED = 2_000
"""Runs that are compared with one another, evenly spread over the media: about three hours of talk. Comparing
takes memory by the square of their number."""
SAME_TURN_MS = 500
"""Runs of one speaker this near are one turn."""


@dataclass(frozen=True, slots=True)
class Voice:
    """A run of talk by one voice; ``clean_ms`` of it with nobody else talking, of which the embedding was made."""

    span: Span
    clean_ms: int
    embedding: Embedding = field(repr=False)


def diarize(voices: Sequence[Voice]) -> tuple[Turn, ...]:
    """Who talks when, by time; turns of two speakers may overlap.

    The speaker with the most talk is the teacher; the others are numbered from 2 as they first talk. The labels
    hold within one media.
    """
    if not voices:
        return ()
    centres = _speakers(voices)
    likeness = np.stack([voice.embedding for voice in voices]) @ centres.T
    owners = likeness.argmax(axis=1).tolist()
    owners = [_owner(voices, owners, likeness, at) for at in range(len(voices))]
    names = _names(voices, owners)
    return _turns((voice.span, names[owner]) for voice, owner in zip(voices, owners, strict=True))


def _owner(voices: Sequence[Voice], owners: Sequence[int], likeness: npt.NDArray[np.float32], at: int) -> int:
    """Whose a run is, where ``owners`` says who sounds nearest to each; for a short one, who talks beside it counts."""
    if voices[at].clean_ms >= SURE_MS:
        return owners[at]
    beside = [near for near in range(max(0, at - 4), at + 5) if near < len(voices) and _founds(voices, near, at)]
    if not beside:
        return owners[at]
    neighbour = owners[min(beside, key=lambda near: _apart_ms(voices[near].span, voices[at].span))]
    row = likeness[at].copy()
    row[neighbour] += NEIGHBOUR_BONUS if voices[at].clean_ms >= HEARD_MS else 2.0
    return int(row.argmax())


def _founds(voices: Sequence[Voice], near: int, at: int) -> bool:
    return voices[near].clean_ms >= SURE_MS and _apart_ms(voices[near].span, voices[at].span) <= SAME_TURN_MS


def _apart_ms(one: Span, other: Span) -> int:
    return max(0, one.start_ms - other.end_ms, other.start_ms - one.end_ms)


def _speakers(voices: Sequence[Voice]) -> npt.NDArray[np.float32]:
    """The mean embedding of each speaker, shape ``(speakers, n)``; at least one."""
    sure = [voice for voice in voices if voice.clean_ms >= SURE_MS] or [max(voices, key=lambda one: one.clean_ms)]
    chosen = [sure[at] for at in _spread(len(sure), MAX_CLUSTERED)]
    embeddings = np.stack([voice.embedding for voice in chosen])
    weights = np.array([voice.clean_ms for voice in chosen], np.float32)
    groups = cluster(embeddings, weights, MIN_LIKENESS)
    talk_ms = [sum(chosen[at].clean_ms for at in group) for group in groups]
    longest = max(talk_ms)
    kept = [group for group, own_ms in zip(groups, talk_ms, strict=True) if own_ms >= min(MIN_SPEAKER_MS, longest)]
    return np.stack([_unit(weights[group] @ embeddings[group]) for group in kept])


def _spread(count: int, limit: int) -> list[int]:
    """Up to ``limit`` of the numbers below ``count``, evenly spread.

    >>> _spread(3, 5), _spread(9, 3)
    ([0, 1, 2], [0, 3, 6])
    """
    return list(range(count)) if count <= limit else [at * count // limit for at in range(limit)]


def _unit(vector: npt.NDArray[np.float32]) -> Embedding:
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def cluster(
    embeddings: npt.NDArray[np.float32], weights: npt.NDArray[np.float32], min_likeness: float
) -> list[list[int]]:
    """Groups of rows of ``embeddings``, shape ``(n, d)``: agglomerative, by the cosine of weighted means.

    The two most alike groups become one, until none are alike by ``min_likeness``. Memory by the square of ``n``.

    >>> cluster(np.eye(2, dtype=np.float32)[[0, 1, 0]], np.ones(3, np.float32), 0.5)
    [[0, 2], [1]]
    """
    groups: dict[int, list[int]] = {at: [at] for at in range(len(embeddings))}
    sums = embeddings * weights[:, None]
    means = embeddings.copy()
    likeness = np.asarray(means @ means.T, np.float32)
    np.fill_diagonal(likeness, -np.inf)
    nearest, best = likeness.argmax(axis=1), likeness.max(axis=1)
    while len(groups) > 1 and float(best.max()) >= min_likeness:
        one = int(best.argmax())
        other = int(nearest[one])
        groups[one] += groups.pop(other)
        sums[one] += sums[other]
        means[one] = _unit(sums[one])
        likeness[one] = likeness[:, one] = np.where(np.isneginf(likeness[one]), -np.inf, means @ means[one])
        likeness[other] = likeness[:, other] = -np.inf
        stale = np.flatnonzero((nearest == one) | (nearest == other) | (likeness[one] > best))
        for row in {one, other, *stale.tolist()}:
            nearest[row], best[row] = likeness[row].argmax(), likeness[row].max()
    return [sorted(group) for _, group in sorted(groups.items(), key=lambda item: min(item[1]))]


def _names(voices: Sequence[Voice], owners: Sequence[int]) -> dict[int, str]:
    talk_ms: dict[int, int] = defaultdict(int)
    for voice, owner in sorted(zip(voices, owners, strict=True), key=lambda pair: pair[0].span):
        talk_ms[owner] += voice.span.duration_ms
    teacher = max(talk_ms, key=lambda owner: talk_ms[owner])
    others = [owner for owner in talk_ms if owner != teacher]
    return {teacher: TEACHER} | {owner: f"speaker {number}" for number, owner in enumerate(others, start=2)}


def _turns(talks: Iterable[tuple[Span, str]]) -> tuple[Turn, ...]:
    """Runs as turns by time; those of one speaker are joined where nobody else begins between them."""
    turns: list[Turn] = []
    for span, speaker in sorted(talks):
        last = turns[-1] if turns else None
        if last and last.speaker == speaker and span.start_ms - last.end_ms <= SAME_TURN_MS:
            turns[-1] = Turn(last.start_ms, max(last.end_ms, span.end_ms), speaker)
        else:
            turns.append(Turn(span.start_ms, span.end_ms, speaker))
    return tuple(turns)
