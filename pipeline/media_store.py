"""The media store: uploaded media and finished files, in a folder or wherever fsspec reaches, named by URI.

Read everywhere: a ``file://`` URI, a plain absolute path, or a URI of another store (``s3://``, ``gs://``, ``https://``).
The packages for the others (s3fs, gcsfs, ...) are for the user to install.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import fsspec  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.media import fingerprint, fingerprint_of
from pipeline.subtitles import write_whole

_SHOWS_NO_HALVES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Stores in which an object appears when its last byte is there; the others get a temporary name first."""

_ERRORS_OF_LIBRARIES = (
    ("botocore.exceptions", "BotoCoreError"),
    ("aiohttp", "ClientError"),
    ("gcsfs.retry", "HttpError"),
    ("google.auth.exceptions", "GoogleAuthError"),
    ("azure.core.exceptions", "AzureError"),
    ("paramiko.ssh_exception", "SSHException"),
)
"""What the libraries under fsspec raise beside OSError where a store is away or refuses."""

_LOOKS_CHANGED = re.compile("(.*-[0-9a-f]{8})?")
_PART_CHARACTERS = 60
"""With 9 for the digest, at most 249 bytes of UTF-8; file systems allow 255."""


@contextmanager
def local_copy(uri: str) -> Iterator[Path]:
    """The object as a file, for as long as the context lasts: in place where it is local, else downloaded.

    Raises InvalidInputError where there is none or ``uri`` names no store, RetriableError where the store is away
    or the disk is full, UsageError where a package for the store is missing.
    """
    here = _local_path(uri)
    if here:
        with _reading(uri):
            _check_file(here)
        yield here
        return
    with _reading(uri):
        folder = tempfile.TemporaryDirectory(prefix="lecturemill-")
    with folder as name:
        yield _downloaded(uri, Path(name))


def write_text(uri: str, text: str) -> None:
    """Write an object in UTF-8, whole or not at all; what was there before stays until then.

    Raises RetriableError where the store is away or full, UsageError where ``uri`` cannot be written.
    """
    with _writing(uri):
        here = _local_path(uri)
        if here:
            write_whole(here, text)
        else:
            _write(*_opened(uri), lambda fs, key: fs.pipe_file(key, text.encode()))


def put(path: Path, uri: str) -> bool:
    """Upload a file, whole or not at all; False where an object of its size and fingerprint is there already.

    Raises InvalidInputError where there is no such file; else as ``write_text``.
    """
    with _reading(os.fspath(path)):
        _check_file(path)
    with _writing(uri):
        fs, key = _opened(uri)
        if _is_there(fs, key, path):
            return False
        _write(fs, key, lambda fs, key: fs.put_file(os.fspath(path), key))
        return True


def find(uri: str) -> tuple[str, ...]:
    """The URIs of all objects below a folder, sorted. Errors as of ``local_copy``."""
    with _reading(uri):
        fs, key = _opened(uri)
        names = fs.find(key)
    if not names:
        raise InvalidInputError("there is no such folder, or nothing in it", source=_shown(uri))
    is_here = _local_path(uri) is not None
    return tuple(sorted(Path(name).as_uri() if is_here else fs.unstrip_protocol(name) for name in names))


def join(uri: str, name: str) -> str:
    """The URI of ``name``, which may hold slashes, in the folder ``uri``.

    >>> join("file:///srv/media/", "geometry 1/a.srt"), join("s3://media", "geometry 1/a.srt")
    ('file:///srv/media/geometry%201/a.srt', 's3://media/geometry 1/a.srt')
    """
    return f"{uri.rstrip('/')}/{quote(os.fsencode(name)) if _is_quoted(uri) else name}"


def stem_of(uri: str) -> str:
    """The name of an object without its ending; without that of a query, where it has one.

    >>> stem_of("file:///srv/%E7%AC%AC1%E8%AF%BE.mp4"), stem_of("https://host/a.b.mp4?key=1"), stem_of("s3://b/100%25.mp4")
    ('第1课', 'a.b', '100%25')
    """
    is_quoted = _is_quoted(uri)
    path = re.sub(r"[?#].*", "", uri) if is_quoted and not uri.startswith("file") else uri
    name = path.rpartition("/")[2]
    return Path(os.fsdecode(unquote_to_bytes(os.fsencode(name))) if is_quoted else name).stem


def path_part(name: str) -> str:
    """``name`` (an id of a stranger's choosing) as one part of a path; unequal names give unequal parts.

    >>> path_part("几何-1"), path_part("../etc")
    ('几何-1', '_etc-f7f9121f')
    """
    safe = re.sub(r"[^\w.-]", "_", name)[:_PART_CHARACTERS].lstrip(".")
    if safe == name and not _LOOKS_CHANGED.fullmatch(name):
        return name
    return f"{safe}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"


def _is_quoted(uri: str) -> bool:
    """Whether ``%20`` stands for a space; in the names of an object store it stands for itself."""
    return uri.partition(":")[0].lower() in ("file", "http", "https")


def _local_path(uri: str) -> Path | None:
    """None for a URI of another store."""
    scheme, mark, rest = uri.partition(":")
    if uri.startswith("/"):
        return Path(uri)
    if not mark or "/" in scheme:
        raise InvalidInputError("neither a URI nor an absolute path", source=_shown(uri))
    if scheme.lower() != "file":
        return None
    path = os.fsdecode(unquote_to_bytes(os.fsencode(re.sub("^//(localhost)?(?=/)", "", rest))))
    if not path.startswith("/") or path.startswith("//"):
        raise InvalidInputError("a file URI names an absolute path: file:///...", source=_shown(uri))
    return Path(path)


def _opened(uri: str) -> tuple[Any, str]:
    """The file system of ``uri`` and the place in it.

    Not by fsspec.open: that takes ``::`` in a name for a chain of stores, and stars for a pattern.
    """
    here = _local_path(uri)
    if here:
        return LocalFileSystem(), os.fspath(here)
    try:
        kind = fsspec.get_filesystem_class(uri.partition(":")[0].lower())
        return kind(**kind._get_kwargs_from_urls(uri)), kind._strip_protocol(uri)
    except ImportError as error:
        raise UsageError(f"{_shown(uri)}: {error}; lecturemill does not bring the packages of stores") from error
    except ValueError as error:
        raise InvalidInputError(f"no store is known by this kind of URI ({error})", source=_shown(uri)) from error


def _downloaded(uri: str, folder: Path) -> Path:
    with _reading(uri):
        fs, key = _opened(uri)
        # The name, without a query, is for error lines and for formats that show in nothing else.
        name = re.sub(r"[^\w.-]", "_", key.partition("?")[0].rpartition("/")[2])[-_PART_CHARACTERS:]
        path = folder / (name.lstrip(".") or "media")
        fs.get_file(key, os.fspath(path))
        _check_file(path)
        return path


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(path)


def _is_there(fs: Any, key: str, path: Path) -> bool:
    try:
        size_bytes = fs.info(key)["size"]
    except FileNotFoundError:
        return False
    if size_bytes != path.stat().st_size:
        return False
    return fingerprint_of(size_bytes, partial(fs.cat_file, key)) == fingerprint(path)


def _write(fs: Any, key: str, write: Callable[[Any, str], None]) -> None:
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else {*fs.protocol}
    if protocols & _SHOWS_NO_HALVES:
        write(fs, key)
        return
    folder = key.rpartition("/")[0]
    temporary = f"{folder}/.{secrets.token_hex(8)}.part"
    fs.makedirs(folder, exist_ok=True)
    try:
        write(fs, temporary)
        if isinstance(fs, LocalFileSystem):
            _sync(temporary)
        fs.mv(temporary, key)
    except BaseException:
        with suppress(OSError):
            fs.rm_file(temporary)
        raise


def _sync(path: str) -> None:
    """Else the new name could be on the disk before the content is."""
    with Path(path).open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def _reading(uri: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInputError("there is no such file", source=_shown(uri)) from error
    except _store_errors() as error:
        raise RetriableError(f"{_shown(uri)}: cannot be read now ({_why(error)})") from error


@contextmanager
def _writing(uri: str) -> Iterator[None]:
    """A target that cannot be is the fault of who set up the store, never of the media."""
    try:
        yield
    except InvalidInputError as error:
        raise UsageError(error.reason) from error
    except _store_errors() as error:
        raise RetriableError(f"{_shown(uri)}: cannot be written now ({_why(error)})") from error


def _store_errors() -> tuple[type[Exception], ...]:
    """Of the libraries only those that are loaded: the others can have raised nothing."""
    loaded = [(sys.modules[module], name) for module, name in _ERRORS_OF_LIBRARIES if module in sys.modules]
    return (OSError, *(getattr(module, name) for module, name in loaded))


def _why(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) else None
    return " ".join(f"{type(error).__name__}: {said or error}".split())


def _shown(uri: str) -> str:
    """On one line, readable."""
    return " ".join(os.fsencode(uri).decode(errors="replace").split())
