"""Speakers: runs of talk become turns; who speaks most is the teacher; short runs follow what is near."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.diarization import (
    HEARD_MS,
    MAX_CLUSTERED,
    MIN_LIKENESS,
    MIN_SPEAKER_MS,
    SURE_MS,
    TEACHER,
    Embedding,
    Voice,
    cluster,
    diarize,
)
from pipeline.values import Span, Turn

PEOPLE = np.eye(8, 192, dtype=np.float32)
"""Embeddings of eight people who sound nothing like each other."""


def sound(person: int, noise: float = 0.0, seed: int = 0) -> Embedding:
    vector = PEOPLE[person] + noise * np.random.default_rng(seed).normal(size=192).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def talk(*runs: tuple[int, int], pause_ms: int = 200) -> list[Voice]:
    """Runs of (person, length in ms), one after the other."""
    voices, at_ms = [], 0
    for number, (person, length_ms) in enumerate(runs):
        voices.append(Voice(Span(at_ms, at_ms + length_ms), length_ms, sound(person, 0.02, number)))
        at_ms += length_ms + pause_ms
    return voices


def speakers(voices: list[Voice]) -> list[str]:
    return [turn.speaker for turn in diarize(voices)]


def test_no_talk_no_turns() -> None:
    assert diarize([]) == ()


def test_one_voice_is_the_teacher_throughout() -> None:
    assert diarize(talk((0, 4_000), (0, 900), (0, 5_000))) == (Turn(0, 10_300, TEACHER),)


def test_who_speaks_most_is_the_teacher_whoever_begins() -> None:
    assert speakers(talk((1, 2_500), (0, 6_000), (1, 2_500))) == ["speaker 2", TEACHER, "speaker 2"]


def test_others_are_numbered_as_they_first_talk() -> None:
    voices = talk((0, 20_000), (3, 2_500), (0, 4_000), (2, 9_000), (3, 2_500))
    assert speakers(voices) == [TEACHER, "speaker 2", TEACHER, "speaker 3", "speaker 2"]


def test_one_who_hardly_talks_is_no_speaker_of_their_own() -> None:
    assert set(speakers(talk((0, 5_000), (1, MIN_SPEAKER_MS - 1), (0, 5_000)))) == {TEACHER}


def test_in_a_media_with_little_talk_at_all_somebody_still_speaks() -> None:
    assert speakers(talk((0, 300))) == [TEACHER]


def test_a_run_too_short_to_tell_belongs_to_who_talks_beside_it() -> None:
    voices = talk((0, 5_000), (1, 3_000), (0, HEARD_MS - 1), (0, 5_000), pause_ms=100)
    voices[2] = Voice(voices[2].span, HEARD_MS - 1, sound(5))
    assert diarize(voices)[1] == Turn(5_100, 8_100 + 100 + HEARD_MS - 1, "speaker 2")


def test_a_short_answer_that_sounds_like_a_student_is_the_students() -> None:
    voices = talk((0, 9_000), (1, 3_000), (0, 5_000), (1, SURE_MS - 100), (0, 5_000))
    assert speakers(voices) == [TEACHER, "speaker 2", TEACHER, "speaker 2", TEACHER]


def test_turns_of_two_who_talk_at_once_overlap() -> None:
    both = [Voice(Span(0, 6_000), 6_000, sound(0)), Voice(Span(4_000, 8_000), 4_000, sound(1))]
    assert diarize(both) == (Turn(0, 6_000, TEACHER), Turn(4_000, 8_000, "speaker 2"))


def test_a_pause_inside_a_turn_does_not_part_it_and_a_long_one_does() -> None:
    assert len(diarize(talk((0, 3_000), (0, 3_000), pause_ms=400))) == 1
    assert len(diarize(talk((0, 3_000), (0, 3_000), pause_ms=2_000))) == 2


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(2_000, 9_000)), min_size=1, max_size=24))
def test_people_who_sound_apart_are_told_apart(runs: list[tuple[int, int]]) -> None:
    told = diarize(talk(*runs, pause_ms=600))
    people = [person for person, _ in runs]
    assert len(told) == len(runs)
    assert len(set(zip(people, (turn.speaker for turn in told), strict=True))) == len(set(people))
    talked = {person: sum(length for who, length in runs if who == person) for person in people}
    teacher = next(person for person, turn in zip(people, told, strict=True) if turn.speaker == TEACHER)
    assert talked[teacher] == max(talked.values())


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_groups_hold_every_row_once_and_none_could_be_joined_further(seed: int, count: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    groups = cluster(rows, np.ones(count, np.float32), MIN_LIKENESS)
    assert sorted(at for group in groups for at in group) == list(range(count))
    means = np.stack([rows[group].sum(axis=0) / np.linalg.norm(rows[group].sum(axis=0)) for group in groups])
    likeness = means @ means.T - 2 * np.eye(len(groups))
    assert likeness.max() < MIN_LIKENESS + 1e-4


@pytest.mark.parametrize("count", [MAX_CLUSTERED + 500])
def test_more_runs_than_are_compared_get_speakers_all_the_same(count: int) -> None:
    told = speakers(talk(*((at % 2, 1_500) for at in range(count)), pause_ms=0))
    assert len(told) == count
    assert all(one != other for one, other in pairwise(told))
