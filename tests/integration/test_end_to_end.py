"""The whole line, for real: Kafka, Airflow, PostgreSQL, Whisper. It makes of lectures what ``lecturemill run`` makes.

One stack serves all tests. The lectures go down its line before the first; the last stops and starts it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import psycopg
import pytest

from deploy.local.stack import Stack
from pipeline.assembly import RunRequest, line_options, open_tools
from pipeline.cli_run import export_all
from pipeline.console import Bars
from pipeline.driver import Finished, run_media
from pipeline.settings import settings_from
from tests.integration.line_on_stack import Lecture, Line

DEMO = Path(__file__).resolve().parents[2] / "demo"
FORMATS = ("srt", "vtt", "json")
GLOSSARY = "glossary_physics.csv"
WITH_GLOSSARY = "physics"
LECTURES = {
    "zh_physics_yunxi.mp4": (WITH_GLOSSARY, "zh"),
    "en_physics_michael.mp4": (WITH_GLOSSARY, "en"),
    "zh_biology_xiaoyi.mp4": (WITH_GLOSSARY, "zh"),
    "zh_math_yunjian.mp4": ("maths", "zh"),
    "en_linear_algebra_emma.mp4": ("maths", "en"),
    "zh_dialog3.opus": ("maths", "auto"),
}
VIEWS = {
    "transcripts": "title, uri, language, duration_ms, speech_ms, text, state, reason, warnings, violations",
    "cues": "cue_index, start_ms, end_ms, text, language",
    "words": "word_index, sentence_index, start_ms, end_ms, text, probability",
    "ledger": "start_ms, end_ms, outcome, reason",
    "replacements": "start_ms, end_ms, before, after, rule",
    "violations": "cue_index, rule, measured, allowed",
    "lecturemill.sentence": "sentence_index, start_ms, end_ms, text, language",
}
RULE = 4
"""Where the rule stands in a row of ``replacements``."""
RULES_OF_GLOSSARY = {"case", "alias", "homophone", "near-homophone", "one-syllable", "fuzzy", "sound"}
IN_ANOTHER_ORDER = ("kafka", "transcribe", "postgres", "ingest", "assemble", "airflow")


@dataclass(frozen=True)
class Direct:
    """What ``lecturemill run`` made of the lectures, over a database of its own."""

    database_url: str
    finished: Mapping[str, Finished]
    """By media id."""
    files: Mapping[str, tuple[Path, ...]]


@pytest.fixture(scope="module")
def lectures(shared_data: Path) -> list[Lecture]:
    folder = shared_data / "lectures"
    return [Lecture(folder / name, course, language) for name, (course, language) in LECTURES.items()]


@pytest.fixture(scope="module", autouse=True)
def reference_engine() -> Iterator[None]:
    """The fused engine's 8-bit steps round otherwise in other batches: a word may begin a frame earlier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LECTUREMILL_ENGINE", "faster-whisper")
        yield


@pytest.fixture(scope="module")
def line(make_home: Callable[[str], Path], shared_data: Path, lectures: list[Lecture]) -> Iterator[Line]:
    """The stack, after all lectures went down its line."""
    with Stack(make_home("stack")) as stack:
        line = Line(stack)
        glossary = str(shared_data / "lectures" / GLOSSARY)
        line.command("glossary", "import", glossary, "--course", WITH_GLOSSARY)
        line.announce(lectures)
        line.await_runs(lectures)
        yield line


@pytest.fixture(scope="module")
def direct(
    fresh_database: Callable[[], AbstractContextManager[str]],
    tmp_path_factory: pytest.TempPathFactory,
    shared_data: Path,
    lectures: list[Lecture],
) -> Iterator[Direct]:
    out, finished, files = tmp_path_factory.mktemp("direct"), {}, {}
    with fresh_database() as url, Bars(quiet=True) as bars:
        settings = settings_from(os.environ, url)
        with open_tools(RunRequest("any", engine=settings.engine), settings, lambda _: None) as tools:
            for one in lectures:
                glossary = shared_data / "lectures" / GLOSSARY if one.course_id == WITH_GLOSSARY else None
                options = line_options(RunRequest(one.course_id, one.language, glossary))
                done = run_media(one.path, options, tools, bars.bar(one.path.name))
                finished[one.media_id] = done
                files[one.media_id] = export_all(done.media, done.result, out, one.path.stem, FORMATS)
        yield Direct(url, finished, files)


def rows_of(database_url: str, view: str, media_id: str) -> list[tuple[object, ...]]:
    query = f"select {VIEWS[view]} from {view} where media_id = %s order by {VIEWS[view]}"
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        return connection.execute(query, [media_id]).fetchall()


def path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def test_every_media_got_a_run_of_its_own_and_no_other_run_is_there(line: Line, lectures: list[Lecture]) -> None:
    assert {name: run["state"] for name, run in line.runs().items()} == {one.media_id: "success" for one in lectures}


@pytest.mark.parametrize("view", VIEWS)
def test_the_line_makes_the_rows_that_the_command_makes_in_one_process(
    line: Line, direct: Direct, lectures: list[Lecture], view: str
) -> None:
    for one in lectures:
        made, expected = (
            rows_of(url, view, one.media_id) for url in (line.stack.postgres.address, direct.database_url)
        )
        assert without_probability(view, made) == without_probability(view, expected), one.path.name


def without_probability(view: str, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Batches differ between the two, and with them the last digits of what a matrix product is rounded to."""
    return [row[:-1] for row in rows] if view == "words" else rows


def test_words_are_as_probable_as_in_one_process(line: Line, direct: Direct, lectures: list[Lecture]) -> None:
    for one in lectures:
        made, expected = (
            [row[-1] for row in rows_of(url, "words", one.media_id)]
            for url in (line.stack.postgres.address, direct.database_url)
        )
        assert made == pytest.approx(expected, abs=0.05), one.path.name


def test_the_lectures_have_text_and_the_glossary_was_used(line: Line, lectures: list[Lecture]) -> None:
    texts = {one.path.name: rows_of(line.stack.postgres.address, "words", one.media_id) for one in lectures}
    assert all(len(words) > 100 for words in texts.values())
    glossed = {
        one.course_id
        for one in lectures
        for row in rows_of(line.stack.postgres.address, "replacements", one.media_id)
        if row[RULE] in RULES_OF_GLOSSARY
    }
    assert glossed == {WITH_GLOSSARY}


def test_each_media_is_announced_once_with_the_files_that_the_command_writes(
    line: Line, direct: Direct, lectures: list[Lecture]
) -> None:
    completed = {message["media_id"]: message for message in line.completed()}
    assert len(line.completed()) == len(lectures)
    for one in lectures:
        message, result = completed[one.media_id], direct.finished[one.media_id].result
        assert message["course_id"] == one.course_id
        assert (message["duration_ms"], message["cues"]) == (result.duration_ms, len(result.cues))
        written = [path_of(uri).read_bytes() for uri in message["files"]]
        assert written == [path.read_bytes() for path in direct.files[one.media_id]]


def test_the_commands_tell_what_became_of_the_media(line: Line, direct: Direct, lectures: list[Lecture]) -> None:
    states = {one["media_id"]: one["state"] for one in json.loads(line.command("status", "--json"))}
    assert states == {one.media_id: "done" for one in lectures}
    media_id, finished = next(iter(direct.finished.items()))
    spans = json.loads(line.command("ledger", media_id, "--json"))
    assert [(span["start_ms"], span["end_ms"], span["outcome"]) for span in spans] == [
        (span.start_ms, span.end_ms, span.outcome) for span in finished.result.ledger
    ]


def test_what_is_announced_again_is_not_done_again(line: Line, lectures: list[Lecture]) -> None:
    before, completed = line.runs(), line.completed()
    line.announce(lectures)
    line.until(lambda: lags(line) == {"ingest": 0, "transcribe": 0, "assemble": 0}, "every message is read")
    assert line.runs() == before
    assert line.completed() == completed
    assert line.brokers().dead == {}


def lags(line: Line) -> dict[str, int]:
    return {group.name: group.lag for group in line.brokers().groups}


def test_media_in_flight_are_done_after_all_was_stopped_and_started_in_another_order(line: Line) -> None:
    sliced, unseen = Lecture(DEMO / "pythagoras.mp4", "maths", "zh"), Lecture(DEMO / "newton.mp4", "maths", "en")
    line.stack.down(["transcribe"])
    line.announce([sliced])
    line.until(lambda: line.task_state(sliced, "wait") == "deferred", "the slices wait on Kafka")
    line.stack.down(["ingest"])
    line.announce([unseen])
    family = line.family()
    line.stack.down()
    assert [process for process in family if runs(process)] == []
    for part in IN_ANOTHER_ORDER:
        line.stack.up([part])
    line.await_runs([sliced, unseen])
    announced = [message["media_id"] for message in line.completed()]
    assert announced.count(sliced.media_id) == announced.count(unseen.media_id) == 1


def runs(process: psutil.Process) -> bool:
    """A zombie does not: where nobody collects orphans, it stays one."""
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
