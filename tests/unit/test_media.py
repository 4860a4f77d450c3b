"""Probing: what is in a file, which track is meant, and one clear line for what is no recording."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import wave
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import find_ffmpeg
from pipeline.errors import InvalidInputError
from pipeline.media import block_offsets, choose_track, fingerprint, probe
from pipeline.values import AudioTrack, MediaInfo

TRACK = AudioTrack(1, "aac", 2, 48_000, 0, 60_000, None, False, True)


def _info(*tracks: AudioTrack) -> MediaInfo:
    numbered = tuple(replace(track, index=index) for index, track in enumerate(tracks, 1))
    return MediaInfo("mov,mp4,m4a,3gp,3g2,mj2", 1000, 60_000, numbered, True, "00")


@pytest.fixture
def tone(tmp_path: Path) -> Path:
    path = tmp_path / "tone.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\x00\x10" * 12_000)
    return path


def _refusal(path: Path, **options: float) -> str:
    with pytest.raises(InvalidInputError) as caught:
        probe(path, **options)
    assert "\n" not in caught.value.reason
    return caught.value.reason


def test_a_recording_is_described(tone: Path) -> None:
    info = probe(tone)
    assert (info.container, info.size_bytes, info.duration_ms) == ("wav", 24_044, 1500)
    assert info.tracks == (AudioTrack(0, "pcm_s16le", 1, 8000, 0, 1500, None, False, True),)
    assert not info.has_video


@pytest.mark.parametrize(
    "name", ["-i.wav", "a:b.wav", "%d 100%.wav", 'it\'s "so".wav', "课 堂.wav", os.fsdecode(b"\xff\xfe.wav")]
)
def test_a_file_may_have_any_name(name: str, tone: Path) -> None:
    path = tone.with_name(name)
    try:
        tone.rename(path)
    except OSError:
        pytest.skip("this file system refuses the name")
    assert probe(path).duration_ms == 1500


def test_a_name_relative_to_here_may_begin_with_a_dash(tone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tone.parent)
    assert probe(tone.rename("--help")).duration_ms == 1500


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"Dear students, the lecture is cancelled.\n", "not a media file"),
        (os.urandom(4096), "not a media file"),
        (b"#EXTM3U\n#EXTINF:9,\n/etc/hostname\n", "playlist"),
        (b"ffconcat version 1.0\nfile /etc/hostname\n", "playlist"),
        (b"<?xml version='1.0'?><MPD xmlns='urn:mpeg:dash:schema:mpd:2011'/>", "playlist"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom\x00\x01\x00\x00mdat", r"moov.*upload it again"),
    ],
)
@pytest.mark.parametrize("name", ["lecture.mp4", "lecture.txt", "lecture.m3u8", "lecture"])
def test_what_is_no_recording_is_refused_in_one_line(content: bytes, reason: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert re.search(reason, _refusal(path))


def test_what_is_no_file_to_read_is_refused_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no such file" in _refusal(tmp_path / "absent.mp4")
    assert "folder" in _refusal(tmp_path)
    assert "not a regular file" in _refusal(tmp_path / "pipe")


def test_encrypted_audio_is_refused(tone: Path) -> None:
    path = tone.with_suffix(".mp4")
    key = "00112233445566778899aabbccddeeff"
    scheme = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", key, "-encryption_kid", key]
    command = [find_ffmpeg(), "-loglevel", "error", "-i", str(tone), "-c:a", "aac", *scheme, str(path)]
    subprocess.run(command, check=True)
    assert "encrypted" in _refusal(path)


def test_a_file_that_hangs_the_library_is_refused_after_the_time_out(tone: Path) -> None:
    assert "not opened within 0.001 s" in _refusal(tone, timeout_s=0.001)


def test_a_file_that_crashes_the_library_is_refused(tone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crasher = tone.with_name("python")
    crasher.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crasher.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crasher))
    assert "crashes the media library (SIGSEGV)" in _refusal(tone)


def test_a_duration_that_is_guessed_from_the_bit_rate_is_not_a_declared_one(tone: Path) -> None:
    counted, guessed = tone.with_suffix(".mp3"), tone.with_suffix(".adts")
    for path in (counted, guessed):
        subprocess.run([find_ffmpeg(), "-loglevel", "error", "-i", str(tone), str(path)], check=True)
    assert probe(counted).duration_ms == pytest.approx(1500, abs=150)
    assert probe(guessed).duration_ms is None
    assert probe(guessed).tracks[0].duration_ms is None


def test_equal_content_has_an_equal_fingerprint_and_one_changed_block_another(tmp_path: Path) -> None:
    content = bytearray(os.urandom(6_000_000))
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(content)
    second.write_bytes(content)
    assert fingerprint(first) == fingerprint(second)
    content[-1] ^= 1
    second.write_bytes(content)
    assert fingerprint(first) != fingerprint(second)
    second.write_bytes(content[:-1])
    assert fingerprint(first) != fingerprint(second)


@given(st.integers(0, 10**13))
def test_sampled_blocks_lie_inside_the_file_and_reach_both_ends(size_bytes: int) -> None:
    offsets = block_offsets(size_bytes)
    assert len(offsets) <= 64
    assert all(0 <= offset < size_bytes for offset in offsets)
    assert not offsets or (offsets[0] == 0 and offsets[-1] + 64 * 1024 >= size_bytes)


def test_the_asked_for_track_is_taken_whatever_the_others_are() -> None:
    info = _info(replace(TRACK, is_default=True), replace(TRACK, language="zho"), TRACK)
    choice = choose_track(info, 3, "zh")
    assert choice.track == info.tracks[2]
    assert "asked for" in choice.why


@pytest.mark.parametrize("asked", [0, 3, -1])
def test_a_track_that_is_not_there_is_refused_and_the_others_are_listed(asked: int) -> None:
    info = _info(replace(TRACK, language="eng"), replace(TRACK, language="chi", channels=1))
    with pytest.raises(InvalidInputError, match=r"track 1 \(eng, aac, 2 channels\); track 2 \(chi, aac, 1"):
        choose_track(info, asked, None)


def test_the_one_default_track_goes_before_the_one_in_the_language() -> None:
    info = _info(replace(TRACK, language="zho"), replace(TRACK, language="eng", is_default=True))
    assert choose_track(info, None, "zh").track == info.tracks[1]


@pytest.mark.parametrize("tag", ["zh", "zho", "chi", "cmn", "zh-CN", "ZH-Hans"])
def test_among_several_default_tracks_the_language_decides(tag: str) -> None:
    default = replace(TRACK, is_default=True)
    info = _info(replace(default, language="eng"), replace(default, language=tag))
    assert choose_track(info, None, "zh").track == info.tracks[1]
    assert choose_track(info, None, "en").track == info.tracks[0]


def test_where_nothing_else_decides_the_first_track_that_can_be_decoded_is_taken() -> None:
    info = _info(replace(TRACK, is_decodable=False, is_default=True), TRACK, TRACK)
    assert choose_track(info, None, "zh").track == info.tracks[1]
    assert choose_track(info, None, None).track == info.tracks[1]


def test_a_track_that_cannot_be_decoded_is_taken_only_where_there_is_no_other() -> None:
    undecodable = _info(replace(TRACK, is_decodable=False))
    assert choose_track(undecodable, None, None).track == undecodable.tracks[0]
    assert choose_track(_info(), None, "zh").track is None


@pytest.mark.fixtures
def test_bytes_that_are_no_text_in_a_language_tag_are_tolerated(shared_data: Path) -> None:
    info = probe(shared_data / "fixtures/androidx/mp4_sample_opus_fragmented.mp4")
    assert info.tracks[0].language is None


@pytest.mark.fixtures
def test_times_are_counted_from_where_a_player_shows_0(shared_data: Path) -> None:
    info = probe(shared_data / "fixtures/androidx/ts_sample_ait.ts")
    assert (info.tracks[0].start_ms, info.duration_ms, info.tracks[0].language) == (0, 576, "fra")
    assert probe(shared_data / "fixtures/androidx/flv_sample.flv").tracks[0].start_ms == 45


@pytest.mark.fixtures
def test_a_codec_without_a_decoder_is_named(shared_data: Path) -> None:
    info = probe(shared_data / "fixtures/androidx/mp4_sample_mhm1_bl_cicp1.mp4")
    assert (info.tracks[0].codec, info.tracks[0].is_decodable) == ("mpegh_3d_audio", False)
