"""The command as people and programs use it: exit statuses, what it prints and where, any file name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.database import embedded
from pipeline.subtitles import FORMATS
from tests.integration.speaking import write_sound

MakeHome = Callable[[str], Path]
PROGRAM = str(Path(sys.executable).with_name("lecturemill"))
DEMO = Path(__file__).resolve().parents[2] / "demo"
LATIN_1 = os.fsdecode(b"caf\xe9.wav")
ODD_NAMES = (
    "a b.wav",
    'it\'s "quoted" $HOME %d {x} [red].wav',
    "第一讲：勾股定理.wav",
    "🎓 graduation.wav",
    "-dash.wav",
    "line\nbreak.wav",
    "colour\x1b[31m.wav",
    LATIN_1,
)


@dataclass(frozen=True)
class Ended:
    """How a process of the command ended."""

    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class Place:
    """A home, a folder of media to work in and a folder for the subtitles."""

    home: Path
    folder: Path
    out: Path

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        return {**kept, "LECTUREMILL_HOME": str(self.home), **more}

    def process(self, *words: str, **more: str) -> Ended:
        """A process of its own, with pipes, in the folder of the media."""
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            env=self.environment(**more),
            capture_output=True,
            timeout=300,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def command(self, *words: str, **more: str) -> Result:
        """The same in this process, which saves the start."""
        return CliRunner().invoke(app, words, env={"DATABASE_URL": "", **self.environment(**more)})

    def answer(self, *words: str) -> Any:
        done = self.command(*words, "--json")
        assert (done.exit_code, done.stderr) == (0, "")
        return json.loads(done.stdout)

    def only(self, title: str) -> str:
        (found,) = [one["media_id"] for one in self.answer("status") if one["title"] == title]
        return str(found)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.out.iterdir()}


def in_one_line(done: Result, status: int) -> str:
    assert (done.exit_code, done.stdout) == (status, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def place(make_home: MakeHome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A lecture among silent files of all names, two of one name, and one that is no media; the database is up."""
    folder, out = tmp_path_factory.mktemp("media"), tmp_path_factory.mktemp("out")
    shutil.copy(DEMO / "newton.mp4", folder)
    for name in (*ODD_NAMES, "week1/same.wav", "week2/same.wav"):
        (folder / name).parent.mkdir(exist_ok=True)
        write_sound(folder / name, (0.0, 1.0))
    (folder / "bad.mp4").write_text("no video")
    (folder / "notes.txt").write_text("no media")
    home = make_home("home")
    with embedded(home):
        yield Place(home, folder, out)


RUN = ("run", "--course", "physics", "--formats", ",".join(FORMATS), "--out")
MEDIA = ("--", ".", "gone.mp4", "-dash.wav", "./week1")


@pytest.fixture(scope="module")
def first(place: Place) -> Ended:
    """One run over all of it, for a program."""
    return place.process(*RUN, str(place.out), "--json", *MEDIA)


@pytest.fixture(scope="module")
def reports(first: Ended) -> dict[str, Any]:
    return {report["file"]: report for report in json.loads(first.output)}


def test_with_json_standard_output_is_one_document_and_failures_are_named_beside_it(first: Ended) -> None:
    assert first.status == 1
    assert first.output.count("\n") == 1
    assert first.errors.splitlines() == [
        "failed: bad.mp4: not a media file (or damaged from its first bytes on)",
        "failed: gone.mp4: there is no such file",
    ]


def test_every_file_is_reported_once_whatever_its_name(reports: dict[str, Any]) -> None:
    shown = {name.replace(LATIN_1, "caf�.wav") for name in ODD_NAMES}
    assert set(reports) == shown | {"newton.mp4", "bad.mp4", "gone.mp4", "week1/same.wav", "week2/same.wav"}
    failed = {name for name, report in reports.items() if report["state"] == "failed"}
    assert failed == {"bad.mp4", "gone.mp4"}


def test_the_language_of_an_english_lecture_is_detected(reports: dict[str, Any]) -> None:
    report = reports["newton.mp4"]
    assert (report["language"], report["was_done"], report["failed_ms"]) == ("en", False, 0)
    assert report["cues"] >= 5
    assert report["duration_ms"] == 36_200


@pytest.mark.parametrize("name", ODD_NAMES)
def test_each_name_gives_its_own_subtitle_files(place: Place, first: Ended, name: str) -> None:
    assert first.status == 1
    stem = "".join("_" if char < " " else char for char in name.removesuffix(".wav"))
    for format_ in FORMATS:
        assert f"{stem}.und.{format_}" in place.files()


def test_two_files_of_one_name_are_both_kept(place: Place, reports: dict[str, Any]) -> None:
    written = [reports[f"week{week}/same.wav"]["files"] for week in (1, 2)]
    assert len({*written[0], *written[1]}) == 2 * len(FORMATS)
    assert all(Path(name).is_file() for name in [*written[0], *written[1]])
    assert len([name for name in place.files() if name.startswith("same-")]) == 2 * len(FORMATS)


@pytest.fixture(scope="module")
def second(place: Place, first: Ended, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Any, Any]:
    """The same again, for a person's pipe, where the engine cannot be loaded; files and rows before and after."""
    stand_in = tmp_path_factory.mktemp("python") / "faster_whisper.py"
    stand_in.write_text("raise SystemExit('the engine was loaded')\n")
    assert first.status == 1
    before = place.files(), place.answer("db", "query", "select * from words order by media_id, word_index")
    ended = place.process(*RUN, str(place.out), *MEDIA, PYTHONPATH=str(stand_in.parent))
    after = place.files(), place.answer("db", "query", "select * from words order by media_id, word_index")
    return ended, before, after


def test_running_twice_does_nothing_twice(second: tuple[Ended, Any, Any]) -> None:
    ended, before, after = second
    assert ended.status == 1
    assert ended.output.count("done before") == len(ODD_NAMES) + 3
    assert before == after


def test_a_pipe_gets_no_escape_codes_and_no_half_lines(second: tuple[Ended, Any, Any]) -> None:
    ended, _, _ = second
    assert "\x1b" not in ended.output + ended.errors
    assert "colour�[31m.wav" in ended.output
    assert "第一讲：勾股定理.wav" in ended.output
    assert ended.errors.splitlines() == [
        "failed: bad.mp4: not a media file (or damaged from its first bytes on)",
        "failed: gone.mp4: there is no such file",
    ]


def test_quiet_prints_nothing_on_success(place: Place, first: Ended) -> None:
    assert first.status == 1
    assert place.process(*RUN, str(place.out), "--quiet", "newton.mp4") == Ended(0, "", "")


@pytest.mark.parametrize("format_", FORMATS)
def test_export_prints_the_very_file_that_run_wrote(place: Place, first: Ended, format_: str) -> None:
    assert first.status == 1
    done = place.command("export", "newton", "--format", format_)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout_bytes == place.files()[f"newton.en.{format_}"]


def test_export_writes_a_file_and_prints_its_name(place: Place, first: Ended, tmp_path: Path) -> None:
    assert first.status == 1
    done = place.command("export", place.only("newton")[:8], "--format", "VTT", "--out", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path}/newton.en.vtt\n")
    assert (tmp_path / "newton.en.vtt").read_bytes() == place.files()["newton.en.vtt"]


def test_status_tells_how_far_each_media_is(place: Place, first: Ended) -> None:
    assert first.status == 1
    states = {one["title"]: one["state"] for one in place.answer("status")}
    assert (states["newton"], states["bad"], states["same"]) == ("done", "failed", "done")
    assert "gone" not in states
    (one,) = place.answer("status", "newton")
    assert one["title"] == "newton"
    assert "not a media file" in place.command("status").stdout


def test_the_ledger_adds_up(place: Place, first: Ended) -> None:
    assert first.status == 1
    spans = place.answer("ledger", "newton")
    assert sum(span["end_ms"] - span["start_ms"] for span in spans) == 36_200
    assert "transcribed" in place.command("ledger", "newton").stdout


@pytest.mark.parametrize("words", [("export", "same"), ("ledger", "nothing"), ("status", LATIN_1)])
def test_a_name_that_is_not_one_media_is_refused_in_one_line(
    place: Place, first: Ended, words: tuple[str, ...]
) -> None:
    assert first.status == 1
    assert "see: lecturemill status" in in_one_line(place.command(*words), 1)


def test_a_failed_media_has_nothing_to_export(place: Place, first: Ended) -> None:
    assert first.status == 1
    assert "not done" in in_one_line(place.command("export", "bad"), 1)


def test_sql_is_answered_as_a_table_or_as_json_from_text_or_from_a_file(
    place: Place, first: Ended, tmp_path: Path
) -> None:
    assert first.status == 1
    query = "select title, count(*) as cues, avg(end_ms - start_ms) as ms, min(start_time) from cues group by title"
    (tmp_path / "q.sql").write_text(query)
    (row,) = place.answer("db", "query", str(tmp_path / "q.sql"))
    assert row["title"] == "newton"
    assert row["ms"] > 500
    assert str(row["cues"]) in place.command("db", "query", query).stdout
    assert place.answer("db", "query", "select 'a%b:c' as x, '[1,2]'::int4range::text as y, int4range(1, 2) as z") == [
        {"x": "a%b:c", "y": "[1,3)", "z": "[1, 2)"}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "delete from lecturemill.word",
        "delete from words",
        "select 1; commit; delete from lecturemill.word",
        "commit",
        "drop view words",
        "copy lecturemill.word to stdout",
        "selec",
        "",
        "select '\udcff'",
        "select 1 as a, 2 as a",
        "missing.sql",
    ],
)
def test_sql_that_writes_or_fails_is_refused_in_one_line(place: Place, first: Ended, sql: str) -> None:
    assert first.status == 1
    before = place.answer("db", "query", "select count(*) as n from words")
    in_one_line(place.command("db", "query", sql, "--json"), 2)
    assert place.answer("db", "query", "select count(*) as n from words") == before
    assert before[0]["n"] > 50


@pytest.mark.parametrize("words", ["export newton --format json", "status", "status --json"])
def test_a_reader_that_leaves_early_causes_no_traceback(place: Place, first: Ended, words: str) -> None:
    assert first.status == 1
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{PROGRAM}' {words} | true"],
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_database_is_served_until_it_is_told_to_stop(place: Place) -> None:
    with subprocess.Popen(
        [PROGRAM, "db", "serve"], env=place.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        url = process.stdout.readline().strip()
        assert process.stderr.readline() == "the database is up until Ctrl-C\n"
        with psycopg.connect(url) as connection:
            assert connection.execute("select count(*) from transcripts").fetchone()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130


def test_doctor_finds_everything_in_order(place: Place, first: Ended) -> None:
    assert first.status == 1
    findings = {finding["what"]: finding for finding in place.answer("doctor")}
    assert {"clock", "disk", "ffmpeg", "engine", "model base", "model silero-vad", "database"} == set(findings)
    assert all(finding["is_ok"] and not finding["remedy"] for finding in findings.values())


@pytest.mark.parametrize(
    ("environment", "remedy"),
    [
        ({"LECTUREMILL_HOME": "/dev/null"}, "set LECTUREMILL_HOME to another folder"),
        ({"LECTUREMILL_HOME": "/dev/null/below"}, "set LECTUREMILL_HOME to another folder"),
        ({"DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/x"}, "start it, or correct DATABASE_URL"),
        ({"DATABASE_URL": "mysql://u:secret@127.0.0.1/x"}, "start it, or correct DATABASE_URL"),
    ],
)
def test_doctor_names_what_is_broken_and_its_remedy(place: Place, environment: Mapping[str, str], remedy: str) -> None:
    done = place.command("doctor", **environment)
    assert (done.exit_code, done.stderr) == (1, "")
    (line,) = [line for line in done.stdout.splitlines() if "PROBLEM" in line]
    assert "database" in line
    assert remedy in line
    assert "secret" not in done.stdout


def test_models_list_tells_which_are_here(place: Place, first: Ended) -> None:
    assert first.status == 1
    (base,) = [one for one in place.answer("models", "list") if one["name"] == "base"]
    assert base["is_present"]
    assert "base" in place.command("models", "list").stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--language", "xx"), "--language must be auto or one of Whisper's codes"),
        (("--language", ""), "--language must be auto"),
        (("--model", "enormous"), "enormous"),
        (("--model", "."), "holds no Whisper model"),
        (("--device", "tpu"), "--device must be auto, cpu, cuda, cuda:N"),
        (("--vad", "ears"), "--vad must be one of silero, pyannote"),
        (("--formats", "srt,doc"), "--formats takes srt,vtt,ass,ttml,json,txt"),
        (("--course", ""), "--course must be a name"),
        (("--course", "\udcff"), "--course must be a name"),
        (("--out", "/dev/null"), "/dev/null: cannot be made"),
        (("--out", "/dev/null/below"), "choose another --out"),
        (("--glossary", "missing.csv"), "missing.csv: the glossary cannot be read"),
        (("--profile", "hbo"), "there is no subtitle profile 'hbo'; choose netflix, netflix-zh-hant, bbc"),
        (("--profile", "missing.toml"), "missing.toml: cannot be read"),
        (("--script", "s2x"), "there is no script 's2x'; choose one of none, t2s"),
        (("--fillers", "some"), "fillers must be verbatim or clean, not 'some'"),
        (("--database", "sqlite:///x"), "the database must be PostgreSQL"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line_before_any_work(
    place: Place, options: tuple[str, ...], said: str
) -> None:
    done = place.command("run", str(place.folder / "newton.mp4"), "--course", "c", *options)
    assert said in in_one_line(done, 2)


def test_a_course_is_told_how_its_subtitles_are_made(place: Place, tmp_path: Path) -> None:
    (tmp_path / "school.toml").write_text("fillers = 'clean'\n[wide]\nmax_units_per_line = 18\n")
    words = ("course", "set", "--course", "school", "--profile", str(tmp_path / "school.toml"))
    assert place.command(*words).exit_code == 0
    assert place.command("course", "set", "--course", "school", "--script", "s2tw").exit_code == 0
    shown = place.answer("course", "show", "--course", "school")
    assert (shown["name"], shown["script"], shown["fillers"]) == ("school.toml", "s2tw", "clean")
    assert (shown["wide"]["max_units_per_line"], shown["narrow"]["max_units_per_line"]) == (18, 42)
    assert "18" in place.command("course", "show", "--course", "school").stdout
    assert "name what is to change" in in_one_line(place.command("course", "set", "--course", "school"), 2)


def test_a_glossary_with_a_bad_row_is_refused_whole_naming_row_and_column(place: Place, tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("term,aliases,language,note\nmass,,en,\nforce,,klingon,\n")
    words = ("run", str(place.folder / "newton.mp4"), "--course", "c", "--glossary", str(tmp_path / "terms.csv"))
    line = in_one_line(place.command(*words), 2)
    assert line.startswith(f"{tmp_path}/terms.csv: row 3, column language: 'klingon'")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--course", "c"),
        ("run", "a.mp4"),
        ("run", "a.mp4", "--course", "c", "--audio-track", "0"),
        ("run", "a.mp4", "--course", "c", "--faster"),
        ("export", "newton", "--format", "srt,vtt"),
        ("models", "fetch", "enormous"),
        ("conquer",),
        (),
    ],
)
def test_wrong_usage_ends_with_status_2(place: Place, words: tuple[str, ...]) -> None:
    done = place.command(*words)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_a_folder_without_media_is_wrong_usage(place: Place, tmp_path: Path) -> None:
    assert "no media files in" in in_one_line(place.command("run", str(tmp_path), "--course", "c"), 2)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "db.invalid"])
def test_a_database_that_cannot_be_reached_is_named_without_its_password(place: Place, host: str) -> None:
    url = f"postgresql://user:secret@{host}/lectures"
    line = in_one_line(place.command("status", DATABASE_URL=url), 1)
    assert line.startswith(f"database {host}/lectures: ")
    assert "secret" not in line


@pytest.mark.parametrize(
    "words",
    [
        *("", "run", "upload", "status", "ledger", "export", "doctor", "models", "models list", "db", "db query"),
        *("db serve", "glossary", "glossary import", "glossary show", "glossary reapply"),
        *("course", "course set", "course show"),
    ],
)
def test_every_command_explains_itself(place: Place, words: str) -> None:
    done = place.command(*words.split(), "--help")
    assert done.exit_code == 0
    assert "Usage" in done.stdout
