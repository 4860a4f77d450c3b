"""The benchmarks of times and subtitles: first sounds, references cut to two lines, an hour made of lectures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.postprocessing import HOUR_MS, laid_end_to_end
from bench.subtitles import LINE, readable
from bench.times import from_first_sound, near_seams
from bench.transcripts import Kept
from bench.values import Timed
from pipeline.assembly import RunRequest, line_options
from pipeline.finishing import Heard
from pipeline.values import Boundary, Outcome, Segment, Slice, SliceTranscript, Span, Word


def kept() -> Kept:
    words = (Word("你", 1_000, 1_200, 0.9), Word("好。", 1_200, 1_500, 0.9))
    segment = Segment(1_000, 1_500, "你好。", words, -0.1, 0.0, 1.0, 0.0)
    piece = Slice("m", 0, Span(800, 1_700), Boundary.END, (Span(1_000, 1_520),))
    transcript = SliceTranscript("m", 0, "zh", 1.0, (segment,), Outcome.TRANSCRIBED, "", 1, 0)
    return Kept((piece,), (transcript,), Heard(600_000, (), ()), line_options(RunRequest("bench")))


def test_an_hour_of_lectures_keeps_every_word_at_its_own_place() -> None:
    hour = laid_end_to_end([kept()])
    assert hour.heard.duration_ms == HOUR_MS
    assert [piece.span.start_ms for piece in hour.slices] == list(range(800, HOUR_MS, 600_000))
    last = hour.transcripts[-1]
    assert (last.slice_index, last.segments[0].words[0].start_ms) == (5, 3_001_000)


def test_only_sentences_beside_a_seam_are_near_one() -> None:
    first, second = kept().slices[0], Slice("m", 1, Span(5_000, 9_000), Boundary.END, ())
    cut = Kept((first, second), (), Heard(9_000, (), ()), kept().options)
    sentences = [Timed("", start, start + 100) for start in (900, 2_700, 2_701, 4_000, 6_001)]
    assert [one.start_ms for one in near_seams(sentences, cut)] == [900, 2_700, 4_000]


def test_a_sentence_starts_where_its_sound_does_and_not_at_a_click() -> None:
    rng = np.random.default_rng(3)
    sound = rng.normal(0, 0.001, 16_000 * 3).astype(np.float32)
    sound[16 * 300 : 16 * 305] += 0.5
    sound[16 * 800 :] += rng.normal(0, 0.2, 16_000 * 3 - 16 * 800).astype(np.float32)
    (found,) = from_first_sound([Timed("x", 0, 3_000)], sound)
    assert found.start_ms == pytest.approx(800, abs=10)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "en",
            "Suppose a car with a mass of 1,200 kilograms accelerates from rest to 20 meters per second in 8 seconds.",
        ),
        ("zh", "接下来我们把一个多项式化成几个整式的乘积的形式，这样的变形叫做因式分解，也叫做分解因式。"),
        ("en", "Hello, and welcome."),
    ],
)
def test_a_reference_cut_to_two_lines_keeps_its_text_and_time(language: str, text: str) -> None:
    cues = list(readable(Timed(text, 1_000, 9_000), language))
    assert "".join("".join(cue.text.split()) for cue in cues) == "".join(text.split())
    assert (cues[0].start_ms, cues[-1].end_ms) == (1_000, 9_000)
    for cue in cues:
        assert cue.text.count("\n") < 2
        assert max(map(len, cue.text.split("\n"))) <= LINE[language]


def test_the_folder_of_kept_transcripts_is_not_in_git() -> None:
    assert "/bench/.transcripts/" in (Path(__file__).parents[2] / ".gitignore").read_text("utf-8").splitlines()
