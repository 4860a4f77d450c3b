"""``lecturemill glossary``: versions, and new terms for old lectures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.cli import app
from pipeline.store_line import LineStore
from pipeline.values import MediaResult
from tests.integration.speaking import write_sound
from tests.integration.test_reapplying import run

HEADER = "term,aliases,language,note\n"


class Editor:
    """One who keeps the glossary of a course with a lecture that is done."""

    def __init__(self, folder: Path, database_url: str, result: MediaResult) -> None:
        self.folder, self.result = folder, result
        self._database_url = database_url

    def command(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["glossary", *words, "--database", self._database_url])

    def imports(self, *rows: str) -> Result:
        file = self.folder / "terms.csv"
        file.write_text(HEADER + "".join(f"{row}\n" for row in rows), "utf-8")
        return self.command("import", str(file), "--course", "geometry")

    def heard(self) -> str:
        """The first words of the lecture, as they were heard."""
        return self.result.sentences[0].text[:4]


@pytest.fixture
def editor(tmp_path: Path, database_url: str) -> Editor:
    with LineStore.open(database_url) as store:
        result = run(write_sound(tmp_path / "lecture.wav", (9.0, 1.0), (14.0, 1.2)), store)
    return Editor(tmp_path, database_url, result)


def test_an_import_says_its_version_and_an_older_one_can_be_shown(editor: Editor) -> None:
    assert "1 terms: version 1;" in editor.imports("斜边,,zh,").stderr
    assert "2 terms: version 2;" in editor.imports("斜边,,zh,", "斜面,,zh,").stderr
    assert "version 2, which it had already" in editor.imports("斜边,,zh,", "斜面,,zh,").stderr
    shown = editor.command("show", "--course", "geometry", "--version", "1", "--json")
    assert [term["term"] for term in json.loads(shown.stdout)] == ["斜边"]
    missing = editor.command("show", "--course", "geometry", "--version", "7")
    assert (missing.exit_code, missing.stderr) == (1, "geometry: its glossary has no version 7\n")


def test_every_bad_row_of_an_import_is_said_and_nothing_is_kept(editor: Editor) -> None:
    done = editor.imports("斜边,,zz,", "斜面,,zh,", ",,zh,x")
    assert done.exit_code == 2
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [
        "row 2, column language",
        "row 4, column term",
    ]
    assert json.loads(editor.command("show", "--course", "geometry", "--json").stdout) == []


def test_reapply_shows_what_would_change_then_changes_it_then_has_nothing_to_do(editor: Editor) -> None:
    editor.imports(f"勾股定理,{editor.heard()},zh,")
    looked = editor.command("reapply", "geometry", "--dry-run")
    assert f"  - {editor.result.sentences[0].text}\n  + 勾股定理" in looked.stdout
    assert looked.stderr == "would be: 1 changed\n"
    assert editor.command("reapply", "geometry").stdout == looked.stdout
    again = editor.command("reapply", "lecture")
    assert (again.stdout, again.stderr) == ("", "1 up to date\n")


def test_reapply_writes_the_subtitles_of_what_changed(editor: Editor) -> None:
    editor.imports(f"勾股定理,{editor.heard()},zh,")
    out = editor.folder / "out"
    editor.command("reapply", editor.result.media_id, "--out", str(out), "--formats", "srt")
    (file,) = out.iterdir()
    assert file.name == "lecture.zh.srt"
    assert "勾股定理" in file.read_text("utf-8")


def test_reapply_tells_machines_what_it_did(editor: Editor) -> None:
    editor.imports(f"勾股定理,{editor.heard()},zh,")
    (told,) = json.loads(editor.command("reapply", "geometry", "--json").stdout)
    assert (told["state"], told["glossary_version"]) == ("changed", 1)
    assert told["changes"][0]["before"] == [editor.result.sentences[0].text]


def test_reapply_of_neither_a_course_nor_a_media_is_said(editor: Editor) -> None:
    done = editor.command("reapply", "history")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("history: no media with this id or title")
