"""Speakers told apart by the real models, and how a listener walks over a slice (with stand-ins)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.assembly import find_listener
from pipeline.cutting import cut_slices
from pipeline.decoding import decode, find_ffmpeg
from pipeline.detectors.pyannote import WINDOW_FRAMES, WINDOW_SAMPLES
from pipeline.detectors.silero import SileroDetector, load_silero
from pipeline.detectors.speakers import EMBEDDED_SAMPLES, SpeakerListener, load_speakers
from pipeline.diarization import TEACHER, Embedding, diarize
from pipeline.errors import UsageError
from pipeline.media import choose_track, probe
from pipeline.models import default_cache, fetch_model
from pipeline.settings import settings_from
from pipeline.slicing import SlicingRules
from pipeline.speaker_runs import Activity
from pipeline.speech import SpeechRules
from pipeline.values import Boundary, Samples, Slice, SliceAudio, Span, Turn


def one_talks(window: Samples) -> Activity:
    """A stand-in that hears its second speaker wherever a sample is not zero."""
    assert window.shape == (WINDOW_SAMPLES,)
    activity = np.zeros((WINDOW_FRAMES, 3), np.bool_)
    middles = window[495::270][:WINDOW_FRAMES]
    activity[: len(middles), 1] = middles != 0
    return activity


def piece(length_ms: int, *speech: tuple[int, int], start_ms: int = 60_000) -> SliceAudio:
    spans = tuple(Span(start_ms + first, start_ms + last) for first, last in speech)
    whole = Slice("m", 2, Span(start_ms, start_ms + length_ms), Boundary.SILENCE, spans)
    return SliceAudio(whole, np.ones(length_ms * 16, np.float32))


@pytest.fixture
def sizes() -> list[int]:
    return []


@pytest.fixture
def listener(sizes: list[int]) -> SpeakerListener:
    def embed(samples: Samples) -> Embedding:
        sizes.append(samples.size)
        return np.eye(1, 192, dtype=np.float32)[0]

    return SpeakerListener(one_talks, embed)


def test_runs_lie_on_the_media_clock_where_the_detector_heard_speech(listener: SpeakerListener) -> None:
    voices = listener.hear(piece(24_000, (200, 11_000), (12_000, 23_800)))
    edges = [edge for voice in voices for edge in (voice.span.start_ms, voice.span.end_ms)]
    assert edges == pytest.approx([60_200, 71_000, 72_000, 83_800], abs=17)


def test_of_a_long_run_no_more_than_its_middle_is_embedded(listener: SpeakerListener, sizes: list[int]) -> None:
    listener.hear(piece(24_000, (0, 2_000), (3_000, 24_000)))
    assert sizes == [pytest.approx(32_000, abs=300), EMBEDDED_SAMPLES]


def test_a_slice_without_talk_has_no_voices(listener: SpeakerListener) -> None:
    silent = piece(3_000, (100, 2_900))
    assert listener.hear(replace(silent, samples=np.zeros_like(silent.samples))) == ()


def test_without_the_extra_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.assembly.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"--speakers needs the extra 'diarization': pip install 'lecturemill\[dia"):
        find_listener(settings_from({}), print)


@pytest.fixture(scope="module")
def heard() -> Callable[[Path], tuple[Turn, ...]]:
    cache = default_cache()
    segmentation, embedding, silero = (
        fetch_model(name, cache, print).folder for name in ("pyannote-segmentation", "campplus", "silero-vad")
    )
    listener = load_speakers(segmentation / "pytorch_model.bin", embedding / "campplus_cn_en_common.pt")
    session = load_silero(next(silero.glob("*.onnx")))

    def hear(path: Path) -> tuple[Turn, ...]:
        info = probe(path)
        track = choose_track(info, None, None).track
        assert track
        with decode(path, info, track, ffmpeg=find_ffmpeg()) as decoding:
            slices = cut_slices("m", decoding, SileroDetector(session, "silero"), SpeechRules(), SlicingRules())
            return diarize([voice for audio in slices for voice in listener.hear(audio)])

    return hear


@pytest.mark.diarization
def test_a_teacher_and_two_students_are_told_apart(
    heard: Callable[[Path], tuple[Turn, ...]], shared_data: Path
) -> None:
    lectures = shared_data / "lectures"
    told = heard(lectures / "zh_dialog3.opus")
    names = {"zm_yunjian": TEACHER, "zf_xiaoxiao": "speaker 2", "zm_yunxi": "speaker 3"}
    rows = [line.split() for line in (lectures / "zh_dialog3.rttm").read_text("utf-8").splitlines()]
    for row in rows:
        middle_ms = round((float(row[3]) + float(row[4]) / 2) * 1000)
        assert [turn.speaker for turn in told if turn.start_ms <= middle_ms < turn.end_ms] == [names[row[7]]]


@pytest.mark.diarization
def test_a_lecture_in_one_voice_has_one_speaker(heard: Callable[[Path], tuple[Turn, ...]], shared_data: Path) -> None:
    assert {turn.speaker for turn in heard(shared_data / "lectures" / "en_physics_michael.mp4")} == {TEACHER}
