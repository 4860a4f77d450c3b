"""The ladder, over an engine that gives scripted answers: which slices are decoded again, and which answer wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judging import JudgeRules
from pipeline.transcription import (
    LADDER,
    Decoding,
    Failed,
    Hypothesis,
    Request,
    TranscriptionOptions,
    label_of,
    transcribe,
)
from pipeline.values import Boundary, Outcome, Segment, Slice, SliceAudio, SliceTranscript, Span, Word

PROMPTS = {"zh": "大家好，今天我们讲勾股定理。", "en": "Hello, today we speak of the Hamiltonian."}
OPTIONS = TranscriptionOptions(LADDER, JudgeRules())
SPEECH = Span(200, 5_000)
SAMPLED = [decoding for decoding in LADDER if decoding.temperature]


@dataclass(frozen=True)
class Answer:
    """What one decoding gives: the words at even times over the speech, from ``from_ms`` on."""

    text: str = "This is the text."
    logprob: float = -0.2
    no_speech: float = 0.0
    from_ms: int = SPEECH.start_ms
    probability: float = 0.9
    language: str = "en"


GOOD = Answer()
POOR = Answer("This is poor text.", logprob=-1.2)
POORER = Answer("This is poorer text.", logprob=-1.5)
SKIPPING = Answer("This skips a part.", from_ms=3_000)
SKIPPING_MORE = Answer("This skips yet more.", logprob=-0.1, from_ms=4_000)
SILENT = Answer("This is no speech.", logprob=-0.9, no_speech=0.9)
EMPTY = Answer("...")
ANSWERS = [GOOD, POOR, SKIPPING, SKIPPING_MORE, SILENT]


@dataclass
class ScriptedEngine:
    """Answers per slice index, one per rung; the last one is repeated."""

    script: Mapping[int, Sequence[Answer]]
    fingerprint: str = "scripted"
    batches: list[list[int]] = field(default_factory=list)
    asked: list[list[str | None]] = field(default_factory=list)
    decodings: list[Decoding] = field(default_factory=list)

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        assert all(request.prompts == PROMPTS for request in requests)
        rung = len(self.batches)
        self.batches.append([request.audio.slice.index for request in requests])
        self.asked.append([request.language for request in requests])
        self.decodings.append(decoding)
        return [self._answer(request, rung) for request in requests]

    def _answer(self, request: Request, rung: int) -> Hypothesis:
        answers = self.script[request.audio.slice.index]
        answer = answers[min(rung, len(answers) - 1)]
        detected = (answer.language, 0.4)
        language, probability = (request.language, 1.0) if request.language else detected
        return Hypothesis(language, probability, _segment(answer))


def _segment(answer: Answer) -> Segment:
    texts = answer.text.split()
    step = (SPEECH.end_ms - answer.from_ms) // len(texts)
    starts = range(answer.from_ms, SPEECH.end_ms, step)
    words = tuple(
        Word(f" {text}", start, start + step, answer.probability) for text, start in zip(texts, starts, strict=False)
    )
    return Segment(SPEECH.start_ms, SPEECH.end_ms, answer.text, words, answer.logprob, answer.no_speech, 1.0, 0.0)


def a_request(index: int, language: str | None = None) -> Request:
    piece = Slice("m", index, Span(0, 6_000), Boundary.SILENCE, (SPEECH,))
    return Request(SliceAudio(piece, np.zeros(96_000, np.float32)), language, PROMPTS)


def run(engine: ScriptedEngine, indices: Sequence[int] | None = None) -> list[SliceTranscript]:
    return transcribe(engine, [a_request(index) for index in (indices or list(engine.script))], OPTIONS)


def climb(*answers: Answer) -> tuple[SliceTranscript, ScriptedEngine]:
    """One slice with these answers, rung by rung."""
    engine = ScriptedEngine({0: answers})
    (transcript,) = run(engine)
    return transcript, engine


def text(transcript: SliceTranscript) -> str:
    return transcript.segments[0].text


def test_a_good_answer_is_taken_as_it_is() -> None:
    transcript, engine = climb(GOOD)
    assert engine.batches == [[0]]
    assert (text(transcript), transcript.outcome, transcript.reason) == (GOOD.text, Outcome.TRANSCRIBED, "")
    assert (transcript.media_id, transcript.slice_index, transcript.attempts) == ("m", 0, 1)
    assert (transcript.language, transcript.language_probability) == ("en", 0.4)


def test_only_the_flagged_slices_are_decoded_again() -> None:
    engine = ScriptedEngine({0: [GOOD], 1: [POOR, GOOD], 2: [GOOD], 3: [POOR, POOR, GOOD]})
    transcripts = run(engine)
    assert engine.batches == [[0, 1, 2, 3], [1, 3], [3]]
    assert [transcript.attempts for transcript in transcripts] == [1, 2, 1, 3]
    assert {text(transcript) for transcript in transcripts} == {GOOD.text}


def test_the_rungs_are_tried_in_order_and_no_further_than_the_last() -> None:
    transcript, engine = climb(POOR)
    assert engine.decodings == list(LADDER)
    assert transcript.attempts == len(LADDER)


def test_what_stays_bad_is_filtered_with_its_reason_and_kept_as_evidence() -> None:
    transcript, _ = climb(POORER, POOR, POORER)
    assert (transcript.outcome, transcript.reason) == (Outcome.FILTERED, "improbable")
    assert text(transcript) == POOR.text, "the most probable of the bad ones"


@pytest.mark.parametrize(
    ("answers", "winner"),
    [
        ((POOR, SKIPPING, POOR), SKIPPING),
        ((SKIPPING, POOR), SKIPPING),
        ((SKIPPING, GOOD), GOOD),
        ((POOR, GOOD, POOR), GOOD),
        ((SKIPPING_MORE, SKIPPING), SKIPPING),
        ((SKIPPING, SKIPPING_MORE), SKIPPING),
    ],
)
def test_the_best_attempt_wins_wherever_it_stood(answers: tuple[Answer, ...], winner: Answer) -> None:
    transcript, _ = climb(*answers)
    assert (text(transcript), transcript.outcome) == (winner.text, Outcome.TRANSCRIBED)


def test_a_skipped_part_is_told_and_filters_nothing() -> None:
    transcript, engine = climb(SKIPPING)
    assert (transcript.outcome, transcript.reason) == (Outcome.TRANSCRIBED, "skipped speech")
    assert tuple(engine.decodings) == LADDER[: -len(SAMPLED)], "sampling gives other words, not more of them"


def test_a_text_found_on_a_higher_rung_must_convince() -> None:
    middling = Answer("These words are not very sure.", probability=0.7)
    assert climb(middling)[0].outcome is Outcome.TRANSCRIBED
    transcript, _ = climb(POOR, middling)
    assert (transcript.outcome, transcript.reason) == (Outcome.FILTERED, "unsure")


@pytest.mark.parametrize(("answer", "reason"), [(SILENT, "no speech"), (EMPTY, "no text")])
def test_where_there_is_nothing_to_hear_the_climb_ends(answer: Answer, reason: str) -> None:
    transcript, engine = climb(answer, GOOD)
    assert engine.batches == [[0]]
    assert (transcript.outcome, transcript.reason) == (Outcome.FILTERED, reason)


def test_nothing_to_hear_on_a_higher_rung_ends_the_climb_too() -> None:
    transcript, engine = climb(POOR, SILENT, GOOD)
    assert engine.batches == [[0], [0]]
    assert transcript.outcome is Outcome.FILTERED
    transcript, _ = climb(SKIPPING, EMPTY, GOOD)
    assert (text(transcript), transcript.outcome) == (SKIPPING.text, Outcome.TRANSCRIBED)


def test_the_prompt_said_back_is_an_echo_only_where_it_was_given() -> None:
    transcript, engine = climb(Answer("today we speak"))
    assert [decoding.use_prompt for decoding in engine.decodings] == [True, False]
    assert (text(transcript), transcript.outcome, transcript.reason) == ("today we speak", Outcome.TRANSCRIBED, "")


def test_a_retry_keeps_the_language_that_was_detected_and_its_probability() -> None:
    transcript, engine = climb(Answer(POOR.text, logprob=-1.2, language="zh"), Answer(language="ru"))
    assert engine.asked == [[None], ["zh"]]
    assert (text(transcript), transcript.language, transcript.language_probability) == (GOOD.text, "zh", 0.4)


def test_the_language_that_was_asked_for_is_asked_of_the_engine() -> None:
    engine = ScriptedEngine({0: [POOR, GOOD]})
    (transcript,) = transcribe(engine, [a_request(0, "zh")], OPTIONS)
    assert engine.asked == [["zh"], ["zh"]]
    assert (transcript.language, transcript.language_probability) == ("zh", 1.0)


def test_no_slices_need_no_engine() -> None:
    engine = ScriptedEngine({})
    assert transcribe(engine, [], OPTIONS) == []
    assert engine.batches == []


def test_the_engine_time_is_shared_out() -> None:
    transcripts = run(ScriptedEngine({0: [GOOD], 1: [POOR]}))
    assert transcripts[0].engine_ms == transcripts[1].engine_ms >= 0


@given(
    st.permutations(range(6)),
    st.lists(st.lists(st.sampled_from(ANSWERS), min_size=1), min_size=6, max_size=6),
)
def test_every_slice_has_its_transcript_in_the_order_of_the_requests(
    order: list[int], answers: list[list[Answer]]
) -> None:
    engine = ScriptedEngine(dict(enumerate(answers)))
    transcripts = run(engine, order)
    assert [transcript.slice_index for transcript in transcripts] == order
    for transcript in transcripts:
        alone = run(ScriptedEngine({transcript.slice_index: answers[transcript.slice_index]}))[0]
        assert (text(alone), alone.outcome, alone.attempts) == (
            text(transcript),
            transcript.outcome,
            transcript.attempts,
        )
    for before, after in zip(engine.batches, engine.batches[1:], strict=False):
        assert set(after) <= set(before)


class FailingEngine(ScriptedEngine):
    """Cannot do what the script says ``None`` of."""

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis | Failed]:  # type: ignore[override]  # noqa: ARG002
        rung = len(self.batches)
        self.batches.append([request.audio.slice.index for request in requests])
        return [self._answer_or_not(request, rung) for request in requests]

    def _answer_or_not(self, request: Request, rung: int) -> Hypothesis | Failed:
        answers = self.script[request.audio.slice.index]
        if answers[min(rung, len(answers) - 1)] is NOTHING:
            return Failed("no memory for it")
        return self._answer(request, rung)


NOTHING = Answer("nothing")


def test_a_slice_that_cannot_be_decoded_is_failed_with_its_reason_and_tried_no_further() -> None:
    engine = FailingEngine({0: [GOOD], 1: [NOTHING], 2: [POOR, GOOD]})
    first, failed, last = run(engine)
    assert engine.batches == [[0, 1, 2], [2]]
    assert (failed.outcome, failed.reason, failed.segments) == (Outcome.FAILED, "no memory for it", ())
    assert (failed.media_id, failed.slice_index, failed.attempts) == ("m", 1, 1)
    assert [first.outcome, last.outcome] == [Outcome.TRANSCRIBED] * 2


def test_a_retry_that_cannot_be_done_leaves_the_text_that_there_is() -> None:
    (transcript,) = run(FailingEngine({0: [SKIPPING, NOTHING]}))
    assert (text(transcript), transcript.outcome, transcript.attempts) == (SKIPPING.text, Outcome.TRANSCRIBED, 2)


class AdaptingEngine(ScriptedEngine):
    """Is told of each batch."""

    label = "scripted fp16"

    def __init__(self, script: Mapping[int, Sequence[Answer]]) -> None:
        super().__init__(script)
        self.settled: list[int] = []

    def settle(self, slices: int, took_ms: int) -> None:
        assert took_ms >= 0
        self.settled.append(slices)


def test_an_engine_that_adapts_is_told_of_each_batch_once_after_all_its_rungs() -> None:
    engine = AdaptingEngine({0: [GOOD], 1: [POOR, GOOD]})
    run(engine)
    assert (engine.settled, len(engine.batches), label_of(engine)) == ([2], 2, "scripted fp16")
    assert label_of(ScriptedEngine({})) == ""
