"""``lecturemill upload``: media are stored and announced on ``media.uploaded``, then followed through the line."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.admission import had_failed
from pipeline.broker import MEDIA_UPLOADED, Outgoing, Sender
from pipeline.console import Bars, Counter, clock, complain, print_json, print_table, printable
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.identity import media_id_of
from pipeline.media import checked_size, fingerprint, shown
from pipeline.media_store import join, path_part, put
from pipeline.message_checks import check_key
from pipeline.messages import MediaUploaded, encode
from pipeline.settings import Settings, open_database
from pipeline.store import MediaStatus, Store
from pipeline.values import Priority

CLIENT_ID = "lecturemill-upload"
POLL_S = 1.0
LOOKS_UNTIL_HINT = 30
FINGERPRINT_DIGITS = 12

ANNOUNCED, NOT_ANNOUNCED, WAITING, RUNNING, DONE, FAILED = (
    "announced",
    "not announced",
    "waiting",
    "running",
    "done",
    "failed",
)


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """What the media have in common."""

    course_id: str
    language: str | None
    priority: Priority
    audio_track: int | None
    """Counted from 1."""
    title: str | None
    """None names each media after its file."""
    is_in_place: bool
    """Announced where it lies, instead of stored first."""


@dataclass(frozen=True, slots=True)
class Upload:
    """What became of one file; a line of the summary and of ``--json``."""

    file: str
    media_id: str
    uri: str
    state: str
    """``announced`` until the line has recorded it; then ``waiting``, ``running``, ``done`` or ``failed``."""
    reason: str
    duration_ms: int | None = None
    slices_done: int = 0
    slices_planned: int | None = None
    """None until the whole media is sliced."""
    cues: int = 0

    @property
    def goes_on(self) -> bool:
        return self.state in (ANNOUNCED, WAITING, RUNNING)

    @property
    def label(self) -> str:
        return printable(Path(self.file).name.replace("\n", " "))


def check_request(request: UploadRequest, files: Sequence[Path]) -> None:
    """Raises UsageError for what no media could be announced with."""
    if request.title is not None and len(files) != 1:
        raise UsageError(f"--title names one media, and there are {len(files)} files")
    try:
        check_key("--course", request.course_id)
    except InvalidInputError as error:
        raise UsageError(error.reason) from error


def announce_all(files: Sequence[Path], request: UploadRequest, settings: Settings, bars: Bars) -> Iterator[Upload]:
    """Store and announce each file; one that is at fault is reported and the others go on.

    What is yielded as announced was acknowledged by the broker. Where the broker or the media store fails half-way,
    the rest is yielded as not announced, and RetriableError raised.
    """
    with _sender(settings.brokers) as sender:
        for at, file in enumerate(files):
            try:
                upload = _announced(file, request, settings, sender)
                bars.say(f"{upload.label}: announced")
                yield upload
            except InvalidInputError as error:
                bars.say(f"failed: {error.reason}")
                yield Upload(shown(file), "", "", FAILED, error.reason)
            except RetriableError as error:
                yield from (Upload(shown(left), "", "", NOT_ANNOUNCED, error.reason) for left in files[at:])
                rest = f"{len(files) - at} of {len(files)} files are not announced"
                raise RetriableError(f"{error.reason}; {rest}: the same command does the rest") from error


def _sender(brokers: str) -> Sender:
    try:
        return Sender.open(brokers, CLIENT_ID)
    except RetriableError as error:
        remedy = "start it (make stack), or name another by --brokers"
        raise RetriableError(f"{error.reason}; {remedy}; nothing was announced") from error


def _announced(file: Path, request: UploadRequest, settings: Settings, sender: Sender) -> Upload:
    checked_size(file)
    uri = file.resolve().as_uri() if request.is_in_place else _stored(file, request.course_id, settings.media_store)
    message = MediaUploaded(
        course_id=request.course_id,
        uri=uri,
        title=request.title or shown(Path(file.stem)),
        language=request.language,
        priority=request.priority,
        audio_track=request.audio_track,
    )
    sender.send([Outgoing(MEDIA_UPLOADED, request.course_id, encode(message))])
    return Upload(shown(file), media_id_of(request.course_id, uri), uri, ANNOUNCED, "")


def _stored(file: Path, course_id: str, media_store: str) -> str:
    """The URI under which the file is in the media store, whole.

    It holds the content's fingerprint: the same file gets the same URI, so it is the same media, and two of one name
    do not meet.
    """
    stem = f"{path_part(file.stem)}-{fingerprint(file)[:FINGERPRINT_DIGITS]}"
    suffix = f".{path_part(file.suffix[1:])}" if file.suffix[1:] else ""
    uri = join(media_store, f"uploads/{path_part(course_id)}/{stem}{suffix}")
    put(file, uri)
    return uri


def follow(uploads: list[Upload], settings: Settings, bars: Bars, since_ms: int) -> None:
    """Show the media's way through the line until all are done or failed.

    ``since_ms``: when announcing began, in milliseconds since 1970; what failed before failed in an earlier try.
    ``uploads`` is kept up to date, so that it tells how far they are wherever this is stopped. Raises RetriableError
    where the database cannot be reached.
    """
    counters = [bars.counter(upload.label) for upload in uploads]
    looks = 0
    with open_database(settings) as url, Store.open(url) as store:
        while look(uploads, counters, store, since_ms):
            looks += 1
            if looks == LOOKS_UNTIL_HINT and not any(upload.state in (RUNNING, DONE, FAILED) for upload in uploads):
                bars.say("nothing takes them up; is the line running? See: lecturemill doctor --line")
            time.sleep(POLL_S)


def look(uploads: list[Upload], counters: Sequence[Counter], store: Store, since_ms: int) -> bool:
    """Bring ``uploads`` and their bars up to date; whether any media goes on."""
    for at, upload in enumerate(uploads):
        if not upload.goes_on:
            continue
        uploads[at] = now = _now(upload, store, since_ms)
        if now.state in (WAITING, RUNNING):
            counters[at].show(*_words(now), now.slices_done, now.slices_planned)
        elif not now.goes_on:
            counters[at].end(_end(now))
    return any(upload.goes_on for upload in uploads)


def _now(upload: Upload, store: Store, since_ms: int) -> Upload:
    """A media that the line has not recorded yet, or not begun again, stays announced."""
    for status in store.status(upload.media_id):
        if not had_failed(status, since_ms):
            return _of(upload, status)
    return upload


def _of(upload: Upload, status: MediaStatus) -> Upload:
    return replace(
        upload,
        state=status.state,
        reason=status.reason,
        duration_ms=status.duration_ms,
        slices_done=status.slices_done,
        slices_planned=status.slices_planned,
        cues=status.cues,
    )


def _words(upload: Upload) -> tuple[str, str]:
    """The state in words, and its pieces.

    >>> running = Upload("a.mp4", "m", "file:///a.mp4", "running", "", slices_done=3)
    >>> _words(running), _words(replace(running, slices_planned=12)), _words(replace(running, state="waiting"))
    (('slicing', '3 slices transcribed'), ('transcribing', '3 of 12 slices'), ('waiting', ''))
    """
    if upload.state != RUNNING:
        return upload.state, ""
    if upload.slices_planned is None:
        return "slicing", f"{upload.slices_done} slices transcribed" if upload.slices_done else ""
    return "transcribing", f"{upload.slices_done} of {upload.slices_planned} slices"


def _end(upload: Upload) -> str:
    if upload.state == FAILED:
        return f"failed: {upload.reason}"
    return f"done, {clock(upload.duration_ms)}, {upload.cues} cues"


def print_uploads(uploads: Sequence[Upload], *, as_json: bool) -> None:
    """The end of an upload; nothing where no file was reached."""
    if as_json and uploads:
        print_json(uploads)
        for upload in uploads:
            if upload.state == FAILED:
                complain(f"failed: {upload.reason}")
    elif uploads:
        print_table("", ("file", "media", "state", "slices", "duration", "cues", "reason"), map(_row, uploads))


def _row(upload: Upload) -> tuple[object, ...]:
    planned = "" if upload.slices_planned is None else f"{upload.slices_done} of {upload.slices_planned}"
    end = (clock(upload.duration_ms), upload.cues) if upload.state == DONE else ("", "")
    return (upload.label, upload.media_id, upload.state, planned, *end, upload.reason)
