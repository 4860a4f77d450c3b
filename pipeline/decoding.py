"""Step 2, decode: any audio track as 16 kHz mono on the media clock, streamed from an ffmpeg child.

ffmpeg decodes and resamples the one track, keeps its time stamps (``-copyts``) and writes PCM to a pipe in
NUT, a container with a time stamp on every frame. ``pipeline.media_clock`` puts the frames in their places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import ffmpeg as ffmpeg_python
import imageio_ffmpeg
import numpy as np

from pipeline import media
from pipeline.errors import InvalidInputError
from pipeline.ffmpeg_child import ORIGIN_S, FfmpegChild
from pipeline.media_clock import SHORTFALL_MS, Pcm, Piece, Tally, missing_tail, place
from pipeline.values import SAMPLE_RATE_HZ, SAMPLES_PER_MS, AudioTrack, MediaInfo, Samples, Span

SOURCE = "SOURCE"
BLOCK = 5 * SAMPLE_RATE_HZ
INVERTED = 100.0
"""Two channels are taken for one in opposite phase where their difference holds this much (20 dB) more energy
than their sum. Speech on a single channel gives 1, ordinary stereo less."""
AUDIBLE = 1e-6
"""Mean square of -60 dBFS: below it, what differs between the channels is noise."""
LARGEST_LAYOUT = 8
"""7.1; of larger layouts ffmpeg leaves channels out when it mixes to one."""
SHOWN = 5
"""So many gaps and kinds of message are told one by one; a damaged file has thousands."""


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """``samples`` of shape ``(n,)``, float32 in [-1, 1], 16 kHz, from ``start_ms`` of the media clock on.

    Every block but the last is a whole number of milliseconds long.
    """

    start_ms: int
    samples: Samples = field(repr=False)


@dataclass(frozen=True, slots=True)
class DecodeReport:
    """What decoding found. The blocks hold ``decoded_ms`` of audio and ``padded_ms`` of zeros in its place.

    ``duration_ms`` is the whole media; from the last block to there it is silent, or missing.
    """

    duration_ms: int
    decoded_ms: int
    missing: tuple[Span, ...]
    padded_ms: int
    warnings: tuple[str, ...]


def find_ffmpeg() -> str:
    """The static ffmpeg that the package ``imageio-ffmpeg`` brings, or the one its own settings point to."""
    return str(imageio_ffmpeg.get_ffmpeg_exe())


def decode(path: Path, info: MediaInfo, track: AudioTrack, *, ffmpeg: str, stall_timeout_s: float = 60) -> Decoding:
    """Decode one track; to be used as a context manager, which ends the child however it is left."""
    return Decoding(path, info, track, ffmpeg=ffmpeg, stall_timeout_s=stall_timeout_s)


class Decoding:
    """Iterate it once for the ``AudioBlock``\\ s, contiguous from 0 ms; then ask for ``report``.

    The iteration raises ``InvalidInputError`` where nothing at all can be decoded. A decoder that crashes, or
    hangs while it computes, ends the blocks early and the rest is reported as missing: the file would do it
    again. One that gets nothing from the disk for ``stall_timeout_s`` is a ``RetriableError``.
    """

    def __init__(self, path: Path, info: MediaInfo, track: AudioTrack, *, ffmpeg: str, stall_timeout_s: float) -> None:
        self._path, self._info, self._track = path, info, track
        self._ffmpeg, self._stall_timeout_s = ffmpeg, stall_timeout_s
        self._child: FfmpegChild | None = None
        self._tally = Tally()
        self._inverted = 0
        self._report: DecodeReport | None = None

    def __enter__(self) -> Decoding:
        output = _output(self._info, self._track)
        # ffmpeg-python cannot hash a file name that is no UTF-8, so the name goes in afterwards.
        command = [
            f"file:{self._path}" if word == SOURCE else word for word in ffmpeg_python.compile(output, cmd=self._ffmpeg)
        ]
        self._child = FfmpegChild(command, self._stall_timeout_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.close()

    def __iter__(self) -> Iterator[AudioBlock]:
        if self._child is None or self._report is not None or self._tally.audio:
            raise RuntimeError("a decoding is iterated once, inside its with statement")
        start = 0
        placed = place(self._child.frames(), declared_end=self._declared_end())
        for pcm in _blocks(self._counted(placed), _channels(self._track)):
            yield AudioBlock(start // SAMPLES_PER_MS, self._mono(pcm))
            start += len(pcm)
        self._report = self._finish(self._child)

    @property
    def report(self) -> DecodeReport:
        """What was found; there is none before the last block was taken."""
        if self._report is None:
            raise RuntimeError("the report comes after the last block")
        return self._report

    def _counted(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            self._tally = self._tally.after(piece)
            yield piece

    def _declared_end(self) -> int | None:
        ends = [end for end in (self._info.duration_ms, _track_end_ms(self._track)) if end is not None]
        return max(ends) * SAMPLES_PER_MS if ends else None

    def _mono(self, pcm: Pcm) -> Samples:
        samples, is_inverted = to_mono(pcm)
        self._inverted += len(pcm) if is_inverted else 0
        return samples

    def _finish(self, child: FfmpegChild) -> DecodeReport:
        tally = self._tally
        if not tally.audio and not self._is_empty_track(child):
            raise InvalidInputError(self._why_nothing(child), source=media.shown(self._path))
        tail = self._missing_tail(tally.end_ms)
        ends = [tally.end_ms, self._info.duration_ms or 0, tail.end_ms if tail else 0]
        return DecodeReport(
            duration_ms=max(ends),
            decoded_ms=(tally.audio + SAMPLES_PER_MS // 2) // SAMPLES_PER_MS,
            missing=(*tally.missing, tail) if tail else tally.missing,
            padded_ms=(tally.zeros + SAMPLES_PER_MS // 2) // SAMPLES_PER_MS,
            warnings=(*self._warnings(tail, child), *child.messages.most_frequent(SHOWN)),
        )

    def _is_empty_track(self, child: FfmpegChild) -> bool:
        """A recorder makes a track without a sample in it where no microphone was on: silence, not damage."""
        return self._info.has_video and not self._track.duration_ms and child.ended_well

    def _missing_tail(self, end_ms: int) -> Span | None:
        media_end_ms, track_end_ms, last_packet_ms = self._info.duration_ms, _track_end_ms(self._track), None
        if track_end_ms is None and media_end_ms is not None and media_end_ms - end_ms > SHORTFALL_MS:
            ends = media.packet_ends(self._path, self._track)
            track_end_ms, last_packet_ms = ends.track_end_ms, ends.last_packet_ms
        return missing_tail(end_ms, track_end_ms=track_end_ms, media_end_ms=media_end_ms, last_packet_ms=last_packet_ms)

    def _why_nothing(self, child: FfmpegChild) -> str:
        if not self._track.is_decodable:
            return f"codec {self._track.codec} cannot be decoded; convert the audio to AAC and upload it again"
        said = child.death and f"the decoder {child.death}"
        said = said or child.messages.last_error or "it holds no audio data"
        return f"no audio could be decoded from the {self._track.codec} track ({said})"

    def _warnings(self, tail: Span | None, child: FfmpegChild) -> Iterator[str]:
        if child.death:
            yield f"the decoder {child.death} at {_clock(self._tally.end_ms)}; what follows is missing"
        missing = (*self._tally.missing, *([tail] if tail else []))
        for span in missing[:SHOWN]:
            yield f"no audio from {_clock(span.start_ms)} to {_clock(span.end_ms)}: damaged or cut off"
        if len(missing) > SHOWN:
            yield f"{len(missing) - SHOWN} more stretches without audio"
        if self._tally.rebased:
            yield f"the time stamps jumped {self._tally.rebased} times; times behind a jump may be off"
        if self._tally.trimmed >= SAMPLES_PER_MS:
            yield f"{self._tally.trimmed // SAMPLES_PER_MS} ms of audio overlapped or lay before 0:00"
        if self._inverted:
            yield f"the channels are in opposite phase for {self._inverted // SAMPLE_RATE_HZ} s"


def to_mono(pcm: Pcm) -> tuple[Samples, bool]:
    """The average of the channels of ``(n, 1)`` or ``(n, 2)`` PCM, and whether the phase of one was inverted.

    Channels in opposite phase would cancel each other: there half of the difference is taken. The result lies on the
    grid of 16 bits, so that a slice is the same after it travelled as FLAC.
    """
    scaled = pcm.astype(np.float32) * np.float32(1 / 32768)
    if pcm.shape[1] == 1:
        return scaled[:, 0], False
    middle: Samples = _on_grid((scaled[:, 0] + scaled[:, 1]) * np.float32(0.5))
    side: Samples = _on_grid((scaled[:, 0] - scaled[:, 1]) * np.float32(0.5))
    energy = float(np.dot(side, side))
    is_inverted = energy > max(AUDIBLE * len(side), INVERTED * float(np.dot(middle, middle)))
    return (side if is_inverted else middle), is_inverted


def _on_grid(samples: Samples) -> Samples:
    """Rounded to 16 bits; half a difference can reach +1, which 16 bits do not have."""
    steps: Samples = np.rint(samples * np.float32(32768)).clip(-32768, 32767)
    return steps * np.float32(1 / 32768)


def _output(info: MediaInfo, track: AudioTrack) -> Any:
    """The ffmpeg output (untyped) on stdout: this track only, with its own time stamps."""
    source = ffmpeg_python.input(
        SOURCE,
        # What the probe found, so that a name or a few bytes cannot make it something else.
        f=info.container.split(",")[0],
        protocol_whitelist="file,pipe",
        # Not -start_at_zero: with one stream chosen, that begins an MPEG-TS at this stream's start.
        copyts=None,
        itsoffset=f"{ORIGIN_S * 1_000_000 - info.start_us}us",
    )
    return ffmpeg_python.output(
        source[str(track.index)],
        "pipe:1",
        f="nut",
        acodec="pcm_s16le",
        ar=SAMPLE_RATE_HZ,
        **_mixing(track),
        # The muxer would rewrite time stamps that step back; so it is shown a counter as their order.
        avoid_negative_ts="disabled",
        write_index=0,
        **{"bsf:a": "setts=dts=N"},
    ).global_args("-hide_banner", "-nostdin", "-loglevel", "repeat+level+warning")


def _blocks(pieces: Iterator[Piece], channels: int) -> Iterator[Pcm]:
    """Join pieces into blocks of ``BLOCK`` samples; only the last may be shorter."""
    held: list[Pcm] = []
    length = 0
    for pcm in _runs(pieces, channels):
        held.append(pcm)
        length += len(pcm)
        if length >= BLOCK:
            joined = np.concatenate(held)
            whole = length - length % BLOCK
            yield from np.split(joined[:whole], whole // BLOCK)
            held, length = [joined[whole:]], length - whole
    if length:
        yield np.concatenate(held)


def _runs(pieces: Iterator[Piece], channels: int) -> Iterator[Pcm]:
    """The audio of all pieces, with zeros where there is none; of those at most a block at once."""
    for piece in pieces:
        if piece.pcm is not None:
            yield piece.pcm
        elif piece.is_zeros:
            for at in range(0, piece.length, BLOCK):
                yield np.zeros((min(BLOCK, piece.length - at), channels), np.int16)


def _channels(track: AudioTrack) -> int:
    """ffmpeg knows how to mix 5.1; of two channels ``to_mono`` must see both."""
    return 2 if track.channels == 2 else 1


def _mixing(track: AudioTrack) -> dict[str, str | int]:
    """How ffmpeg is to mix: by the layout, or evenly over a microphone array, which has none."""
    if track.channels <= LARGEST_LAYOUT:
        return {"ac": _channels(track)}
    shares = "+".join(f"{1 / track.channels:.6f}*c{channel}" for channel in range(track.channels))
    return {"af": f"pan=mono|c0={shares}"}


def _track_end_ms(track: AudioTrack) -> int | None:
    return None if track.duration_ms is None else track.start_ms + track.duration_ms


def _clock(ms: int) -> str:
    """Milliseconds as a player writes them.

    >>> _clock(3_723_400)
    '1:02:03.4'
    """
    minutes, rest_ms = divmod(ms, 60_000)
    return f"{minutes // 60}:{minutes % 60:02}:{rest_ms // 1000:02}.{rest_ms % 1000 // 100}"
