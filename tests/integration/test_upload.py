"""The command hands media to the line: a real broker, a real database, and a test that plays the line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from kafka import KafkaConsumer, TopicPartition
from typer.testing import CliRunner, Result

from pipeline import cli
from pipeline.announcements import MediaUploaded
from pipeline.broker import MEDIA_UPLOADED, create_topics
from pipeline.cli import app
from pipeline.cli_run import Report
from pipeline.driver import LineOptions
from pipeline.identity import media_id_of
from pipeline.ledger import failed_ledger
from pipeline.messages import decode_uploaded
from pipeline.postprocess.terms import Glossary, Term
from pipeline.store_line import LineStore
from pipeline.values import (
    Boundary,
    Cost,
    LedgerSpan,
    Media,
    MediaPlan,
    MediaResult,
    Outcome,
    Priority,
    Slice,
    SliceTranscript,
    Span,
    TranscribedSlice,
)
from tests.integration.speaking import write_sound

PROGRAM = str(Path(sys.executable).with_name("lecturemill"))
NOBODY = "127.0.0.1:1"
SLICING, ASR = "5" * 16, "a" * 16


@dataclass(frozen=True)
class Place:
    """A broker, a database, and a folder with a lecture in it."""

    brokers: str
    database_url: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LECTUREMILL_HOME": str(self.folder / "home"),
            "LECTUREMILL_BROKERS": self.brokers,
            "LECTUREMILL_MEDIA_STORE": (self.folder / "store").as_uri(),
            "DATABASE_URL": self.database_url,
        }

    def command(self, *words: str, **more: str) -> Result:
        return CliRunner().invoke(app, words, env={**self.environment, **more})

    def upload(self, *words: str, **more: str) -> Result:
        return self.command("upload", str(self.folder / "a.wav"), *words, **more)

    @contextmanager
    def watched(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A process of its own that uploads and watches."""
        with subprocess.Popen(
            [PROGRAM, "upload", "a.wav", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def place(kafka: str, database_url: str, tmp_path: Path) -> Place:
    create_topics(kafka)
    write_sound(tmp_path / "a.wav", (1.0, 1.0))
    return Place(kafka, database_url, tmp_path)


def announced(brokers: str, course_id: str) -> list[tuple[bytes | None, MediaUploaded]]:
    """Key and content of the announcements of a course, from the beginning of the topic to its end."""
    found = []
    with closing(KafkaConsumer(bootstrap_servers=brokers, enable_auto_commit=False)) as consumer:
        partitions = [TopicPartition(MEDIA_UPLOADED, at) for at in consumer.partitions_for_topic(MEDIA_UPLOADED)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(one) < ends[one] for one in partitions):
            records = [record for batch in consumer.poll(500).values() for record in batch]
            found += [(one.key, decode_uploaded(one.value)) for one in records if one.key == course_id.encode()]
    return found


def media_of(message: MediaUploaded) -> Media:
    media_id = media_id_of(message.course_id, message.uri)
    return Media(media_id, message.course_id, message.uri, message.title or "", "", None, message.language)


def transcribed(media_id: str, index: int) -> TranscribedSlice:
    span = Span(1000 * index, 1000 * index + 1000)
    transcript = SliceTranscript(media_id, index, "zh", 1.0, (), Outcome.TRANSCRIBED, "", 1, 10)
    return TranscribedSlice(SLICING, ASR, "none", Slice(media_id, index, span, Boundary.SILENCE, (span,)), transcript)


def result_of(media_id: str) -> MediaResult:
    ledger = (LedgerSpan(0, 2000, Outcome.TRANSCRIBED, ""),)
    return MediaResult(media_id, "zh", 2000, 2000, (), (), (), (), ledger, (), Cost(1, 1, 0.0))


def next_line(stream: IO[str] | None) -> str:
    assert stream
    return stream.readline().rstrip("\n")


def test_an_announcement_is_on_the_topic_when_the_command_says_so(place: Place) -> None:
    course = "一号 announced"
    done = place.upload("--course", course, "--priority", "bulk", "--language", "zh", "--no-watch", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    (report,) = json.loads(done.stdout)
    ((key, message),) = announced(place.brokers, course)
    assert key == course.encode()
    assert message == MediaUploaded(course, report["uri"], None, "a", "zh", Priority.BULK)
    assert (report["state"], report["media_id"]) == ("announced", media_id_of(course, report["uri"]))


def test_uploading_twice_announces_the_same_media(place: Place) -> None:
    first, again = [place.upload("--course", "twice", "--no-watch", "--json") for _ in range(2)]
    assert json.loads(first.stdout) == json.loads(again.stdout)
    assert len({media_of(message).media_id for _, message in announced(place.brokers, "twice")}) == 1


def test_a_media_is_followed_through_the_line_until_it_is_done(place: Place) -> None:
    with place.watched("--course", "followed") as process, LineStore.open(place.database_url) as store:
        assert next_line(process.stderr) == "a.wav: announced"
        ((_, message),) = announced(place.brokers, "followed")
        media = media_of(message)
        store.announce(media, message.priority, message.audio_track)
        assert next_line(process.stderr) == "a.wav: waiting"
        store.begin_slicing(media, SLICING, ASR)
        assert next_line(process.stderr) == "a.wav: slicing"
        plan = MediaPlan(media.media_id, SLICING, ASR, 2, 2000, (), (), 5)
        store.record_line([transcribed(media.media_id, 0)], [plan])
        assert next_line(process.stderr) == "a.wav: transcribing, 1 of 2 slices"
        store.record_line([transcribed(media.media_id, 1)], [])
        store.record_result(result_of(media.media_id), "f", SLICING, ASR)
        assert next_line(process.stderr) == "a.wav: done, 0:02, 0 cues"
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    (row,) = [line.split() for line in output.splitlines() if "a.wav" in line]
    assert row == ["a.wav", media.media_id, "done", "2", "of", "2", "0:02", "0"]


def test_a_media_that_fails_in_the_line_is_named_and_gives_status_1(place: Place) -> None:
    with place.watched("--course", "failing", "--json") as process, LineStore.open(place.database_url) as store:
        while not (found := announced(place.brokers, "failing")):
            assert process.poll() is None
        media = media_of(found[0][1])
        store.announce(media, Priority.NORMAL, None)
        store.record_failure(media.media_id, "the audio is encrypted", failed_ledger(None, "encrypted"))
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "failed: the audio is encrypted\n")
    assert json.loads(output)[0]["state"] == "failed"


def test_ctrl_c_ends_the_watching_and_leaves_the_media_going_on(place: Place) -> None:
    with place.watched("--course", "left") as process, LineStore.open(place.database_url) as store:
        assert next_line(process.stderr) == "a.wav: announced"
        ((_, message),) = announced(place.brokers, "left")
        store.announce(media_of(message), Priority.NORMAL, None)
        assert next_line(process.stderr) == "a.wav: waiting"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert store.status(media_of(message).media_id)[0].state == "waiting"
    assert process.returncode == 130
    assert errors == "stopped watching; the media go on; look at them by: lecturemill status\n"
    assert media_of(message).media_id in output


def test_a_database_that_is_away_costs_the_watching_only(place: Place) -> None:
    done = place.upload("--course", "unwatched", DATABASE_URL=f"postgresql://u:secret@{NOBODY}/x")
    assert done.exit_code == 1
    first, second = done.stderr.splitlines()
    assert first == "a.wav: announced"
    assert second.startswith(f"announced, and cannot be watched: database {NOBODY}/x: ")
    assert second.endswith("; the media go on; look at them by: lecturemill status")
    assert "secret" not in done.output
    assert len(announced(place.brokers, "unwatched")) == 1


def test_a_broker_that_is_away_is_named_with_what_to_do(place: Place) -> None:
    with place.watched("--course", "away", "--brokers", NOBODY) as process:
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    (line,) = errors.splitlines()
    assert line.startswith(f"{NOBODY}: no broker can be reached: ")
    assert line.endswith("start it (make stack), or name another by --brokers; nothing was announced")
    assert not (place.folder / "store").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--priority", "low"), "urgent"),
        (("--brokers", "kafka"), "HOST:PORT"),
        (("--language", "xx"), "--language must be auto"),
        (("--audio-track", "0"), "--audio-track"),
        (("--course", ""), "--course must be a name"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_stored(place: Place, options: tuple[str, ...], said: str) -> None:
    done = place.upload("--course", "wrong", *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (place.folder / "store").exists()


def test_status_tells_what_waits_and_how_many_slices_are_done(place: Place) -> None:
    with LineStore.open(place.database_url) as store:
        for media_id in ("m-waiting", "m-running"):
            store.announce(Media(media_id, "c", "file:///a", media_id, "", None, None), Priority.NORMAL, None)
        store.begin_slicing(store.media("m-running"), SLICING, ASR)
        plan = MediaPlan("m-running", SLICING, ASR, 3, 3000, (), (), 5)
        store.record_line([transcribed("m-running", 0)], [plan])
    lines = place.command("status").stdout.splitlines()
    rows = {line.split()[0]: line.split()[3:7] for line in lines if " m-" in line}
    assert rows["m-waiting"][0] == "waiting"
    assert rows["m-running"] == ["running", "1", "of", "3"]
    by_id = {one["media_id"]: one for one in json.loads(place.command("status", "--json").stdout)}
    assert (by_id["m-running"]["slices_done"], by_id["m-running"]["slices_planned"]) == (1, 3)
    assert by_id["m-waiting"]["slices_planned"] is None


HEADER = "term,aliases,language,note\n"


def test_an_imported_glossary_replaces_the_one_before_and_is_shown(place: Place) -> None:
    file = place.folder / "terms.csv"
    for rows in ("力,离,zh,\n质量,,zh,\n", "勾股定理,够股定理|购股定理,zh,the theorem\n"):
        file.write_text(HEADER + rows)
        done = place.command("glossary", "import", str(file), "--course", "几何")
        assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("course 几何 has 1 terms")
    shown = place.command("glossary", "show", "--course", "几何", "--json")
    assert json.loads(shown.stdout) == [
        {"term": "勾股定理", "aliases": ["够股定理", "购股定理"], "language": "zh", "note": "the theorem"}
    ]
    assert "够股定理|购股定理" in place.command("glossary", "show", "--course", "几何").stdout
    assert json.loads(place.command("glossary", "show", "--course", "other", "--json").stdout) == []


def test_a_glossary_with_a_bad_row_is_refused_whole_and_the_old_one_stays(place: Place) -> None:
    kept = Glossary((Term("力", ("离",), "zh"),))
    with LineStore.open(place.database_url) as store:
        store.record_glossary("c", kept)
        (place.folder / "terms.csv").write_text(f"{HEADER}质量,,zh,\nforce,,klingon,\n")
        done = place.command("glossary", "import", str(place.folder / "terms.csv"), "--course", "c")
        assert store.glossary("c") == kept
    assert done.exit_code == 2
    assert "terms.csv: row 3, column language: 'klingon'" in done.stderr


def test_a_run_uses_the_glossary_that_was_imported_unless_it_is_given_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[LineOptions] = []

    def run_all(_files: object, options: LineOptions, *_: object) -> list[Report]:
        used.append(options)
        return []

    @contextmanager
    def open_tools(*_: object) -> Iterator[SimpleNamespace]:
        with LineStore.open(place.database_url) as store:
            yield SimpleNamespace(store=store)

    monkeypatch.setattr(cli, "run_all", run_all)
    monkeypatch.setattr(cli, "open_tools", open_tools)
    imported, given = (Glossary((Term(term, (), "zh"),)) for term in ("勾股定理", "质量"))
    with LineStore.open(place.database_url) as store:
        store.record_glossary("c", imported)
    (place.folder / "given.csv").write_text(f"{HEADER}质量,,zh,\n")
    words = ("run", str(place.folder / "a.wav"), "--course")
    for more in (("c",), ("c", "--glossary", str(place.folder / "given.csv")), ("without",)):
        assert place.command(*words, *more).exit_code == 0
    assert [options.glossary for options in used] == [imported, given, Glossary.empty()]
    assert ["勾股定理" in options.prompts["zh"] for options in used] == [True, False, False]
