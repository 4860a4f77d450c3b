"""The audio of one slice as bytes inside a message: FLAC without loss, or Opus where the network is thin.

Measured on one core, for 30 s of a recorded lecture (960 kB of PCM): FLAC 390-670 kB, 8 ms to encode, 2 ms to decode;
Opus 100 kB, 45 ms and 65 ms. FFmpeg encodes both and decodes Opus; FLAC is decoded in ``flac.py``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, cast

import av
import numpy as np
import numpy.typing as npt
from av.audio.stream import AudioStream

from pipeline import flac
from pipeline.errors import InvalidInputError
from pipeline.values import SAMPLE_RATE_HZ, Samples

Codec = Literal["flac", "opus"]


@dataclass(frozen=True, slots=True)
class _Format:
    """How one codec is written."""

    container: str
    encoder: str
    options: Mapping[str, str]
    bit_rate: int | None
    least_samples: int
    """Shorter audio is filled up with silence, which decoding cuts off again."""


_FORMATS: Mapping[Codec, _Format] = MappingProxyType(
    {
        "flac": _Format(
            container="flac",
            encoder="flac",
            # Half the time of FFmpeg's defaults (level 5, blocks of 1152 samples), for 3 to 7 % more bytes.
            options={"compression_level": "2", "frame_size": "4096"},
            bit_rate=None,
            least_samples=0,
        ),
        "opus": _Format(
            container="ogg",
            encoder="libopus",
            options={"application": "audio", "compression_level": "0"},
            bit_rate=32_000,
            least_samples=SAMPLE_RATE_HZ // 50,  # one frame of 20 ms; of less, nothing may be left behind the pre-skip
        ),
    }
)

# Without padding (8 KiB) and the library's version: equal samples, equal bytes.
_CONTAINER_OPTIONS = {"metadata_header_padding": "0", "fflags": "+bitexact"}
_OPUS_DECODERS = ("opus", "libopus")
_OPUS_RATE_HZ = 48_000
"""It always decodes to this, whatever went in (RFC 7845, 4)."""
# Without this a flipped bit is decoded to noise, unseen.
_CHECKED = {"err_detect": "crccheck+explode"}


def encode(samples: Samples, codec: Codec) -> bytes:
    """``samples`` as a FLAC file or an Ogg Opus file (32 kbit/s).

    Samples are rounded to 16 bits first, so FLAC gives those on that grid (multiples of 1/32768, as
    ``pipeline.decoding`` makes them) back as they were.
    """
    form = _FORMATS[codec]
    pcm = np.clip(np.rint(samples * np.float32(32768)), -32768, 32767).astype(np.int16)
    pcm = np.pad(pcm, (0, max(0, form.least_samples - len(pcm))))
    file = io.BytesIO()
    with av.open(file, "w", format=form.container, options=dict(_CONTAINER_OPTIONS)) as container:
        stream = _new_stream(container, form)
        for frame in _frames(pcm):
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def decode(data: bytes, codec: Codec, sample_count: int) -> Samples:
    """The ``sample_count`` samples that ``encode`` was given; Opus gives them changed, but no less and no later.

    Opus delays by the encoder's look-ahead (6.5 ms) and the filter of the way back to 16 kHz: both are taken out.
    Raises InvalidInputError where ``data`` is anything else than mono audio of that length at 16 kHz. No more than
    that is ever decoded, whatever ``data`` says, but for the frame that shows it.
    """
    return flac.decode(data, sample_count) if codec == "flac" else _opus(data, sample_count)


def _opus(data: bytes, sample_count: int) -> Samples:
    expected = max(sample_count, _FORMATS["opus"].least_samples)
    blocks = [np.zeros(0, np.float32)]
    left = expected
    try:
        for block in _decoded(data):
            blocks.append(block)
            left -= len(block)
            if left < 0:
                raise InvalidInputError(f"the audio is longer than the {sample_count} samples of its slice")
    except (av.error.FFmpegError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"the audio is no undamaged OPUS ({said})") from error
    if left:
        raise InvalidInputError(f"the audio has {expected - left} samples, but its slice has {sample_count}")
    return np.concatenate(blocks)[:sample_count]


def _new_stream(container: av.container.OutputContainer, form: _Format) -> AudioStream:
    options = {**form.options, "flags": "+bitexact"}
    stream = cast(AudioStream, container.add_stream(form.encoder, rate=SAMPLE_RATE_HZ, options=options))
    stream.codec_context.layout = "mono"
    stream.codec_context.format = "s16"
    if form.bit_rate:
        stream.codec_context.bit_rate = form.bit_rate
    return stream


def _frames(pcm: npt.NDArray[np.int16]) -> Iterator[av.AudioFrame]:
    """All of ``pcm`` as one frame; none where it is empty, which the encoder does not take."""
    if len(pcm):
        frame = av.AudioFrame.from_ndarray(pcm.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts = SAMPLE_RATE_HZ, 0
        yield frame


def _decoded(data: bytes) -> Iterator[Samples]:
    """The audio of an Ogg Opus file block by block, 16 kHz."""
    with av.open(io.BytesIO(data), "r", format="ogg", metadata_errors="replace") as container:
        stream = _only_stream(container)
        stream.codec_context.options = dict(_CHECKED)
        resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE_HZ)
        for frame in chain((_checked(frame) for frame in container.decode(stream)), [None]):
            yield from (np.clip(_mono(piece), -1, 1) for piece in resampler.resample(frame))


def _only_stream(container: av.container.InputContainer) -> AudioStream:
    audio = container.streams.audio
    if len(audio) != 1 or len(container.streams) != 1:
        raise InvalidInputError(f"the audio has {len(container.streams)} streams instead of 1")
    if audio[0].codec_context.name not in _OPUS_DECODERS:
        raise InvalidInputError(f"the audio is {audio[0].codec_context.name}, not opus")
    _check(audio[0].codec_context.sample_rate, audio[0].codec_context.channels)
    return audio[0]


def _checked(frame: av.AudioFrame) -> av.AudioFrame:
    """A header can say one thing and a frame another."""
    _check(frame.sample_rate, frame.layout.nb_channels)
    return frame


def _check(rate_hz: int, channels: int) -> None:
    if (rate_hz, channels) != (_OPUS_RATE_HZ, 1):
        wanted = f"{_OPUS_RATE_HZ} Hz and 1 channel"
        raise InvalidInputError(f"the audio has {rate_hz} Hz and {channels} channels; a slice has {wanted}")


def _mono(frame: av.AudioFrame) -> Samples:
    # As frame.to_ndarray(), in a third of the time: there are 1500 of them in 30 s.
    plane: Any = frame.planes[0]
    return np.frombuffer(plane, np.float32, frame.samples)
