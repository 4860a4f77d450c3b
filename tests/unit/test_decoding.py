"""Decoding: everything on the media clock, an honest report, and no child left behind.

A click marks each second, a white flash the same instant of the picture: where a player would show the flash,
the click must be.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import psutil
import pytest

from pipeline.decoding import DecodeReport, Decoding, decode, find_ffmpeg, to_mono
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.media import probe
from pipeline.values import SAMPLE_RATE_HZ, Samples, Span

FFMPEG = find_ffmpeg()
SECONDS = 8
CLICKS = f"aevalsrc='if(lt(mod(t,1),0.002)*gte(t,0.5),0.8*sin(4000*PI*t),0)':s=48000:d={SECONDS}"
FLASHES = f"color=s=64x64:r=50:d={SECONDS},drawbox=c=white:t=fill:enable='lt(mod(t,1),0.099)*gte(t,0.5)'"
EXACT_MS = 1.0
"""What two resamplings and the clocks of MP3, FLV and ASF (1 ms) leave over."""

Maker = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """Make a file with ffmpeg; ``clicks.wav`` and ``flashes.mp4`` (with B-frames) lie in its folder."""
    folder = tmp_path_factory.mktemp("clicks")

    def run(name: str, *arguments: str) -> Path:
        command = [FFMPEG, "-nostdin", "-loglevel", "error", "-y", *arguments, name]
        subprocess.run(command, check=True, cwd=folder)
        return folder / name

    run("clicks.wav", "-f", "lavfi", "-i", CLICKS)
    run("flashes.mp4", "-f", "lavfi", "-i", FLASHES, "-c:v", "libx264", "-bf", "3", "-g", "50")
    return run


@dataclass(frozen=True, slots=True)
class Decoded:
    """A whole file, for tests."""

    samples: Samples
    report: DecodeReport

    @property
    def clicks_s(self) -> npt.NDArray[np.float64]:
        """Where each click begins."""
        loud = np.flatnonzero(abs(self.samples) > 0.2)
        begins = np.insert(np.diff(loud) > SAMPLE_RATE_HZ // 2, 0, True)
        return loud[begins] / SAMPLE_RATE_HZ


def _decoded(path: Path, ffmpeg: str = FFMPEG, stall_timeout_s: float = 60) -> Decoded:
    info = probe(path)
    with decode(path, info, info.tracks[0], ffmpeg=ffmpeg, stall_timeout_s=stall_timeout_s) as decoding:
        blocks = [block.samples for block in decoding]
    return Decoded(np.concatenate(blocks) if blocks else np.zeros(0, np.float32), decoding.report)


def _flashes_s(path: Path) -> npt.NDArray[np.float64]:
    """Where a player shows the beginning of each flash, by the library's own time stamps."""
    begins, was_white = [], False
    with av.open(str(path)) as container:
        start_s = (container.start_time or 0) / 1e6
        for frame in container.decode(video=0):
            is_white = bool(frame.to_ndarray(format="gray").mean() > 128)
            if is_white and not was_white:
                begins.append(float((frame.pts or 0) * (frame.time_base or 0)) - start_s)
            was_white = is_white
    return np.array(begins)


BOTH = ("-i", "flashes.mp4", "-i", "clicks.wav")
FILMS = {
    "aac.mp4": ("-c:v", "copy", "-c:a", "aac"),
    "no_edit_list.mp4": ("-c:v", "copy", "-c:a", "aac", "-use_editlist", "0"),
    "fragmented.mp4": ("-c:v", "copy", "-c:a", "aac", "-movflags", "+frag_keyframe+empty_moov"),
    "aac.mkv": ("-c:v", "copy", "-c:a", "aac"),
    "opus.mkv": ("-c:v", "copy", "-c:a", "libopus"),
    "start_43622_s.ts": ("-c:v", "copy", "-c:a", "aac", "-output_ts_offset", "43622"),
    "mp2.ts": ("-c:v", "copy", "-c:a", "mp2"),
    "aac.flv": ("-c:v", "copy", "-c:a", "aac"),
    "opus.webm": ("-c:v", "libvpx", "-c:a", "libopus"),
    "wmav2.wmv": ("-c:v", "msmpeg4", "-c:a", "wmav2"),
    "pcm.mov": ("-c:v", "copy", "-c:a", "pcm_s16be"),
}
SOUNDS = ("wav", "flac", "mp3", "m4a", "ogg", "opus")


@pytest.mark.parametrize("name", FILMS)
def test_the_sound_of_a_film_is_where_its_picture_is(name: str, make: Maker) -> None:
    path = make(name, *BOTH, *FILMS[name])
    clicks_s, flashes_s = _decoded(path).clicks_s, _flashes_s(path)
    assert len(clicks_s) == len(flashes_s) == SECONDS - 1
    assert np.max(abs(clicks_s - flashes_s)) * 1000 <= EXACT_MS


@pytest.mark.parametrize("suffix", SOUNDS)
def test_the_delay_of_an_encoder_is_not_heard(suffix: str, make: Maker) -> None:
    decoded = _decoded(make(f"sound.{suffix}", "-i", "clicks.wav"))
    assert decoded.clicks_s * 1000 == pytest.approx(np.arange(1, SECONDS) * 1000, abs=EXACT_MS)
    assert decoded.report.missing == ()
    assert decoded.report.duration_ms == pytest.approx(SECONDS * 1000, abs=20)


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "flv"])
def test_audio_that_starts_late_is_preceded_by_silence(suffix: str, make: Maker) -> None:
    arguments = ("-i", "flashes.mp4", "-itsoffset", "2.5", "-i", "clicks.wav", "-c:v", "copy", "-c:a", "aac")
    path = make(f"late.{suffix}", *arguments)
    decoded = _decoded(path)
    assert np.max(abs(decoded.clicks_s - _flashes_s(path) - 2.5)) * 1000 <= EXACT_MS
    assert decoded.report.padded_ms == pytest.approx(2500, abs=25)
    assert decoded.report.missing == ()


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_cut_with_an_edit_list_or_without_stays_in_step(suffix: str, make: Maker) -> None:
    whole = make(f"whole.{suffix}", *BOTH, "-c:v", "copy", "-c:a", "aac")
    path = make(f"cut.{suffix}", "-ss", "3.3", "-i", whole.name, "-c", "copy")
    clicks_s, flashes_s = _decoded(path).clicks_s, _flashes_s(path)
    assert len(clicks_s) == len(flashes_s)
    assert np.max(abs(clicks_s - flashes_s)) * 1000 <= EXACT_MS


def test_recordings_put_end_to_end_are_heard_to_their_end(make: Maker) -> None:
    part = make("part.ts", *BOTH, "-c:v", "copy", "-c:a", "aac")
    path = part.with_name("twice.ts")
    path.write_bytes(part.read_bytes() * 2)
    decoded = _decoded(path)
    assert len(decoded.clicks_s) == 2 * (SECONDS - 1)
    assert "time stamps jumped" in decoded.report.warnings[0]


def _damaged(path: Path, kind: str) -> Path:
    content = path.read_bytes()
    middle, hole = len(content) // 2, len(content) // 8
    kept = content[: len(content) * 6 // 10] if kind == "cut" else content[:middle] + content[middle + hole :]
    damaged = path.with_name(f"{kind}_{path.name}")
    damaged.write_bytes(kept)
    return damaged


@pytest.mark.parametrize("name", ["aac.mkv", "aac.flv", "opus.webm", "sound.mp3", "sound.flac", "front.mp4"])
def test_what_an_interrupted_upload_lacks_is_missing(name: str, make: Maker) -> None:
    audio = ("-i", "clicks.wav")
    arguments = {"sound.mp3": audio, "sound.flac": audio}.get(name, (*BOTH, *FILMS.get(name, FILMS["aac.mp4"])))
    faststart = ("-movflags", "+faststart") if name == "front.mp4" else ()
    report = _decoded(_damaged(make(name, *arguments, *faststart), "cut")).report
    (tail,) = report.missing
    assert tail.start_ms == pytest.approx(report.decoded_ms, abs=50)
    assert tail.end_ms == pytest.approx(SECONDS * 1000, abs=50)
    assert any("damaged or cut off" in warning for warning in report.warnings)


@pytest.mark.parametrize("name", ["aac.mkv", "mp2.ts", "aac.flv", "opus.webm"])
def test_a_hole_is_missing_and_what_follows_stays_in_its_place(name: str, make: Maker) -> None:
    decoded = _decoded(_damaged(make(name, *BOTH, *FILMS[name]), "hole"))
    (hole,) = decoded.report.missing
    assert 2000 < hole.start_ms < hole.end_ms < 7000
    assert decoded.clicks_s[-1] == pytest.approx(SECONDS - 1, abs=0.05)


def test_a_picture_that_goes_on_after_the_audio_is_silence(make: Maker) -> None:
    for name in ("short.mkv", "short.mp4"):
        arguments = (*BOTH, "-c:v", "copy", "-c:a", "aac", "-af", "atrim=0:3")
        report = _decoded(make(name, *arguments)).report
        assert report.missing == ()
        assert (report.decoded_ms, report.duration_ms) == pytest.approx((3000, SECONDS * 1000), abs=40)


def test_a_voice_on_one_channel_or_in_opposite_phase_is_heard(make: Maker) -> None:
    for mix in ("stereo|c0=0*c0|c1=c0", "stereo|c0=c0|c1=-1*c0", "5.1|FC=c0", "16c|c11=c0"):
        decoded = _decoded(make("mix.wav", "-i", "clicks.wav", "-af", f"pan={mix}"))
        assert float(abs(decoded.samples).max()) > 0.04, mix


@pytest.mark.parametrize(("gain", "is_inverted"), [(-1.0, True), (0.0, False), (1.0, False), (-0.5, False)])
def test_only_channels_that_cancel_each_other_are_subtracted(gain: float, is_inverted: bool) -> None:
    left = (8000 * np.sin(np.arange(SAMPLE_RATE_HZ) / 5)).astype(np.int16)
    samples, was_inverted = to_mono(np.stack([left, (left * gain).astype(np.int16)], axis=1))
    assert was_inverted is is_inverted
    assert samples.dtype == np.float32
    assert float(abs(samples).max()) > 0.05


def test_blocks_are_whole_milliseconds_and_contiguous(make: Maker) -> None:
    path = make("blocks.mp4", *BOTH, *FILMS["aac.mp4"])
    info = probe(path)
    at = 0
    with decode(path, info, info.tracks[0], ffmpeg=FFMPEG) as decoding:
        for block in decoding:
            assert block.start_ms * 16 == at
            at += len(block.samples)
        with pytest.raises(RuntimeError, match="iterated once"):
            next(iter(decoding))
    assert at == SECONDS * SAMPLE_RATE_HZ
    assert decoding.report == DecodeReport(SECONDS * 1000, SECONDS * 1000, (), 0, ())


def _fake(folder: Path, script: str) -> str:
    path = folder / "fake_ffmpeg"
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def no_child_is_left() -> Callable[[], bool]:
    """Asks whether the processes that the test has started are gone; others serve other tests."""
    before = set(psutil.Process().children(recursive=True))
    return lambda: set(psutil.Process().children(recursive=True)) <= before


def test_a_decoder_that_crashes_loses_only_what_follows(
    make: Maker, tmp_path: Path, no_child_is_left: Callable[[], bool]
) -> None:
    path = make("crash.mkv", *BOTH, *FILMS["aac.mkv"])
    script = f'{FFMPEG} "$@" 2>/dev/null | head -c 100000; kill -SEGV $$'
    report = _decoded(path, _fake(tmp_path, script)).report
    assert report.missing == (Span(report.decoded_ms, report.missing[0].end_ms),)
    assert report.decoded_ms == pytest.approx(100_000 / 32, rel=0.1)
    assert "crashed (SIGSEGV) at 0:00:03" in report.warnings[0]
    assert no_child_is_left()


def test_a_decoder_that_computes_for_ever_is_ended_and_what_came_is_kept(
    make: Maker, tmp_path: Path, no_child_is_left: Callable[[], bool]
) -> None:
    path = make("loop.mkv", *BOTH, *FILMS["aac.mkv"])
    script = f'{FFMPEG} "$@" 2>/dev/null | head -c 100000; while :; do :; done'
    report = _decoded(path, _fake(tmp_path, script), stall_timeout_s=2).report
    assert report.decoded_ms > 2500
    assert "hung" in report.warnings[0]
    assert no_child_is_left()


def test_a_decoder_that_waits_for_its_disk_is_ended_to_be_tried_again(
    make: Maker, tmp_path: Path, no_child_is_left: Callable[[], bool]
) -> None:
    path = make("disk.mkv", *BOTH, *FILMS["aac.mkv"])
    with pytest.raises(RetriableError, match="waited for the disk for 1 s"):
        _decoded(path, _fake(tmp_path, "sleep 1000 & wait"), stall_timeout_s=1)
    assert no_child_is_left()


def test_a_missing_ffmpeg_is_named(make: Maker) -> None:
    with pytest.raises(RetriableError, match="/nowhere/ffmpeg"):
        _decoded(make("sound.wav", "-i", "clicks.wav"), "/nowhere/ffmpeg")


def _take_one_and_raise(decoding: Decoding, error: type[BaseException]) -> None:
    next(iter(decoding))
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_leaving_early_leaves_no_child(
    error: type[BaseException], make: Maker, no_child_is_left: Callable[[], bool]
) -> None:
    path = make("early.wav", "-i", "clicks.wav", "-af", "aloop=50:384000")
    info = probe(path)
    decoding = decode(path, info, info.tracks[0], ffmpeg=FFMPEG)
    with pytest.raises(error), decoding:
        _take_one_and_raise(decoding, error)
    assert no_child_is_left()
    with pytest.raises(RuntimeError, match="after the last block"):
        _ = decoding.report


def test_a_track_without_anything_decodable_is_refused_with_the_reason(make: Maker, tmp_path: Path) -> None:
    path = make("nothing.wav", "-i", "clicks.wav")
    with pytest.raises(InvalidInputError, match=r"pcm_s16le track \(Invalid wave\)"):
        _decoded(path, _fake(tmp_path, "echo '[wav @ 0x1] [error] Invalid wave' >&2; exit 1"))


@pytest.mark.fixtures
def test_a_truncated_file_without_media_data_is_refused(shared_data: Path) -> None:
    with pytest.raises(InvalidInputError, match="partial file"):
        _decoded(shared_data / "fixtures/androidx/mp4_large_stbl_truncated_after_moov.m4b")
