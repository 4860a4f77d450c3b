"""pyannote as a detector: how windows become frames (with a stand-in), and what the real model hears."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.decoding import decode, find_ffmpeg
from pipeline.detectors.pyannote import (
    FRAME_SAMPLES,
    MARGIN_FRAMES,
    RECEPTIVE_SAMPLES,
    WINDOW_FRAMES,
    WINDOW_SAMPLES,
    PyannoteDetector,
    Segmentation,
    _require_segmentation,
    load_pyannote,
)
from pipeline.errors import UsageError
from pipeline.media import choose_track, probe
from pipeline.models import default_cache, fetch_model
from pipeline.speech import Probabilities, SpeechGate, SpeechRules
from pipeline.values import Samples, Span

RANDOM = np.random.default_rng(5).random(60 * 16_000).astype(np.float32)


def heard_sample(window: Samples) -> Probabilities:
    """A stand-in that answers, for each frame, the sample in the middle of its receptive field."""
    assert window.shape == (WINDOW_SAMPLES,)
    return np.asarray(window[RECEPTIVE_SAMPLES // 2 :: FRAME_SAMPLES][:WINDOW_FRAMES], np.float32)


def distance_to_edge(window: Samples) -> Probabilities:
    """A stand-in that answers how many frames of context each frame has on its poorer side."""
    place = np.arange(WINDOW_FRAMES, dtype=np.float32)
    return np.asarray(np.minimum(place, WINDOW_FRAMES - 1 - place) + 0 * window[0], np.float32)


def scores(model: Segmentation, samples: Samples, *ends: int) -> Probabilities:
    detector = PyannoteDetector(model, "pyannote")
    return np.concatenate([*map(detector.score, np.split(samples, sorted(ends))), detector.finish()])


def middles(samples: Samples) -> Probabilities:
    """The sample in the middle of each frame that was begun; zeros after the end."""
    return np.pad(samples, (0, FRAME_SAMPLES))[FRAME_SAMPLES // 2 :: FRAME_SAMPLES][: -(-len(samples) // FRAME_SAMPLES)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(RANDOM)), st.lists(st.integers(0, len(RANDOM)), max_size=6))
def test_every_frame_is_the_models_answer_at_its_own_middle(size: int, ends: list[int]) -> None:
    """For any length and any blocks: none missing, none twice, none shifted."""
    np.testing.assert_array_equal(scores(heard_sample, RANDOM[:size], *ends), middles(RANDOM[:size]))


def test_ten_hours_do_not_drift() -> None:
    detector = PyannoteDetector(heard_sample, "pyannote")
    minute = np.zeros(60 * 16_000, np.float32)
    frames = sum(detector.score(minute).size for _ in range(600))
    frames += sum(part.size for part in (detector.score(RANDOM), detector.finish()))
    assert frames == -(-601 * 60 * 16_000 // FRAME_SAMPLES)


def test_frames_near_the_edge_of_a_window_are_taken_from_its_neighbour() -> None:
    context = scores(distance_to_edge, RANDOM)
    assert context[MARGIN_FRAMES:-MARGIN_FRAMES].min() >= MARGIN_FRAMES
    assert context[0] == 0


def test_only_as_much_audio_is_kept_as_the_next_window_needs() -> None:
    detector = PyannoteDetector(heard_sample, "pyannote")
    for _ in range(20):
        detector.score(RANDOM)
        assert detector._audio.size < WINDOW_SAMPLES


def test_without_the_extra_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYANNOTE_METRICS_ENABLED", "true")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"needs the extra 'diarization': pip install 'lecturemill\[dia"):
        load_pyannote(Path("pytorch_model.bin"))
    assert os.environ["PYANNOTE_METRICS_ENABLED"] == "false"


@pytest.mark.parametrize("wrong", [{"powerset": False}, {"frames": 293}, {"step_s": 0.02}, {"duration_s": 0.025}])
def test_a_model_of_another_kind_is_refused_by_name(wrong: dict[str, float]) -> None:
    _require_segmentation(network_of(), Path("good.bin"))
    with pytest.raises(UsageError, match=r"odd\.bin is no powerset segmentation"):
        _require_segmentation(network_of(**wrong), Path("odd.bin"))


def network_of(
    powerset: float = True, frames: float = 589, step_s: float = 270 / 16_000, duration_s: float = 991 / 16_000
) -> SimpleNamespace:
    return SimpleNamespace(
        receptive_field=SimpleNamespace(step=step_s, duration=duration_s),
        specifications=SimpleNamespace(powerset=bool(powerset)),
        num_frames=lambda _samples: frames,
    )


@pytest.fixture(scope="module")
def model() -> Iterator[Segmentation]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYANNOTE_METRICS_ENABLED", "")  # so that what the loader sets there goes again
        found = fetch_model("pyannote-segmentation", default_cache(), print)
        yield load_pyannote(found.folder / "pytorch_model.bin")


@pytest.fixture(scope="module")
def lecture(shared_data: Path) -> Samples:
    """A minute's lecture; its first sentence runs from 0.8 s to 3.258 s."""
    path = shared_data / "lectures" / "zh_physics_yunxi.mp4"
    info = probe(path)
    track = choose_track(info, None, None).track
    assert track
    with decode(path, info, track, ffmpeg=find_ffmpeg()) as decoding:
        return np.concatenate([block.samples for block in decoding])


def spans_of(model: Segmentation, samples: Samples) -> list[Span]:
    gate = SpeechGate(SpeechRules(), FRAME_SAMPLES)
    return [*gate.push(scores(model, samples)), *gate.finish(len(samples) // 16)]


@pytest.mark.diarization
def test_the_real_models_probabilities_do_not_depend_on_the_size_of_the_blocks(
    model: Segmentation, lecture: Samples
) -> None:
    whole = scores(model, lecture)
    assert np.ptp(whole) > 0.9
    assert np.all((whole >= 0) & (whole <= 1))
    assert whole.shape == (-(-len(lecture) // FRAME_SAMPLES),)
    np.testing.assert_array_equal(scores(model, lecture, *range(0, len(lecture), 33_333)), whole)


@pytest.mark.diarization
@pytest.mark.parametrize("size", [1, 269, 271, 991, 5_000])
def test_the_real_model_hears_media_of_any_length(model: Segmentation, size: int) -> None:
    assert scores(model, RANDOM[:size]).shape == (-(-size // FRAME_SAMPLES),)


@pytest.mark.diarization
def test_silence_and_noise_are_not_speech(model: Segmentation) -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, 16_000 * 20).astype(np.float32)
    assert spans_of(model, np.zeros_like(noise)) == []
    assert spans_of(model, noise) == []


@pytest.mark.diarization
def test_the_same_sentence_is_heard_at_its_own_place_wherever_it_stands(model: Segmentation, lecture: Samples) -> None:
    sentence = lecture[700 * 16 : 3_350 * 16]
    starts_ms = [4_000, 31_234, 67_777, 101_003]
    heard = np.zeros(107_000 * 16, np.float32)
    for start_ms in starts_ms:
        heard[start_ms * 16 : start_ms * 16 + len(sentence)] = sentence
    spans = [span for span in spans_of(model, heard) if span.duration_ms > 2_000]
    assert len(spans) == len(starts_ms)
    for span, start_ms in zip(spans, starts_ms, strict=True):
        assert abs(span.start_ms - (start_ms + 100)) < 100
        assert abs(span.end_ms - (start_ms + 2_558)) < 200
    assert all(first.end_ms < second.start_ms for first, second in pairwise(spans))
