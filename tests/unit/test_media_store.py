"""The media store, in a folder and in a store that is not one."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.media_store import find, join, local_copy, path_part, put, write_text

NUMBERS = itertools.count()


@pytest.fixture(params=["file", "path", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URI of an empty folder in each kind of store."""
    uris = {"file": (tmp_path / "几何 1").as_uri(), "path": str(tmp_path), "memory": f"memory://test-{next(NUMBERS)}"}
    return uris[request.param]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, type[MemoryFileSystem]], str]:
    """Makes a kind of store known for one test; gives the URI of an empty folder in it."""

    def make(protocol: str, kind: type[MemoryFileSystem]) -> str:
        registry = importlib.import_module("fsspec.registry")
        monkeypatch.setitem(registry._registry, protocol, kind)
        return f"{protocol}://test-{next(NUMBERS)}"

    return make


class Away(MemoryFileSystem):
    protocol = "away"

    def _open(self, *_args: object, **_options: object) -> None:
        raise TimeoutError("no answer\nfrom 10.0.0.1")

    def info(self, *_args: object, **_options: object) -> None:
        raise TimeoutError("no answer\nfrom 10.0.0.1")


class FullAfterAByte(MemoryFileSystem):
    """A disk that takes one byte of each file."""

    protocol = "full"

    def pipe_file(self, path: str, value: bytes, **_options: object) -> None:
        super().pipe_file(path, value[:1])
        raise OSError(28, "No space left on device")

    def put_file(self, lpath: str, rpath: str, **_options: object) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())


def read(uri: str) -> bytes:
    with local_copy(uri) as path:
        return path.read_bytes()


def test_what_was_written_is_read(folder: str) -> None:
    uri = join(folder, "geometry/m 1/a%20b.srt")
    write_text(uri, "你好\n")
    assert read(uri) == "你好\n".encode()


def test_a_second_writing_replaces_the_first(folder: str) -> None:
    uri = join(folder, "a.srt")
    write_text(uri, "a long first text")
    write_text(uri, "short")
    assert read(uri) == b"short"


@pytest.mark.parametrize(
    "as_uri", [str, Path.as_uri, lambda path: path.as_uri().replace("file://", "file://localhost")]
)
def test_a_local_file_is_used_in_place(tmp_path: Path, as_uri: Callable[[Path], str]) -> None:
    file = tmp_path / "第1课 100%.mp4"
    file.write_bytes(b"x")
    with local_copy(as_uri(file)) as path:
        assert path == file
    assert file.exists()


def test_the_copy_of_a_remote_object_keeps_its_name_and_goes_with_the_context() -> None:
    uri = f"memory://test-{next(NUMBERS)}/第1课.mp4"
    write_text(uri, "content")
    with local_copy(uri) as path:
        assert (path.name, path.read_text()) == ("第1课.mp4", "content")
    assert not path.parent.exists()


@pytest.mark.parametrize("name", ["s::t.mp4", "a*b?.mp4", "[1] x.mp4", "." * 3, "x" * 250, "问" * 200])
def test_odd_names_of_remote_objects_are_names(name: str) -> None:
    uri = join(f"memory://test-{next(NUMBERS)}", name)
    write_text(uri, "content")
    assert read(uri) == b"content"


def test_a_missing_object_is_invalid_input_in_one_line(folder: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^[^\n]*a\.mp4: there is no such file$"):
        read(join(folder, "a.mp4"))


def test_all_objects_below_a_folder_are_found_by_uris_that_can_be_read(folder: str) -> None:
    for name in ("b 1/c.mp4", "a.mp4"):
        write_text(join(folder, name), name)
    assert [read(uri) for uri in find(folder)] == [b"a.mp4", b"b 1/c.mp4"]
    with pytest.raises(InvalidInputError, match="no such folder"):
        find(join(folder, "none"))


def test_a_folder_is_no_object(folder: str) -> None:
    write_text(join(folder, "inner/a.srt"), "x")
    with pytest.raises(InvalidInputError, match="no such file"):
        read(join(folder, "inner"))


@pytest.mark.parametrize("uri", ["a.mp4", "", "lectures/a:1.mp4", "file://nas/a.mp4", "file:a.mp4", "htp://x/a.mp4"])
def test_what_names_no_place_is_invalid_input(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        read(uri)


def test_a_target_that_names_no_place_is_the_fault_of_the_setup() -> None:
    with pytest.raises(UsageError, match=r"htp://x/a\.srt"):
        write_text("htp://x/a.srt", "x")


def test_a_store_whose_package_is_missing_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(UsageError, match=r"^s3://media/a\.mp4: .*s3fs"):
        read("s3://media/a.mp4")


def test_a_store_that_is_away_is_tried_again_later(
    register: Callable[[str, type[MemoryFileSystem]], str], tmp_path: Path
) -> None:
    uri = join(register("away", Away), "a.mp4")
    (tmp_path / "a.mp4").write_bytes(b"x")
    for use in (lambda: read(uri), lambda: write_text(uri, "x"), lambda: put(tmp_path / "a.mp4", uri)):
        with pytest.raises(RetriableError, match=r"^away://[^\n]*TimeoutError: no answer from 10\.0\.0\.1\)$"):
            use()


def test_what_the_library_of_a_store_raises_is_tried_again_later(
    register: Callable[[str, type[MemoryFileSystem]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class BotoCoreError(Exception): ...

    class Unreachable(MemoryFileSystem):
        def isdir(self, _path: str) -> bool:
            raise BotoCoreError("could not connect to the endpoint")

    library = types.ModuleType("botocore.exceptions")
    library.BotoCoreError = BotoCoreError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "botocore.exceptions", library)
    with pytest.raises(RetriableError, match="could not connect"):
        read(join(register("unreachable", Unreachable), "a.mp4"))


def test_a_writing_that_fails_leaves_what_was_there_and_no_half(
    register: Callable[[str, type[MemoryFileSystem]], str], tmp_path: Path
) -> None:
    folder = register("full", FullAfterAByte)
    uri = join(folder, "a.srt")
    MemoryFileSystem().pipe_file(uri, b"before")
    (tmp_path / "b").write_bytes(b"after!")
    for write in (lambda: write_text(uri, "after"), lambda: put(tmp_path / "b", uri)):
        with pytest.raises(RetriableError, match="No space left"):
            write()
        assert {key: file.getvalue() for key, file in MemoryFileSystem.store.items() if key.startswith(folder)} == {
            uri: b"before"
        }


def test_where_an_object_appears_whole_it_is_written_under_its_own_name(
    register: Callable[[str, type[MemoryFileSystem]], str],
) -> None:
    class Whole(MemoryFileSystem):
        protocol = ("gs", "gcs")

        def mv(self, *_args: object, **_options: object) -> None:
            raise AssertionError("a second copy of the object was made")

    uri = join(register("gs", Whole), "a.srt")
    write_text(uri, "x")
    assert read(uri) == b"x"


def test_an_upload_arrives_and_is_sent_once(folder: str, tmp_path: Path) -> None:
    source, uri = tmp_path / "source", join(folder, "deep/er/a.mp4")
    source.write_bytes(os.urandom(200_000))
    assert (put(source, uri), put(source, uri)) == (True, False)
    assert read(uri) == source.read_bytes()


@pytest.mark.parametrize("content", [b"", b"longer than before", b"befora", b"Before"])
def test_other_content_under_one_name_is_sent(folder: str, tmp_path: Path, content: bytes) -> None:
    source, uri = tmp_path / "source", join(folder, "a.mp4")
    source.write_bytes(b"before")
    put(source, uri)
    source.write_bytes(content)
    assert put(source, uri)
    assert read(uri) == content


def test_an_upload_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x")
    put(tmp_path / "source", (tmp_path / "out" / "a.mp4").as_uri())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.mp4"]


def test_only_a_file_can_be_uploaded(folder: str, tmp_path: Path) -> None:
    for nothing in (tmp_path / "none", tmp_path):
        with pytest.raises(InvalidInputError, match="no such file"):
            put(nothing, join(folder, "a.mp4"))


@given(st.text(), st.text())
def test_every_name_is_one_part_of_a_path_of_its_own(name: str, other: str) -> None:
    part = path_part(name)
    assert Path("/store", part).resolve() == Path("/store") / part != Path("/store")
    assert len(part.encode()) <= 255
    assert path_part(part) != part or part == name
    assert path_part(other) != part or other == name
