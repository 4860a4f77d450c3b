"""Subtitle files: finished cues as SRT, WebVTT, ASS, TTML, JSON or plain text, written whole or not at all.

SRT, WebVTT and ASS are written by pysubs2, from which our text must be shielded: it takes ``{…}``, ``\\n``,
``\\N`` and ``\\h`` in any text for ASS tags. Its TTML lacks the required ``xml:lang`` and its styles have no
``xml:id``, so TTML is written here.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pysubs2
from pysubs2.formats.substation import SubstationFormat

from pipeline.errors import RetriableError, UsageError
from pipeline.values import Cue, Media, MediaResult, Sentence, Word

FORMATS = ("srt", "vtt", "ass", "ttml", "json", "txt")
PARAGRAPH_PAUSE_MS = 2000
MAX_NAME_BYTES = 255
"""The longest file name of ext4, XFS, APFS and NTFS."""

_UNWRITABLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# Noncharacters stand in for what pysubs2 would read as markup; _UNWRITABLE has removed any real ones.
_SHIELD = str.maketrans("\\{}", "\ufdd0\ufdd1\ufdd2")
_UNSHIELD = str.maketrans("\ufdd0\ufdd1\ufdd2", "\\{}")
# ASS has no escape that every player and parser knows; the full-width forms look alike and are inert.
_ASS_INERT = str.maketrans("\\{}", "\uff3c\uff5b\uff5d")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LANGUAGE_TAG = re.compile(r"[A-Za-z0-9-]{1,35}")
_TT = "http://www.w3.org/ns/ttml"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE})


@dataclass(frozen=True, slots=True)
class Document:
    """What a subtitle file is made of. ``language`` is an ISO 639 code, or empty where there is no speech."""

    media_id: str
    title: str
    language: str
    duration_ms: int
    cues: Sequence[Cue]
    sentences: Sequence[Sentence]


def document_of(media: Media, result: MediaResult) -> Document:
    """Its language is that of most of the speech, else the asked-for one."""
    language = result.language or media.language or ""
    return Document(media.media_id, media.title, language, result.duration_ms, result.cues, result.sentences)


def check_formats(text: str, name: str = "--formats") -> tuple[str, ...]:
    """The asked-for formats. Raises UsageError for an unknown one; ``name`` is where ``text`` was given.

    >>> check_formats("srt, vtt,srt")
    ('srt', 'vtt')
    """
    asked = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    unknown = [one for one in asked if one not in FORMATS]
    if unknown or not asked:
        raise UsageError(f"{name} takes {','.join(FORMATS)}, not {text!r}")
    return asked


def render(format: str, *, media: Document) -> str:
    """Return the whole file as text, ending in a line feed; UTF-8 is meant, no byte-order mark.

    Times are exact in every format but ASS, which counts hundredths of a second (rounded; order is kept).
    Control characters are dropped and blank lines cannot occur inside a cue; without cues the file is empty
    but valid. In SRT, which cannot escape it, ``-->`` in a text becomes an arrow; in ASS, backslashes and
    braces become their full-width forms.

    Raises UsageError for a format that is none of FORMATS.
    """
    renderers = {"srt": _srt, "vtt": _vtt, "ass": _ass, "ttml": _ttml, "json": _json, "txt": _txt}
    if format not in renderers:
        raise UsageError(f"unknown subtitle format {format!r}: use one of {', '.join(FORMATS)}")
    return renderers[format](media)


def _srt(media: Document) -> str:
    events = _events(media.cues, lambda line: line.replace("-->", "→").translate(_SHIELD))
    return _file_of(events).to_string("srt", keep_ssa_tags=True).translate(_UNSHIELD)


def _vtt(media: Document) -> str:
    events = _events(media.cues, lambda line: line.translate(_MARKUP).translate(_SHIELD))
    return _file_of(events).to_string("vtt", keep_ssa_tags=True).translate(_UNSHIELD)


class _LongSubstationFormat(SubstationFormat):
    """pysubs2 cuts ASS times off at 10 hours; players read more digits than one."""

    @staticmethod
    def ms_to_timestamp(requested_ms: int) -> str:
        seconds, hundredths = divmod((requested_ms + 5) // 10, 100)
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{hundredths:02d}"


def _ass(media: Document) -> str:
    subtitles = _file_of(_events(media.cues, lambda line: line.translate(_ASS_INERT)))
    subtitles.info["Title"] = _one_line(media.title)
    text = io.StringIO()
    _LongSubstationFormat.to_file(subtitles, text, "ass")
    return text.getvalue()


def _events(cues: Sequence[Cue], escape: Callable[[str], str]) -> Iterator[pysubs2.SSAEvent]:
    for cue in cues:
        lines = _lines(cue)
        if lines:
            yield pysubs2.SSAEvent(cue.start_ms, cue.end_ms, r"\N".join(map(escape, lines)))


def _file_of(events: Iterator[pysubs2.SSAEvent]) -> pysubs2.SSAFile:
    subtitles = pysubs2.SSAFile()
    subtitles.events = list(events)
    return subtitles


def _ttml(media: Document) -> str:
    # xml:lang must be there; empty means unknown (TTML1 §7.2.2).
    root = ET.Element("tt", {"xmlns": _TT, _XML_LANG: media.language})
    ET.SubElement(ET.SubElement(root, "head"), "metadata")
    division = ET.SubElement(ET.SubElement(root, "body"), "div")
    for cue in media.cues:
        lines = _lines(cue)
        if not lines:
            continue
        paragraph = ET.SubElement(division, "p", begin=_clock(cue.start_ms), end=_clock(cue.end_ms))
        paragraph.text = lines[0]
        for line in lines[1:]:
            ET.SubElement(paragraph, "br").tail = line
        paragraph.tail = "\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _clock(time_ms: int) -> str:
    """Write a media time as TTML's clock-time.

    >>> _clock(3_723_004)
    '01:02:03.004'
    """
    seconds, millis = divmod(time_ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{millis:03d}"


def _json(media: Document) -> str:
    cues = [
        {"start_ms": c.start_ms, "end_ms": c.end_ms, "text": "\n".join(_lines(c)), **_speaker(c)} for c in media.cues
    ]
    words = [
        {
            "start_ms": word.start_ms,
            "end_ms": word.end_ms,
            "text": _writable(word.text),
            "probability": round(word.probability, 4) if math.isfinite(word.probability) else 0.0,
            **_speaker(word),
        }
        for sentence in media.sentences
        for word in sentence.words
    ]
    about = {
        "media_id": _writable(media.media_id),
        "title": _writable(media.title),
        "language": media.language,
        "duration_ms": media.duration_ms,
    }
    content = {"media": about, "cues": cues, "words": words}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _speaker(said: Cue | Word) -> dict[str, str]:
    """Only where speakers were told apart."""
    return {"speaker": said.speaker} if said.speaker else {}


def _txt(media: Document) -> str:
    """One sentence a line; an empty line where the speaker pauses for two seconds or more."""
    lines: list[str] = []
    end_ms = 0
    for sentence in media.sentences:
        text = _one_line(sentence.text)
        if text and lines and sentence.start_ms - end_ms >= PARAGRAPH_PAUSE_MS:
            lines.append("")
        if text:
            lines.append(text)
        end_ms = sentence.end_ms
    return "".join(f"{line}\n" for line in lines)


def _lines(cue: Cue) -> list[str]:
    return [text for line in cue.lines if (text := _one_line(line))]


def _one_line(text: str) -> str:
    """Collapse white space, line ends of every script included, and drop what no file may hold.

    >>> _one_line(" a\\u2028b\\x00 \\n c ")
    'a b c'
    """
    return " ".join(_writable(text).split())


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("", text)


def export_path(out_dir: Path, stem: str, language: str, format: str) -> Path:
    """Return ``DIR/<stem>.<language>.<format>``; ``und`` stands for no language.

    Slashes and control characters in the stem become underscores. A name beyond 255 bytes is cut at a
    character and gets eight digits of its stem's digest, so that two long stems do not share a file.

    Raises UsageError for a format that is none of FORMATS.

    >>> export_path(Path("out"), "lecture 1", "zh", "srt").name
    'lecture 1.zh.srt'
    """
    if format not in FORMATS:
        raise UsageError(f"unknown subtitle format {format!r}: use one of {', '.join(FORMATS)}")
    suffix = f".{language if _LANGUAGE_TAG.fullmatch(language) else 'und'}.{format}"
    safe = re.sub(r"[/\x00-\x1f\x7f]", "_", stem) or "media"
    return out_dir / (_shortened(safe, MAX_NAME_BYTES - len(suffix)) + suffix)


def _shortened(stem: str, room_bytes: int) -> str:
    encoded = stem.encode("utf-8", "surrogateescape")
    if len(encoded) <= room_bytes:
        return stem
    digest = hashlib.sha256(encoded).hexdigest()[:8]
    return encoded[: room_bytes - 9].decode("utf-8", "ignore") + "-" + digest


def write_whole(path: Path, text: str) -> None:
    """Write a file so that its name never shows a half of it: a temporary beside it, fsync, rename.

    Makes the folder where it is missing. Whatever fails, the temporary is removed and a former file stays.

    Raises UsageError where the path is at fault (no permission, not a folder) and RetriableError where the
    disk is (full, failing).
    """
    content = text.encode("utf-8")
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_synced(temporary, content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _explained(error, path) from error


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _explained(error: OSError, path: Path) -> RetriableError | UsageError:
    why = error.strerror or str(error)
    if error.errno in _DISK_FAULTS:
        return RetriableError(f"cannot write {path}: {why}; check the disk, then try again")
    return UsageError(f"cannot write {path}: {why}; choose a folder that you may write to")
