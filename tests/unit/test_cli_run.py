"""Which files a run takes, and where its subtitles go."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import cli_run
from pipeline.assembly import RunRequest, line_options
from pipeline.cli_run import (
    Report,
    check_formats,
    check_targets,
    collect,
    document_of,
    export_all,
    print_reports,
    run_all,
)
from pipeline.console import Bars
from pipeline.driver import Finished, LineTools
from pipeline.errors import InvalidInputError, RetriableError, UsageError
from pipeline.identity import media_id_of
from pipeline.subtitles import FORMATS, render
from pipeline.values import Cost, Cue, LedgerSpan, Media, MediaResult, Outcome


def touched(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return [folder / name for name in names]


def result_of(path: Path) -> Finished:
    media = Media(media_id_of("c", path.as_uri()), "c", path.as_uri(), path.stem, "", 5_000, None)
    ledger = (LedgerSpan(0, 5_000, Outcome.TRANSCRIBED, ""),)
    cost = Cost(1_000, 500, 0.1)
    cues = (Cue(0, 1_000, (f"{path.parent.name}",)),)
    return Finished(media, MediaResult(media.media_id, "zh", 5_000, 4_000, (), cues, (), (), ledger, (), cost), False)


def run(files: list[Path], out: Path | None, formats: tuple[str, ...] = ("srt",)) -> list[Report]:
    options, tools = line_options(RunRequest("c")), cast("LineTools", None)
    with Bars(quiet=True) as bars:
        return list(run_all(files, options, tools, bars, out, formats))


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the line: what is called bad fails, full stops the run, large is done in part, the rest is done."""

    def run_media(path: Path, *_: object) -> Finished:
        if "bad" in path.name:
            raise InvalidInputError("not a media file", source=path.name)
        if "full" in path.name:
            raise RetriableError("the disk is full")
        if "large" in path.name:
            return replace(result_of(path), failed=("no memory for it",) * 2)
        return result_of(path)

    monkeypatch.setattr(cli_run, "run_media", run_media)


@given(st.lists(st.sampled_from(FORMATS), min_size=1))
def test_each_format_is_written_once_in_the_order_asked_for(names: list[str]) -> None:
    assert check_formats(" ,".join(names).upper()) == tuple(dict.fromkeys(names))


@pytest.mark.parametrize("text", ["", " , ", "srt,doc", "srt vtt"])
def test_an_unknown_format_is_wrong_usage_that_names_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError, match="srt,vtt,ass,ttml,json,txt"):
        check_formats(text)


def test_a_folder_gives_its_media_files_by_name_and_those_of_its_folders(tmp_path: Path) -> None:
    touched(tmp_path, "b.MP4", "a.mkv", "notes.txt", "a.zh.srt", "week 2/c.opus", "week 2/slides.pdf")
    found = collect([tmp_path])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["a.mkv", "b.MP4", "week 2/c.opus"]


def test_a_file_that_is_named_is_always_tried(tmp_path: Path) -> None:
    assert collect([tmp_path / "notes.txt"]) == (tmp_path / "notes.txt",)


def test_a_file_is_taken_once_however_often_and_by_whatever_name_it_is_given(tmp_path: Path) -> None:
    (file,) = touched(tmp_path, "week/a.mp4")
    (tmp_path / "link.mp4").symlink_to(file)
    assert collect([file, tmp_path / "week", tmp_path / "week/../week/a.mp4", tmp_path / "link.mp4"]) == (file,)


def test_a_folder_without_media_is_wrong_usage(tmp_path: Path) -> None:
    touched(tmp_path, "notes.txt")
    with pytest.raises(UsageError, match="no media files in"):
        collect([tmp_path])


def test_a_folder_that_cannot_be_searched_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(folder: str) -> object:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("os.scandir", denied)
    with pytest.raises(UsageError, match="cannot be searched"):
        collect([tmp_path])


def test_a_target_is_made_before_the_work(tmp_path: Path) -> None:
    check_targets([], tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_target_that_cannot_be_a_folder_is_wrong_usage(tmp_path: Path) -> None:
    (file,) = touched(tmp_path, "file")
    for out in (file, file / "below"):
        with pytest.raises(UsageError, match="cannot be made"):
            check_targets([], out)


def test_a_folder_that_may_not_be_written_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(UsageError, match="cannot be written; choose another folder by --out"):
        check_targets(touched(tmp_path, "a.mp4"), None)


def test_the_folder_of_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    check_targets([tmp_path / "typo" / "a.mp4"], None)
    assert not (tmp_path / "typo").exists()


@pytest.mark.usefixtures("line")
def test_subtitles_lie_beside_their_media_under_its_name(tmp_path: Path) -> None:
    files = touched(tmp_path, "one/a.mp4", "two/a.mp4")
    reports = run(files, None, ("srt", "vtt"))
    assert [report.files for report in reports] == [
        (f"{tmp_path}/{folder}/a.zh.srt", f"{tmp_path}/{folder}/a.zh.vtt") for folder in ("one", "two")
    ]


@pytest.mark.usefixtures("line")
@pytest.mark.parametrize("names", [("one/a.mp4", "two/a.mp4"), ("a.mp4", "a.mkv"), ("a\nb.mp4", "a_b.mp4")])
def test_two_media_that_would_share_a_file_get_one_each(tmp_path: Path, names: tuple[str, str]) -> None:
    reports = run(touched(tmp_path / "in", *names), tmp_path)
    assert len({name for report in reports for name in report.files}) == 2
    assert len(list(tmp_path.glob("*.zh.srt"))) == 2


@pytest.mark.usefixtures("line")
def test_a_bad_file_among_good_ones_is_reported_and_the_others_are_done(tmp_path: Path) -> None:
    reports = run(touched(tmp_path, "a.mp4", "bad.mp4", "c.mp4"), None)
    assert [(report.state, report.reason) for report in reports] == [
        ("done", ""),
        ("failed", "bad.mp4: not a media file"),
        ("done", ""),
    ]


@pytest.mark.usefixtures("line")
def test_trouble_of_the_surroundings_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(RetriableError):
        run(touched(tmp_path, "a.mp4", "full.mp4", "c.mp4"), None)
    assert [path.name for path in tmp_path.glob("*.srt")] == ["a.zh.srt"]


@pytest.mark.usefixtures("line")
def test_a_name_that_is_no_utf8_is_kept_on_disk_and_shown_readably(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / os.fsdecode(b"caf\xe9.mp4")
    file.write_bytes(b"")
    reports = run([file], None)
    assert (tmp_path / os.fsdecode(b"caf\xe9.zh.srt")).exists()
    print_reports(reports, as_json=False, quiet=False)
    print_reports(reports, as_json=True, quiet=False)
    assert capsys.readouterr().out.count("caf�") == 3


def test_every_format_is_the_rendered_document(tmp_path: Path) -> None:
    finished = result_of(Path("/in/a.mp4"))
    paths = export_all(finished.media, finished.result, tmp_path, "a", FORMATS)
    document = document_of(finished.media, finished.result)
    assert [path.name for path in paths] == [f"a.zh.{name}" for name in FORMATS]
    assert [path.read_text() for path in paths] == [render(name, media=document) for name in FORMATS]


@pytest.mark.usefixtures("line")
def test_failures_are_named_on_standard_error_where_the_table_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = run(touched(tmp_path, "a.mp4", "bad.mp4"), None)
    print_reports(reports, as_json=False, quiet=True)
    assert capsys.readouterr() == ("", "failed: bad.mp4: not a media file\n")


def test_a_run_that_reached_no_file_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_reports([], as_json=True, quiet=False)
    print_reports([], as_json=False, quiet=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("line")
def test_a_media_of_which_slices_failed_is_partial_and_named_with_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (report,) = run(touched(tmp_path, "large.mp4"), tmp_path)
    assert report.state == "partial"
    assert report.reason.endswith("large.mp4: 2 slices failed (no memory for it); the same command tries them again")
    assert len(report.files) == 1
    print_reports([report], as_json=False, quiet=True)
    assert "partial: " in capsys.readouterr().err
