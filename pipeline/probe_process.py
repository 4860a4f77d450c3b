"""The child process that opens a media file, since some files crash or hang the library that reads them.

``python -m pipeline.probe_process PATH`` prints a ``Probed`` as one JSON document;
``python -m pipeline.probe_process PATH INDEX`` prints the ``Ends`` of its packets.
Nothing but the file itself is read: no playlist is followed, no network is asked.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import BinaryIO, cast

import av
import av.logging
import msgspec
from av.audio.codeccontext import AudioCodecContext
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

from pipeline.values import AudioTrack

PLAYLISTS = {"concat", "concatf", "dash", "hls", "imf", "rtp", "rtsp", "sap", "sdp", "webm_dash_manifest"}
"""Formats whose content is elsewhere: a "video" of this kind could read other files, or the network."""
DEVICES = {"alsa", "fbdev", "kmsgrab", "lavfi", "oss", "video4linux2", "v4l2", "x11grab"}
TEXTS = {"ass", "aqtitle", "ffmetadata", "jacosub", "lrc", "microdvd", "mpl2", "mpsub", "pjs", "realtext"}
TEXTS |= {"sami", "sbg", "scc", "srt", "stl", "subviewer", "subviewer1", "tedcaptions", "tty", "vplayer"}
TEXTS |= {"webvtt", "ansi", "bin", "xbin", "adf", "idf", "mcc", "rcwt"}
PICTURES = {"image2", "image2pipe", "ico", "fits"}
REFUSED = PLAYLISTS | DEVICES | TEXTS | PICTURES
"""Never opened, whatever a file's content or name suggests; nor is any format named ``…_pipe``, a picture."""

GUESSED = "Estimating duration from bitrate"
"""What the library logs when it divides the file's size by a bit rate: MP3 without a frame count, ADTS, AMR.
That is off by up to the factor four (MP3 with trailing bytes), so it is not taken for a declared duration."""
GUESSES_SILENTLY = {"aac", "amr", "amrnb", "amrwb", "loas"}
"""Raw streams that hold no count of their frames: any duration of theirs is a guess, logged or not."""

LANGUAGE_TAG = r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*"
"""RFC 5646 in outline; what is written there otherwise is rubbish, or bytes of no text at all."""

LARGEST_MOOV_BYTES = 1 << 26

TAIL_US = 10_000_000
"""How far before the declared end the search for the last packets begins; key frames lie closer than this."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found; only ``error`` (the library's own words) where the file could not be opened."""

    error: str = ""
    container: str = ""
    start_us: int = 0
    duration_ms: int | None = None
    tracks: tuple[AudioTrack, ...] = ()
    has_video: bool = False
    stream_count: int = 0
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the last packets end on the media clock: those of one track, and those of all streams."""

    track_end_ms: int | None = None
    last_packet_ms: int | None = None


def main(arguments: list[str]) -> int:
    """Do what the module says. The exit status is 0 also where the file is at fault."""
    path, *index = arguments
    document = packet_ends(path, int(index[0])) if index else inspect_file(path)
    sys.stdout.buffer.write(msgspec.json.encode(document))
    return 0


def inspect_file(path: str) -> Probed:
    """Open and describe a file, in this process."""
    # The library logs why it refuses a file; the exception only says "invalid data".
    av.logging.set_level(av.logging.WARNING)
    with av.logging.Capture(local=False) as log:
        try:
            with _opened(path) as container:
                return _describe(container, [line for _, _, line in log])
        except (av.error.FFmpegError, OSError, ValueError) as error:
            said = [line.strip() for level, _, line in log if level <= av.logging.ERROR]
            return Probed(error="; ".join([*said[-3:], getattr(error, "strerror", None) or str(error)]))


@contextmanager
def _opened(path: str) -> Iterator[InputContainer]:
    options = {"protocol_whitelist": "file", "format_whitelist": ",".join(sorted(_formats()))}
    try:
        path.encode()
    except UnicodeEncodeError:  # the library takes only UTF-8 names, or a file that is open already
        with open(path, "rb") as file, _open(file, options) as container:  # noqa: PTH123
            yield container
        return
    with _open(f"file:{path}", options) as container:
        yield container


def _open(source: str | BinaryIO, options: dict[str, str]) -> InputContainer:
    return av.open(source, mode="r", options=options, metadata_errors="replace")


def _formats() -> set[str]:
    names = {name for joined in av.formats_available for name in joined.split(",")}
    return {name for name in names - REFUSED if not name.endswith("_pipe")}


def _describe(container: InputContainer, log: list[str]) -> Probed:
    name = container.format.name
    start_us = container.start_time or 0
    is_guess = name in GUESSES_SILENTLY or any(GUESSED in line for line in log)
    streams = list(container.streams)
    audio = [stream for stream in streams if isinstance(stream, AudioStream)]
    tracks = tuple(_track(stream, start_us, is_guess) for stream in audio)
    if not all(track.is_decodable for track in tracks):
        tracks = _with_codec_names(tracks, container)
    duration_us = container.duration
    return Probed(
        container=name,
        start_us=start_us,
        duration_ms=None if is_guess or not duration_us or duration_us < 0 else round(duration_us / 1000),
        tracks=tracks,
        has_video=any(isinstance(s, VideoStream) and not _is_picture(s) for s in streams),
        stream_count=len(streams),
        is_encrypted=container.name.startswith("file:") and has_encrypted_audio(container.name[5:]),
    )


def _is_picture(stream: Stream) -> bool:
    return Disposition.attached_pic in stream.disposition


def has_encrypted_audio(path: str) -> bool:
    """Whether an MP4 declares protected audio: a sample entry ``enca`` (ISO/IEC 14496-12, 8.12)."""
    with open(path, "rb") as file:  # noqa: PTH123
        end = file.seek(0, 2)
        at = 0
        while at + 8 <= end:
            file.seek(at)
            size, kind, large = struct.unpack(">I4sQ", file.read(16).ljust(16, b"\0"))
            if kind == b"moov":
                moov = file.read(LARGEST_MOOV_BYTES)
                return b"enca" in moov and b"schm" in moov
            size = {0: end - at, 1: large}.get(size, size)
            at += max(size, 8)
    return False


def _track(stream: AudioStream, start_us: int, is_guess: bool) -> AudioTrack:
    # The library declares a context for every stream, but gives none where there is no decoder.
    codec = cast("AudioCodecContext | None", stream.codec_context)
    language = stream.language
    start_ms = 0 if stream.start_time is None else _on_clock(stream.start_time, stream.time_base, start_us)
    duration_ms = None
    if stream.duration is not None and stream.duration > 0 and not is_guess:
        duration_ms = _on_clock(stream.duration, stream.time_base, 0)
    return AudioTrack(
        index=stream.index,
        codec=codec.codec.canonical_name if codec is not None else "unknown",
        channels=codec.channels if codec is not None else 0,
        sample_rate_hz=codec.sample_rate if codec is not None else 0,
        start_ms=start_ms,
        duration_ms=duration_ms,
        language=language if language and re.fullmatch(LANGUAGE_TAG, language) else None,
        is_default=Disposition.default in stream.disposition,
        is_decodable=codec is not None,
    )


def _with_codec_names(tracks: tuple[AudioTrack, ...], container: InputContainer) -> tuple[AudioTrack, ...]:
    """Name the codecs without a decoder, which the library does only in its own description of the file."""
    av.logging.set_level(av.logging.INFO)
    description = container.dumps_format()  # type: ignore[attr-defined]  # left out of its stubs
    found = dict(re.findall(r"Stream #0:(\d+)\S*: Audio: (\w+)", description))
    return tuple(t if t.is_decodable else replace(t, codec=found.get(str(t.index), t.codec)) for t in tracks)


def _on_clock(time: int, time_base: Fraction | None, start_us: int) -> int:
    return round((time * (time_base or Fraction(1, 1_000_000)) - Fraction(start_us, 1_000_000)) * 1000)


def packet_ends(path: str, index: int) -> Ends:
    """Read the last packets, from shortly before the declared end to the last byte, in this process."""
    ends: dict[int, int] = {}
    try:
        with _opened(path) as container:
            start_us = container.start_time or 0
            container.seek(max(start_us, start_us + (container.duration or 0) - TAIL_US))
            for packet in container.demux():
                if packet.pts is not None:
                    end = packet.pts + (packet.duration or 0)
                    end_ms = _on_clock(end, packet.time_base, start_us)
                    ends[packet.stream_index] = max(end_ms, ends.get(packet.stream_index, end_ms))
    except (av.error.FFmpegError, OSError, ValueError):
        pass  # a file that is cut off may end with an error: what was read until then is the answer
    return Ends(ends.get(index), max(ends.values(), default=None))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
