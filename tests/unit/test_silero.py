"""Silero with its real weights: what it hears, and that blocks leave no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline.decoding import decode, find_ffmpeg
from pipeline.detectors.silero import FRAME_SAMPLES, SileroDetector, load_silero
from pipeline.media import choose_track, probe
from pipeline.speech import Probabilities, SpeechGate, SpeechRules
from pipeline.values import Samples

SAME = 1e-5
"""Batches of other sizes round the last bits otherwise."""

MakeDetector = Callable[[], SileroDetector]


@pytest.fixture(scope="module")
def detector(silero_weights: Path) -> MakeDetector:
    session = load_silero(silero_weights)
    return lambda: SileroDetector(session, "silero")


@pytest.fixture(scope="module")
def lecture(shared_data: Path) -> Samples:
    """Forty seconds of a lecture; a sentence runs from 0.8 s to 3.258 s, the next one from 3.758 s."""
    path = shared_data / "lectures" / "zh_physics_yunxi.mp4"
    info = probe(path)
    track = choose_track(info, None, None).track
    assert track
    with decode(path, info, track, ffmpeg=find_ffmpeg()) as decoding:
        return np.concatenate([block.samples for block in decoding])[: 40 * 16_000]


def scores(detector: SileroDetector, blocks: Iterator[Samples]) -> Probabilities:
    return np.concatenate([*(detector.score(block) for block in blocks), detector.finish()])


def cut(samples: Samples, *sizes: int) -> Iterator[Samples]:
    """Blocks of these sizes, over and over."""
    ends = [0]
    while ends[-1] < len(samples):
        ends.append(min(len(samples), ends[-1] + sizes[(len(ends) - 1) % len(sizes)]))
    return (samples[start:end] for start, end in pairwise(ends))


@pytest.mark.fixtures
@pytest.mark.parametrize("sizes", [(512,), (1, 5_000, 33), (80_000,), (7_777,), (480_000, 100)])
def test_the_probabilities_do_not_depend_on_the_size_of_the_blocks(
    detector: MakeDetector, lecture: Samples, sizes: tuple[int, ...]
) -> None:
    whole = scores(detector(), iter([lecture]))
    assert np.ptp(whole) > 0.9
    np.testing.assert_allclose(scores(detector(), cut(lecture, *sizes)), whole, atol=SAME)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 16_000, 512 * 1_100 + 1])
def test_every_frame_that_was_begun_has_one_probability(detector: MakeDetector, size: int) -> None:
    heard = scores(detector(), iter([np.zeros(size, np.float32)]))
    assert heard.shape == (-(-size // FRAME_SAMPLES),)
    assert heard.dtype == np.float32
    assert np.all((heard >= 0) & (heard <= 1))


def test_silence_and_noise_are_not_speech(detector: MakeDetector) -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, 16_000 * 20).astype(np.float32)
    assert scores(detector(), iter([np.zeros_like(noise)])).max() < 0.1
    assert scores(detector(), iter([noise])).max() < 0.5


@pytest.mark.fixtures
def test_speech_is_found_where_it_is(detector: MakeDetector, lecture: Samples) -> None:
    gate = SpeechGate(SpeechRules(), FRAME_SAMPLES)
    first, second = gate.push(scores(detector(), iter([lecture])))[:2]
    assert abs(first.start_ms - 800) < 100
    assert abs(first.end_ms - 3_258) < 200
    assert abs(second.start_ms - 3_758) < 100


@pytest.mark.fixtures
def test_one_media_leaves_no_trace_in_the_next(detector: MakeDetector, lecture: Samples) -> None:
    before = scores(detector(), iter([lecture[:100_000]]))
    scores(detector(), iter([np.ones(50_000, np.float32)]))
    np.testing.assert_array_equal(scores(detector(), iter([lecture[:100_000]])), before)
