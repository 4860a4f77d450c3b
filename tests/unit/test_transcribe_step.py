"""The transcribing step without a broker: what becomes of the messages of a batch, and in which order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.handling import Answer
from consumers.intake import Received
from consumers.metrics import Metrics
from consumers.tracing import Tracing
from consumers.transcribe import CountingWatch, NamedEngine, TranscribeStep, local_engines, topics_of
from pipeline.broker import AUDIO_SLICES, SLICE_TRANSCRIPTS, Outgoing
from pipeline.decoding import find_ffmpeg
from pipeline.devices import Device
from pipeline.engines.faster_whisper import FasterWhisperEngine
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.guarding import NO_MEMORY
from pipeline.hearing import HearingRules, hear
from pipeline.judging import JudgeRules
from pipeline.media import probe
from pipeline.messages import MediaSliced, SliceReady, SliceTranscribed, decode_transcript_topic, encode, slice_ready
from pipeline.precision import Precision
from pipeline.settings import settings_from
from pipeline.transcription import LADDER, Decoding, Engine, Hypothesis, Request, TranscriptionOptions, transcribe
from pipeline.values import Boundary, MediaPlan, Outcome, Priority, Slice, SliceAudio, Span
from tests.integration.speaking import LoudnessDetector, SpeakingEngine
from tests.unit.guarded_parts import Machine

OPTIONS = TranscriptionOptions(LADDER, JudgeRules())
CPU = Device("cpu", Precision.INT8, "faster-whisper")
TRACEPARENT = ("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
PYTHAGORAS = Path(__file__).parents[2] / "demo" / "pythagoras.mp4"


class EnglishEngine(SpeakingEngine):
    """Refuses other languages as a model does that knows one only."""

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        if any(request.language == "zh" for request in requests):
            raise UsageError("the model speaks English only")
        return super().transcribe(requests, decoding)


def a_slice(index: int, course: str = "c", language: str | None = "zh", model: str = "base") -> SliceReady:
    """A second of sound, all of it speech."""
    span = Span(index * 1000, index * 1000 + 1000)
    sound = (np.random.default_rng(index).integers(-9000, 9000, 16_000) / 32768).astype(np.float32)
    audio = SliceAudio(Slice(f"{course}-media", index, span, Boundary.SILENCE, (span,)), sound)
    return slice_ready(
        audio,
        course_id=course,
        language=language,
        prompts={},
        model=model,
        slicing="5" * 16,
        asr="a" * 16,
        priority=Priority.NORMAL,
        codec="flac",
    )


def an_end_mark(course: str = "c") -> MediaSliced:
    return MediaSliced.of(MediaPlan(f"{course}-media", "5" * 16, "a" * 16, 2, 60_000, (), ("late",), 900), course)


def received(value: bytes, headers: tuple[tuple[str, bytes], ...] = ()) -> Received:
    return Received(AUDIO_SLICES[Priority.NORMAL], 0, 7, b"c", value, headers, 1_700_000_000_123)


def a_step(engines: Mapping[str, Engine], metrics: Metrics | None = None) -> TranscribeStep:
    named = {name: NamedEngine(engine, f"scripted {name}") for name, engine in engines.items()}
    return TranscribeStep(named.__getitem__, OPTIONS, metrics or Metrics(), Tracing())


def handled(step: TranscribeStep, *messages: SliceReady | MediaSliced) -> list[Answer]:
    return step.handle([step.prepare(received(encode(message))) for message in messages])


def only(answer: Answer) -> Outgoing:
    assert not isinstance(answer, InvalidInputError), answer
    (outgoing,) = answer
    return outgoing


def transcript(answer: Answer) -> SliceTranscribed:
    message = decode_transcript_topic(only(answer).value)
    assert isinstance(message, SliceTranscribed)
    return message


def test_a_slice_becomes_its_transcript_under_the_key_of_its_course() -> None:
    ready = a_slice(3, "algebra")
    (answer,) = handled(a_step({"base": SpeakingEngine()}), ready)
    (expected,) = transcribe(SpeakingEngine(), [ready.to_request()], OPTIONS)
    assert (only(answer).topic, only(answer).key) == (SLICE_TRANSCRIPTS, "algebra")
    made = transcript(answer).to_value()
    assert (made.slicing, made.asr, made.engine) == (ready.slicing, ready.asr, "scripted base")
    assert made.slice == ready.to_request().audio.slice
    assert replace(made.transcript, engine_ms=0) == replace(expected, engine_ms=0)


MESSAGES = st.one_of(
    st.builds(an_end_mark, st.sampled_from("abc")),
    st.builds(
        a_slice, st.integers(0, 9), st.sampled_from("abc"), st.sampled_from(["zh", "en", None]), st.sampled_from("mn")
    ),
)


@given(st.lists(MESSAGES, min_size=1, max_size=12))
def test_answers_come_in_the_order_of_the_batch_whatever_it_mixes(messages: list[SliceReady | MediaSliced]) -> None:
    engines = {"m": SpeakingEngine(), "n": SpeakingEngine()}
    answers = [decode_transcript_topic(only(answer).value) for answer in handled(a_step(engines), *messages)]
    assert [answer.course_id for answer in answers] == [message.course_id for message in messages]
    for message, answer in zip(messages, answers, strict=True):
        if isinstance(message, MediaSliced):
            assert answer == message
        else:
            assert isinstance(answer, SliceTranscribed)
            assert (answer.slice_index, answer.engine) == (message.slice_index, f"scripted {message.model}")


def test_one_call_of_the_engine_takes_all_slices_of_a_model_across_courses_and_languages() -> None:
    engine = SpeakingEngine()
    handled(a_step({"base": engine}), a_slice(1, "a", "zh"), a_slice(2, "b", "en"), a_slice(3, "c", None))
    assert engine.batches == [[1, 2, 3]]


def test_each_model_has_a_call_of_its_own() -> None:
    base, large = SpeakingEngine(), SpeakingEngine()
    handled(a_step({"base": base, "large": large}), a_slice(1), a_slice(2, model="large"), a_slice(3))
    assert (base.batches, large.batches) == ([[1, 3]], [[2]])


def test_an_end_mark_goes_on_byte_by_byte_behind_the_transcripts() -> None:
    step, mark = a_step({"base": SpeakingEngine()}), encode(an_end_mark())
    first, last = step.handle([step.prepare(received(encode(a_slice(0)))), step.prepare(received(mark))])
    assert transcript(first).slice_index == 0
    assert (only(last).topic, only(last).key, only(last).value) == (SLICE_TRANSCRIPTS, "c", mark)


def test_a_batch_of_end_marks_needs_no_engine() -> None:
    answers = handled(a_step({}), an_end_mark("a"), an_end_mark("b"))
    assert [only(answer).key for answer in answers] == ["a", "b"]


def test_the_trace_and_the_time_of_publishing_travel_on() -> None:
    step = a_step({"base": SpeakingEngine()})
    message = received(encode(a_slice(0)), (("why", b"x"), TRACEPARENT))
    (answer,) = step.handle([step.prepare(message)])
    assert only(answer).headers == (TRACEPARENT, ("published-ms", b"1700000000123"))


@pytest.mark.parametrize("value", [b"", b"no message", encode(an_end_mark())[:-1], encode(a_slice(0))[:-1]])
def test_bytes_that_are_no_message_are_invalid(value: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"audio\.slices"):
        a_step({}).prepare(received(value))


def test_damaged_audio_is_invalid() -> None:
    broken = msgspec.structs.replace(a_slice(0), audio=a_slice(0).audio[:-100])
    with pytest.raises(InvalidInputError, match="audio"):
        a_step({}).prepare(received(encode(broken)))


def test_a_message_can_be_prepared_and_handled_twice_with_one_result() -> None:
    step = a_step({"base": SpeakingEngine()})
    first, second = handled(step, a_slice(1)), handled(step, a_slice(1))
    assert transcript(first[0]).segments == transcript(second[0]).segments


def test_an_engine_that_fails_stops_the_batch() -> None:
    def fail(_call: int) -> None:
        raise RetriableError("the device is gone")

    with pytest.raises(RetriableError, match="the device is gone"):
        handled(a_step({"base": SpeakingEngine(fail)}), a_slice(0), an_end_mark())


def test_a_slice_in_a_language_that_its_model_lacks_is_invalid_and_costs_no_other_its_transcript() -> None:
    step = a_step({"tiny.en": EnglishEngine()})
    messages = [a_slice(at, language=language, model="tiny.en") for at, language in enumerate(["en", "zh", None])]
    first, refused, last = handled(step, *messages)
    assert (transcript(first).slice_index, transcript(last).slice_index) == (0, 2)
    assert isinstance(refused, InvalidInputError)
    assert "English only" in refused.reason


def test_what_the_engine_did_is_counted() -> None:
    metrics = Metrics(usd_per_hour=3600)
    handled(a_step({"base": SpeakingEngine()}, metrics), a_slice(0), a_slice(1), an_end_mark())
    value = metrics.registry.get_sample_value
    assert value("lecturemill_audio_seconds_total") == 2
    assert value("lecturemill_slices_total", {"outcome": "transcribed"}) == 2
    assert value("lecturemill_engine_seconds_count") == 1
    assert value("lecturemill_cost_usd_total", {"step": "transcribe"}) == value("lecturemill_engine_seconds_sum")


def test_an_unclear_slice_is_taken_for_the_language_of_its_own_media_and_not_of_others_in_the_batch() -> None:
    """The real engine's vote, over a model that only detects."""
    clear = [[("<|en|>", 0.9), ("<|zh|>", 0.05)]] * 3
    unclear, own = [("<|en|>", 0.4), ("<|zh|>", 0.3)], [("<|en|>", 0.1), ("<|zh|>", 0.8)]
    detecting = SimpleNamespace(is_multilingual=True, detect_language=lambda _: [*clear, unclear, own])
    engine = FasterWhisperEngine.__new__(FasterWhisperEngine)
    engine._model = SimpleNamespace(model=detecting)
    courses = ["english", "english", "english", "chinese", "chinese"]
    requests = [a_slice(at, course, language=None).to_request() for at, course in enumerate(courses)]
    assert engine._languages(requests, None)[3:] == [("zh", 0.3), ("zh", 0.8)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that are loaded, in order; only ``no-such-model`` is not to be had."""
    loads: list[str] = []

    def load(model: object, *_: object) -> Engine:
        loads.append(str(getattr(model, "name", "")))
        return SpeakingEngine()

    class Present:
        fingerprint = "f"

        def __init__(self, name: str, *_: object) -> None:
            if name == "no-such-model":
                raise UsageError("unknown model; run: lecturemill models list")
            self.name, self.folder = name, Path("/models") / name

    monkeypatch.setattr("consumers.transcribe.present_model", Present)
    monkeypatch.setattr("consumers.transcribe.load_engine", load)
    return loads


@pytest.fixture
def engine_of(tmp_path: Path) -> Callable[[str], NamedEngine]:
    return local_engines(CPU, settings_from({"LECTUREMILL_HOME": str(tmp_path)}), print, Metrics(), 8)


def test_an_engine_is_loaded_at_its_first_use_and_kept(
    asked: list[str], engine_of: Callable[[str], NamedEngine]
) -> None:
    assert asked == []
    assert engine_of("base").label == "faster-whisper base int8 cpu"
    assert engine_of("base") is engine_of("base")
    assert asked == ["base"]


def test_of_three_models_the_two_used_last_are_kept(asked: list[str], engine_of: Callable[[str], NamedEngine]) -> None:
    for name in ["a", "b", "a", "c", "a", "c", "b"]:
        engine_of(name)
    assert asked == ["a", "b", "c", "b"]


def test_a_model_that_is_not_to_be_had_is_asked_for_again_and_never_a_dead_letter(
    asked: list[str], engine_of: Callable[[str], NamedEngine]
) -> None:
    step = TranscribeStep(engine_of, OPTIONS, Metrics(), Tracing())
    for _ in range(2):
        with pytest.raises(RetriableError, match=r"wait for the model no-such-model.*run: lecturemill models list"):
            handled(step, a_slice(0, model="no-such-model"), a_slice(1))
    assert asked == []


def test_topics_are_taken_by_urgency() -> None:
    assert list(topics_of("bulk,urgent")) == [Priority.URGENT, Priority.BULK]
    with pytest.raises(UsageError, match="fast"):
        topics_of("urgent,fast")


def test_a_real_model_gives_through_messages_what_it_gives_when_called(tmp_path: Path) -> None:
    settings = settings_from(os.environ | {"LECTUREMILL_HOME": str(tmp_path)})
    named = local_engines(CPU, settings, print, Metrics(), 8)("base")
    with hear("m", PYTHAGORAS, probe(PYTHAGORAS), HearingRules("zh", None), LoudnessDetector, find_ffmpeg()) as hearing:
        (audio,) = islice(hearing, 1)
    ready = slice_ready(
        audio,
        course_id="c",
        language="zh",
        prompts={"zh": "勾股定理。"},
        model="base",
        slicing="5" * 16,
        asr="a" * 16,
        priority=Priority.URGENT,
        codec="flac",
    )
    step = TranscribeStep(lambda _: named, OPTIONS, Metrics(), Tracing())
    (answer,) = handled(step, ready)
    (expected,) = transcribe(named.engine, [Request(audio, "zh", {"zh": "勾股定理。"})], OPTIONS)
    made = transcript(answer).to_value()
    assert "勾股" in made.transcript.segments[0].text
    assert replace(made.transcript, engine_ms=0) == replace(expected, engine_ms=0)
    assert made.engine == "faster-whisper base int8 cpu"


def test_the_engine_of_a_transcript_names_the_precision_that_it_was_computed_in() -> None:
    machine, metrics = Machine("fp16", "int8", most=4), Metrics()
    machine.watch = CountingWatch(metrics, lambda _: None)  # type: ignore[assignment]
    step = a_step({"base": machine.guard()}, metrics)
    assert step.room() > 4
    machine.free = 0.05
    assert transcript(handled(step, a_slice(0))[0]).engine == "fused base fp16 cuda"
    assert step.room() == 4
    assert transcript(handled(step, a_slice(1))[0]).engine == "fused base int8 cuda"
    value = metrics.registry.get_sample_value
    assert value("lecturemill_precision_steps_total", {"direction": "down", "precision": "int8"}) == 1
    assert step.room() == value("lecturemill_batch_bound_slices") == 2


def test_what_did_not_fit_or_was_wrong_is_counted_and_said() -> None:
    metrics, said = Metrics(), []
    watch = CountingWatch(metrics, said.append)
    watch.ran_out(256)
    watch.refused(256, "faster-whisper base fp16 cuda", "other texts")
    watch.bounded(64, "memory ran out")
    value = metrics.registry.get_sample_value
    assert value("lecturemill_out_of_memory_total") == 1
    assert value("lecturemill_batch_sizes_refused_total", {"slices": "256"}) == 1
    assert said == [
        "out of memory with 256 slices at once",
        "no batches of 256 (faster-whisper base fp16 cuda): other texts; run: lecturemill doctor --engine",
        "at most 64 slices at once: memory ran out",
    ]


def test_a_slice_that_fails_is_a_transcript_and_no_dead_letter() -> None:
    machine = Machine()
    machine.engines[Precision.FP16].fits = lambda numbers: 1 not in numbers
    answers = [transcript(one) for one in handled(a_step({"base": machine.guard()}), *map(a_slice, range(3)))]
    assert [one.outcome for one in answers] == [Outcome.TRANSCRIBED, Outcome.FAILED, Outcome.TRANSCRIBED]
    assert (answers[1].reason, answers[1].segments) == (NO_MEMORY, ())
