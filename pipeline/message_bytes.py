"""Messages to bytes and back: the schema version first, and errors that say which field is wrong."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import msgspec

from pipeline.errors import InvalidInputError
from pipeline.message_checks import HINTS, SCHEMA_VERSION, SHOWN

T = TypeVar("T")
Decoder: TypeAlias = msgspec.json.Decoder[T] | msgspec.msgpack.Decoder[T]


class _Head(msgspec.Struct, frozen=True):
    """What every version of every message has."""

    schema_version: int = SCHEMA_VERSION


JSON_HEAD = msgspec.json.Decoder(_Head)
MSGPACK_HEAD = msgspec.msgpack.Decoder(_Head)


def encoded(message: msgspec.Struct, *, as_json: bool) -> bytes:
    """JSON or MessagePack. Raises InvalidInputError where a text cannot be UTF-8 (an undecodable file name)."""
    try:
        return msgspec.json.encode(message) if as_json else msgspec.msgpack.encode(message)
    except UnicodeEncodeError as error:
        odd = ascii(error.object[error.start])
        raise InvalidInputError(f"a text of the message holds {odd}, which is no character; leave it out") from error


def decoded(data: bytes, topic: str, head: Decoder[_Head], body: Decoder[T]) -> T:
    """The message in ``data``. Raises InvalidInputError, and nothing else, where there is none of this version."""
    try:
        # First, since a message of another version is wrong in fields, too, which would hide the reason.
        _check_version(head.decode(data).schema_version)
        return body.decode(data)
    except InvalidInputError as error:
        raise InvalidInputError(error.reason, source=topic) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInputError(explained(str(error)), source=topic) from error


def _check_version(version: int) -> None:
    if version > SCHEMA_VERSION:
        raise InvalidInputError(f"schema version {version}, this program reads {SCHEMA_VERSION}: upgrade it")
    if version < SCHEMA_VERSION:
        raise InvalidInputError(f"schema version {version} does not exist; this program reads {SCHEMA_VERSION}")


def explained(complaint: str) -> str:
    """What msgspec says of a message, the field first, and what to give instead.

    >>> explained("Expected `str`, got `int` - at `$.uri`")
    'uri: expected `str`, got `int`; give where the media lies, e.g. file:///lectures/1.mp4'
    >>> explained("Object missing required field `course_id`")
    'object missing required field `course_id`; give a text of 1 to 200 characters'
    >>> explained("Input data was truncated")
    'input data was truncated'
    """
    before, found, path = complaint.rpartition(" - at `$.")
    what = _line(before if found else complaint)
    field = path.rstrip("`") if found else ""
    hint = HINTS.get(field or what.rpartition("field `")[2].rstrip("`"))
    return (f"{field}: " if field else "") + what + (f"; give {hint}" if hint else "")


def _line(said: str) -> str:
    """msgspec repeats a wrong value whole, which may be a megabyte, and of many lines."""
    shown = "".join(character if character.isprintable() else "?" for character in said[: 2 * SHOWN])
    return shown[:1].lower() + shown[1:]
