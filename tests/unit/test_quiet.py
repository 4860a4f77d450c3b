"""How long it is quiet around the end of each word."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.quiet import quiet_after_ms
from pipeline.values import SAMPLES_PER_MS, Samples


def sound(*parts: tuple[float, int]) -> Samples:
    """A hum, loud and for how many ms each."""
    at_s = np.arange(sum(ms for _, ms in parts) * SAMPLES_PER_MS) / 16_000
    loud = np.concatenate([np.full(ms * SAMPLES_PER_MS, level) for level, ms in parts])
    return (loud * np.sin(2 * np.pi * 200 * at_s)).astype(np.float32)


def test_a_pause_counts_for_the_word_before_it() -> None:
    heard = sound((0.5, 400), (0.0, 130), (0.5, 400), (0.001, 250), (0.5, 120))
    assert quiet_after_ms(heard, [100, 300, 600, 850, 1200]) == [0, 130, 0, 250, 0]


def test_a_pause_that_reaches_into_the_next_word_is_cut_at_its_middle() -> None:
    assert quiet_after_ms(sound((0.5, 200), (0.0, 200), (0.5, 200)), [100, 300]) == [100, 100]


def test_what_is_softer_than_speech_but_no_silence_is_not_quiet() -> None:
    assert quiet_after_ms(sound((0.5, 300), (0.05, 200), (0.5, 300)), [100, 700]) == [0, 0]


def test_the_level_is_that_of_speech_however_long_the_silence() -> None:
    assert quiet_after_ms(sound((0.2, 300), (0.0, 5_000)), [150]) == [5_000]


def test_without_sound_or_words_nothing_is_said() -> None:
    assert quiet_after_ms(sound((0.0, 500)), [100, 200]) == [0, 0]
    assert quiet_after_ms(np.zeros(40, np.float32), [0.5]) == [0]
    assert quiet_after_ms(sound((0.5, 500)), []) == []


@given(st.lists(st.floats(0, 1_500), max_size=8), st.integers(0, 1_000))
def test_no_pause_is_longer_than_from_middle_to_middle(middles: list[float], seed: int) -> None:
    chance = np.random.default_rng(seed)
    heard = np.concatenate([chance.normal(0, level, 1_600) for level in chance.choice([0.0, 1e-4, 0.1], 12)])
    found = quiet_after_ms(heard.astype(np.float32), middles)
    assert len(found) == len(middles)
    edges = [*np.maximum.accumulate(middles or [0.0]), 1_200.0]
    for quiet_ms, start, end in zip(found, edges, edges[1:], strict=False):
        assert quiet_ms % 10 == 0
        assert 0 <= quiet_ms <= max(10, end - start + 10)
