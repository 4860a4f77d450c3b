"""The bench of the engines: what its figures are made of, without an engine."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import clips, stream
from bench.clips import Lecture
from bench.engine_measure import Loaded, Timing
from bench.engine_picture import picture
from bench.engine_summary import differences, ratio, summary, table
from bench.engine_systems import BATCHED, OURS, SYSTEMS, Heard, System, Task, present
from bench.limits import Rates, Work, limit_ms, operations, step_bytes
from bench.values import Timed
from consumers.transcribe import rules_of, spare_collector
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.messages import SliceReady, encode, slice_ready
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import Boundary, Priority, Segment, Slice, SliceAudio, Span, Word

BASE = WhisperWeights(
    arrays={},
    heads=8,
    encoder_layers=6,
    decoder_layers=6,
    width=512,
    mels=80,
    vocabulary=51_865,
    frames=1500,
    context_tokens=448,
    end=50_257,
    suppressed=(),
    suppressed_first=(),
    alignment_heads=(),
)


class SayingEngine:
    """Says where each slice begins, in one certain word."""

    fingerprint = "saying"

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:  # noqa: ARG002
        return [_said(request.audio.slice.span, request.language or "en") for request in requests]


def _said(span: Span, language: str) -> Hypothesis:
    words = (Word(f"at {span.start_ms}", span.start_ms, span.end_ms, 0.9),)
    return Hypothesis(language, 1.0, Segment(span.start_ms, span.end_ms, words[0].text, words, -0.1, 0.0, 1.0, 0.0))


def a_message(index: int) -> SliceReady:
    span = Span(index * 1000, index * 1000 + 1000)
    sound = np.full(16_000, 0.25, np.float32)
    return slice_ready(
        SliceAudio(Slice("lecture", index, span, Boundary.SILENCE, (span,)), sound),
        course_id="c",
        language="en",
        prompts={},
        model="base",
        slicing="5" * 16,
        asr="a" * 16,
        priority=Priority.NORMAL,
        codec="flac",
    )


def a_lecture(slices: int) -> Lecture:
    sentences = tuple(Timed(f"at {at * 1000}", at * 1000, at * 1000 + 1000) for at in range(slices))
    messages = tuple(encode(a_message(at)) for at in range(slices))
    return Lecture("lecture", "en", slices * 1000, sentences, messages)


def loaded(name: str, rates: dict[int, list[float]]) -> Loaded:
    """Over a minute of sound, at so many times real time in each round, by batch size."""
    system = next(one for one in SYSTEMS if one.name == name)
    timings = [Timing(name, batch, True, 60 / rate, 60.0) for batch, some in rates.items() for rate in some]
    return Loaded(system, lambda *_: [], clips.requests([a_lecture(2)], 2), timings)


def test_a_ratio_is_that_of_the_best_batch_sizes_round_by_round() -> None:
    own, peer = loaded(OURS, {8: [50.0, 20.0, 60.0]}), loaded(BATCHED, {2: [8.0], 4: [10.0, 5.0, 10.0]})
    assert ratio(own, peer, with_words=True) == pytest.approx(5.0)
    assert ratio(own, peer, with_words=False) is None


def test_a_batch_size_that_does_not_fit_into_the_memory_is_passed_over() -> None:
    said: list[str] = []

    def run(requests: Sequence[Request], batch: int, with_words: bool) -> list[Heard]:  # noqa: ARG001
        if batch > 4:
            raise RuntimeError("out of memory\nand more")
        return [Heard("")] * len(requests)

    one = Loaded(System("x", lambda _: run, {}), run, clips.requests([a_lecture(2)], 2))
    one.explore((2, 8), said.append)
    assert one.best_batch == 2
    assert said[-1] == "x at 8: out of memory"


def test_texts_count_as_different_by_characters_or_words_and_not_by_script_or_marks() -> None:
    there = [Heard("我們來看。"), Heard("So we look at it.")]
    here = [Heard("我们来看"), Heard("so we looked at it")]
    found = differences(here, there, ["zh", "en"])
    assert (found.errors, found.tokens) == (1, 9)


def test_the_summary_judges_each_system_on_the_lectures_and_the_table_shows_it() -> None:
    lecture = a_lecture(3)
    requests = clips.requests([lecture], 6)
    rows = [SayingEngine().transcribe(requests, Decoding())[at].segment for at in range(6)]
    heard = [Heard(row.text, tuple(Timed(word.text, word.start_ms, word.end_ms) for word in row.words)) for row in rows]
    one = loaded(OURS, {8: [50.0]})
    one.slices, one.heard = requests, heard
    found = summary({OURS: one}, [lecture])
    assert found["systems"][OURS]["error_rate"] == {"en": 0.0}
    assert found["systems"][OURS]["word_start_ms"] == {"median": 0, "p90": 0}
    assert "| ours | 8 | 50.0 | – |" in table(found)


def test_what_is_no_part_of_the_installation_is_not_measured() -> None:
    task = Task(clips.SHARED_DATA, "cpu", "f32", 2)
    assert [one.name for one in present(["ours", "no such system"], task)] == ["ours"]


def test_the_encoder_of_the_base_model_takes_as_many_operations_as_its_layers_have() -> None:
    """2 x 12 x 512² for each of 1500 positions and 6 layers are 57 billion; attention and convolutions are the rest."""
    assert operations(BASE, Work(1500, 1, 5, 100, 2, 2)) / 1e9 == pytest.approx(57 + 28 + 5 + 9, rel=0.1)


@given(st.integers(1, 512), st.integers(1, 448))
def test_a_larger_batch_never_costs_a_slice_more(slices: int, steps: int) -> None:
    rates = Rates(1e12, 1e11)
    one, more = (Work(1500, count, 5, steps, 2, 2) for count in (slices, slices + 1))
    assert step_bytes(BASE, more) < step_bytes(BASE, one)
    assert limit_ms(BASE, more, rates) < limit_ms(BASE, one, rates)


def test_slices_come_again_as_those_of_other_media() -> None:
    some = clips.ready([a_lecture(2)], 5)
    assert [(one.media_id, one.slice_index) for one in some] == [
        ("lecture-0", 0), ("lecture-0", 1), ("lecture-1", 0), ("lecture-1", 1), ("lecture-2", 0),
    ]  # fmt: skip


def test_every_slice_that_goes_through_the_simulated_stream_is_delivered() -> None:
    streamed = stream.stream(SayingEngine(), clips.ready([a_lecture(3)], 50), batch=8, cores=2)
    assert streamed.slices == 50
    assert streamed.audio_s == 50.0
    assert 0 < streamed.steady_slices < 50
    assert streamed.retried == 0


def test_a_buffer_is_filled_by_messages_and_not_by_their_bytes() -> None:
    rules = rules_of({Priority.NORMAL: "audio.slices.normal"}, 256, cores=16)
    assert rules.buffer_messages >= 3 * 256
    assert rules.buffer_bytes >= rules.buffer_messages * 960_044, "30 s of sound that FLAC cannot make smaller"
    assert rules.prepare_threads == 4


def test_what_is_loaded_is_left_out_of_later_collections() -> None:
    try:
        spare_collector()
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()


def test_the_picture_has_a_bar_for_each_system_and_no_markup_of_theirs() -> None:
    systems = {"a<b": {"x_real_time": 10.0}, OURS: {"x_real_time": 1234.0}}
    machine = {"model": "base", "card": "", "processor": "P", "date": "2026-11-30"}
    drawn = picture({"systems": systems, "machine": machine})
    assert drawn.count("<rect") == 2
    assert "a&lt;b" in drawn
    assert "1,234 ×" in drawn
