"""Cutting: each slice carries exactly the media's samples at its place, however the audio comes in."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cutting import cut_slices
from pipeline.slicing import SlicingRules
from pipeline.speech import Probabilities, SpeechRules
from pipeline.values import SAMPLES_PER_MS, Samples, SliceAudio

FRAME_SAMPLES = 512
SMALL = SlicingRules(max_slice_ms=3_000, max_inner_silence_ms=800, good_silence_ms=300)
SHORT = SpeechRules(max_speech_ms=2_600, search_ms=1_000)
"""A tenth of the real sizes: many slices in few seconds."""


class Block:
    """Audio at its place, in a class that can be referred to weakly."""

    def __init__(self, start_ms: int, samples: Samples) -> None:
        self.start_ms, self.samples = start_ms, samples


class LoudnessDetector:
    """Takes any frame for speech whose mean is far from zero; keeps what is less than a frame for the next block."""

    frame_samples = FRAME_SAMPLES
    fingerprint = "loudness"

    def __init__(self) -> None:
        self._rest = np.zeros(0, np.float32)

    def score(self, samples: Samples) -> Probabilities:
        joined = np.concatenate([self._rest, samples])
        whole = len(joined) - len(joined) % FRAME_SAMPLES
        self._rest = joined[whole:]
        frames = joined[:whole].reshape(-1, FRAME_SAMPLES)
        return np.asarray(np.abs(frames).mean(axis=1) > 0.3, np.float32)

    def finish(self) -> Probabilities:
        return self.score(np.zeros(-len(self._rest) % FRAME_SAMPLES, np.float32))


def sound(runs: Sequence[tuple[bool, int]]) -> Samples:
    """Noise whose every sample is its own: loud or faint, for so many milliseconds each."""
    loudness = np.repeat([1.0 if loud else 0.01 for loud, _ in runs], [ms * SAMPLES_PER_MS for _, ms in runs])
    return np.asarray(np.random.default_rng(7).random(len(loudness)) * loudness, np.float32)


def blocks(media: Samples, sizes_ms: Sequence[int]) -> Iterator[Block]:
    """The media in blocks of these sizes, the last of which comes again and again."""
    at, sizes = 0, iter(sizes_ms)
    while at < len(media):
        size = next(sizes, sizes_ms[-1]) * SAMPLES_PER_MS
        yield Block(at // SAMPLES_PER_MS, media[at : at + size])
        at += size


def cut(media: Samples, sizes_ms: Sequence[int]) -> list[SliceAudio]:
    return list(cut_slices("m", blocks(media, sizes_ms), LoudnessDetector(), SHORT, SMALL))


runs = st.lists(st.tuples(st.booleans(), st.integers(1, 4_000)), min_size=1, max_size=10)
sizes = st.lists(st.integers(5, 5_000), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(runs, sizes)
def test_a_slice_holds_the_samples_of_the_media_at_its_span(drawn: list[tuple[bool, int]], sizes_ms: list[int]) -> None:
    media = sound(drawn)
    for one in cut(media, sizes_ms):
        span = one.slice.span
        np.testing.assert_array_equal(one.samples, media[span.start_ms * SAMPLES_PER_MS : span.end_ms * SAMPLES_PER_MS])
        assert len(one.samples) == span.duration_ms * SAMPLES_PER_MS


@settings(max_examples=60, deadline=None)
@given(runs, sizes)
def test_the_slices_do_not_depend_on_the_blocks(drawn: list[tuple[bool, int]], sizes_ms: list[int]) -> None:
    media = sound(drawn)
    assert [one.slice for one in cut(media, sizes_ms)] == [one.slice for one in cut(media, [1_000_000])]


@settings(max_examples=60, deadline=None)
@given(runs, sizes)
def test_slices_are_numbered_in_order_and_do_not_overlap(drawn: list[tuple[bool, int]], sizes_ms: list[int]) -> None:
    slices = [one.slice for one in cut(sound(drawn), sizes_ms)]
    assert [one.index for one in slices] == list(range(len(slices)))
    assert all(before.span.end_ms <= after.span.start_ms for before, after in pairwise(slices))


def test_a_media_that_ends_inside_a_millisecond_loses_less_than_that() -> None:
    media = sound([(False, 500), (True, 1_000)])[:-7]
    (one,) = cut(media, [300])
    assert one.slice.span.end_ms == 1_499
    np.testing.assert_array_equal(one.samples, media[one.slice.span.start_ms * 16 : 1_499 * 16])


def test_silence_gives_no_slice() -> None:
    assert cut(sound([(False, 20_000)]), [1_000]) == []


def test_no_audio_gives_no_slice() -> None:
    assert list(cut_slices("m", [], LoudnessDetector(), SHORT, SMALL)) == []


def test_a_slice_comes_as_soon_as_it_is_decided_and_old_blocks_are_let_go() -> None:
    """20 minutes at the real sizes: speech and silences of all kinds, never more than a minute held."""
    lengths = [700, 9_000, 200, 25_000, 40_000, 61_000, 100, 3_000, 29_000, 12_000]
    drawn = [(at % 2 == 1, ms) for at, ms in enumerate(lengths * 7)]
    ends_ms = list(accumulate(ms for _, ms in drawn))
    alive: weakref.WeakSet[Block] = weakref.WeakSet()
    heard_ms, most = 0, 0

    def stream() -> Iterator[Block]:
        nonlocal heard_ms, most
        for block in blocks(media, [1_000]):
            alive.add(block)
            heard_ms = block.start_ms + 1_000
            most = max(most, len(alive))
            yield block

    media = sound(drawn)
    for one in cut_slices("m", stream(), LoudnessDetector(), SpeechRules(), SlicingRules()):
        assert heard_ms - one.slice.span.end_ms <= 45_000
    assert ends_ms[-1] > 20 * 60_000
    assert most <= 60
