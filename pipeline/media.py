"""Step 1, probe: what is in a file, and which of its audio tracks is meant."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from pipeline.errors import InvalidInputError, RetriableError
from pipeline.probe_process import Ends, Probed
from pipeline.values import AudioTrack, MediaInfo

BLOCK_BYTES = 64 * 1024
BLOCK_COUNT = 64
"""A fingerprint reads 4 MiB at most, spread over the file: 20 ms on a disk, whatever the length."""

_EXPLANATIONS = (
    (
        "moov atom not found",
        "the index (moov) is missing: the upload was probably interrupted; upload it again",
    ),
    (
        "Format not on whitelist",
        "a playlist, a picture or a text, not a media file; upload the recording itself",
    ),
    ("end of file", "the file ends where its content should begin; upload it again"),
    ("Cannot allocate memory", "the header asks for more memory than there is: the file is damaged"),
)
"""What the library says (part of it), and what that means to the owner of the file."""

_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"moof"}
"""What an MP4 or QuickTime file can begin with, at byte 4."""

_LANGUAGES = {
    "zh": {"zh", "zho", "chi", "cmn", "yue", "mandarin", "chinese"},
    "en": {"en", "eng", "english"},
    "fr": {"fr", "fra", "fre"},
    "de": {"de", "deu", "ger"},
    "ja": {"ja", "jpn"},
    "ko": {"ko", "kor"},
    "es": {"es", "spa"},
    "ru": {"ru", "rus"},
}
"""The ways in which files write a language: ISO 639-1, 639-2/T, 639-2/B, 639-3, and out of habit."""

_Document = TypeVar("_Document", Probed, Ends)


@dataclass(frozen=True, slots=True)
class TrackChoice:
    """The audio track that is transcribed, or None where the file has no audio; ``why`` is for the log."""

    track: AudioTrack | None
    why: str


def probe(path: Path, *, timeout_s: float = 60) -> MediaInfo:
    """Open a file in a child process and say what is in it; nothing is decoded.

    Raises ``InvalidInputError`` for everything that is no readable recording, in one line that says why; a
    file that hangs or crashes the library counts as that too, since it would do the same again and hold up
    the rest. Raises ``RetriableError`` where the disk fails while the file is read.
    """
    size_bytes = checked_size(path)
    found = _inspect(path, timeout_s)
    return MediaInfo(
        container=found.container,
        size_bytes=size_bytes,
        duration_ms=found.duration_ms,
        tracks=found.tracks,
        has_video=found.has_video,
        content_fingerprint=fingerprint(path),
        start_us=found.start_us,
    )


def _inspect(path: Path, timeout_s: float) -> Probed:
    """Everything the child found. Errors as in ``probe``."""
    found = _ask_child([os.fspath(path)], Probed, path, timeout_s)
    if found.error:
        raise InvalidInputError(_explained(found.error, _head(path)), source=shown(path))
    if found.stream_count == 0:
        raise InvalidInputError("a media file without any stream: nothing to play", source=shown(path))
    if found.is_encrypted:
        raise InvalidInputError("the audio is encrypted (DRM): upload a copy without", source=shown(path))
    return found


def packet_ends(path: Path, track: AudioTrack, *, timeout_s: float = 60) -> Ends:
    """Where the last packets of a file end, read in a child process. Errors as in ``probe``."""
    return _ask_child([os.fspath(path), str(track.index)], Ends, path, timeout_s)


def fingerprint(path: Path) -> str:
    """BLAKE2b over the size and up to 64 blocks of 64 KiB, first and last among them, as 32 hex digits."""
    try:
        with path.open("rb") as file:

            def read(start: int, _end: int) -> bytes:
                file.seek(start)
                return file.read(BLOCK_BYTES)

            return fingerprint_of(file.seek(0, os.SEEK_END), read)
    except OSError as error:
        raise RetriableError(f"{shown(path)}: could not be read to its end ({error.strerror})") from error


def fingerprint_of(size_bytes: int, read: Callable[[int, int], bytes]) -> str:
    """The fingerprint of content that lies elsewhere; ``read`` gives its bytes from one offset up to another."""
    digest = hashlib.blake2b(str(size_bytes).encode(), digest_size=16)
    for at in block_offsets(size_bytes):
        digest.update(read(at, min(at + BLOCK_BYTES, size_bytes)))
    return digest.hexdigest()


def block_offsets(size_bytes: int) -> Sequence[int]:
    """Where the sampled blocks begin: all blocks of a small file, evenly spread ones of a large file.

    >>> block_offsets(100_000)
    range(0, 100000, 65536)
    >>> len(block_offsets(10**10)), block_offsets(10**10)[-1] == 10**10 - BLOCK_BYTES
    (64, True)
    """
    if size_bytes <= BLOCK_BYTES * BLOCK_COUNT:
        return range(0, size_bytes, BLOCK_BYTES)
    return [(size_bytes - BLOCK_BYTES) * i // (BLOCK_COUNT - 1) for i in range(BLOCK_COUNT)]


def choose_track(info: MediaInfo, asked: int | None, language: str | None) -> TrackChoice:
    """The asked-for track (counted from 1), else the default one, else by language, else the first.

    A track that can be decoded goes before one that cannot. Raises ``InvalidInputError`` where the asked-for
    track does not exist, naming those that do.
    """
    if asked is not None:
        return TrackChoice(_asked_for(info, asked), f"audio track {asked} was asked for")
    tracks = [track for track in info.tracks if track.is_decodable] or list(info.tracks)
    if not tracks:
        return TrackChoice(None, "there is no audio track")
    if len(info.tracks) == 1:
        return TrackChoice(tracks[0], "the only audio track")
    if len(tracks) == 1:
        return TrackChoice(tracks[0], _why(info, tracks[0], "is the only one that can be decoded"))
    default = [track for track in tracks if track.is_default]
    if len(default) == 1:
        return TrackChoice(default[0], _why(info, default[0], "is the default one"))
    spoken = [track for track in tracks if language and same_language(track.language, language)]
    if spoken:
        return TrackChoice(spoken[0], _why(info, spoken[0], f"is in the course's language ({language})"))
    return TrackChoice(tracks[0], _why(info, tracks[0], "is the first that can be decoded"))


def same_language(written: str | None, wanted: str) -> bool:
    """Whether a language tag of a file means the wanted language.

    >>> [same_language(tag, "zh") for tag in ("chi", "zho", "cmn", "zh-CN", "zh_Hant", "eng", None)]
    [True, True, True, True, True, False, False]
    """
    tag, primary = (text.lower().replace("_", "-").split("-")[0].strip() for text in (written or "", wanted))
    return bool(tag) and tag in _LANGUAGES.get(primary, {primary})


def _asked_for(info: MediaInfo, asked: int) -> AudioTrack:
    if not 1 <= asked <= len(info.tracks):
        listing = "; ".join(_listed(number, track) for number, track in enumerate(info.tracks, 1))
        raise InvalidInputError(f"there is no audio track {asked}; there is: {listing or 'none'}")
    return info.tracks[asked - 1]


def _why(info: MediaInfo, track: AudioTrack, reason: str) -> str:
    return f"{_listed(info.tracks.index(track) + 1, track)}: of {len(info.tracks)} audio tracks it {reason}"


def _listed(number: int, track: AudioTrack) -> str:
    return f"track {number} ({track.language or 'no language'}, {track.codec}, {track.channels} channels)"


def checked_size(path: Path) -> int:
    """In bytes. Raises InvalidInputError for what is no regular file that can be read, or is empty."""
    try:
        status = path.stat()
        # Asked before it is opened: opening a pipe would wait for its writer.
        if stat.S_ISREG(status.st_mode):
            path.open("rb").close()
    except FileNotFoundError:
        raise InvalidInputError("there is no such file", source=shown(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"cannot be opened ({reason})", source=shown(path)) from None
    if stat.S_ISDIR(status.st_mode):
        raise InvalidInputError("a folder, not a media file", source=shown(path))
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInputError("not a regular file", source=shown(path))
    if status.st_size == 0:
        raise InvalidInputError("the file is empty; upload it again", source=shown(path))
    return status.st_size


def _ask_child(arguments: list[str], kind: type[_Document], path: Path, timeout_s: float) -> _Document:
    command = [sys.executable, "-m", "pipeline.probe_process", *arguments]
    try:
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        reason = f"not opened within {timeout_s:g} s: the file hangs the media library, or its disk is stuck"
        raise InvalidInputError(reason, source=shown(path)) from None
    if answer.returncode < 0:
        name = signal.Signals(-answer.returncode).name
        raise InvalidInputError(f"the file crashes the media library ({name})", source=shown(path))
    try:
        return msgspec.json.decode(answer.stdout, type=kind)
    except msgspec.DecodeError:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit status {answer.returncode}"
        raise InvalidInputError(f"the media library failed on it ({reason})", source=shown(path)) from None


def _explained(error: str, head: bytes) -> str:
    if head.startswith((b"#EXTM3U", b"ffconcat", b"<?xml", b"<MPD", b"[playlist]")):
        return "a playlist, not a media file; upload the recording itself"
    if "moov atom not found" in error and head[4:8] not in _BOXES:
        return "not a media file (or damaged from its first bytes on)"
    for said, meaning in _EXPLANATIONS:
        if said.lower() in error.lower():
            return meaning
    return f"not a media file, or damaged beyond reading ({error.splitlines()[-1][:200]})"


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def shown(path: Path) -> str:
    """The name as a person can read it: bytes that are no UTF-8 become replacement characters."""
    return os.fsencode(path).decode(errors="replace")
