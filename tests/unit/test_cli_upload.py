"""What is announced under which URI, what is said where something fails, and how far the media are shown to be."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import cli_upload
from pipeline.broker import Outgoing
from pipeline.cli_upload import Upload, UploadRequest, announce_all, check_request, look, print_uploads
from pipeline.console import Bars
from pipeline.errors import RetriableError, UsageError
from pipeline.identity import media_id_of
from pipeline.media_store import local_copy
from pipeline.messages import decode_uploaded
from pipeline.settings import Settings
from pipeline.store import MediaStatus, Store
from pipeline.values import Priority

REQUEST = UploadRequest("几何 1", "zh", Priority.URGENT, 2, None, is_in_place=False)


class FakeSender:
    """Keeps what is sent; the broker is away from message ``fails_at`` on."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.sent: list[Outgoing] = []
        self._fails_at = fails_at

    def send(self, outgoings: Sequence[Outgoing]) -> None:
        if len(self.sent) == self._fails_at:
            raise RetriableError("kafka:9092: cannot deliver to media.uploaded")
        self.sent += outgoings


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch) -> FakeSender:
    fake = FakeSender()
    use(monkeypatch, fake)
    return fake


def use(monkeypatch: pytest.MonkeyPatch, fake: FakeSender) -> None:
    @contextmanager
    def opened(_: str) -> Iterator[FakeSender]:
        yield fake

    monkeypatch.setattr(cli_upload, "_sender", opened)


def settings(folder: Path) -> Settings:
    return Settings(folder, folder, None, 1, media_store=(folder / "store").as_uri())


def write(path: Path, content: str = "sound") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def announce(files: Sequence[Path], folder: Path, request: UploadRequest = REQUEST) -> list[Upload]:
    with Bars(quiet=True) as bars:
        return list(announce_all(files, request, settings(folder), bars))


def test_a_file_is_stored_whole_and_announced_with_all_that_was_asked(tmp_path: Path, sender: FakeSender) -> None:
    file = write(tmp_path / "第一讲 勾股.mp4", "moving pictures")
    (upload,) = announce([file], tmp_path)
    (outgoing,) = sender.sent
    message = decode_uploaded(outgoing.value)
    assert (outgoing.topic, outgoing.key) == ("media.uploaded", "几何 1")
    assert (message.course_id, message.title, message.language) == ("几何 1", "第一讲 勾股", "zh")
    assert (message.priority, message.audio_track) == (Priority.URGENT, 2)
    assert (upload.state, upload.uri) == ("announced", message.uri)
    assert upload.media_id == media_id_of("几何 1", message.uri)
    with local_copy(message.uri) as copy:
        assert copy != file
        assert copy.read_text() == "moving pictures"


def test_a_file_that_is_announced_in_place_is_not_copied(tmp_path: Path, sender: FakeSender) -> None:
    file = write(tmp_path / "a b.mp4")
    request = UploadRequest("c", None, Priority.NORMAL, None, "Newton", is_in_place=True)
    (upload,) = announce([file], tmp_path, request)
    assert upload.uri == file.as_uri()
    assert decode_uploaded(sender.sent[0].value).title == "Newton"
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("sender")
def test_the_same_file_is_the_same_media_and_a_changed_one_is_another(tmp_path: Path) -> None:
    file = write(tmp_path / "a.mp4", "first")
    first, again = announce([file], tmp_path), announce([file], tmp_path)
    write(file, "other")
    assert first == again
    assert announce([file], tmp_path)[0].media_id != first[0].media_id


@pytest.mark.usefixtures("sender")
def test_two_files_of_one_name_are_two_media(tmp_path: Path) -> None:
    files = [write(tmp_path / week / "a.mp4", week) for week in ("week 1", "week 2")]
    uploads = announce(files, tmp_path)
    contents = []
    for upload in uploads:
        with local_copy(upload.uri) as copy:
            contents.append(copy.read_text())
    assert contents == ["week 1", "week 2"]


@given(st.binary(min_size=1, max_size=100).filter(lambda name: not set(name) & set(b"\0/")), st.text(min_size=1))
def test_any_name_and_course_give_a_place_inside_the_store_that_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, name: bytes, course_id: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    file = write(folder / f"x{os.fsdecode(name)}")
    uri = cli_upload._stored(file, course_id, (folder / "store").as_uri())
    assert uri.encode().decode() == uri
    with local_copy(uri) as copy:
        assert copy.read_text() == "sound"
        assert copy.parent.parent == folder / "store" / "uploads"


def test_a_file_at_fault_is_named_and_the_others_are_announced(tmp_path: Path, sender: FakeSender) -> None:
    files = [tmp_path / "gone.mp4", write(tmp_path / "empty.mp4", ""), write(tmp_path / "good.mp4")]
    uploads = announce(files, tmp_path)
    assert [upload.state for upload in uploads] == ["failed", "failed", "announced"]
    assert [upload.reason.partition(": ")[2] for upload in uploads[:2]] == [
        "there is no such file",
        "the file is empty; upload it again",
    ]
    assert len(sender.sent) == 1


def test_where_the_broker_fails_half_way_it_is_known_which_media_are_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSender(fails_at=1)
    use(monkeypatch, fake)
    files = [write(tmp_path / f"{name}.mp4", name) for name in "abc"]
    uploads: list[Upload] = []
    with Bars(quiet=True) as bars, pytest.raises(RetriableError, match="2 of 3 files are not announced"):
        uploads.extend(announce_all(files, REQUEST, settings(tmp_path), bars))
    assert [upload.state for upload in uploads] == ["announced", "not announced", "not announced"]
    assert len(fake.sent) == 1


@pytest.mark.parametrize(
    ("request_", "files", "said"),
    [
        (UploadRequest("c", None, Priority.NORMAL, None, "T", is_in_place=False), 2, "--title names one media"),
        (UploadRequest("c" * 201, None, Priority.NORMAL, None, None, is_in_place=False), 1, "--course: has 201"),
    ],
)
def test_what_no_media_could_be_announced_with_is_wrong_usage(
    request_: UploadRequest, files: int, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        check_request(request_, [tmp_path] * files)


def status(state: str, done: int = 0, planned: int | None = None, reason: str = "") -> MediaStatus:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return MediaStatus("m", "c", "a", "file:///a.mp4", state, 90_000, None, done, 7, 0, 0, 0, reason, now, planned)


WAY = (
    (None, ""),
    (status("waiting"), "a.mp4: waiting\n"),
    (status("waiting"), ""),
    (status("running"), "a.mp4: slicing\n"),
    (status("running", 2), ""),
    (status("running", 2, 4), "a.mp4: transcribing, 2 of 4 slices\n"),
    (status("running", 3, 4), ""),
    (status("done", 4, 4), "a.mp4: done, 1:30, 7 cues\n"),
)


def test_the_way_of_a_media_is_told_in_a_pipe_at_each_change_of_state(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[MediaStatus | None] = [one for one, _ in WAY]
    store = cast("Store", SimpleNamespace(status=lambda _: [one for one in (found[0],) if one]))
    uploads = [Upload("in/a.mp4", "m", "file:///a.mp4", "announced", "")]
    with Bars(quiet=False) as bars:
        counters = [bars.counter("a.mp4")]
        for _, said in WAY:
            goes_on = look(uploads, counters, store, 0)
            assert (capsys.readouterr().err, goes_on) == (said, len(found) > 1)
            del found[0]
    assert (uploads[0].state, uploads[0].slices_done, uploads[0].slices_planned) == ("done", 4, 4)


def test_the_failure_of_an_earlier_try_is_not_this_ones(capsys: pytest.CaptureFixture[str]) -> None:
    failed = replace(status("failed", reason="no audio"), finished_at=datetime.fromtimestamp(1, UTC))
    store = cast("Store", SimpleNamespace(status=lambda _: [failed]))
    with Bars(quiet=False) as bars:
        for since_ms, state in ((1001, "announced"), (1000, "failed")):
            uploads = [Upload("a.mp4", "m", "file:///a.mp4", "announced", "")]
            assert look(uploads, [bars.counter("a.mp4")], store, since_ms) == (state == "announced")
            assert uploads[0].state == state
    assert capsys.readouterr().err == "a.mp4: failed: no audio\n"


def test_a_media_that_ended_is_not_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    def ask(media_id: str) -> list[MediaStatus]:
        asked.append(media_id)
        return [status("failed", reason="no audio can be decoded")]

    store: Any = SimpleNamespace(status=ask)
    uploads = [Upload("a.mp4", "m", "file:///a.mp4", "announced", ""), Upload("b.mp4", "", "", "failed", "gone")]
    with Bars(quiet=False) as bars:
        counters = [bars.counter(upload.label) for upload in uploads]
        assert [look(uploads, counters, store, 0) for _ in range(2)] == [False, False]
    assert asked == ["m"]
    assert capsys.readouterr().err == "a.mp4: failed: no audio can be decoded\n"


def test_the_summary_names_each_file_and_its_media(capsys: pytest.CaptureFixture[str]) -> None:
    uploads = [
        Upload("in/a.mp4", "m1", "file:///a.mp4", "running", "", 90_000, 2, 4),
        Upload("in/b.mp4", "", "", "failed", "b.mp4: there is no such file"),
    ]
    print_uploads(uploads, as_json=False)
    first, second = [line.split() for line in capsys.readouterr().out.splitlines() if ".mp4" in line]
    assert first == ["a.mp4", "m1", "running", "2", "of", "4"]
    assert second[:2] == ["b.mp4", "failed"]
    print_uploads(uploads, as_json=True)
    assert capsys.readouterr().err == "failed: b.mp4: there is no such file\n"
