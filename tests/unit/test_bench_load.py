"""The load benchmark: when slices are due, what the stub says, what is counted as late, lost and used."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.lectures import MAX_SLICE_MS, MEAN_TURN_MS, Due, Turn, flat_out, live, turns
from bench.load.noting import NotingStep, Stored
from bench.load.producer import CLIPS, Handed, Job, hand_over, message
from bench.load.report import Around, Measured, markdown, measured
from bench.load.stub import StubEngine
from bench.machine import Machine
from consumers.assemble import Arrived
from consumers.intake import Received
from pipeline.broker import Outgoing
from pipeline.judging import JudgeRules
from pipeline.messages import SliceReady, decode_audio_topic
from pipeline.publishing import IN_FLIGHT_SLICES
from pipeline.transcription import LADDER, Request, TranscriptionOptions, transcribe
from pipeline.values import Boundary, MediaPlan, Outcome, Slice, SliceAudio, SliceTranscript, Span, TranscribedSlice

TURN = Turn(20_000, 26_000)
JOB = Job("127.0.0.1:1", "run", 2, 0, 2)
MACHINE = Machine("2026-11-30", "a processor", 2, 2, "stub", "abc", {"python": "3.11"})
AROUND = Around(0.5, 1.5)


@given(st.integers(0, 1000))
def test_no_turn_has_more_speech_than_a_slice_may_hold(seed: int) -> None:
    assert all(0 < turn.speech_ms <= min(MAX_SLICE_MS, turn.whole_ms) for turn in turns(50, Random(seed)))


def test_turns_last_26_seconds_on_the_average() -> None:
    wholes = [turn.whole_ms for turn in turns(CLIPS, Random(1))]
    assert sum(wholes) / len(wholes) == pytest.approx(MEAN_TURN_MS, rel=0.01)


@given(st.integers(1, 20), st.integers(0, 200_000), st.integers(0, 1000))
def test_a_live_course_hands_its_slices_over_in_order_and_not_before_their_speech_ends(
    courses: int, duration_ms: int, seed: int
) -> None:
    choice = turns(8, Random(seed))
    dues = live(courses, duration_ms, choice, Random(seed))
    assert dues == sorted(dues)
    assert all(0 <= due.at_ms < duration_ms for due in dues)
    for course in range(courses):
        own = [due for due in dues if due.course == course]
        assert [due.index for due in own] == list(range(len(own)))
        for before, after in pairwise(own):
            assert before.start_ms + choice[before.turn].whole_ms == after.start_ms
            assert after.at_ms - before.at_ms >= choice[after.turn].speech_ms


def test_live_courses_give_as_many_slices_as_they_have_turns_in_the_time() -> None:
    dues = live(2000, 60_000, turns(CLIPS, Random(3)), Random(3))
    assert len(dues) == pytest.approx(2000 * 60_000 / MEAN_TURN_MS, rel=0.03)


def test_flat_out_spreads_the_slices_over_all_courses() -> None:
    dues = flat_out(4, 10, [TURN])
    assert Counter(due.course for due in dues) == {0: 3, 1: 3, 2: 2, 3: 2}


class Lecturers:
    """A clock that only waiting and sending move, and a broker that takes ``send_ms`` for each call."""

    def __init__(self, send_ms: int) -> None:
        self.now_ms, self._send_ms, self.sent = 1_000_000, send_ms, list[Sequence[Outgoing]]()

    def wait(self, milliseconds: int) -> None:
        self.now_ms += max(0, milliseconds)

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        self.sent.append(outgoings)
        self.now_ms += self._send_ms

    def hand_over(self, dues: Sequence[Due]) -> list[Handed]:
        return hand_over(
            dues, lambda due: message("run", due, TURN, b"flac"), self.send, "run", lambda: self.now_ms, self.wait
        )


def test_a_slice_that_waits_for_the_one_before_is_late_from_its_speech_s_end() -> None:
    dues = [Due(100, 0, 0, 0, 0), Due(110, 1, 0, 0, 0)]
    handed = Lecturers(send_ms=50).hand_over(dues)
    assert [(one.due_ms - 1_000_000, one.acknowledged_ms - 1_000_000) for one in handed] == [(100, 150), (110, 200)]


def test_slices_that_are_due_together_are_sent_together() -> None:
    lecturers = Lecturers(send_ms=50)
    lecturers.hand_over([Due(100, course, 0, 0, 0) for course in range(3)])
    assert [len(outgoings) for outgoings in lecturers.sent] == [3]


def test_flat_out_no_more_are_in_flight_than_the_slicing_task_has() -> None:
    lecturers = Lecturers(send_ms=50)
    handed = lecturers.hand_over(flat_out(3, IN_FLIGHT_SLICES + 1, [TURN]))
    assert [len(outgoings) for outgoings in lecturers.sent] == [IN_FLIGHT_SLICES, 1]
    assert handed[-1].due_ms == handed[0].acknowledged_ms


def test_a_slice_goes_out_as_the_slicing_task_sends_it() -> None:
    sent = message("run", Due(0, 7, 3, 52_000, 0), TURN, b"flac")
    ready = decode_audio_topic(sent.value)
    assert isinstance(ready, SliceReady)
    assert (ready.media_id, ready.slice_index, ready.start_ms, ready.end_ms) == ("run-0007", 3, 52_000, 72_000)
    assert (sent.topic, sent.key) == ("audio.slices.normal", ready.course_id)


def _slice(duration_ms: int) -> Slice:
    span = Span(5000, 5000 + duration_ms)
    return Slice("run-0000", 4, span, Boundary.SILENCE, (span,))


@pytest.mark.parametrize("duration_ms", [12_000, 26_000, 30_000])
def test_the_judge_takes_what_the_stub_says_at_once(duration_ms: int) -> None:
    audio = SliceAudio(_slice(duration_ms), np.zeros(0, np.float32))
    options = TranscriptionOptions(LADDER, JudgeRules())
    (made,) = transcribe(StubEngine(0), [Request(audio, None, {})], options)
    assert (made.outcome, made.attempts, made.reason) == (Outcome.TRANSCRIBED, 1, "")
    assert 55 <= len(made.segments[0].words) <= 65


def test_the_stub_takes_its_time_once_for_each_batch() -> None:
    slept: list[float] = []
    request = Request(SliceAudio(_slice(20_000), np.zeros(0, np.float32)), None, {})
    StubEngine(250, slept.append).transcribe([request, request], LADDER[0])
    assert slept == [0.25]


class Storing:
    """A step that takes 40 ms."""

    def __init__(self, clock: list[int]) -> None:
        self._clock = clock

    def prepare(self, message: Received) -> Arrived:
        raise NotImplementedError

    def handle(self, batch: Sequence[Arrived]) -> list[Sequence[Outgoing]]:
        self._clock[0] += 40
        return [() for _ in batch]


def test_a_slice_is_noted_when_its_step_has_returned_and_an_end_mark_is_not() -> None:
    clock, notes = [1000], io.StringIO()
    transcript = SliceTranscript("run-0000", 4, "en", 1.0, (), Outcome.TRANSCRIBED, "", 1, 0)
    stored = TranscribedSlice("s", "a", "stub", _slice(20_000), transcript)
    plan = MediaPlan("run-0000", "s", "a", 1, 20_000, (), (), 0)
    batch = [Arrived(cast(Received, None), stored), Arrived(cast(Received, None), plan)]
    answers = NotingStep(Storing(clock), notes, lambda: clock[0]).handle(batch)
    assert notes.getvalue() == '{"media_id":"run-0000","slice_index":4,"stored_ms":1040}\n'
    assert len(answers) == 2


HANDED = (Handed("run-0000", 0, 1000, 1010, 500), Handed("run-0001", 0, 1500, 2000, 700))


def _measured(stored: Sequence[Stored], transcripts: int) -> Measured:
    rows = {"slice": transcripts, "slice_transcript": transcripts}
    return measured(JOB, HANDED, stored, rows, {"producer": 0.02, "broker": 0.06}, AROUND)


def test_latency_runs_from_the_end_of_the_speech_to_the_committed_row() -> None:
    result = _measured([Stored("run-0000", 0, 1100), Stored("run-0001", 0, 3000)], 2)
    assert (result.latencies_ms[50], result.latencies_ms[99]) == (100, 1500)
    assert (result.whole_s, result.sending_s, result.slices_per_s) == (2.0, 1.0, 1.0)
    assert (result.behind, result.lost, result.rows, result.size_bytes) == (1, 0, 4, 1200)


def test_what_postgresql_has_no_row_of_is_lost() -> None:
    result = _measured([Stored("run-0000", 0, 1100)], 1)
    assert (result.lost, result.behind) == (1, 1)


def test_where_nothing_was_stored_all_is_lost_and_no_latency_is_made_up() -> None:
    result = _measured([], 0)
    assert result.lost == 2
    assert math.isnan(result.latencies_ms[50])


def test_every_table_says_that_the_engine_is_a_stub() -> None:
    flat = _measured([Stored("run-0000", 0, 1100), Stored("run-0001", 0, 3000)], 2)
    going = measured(Job("", "run", 2, 5000, 0), HANDED, [], {"slice": 0, "slice_transcript": 0}, {}, AROUND)
    text = markdown([going, flat], 32, 0, MACHINE, "python -m bench.load")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) == 3
    assert all("(stub engine)" in heading for heading in headings)
    assert "| flat out | 10.0 | 30.0 | 40.0 | 25 |" in text
