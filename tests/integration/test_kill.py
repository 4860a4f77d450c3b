"""A run that is killed or stopped anywhere, and then started again, leaves what an undisturbed run leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import text

from pipeline.database import connect, embedded
from tests.integration.speaking import write_sound
from tests.integration.speaking_command import AT_WORK

MakeHome = Callable[[str], Path]
MADE_UP = (sys.executable, "-m", "tests.integration.speaking_command")
REAL = (str(Path(sys.executable).with_name("lecturemill")),)
TIMEOUT_S = 180
PROMPTLY_S = 30
"""A second or two on a machine that does nothing else."""

VIEWS = {
    "transcripts": "title, language, duration_ms, speech_ms, text, state, reason, warnings, violations",
    "cues": "cue_index, start_ms, end_ms, text, language",
    "words": "word_index, start_ms, end_ms, text, probability, sentence_index",
    "ledger": "start_ms, end_ms, outcome, reason",
    "replacements": "start_ms, end_ms, before, after, rule",
    "violations": "cue_index, rule, measured, allowed",
    "lecturemill.slice": "slicing_fingerprint, slice_index, start_ms, end_ms, boundary, speech::text",
    "lecturemill.slice_transcript": "slicing_fingerprint, slice_index, asr_fingerprint, language, segments::text,"
    " outcome, reason, attempts",
}
"""Everything but ids, costs and the times of recording."""
Rows = dict[str, list[tuple[Any, ...]]]


class Command:
    """``lecturemill run`` on one file, in one home, time and again."""

    def __init__(self, home: Path, media: Path, out: Path, program: Sequence[str] = MADE_UP, *options: str) -> None:
        self.home, self._media, self._out, self._program, self._options = home, media, out, program, options

    def start(self, course: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        out = self._out / course
        words = [*self._program, "run", str(self._media), "--course", course, "--out", str(out), *self._options]
        surroundings = {**os.environ, "LECTUREMILL_HOME": str(self.home), **(environment or {})}
        surroundings.pop("DATABASE_URL", None)
        return subprocess.Popen(
            words, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, course: str, environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        return finish(self.start(course, environment))

    def succeed(self, course: str) -> str:
        status, output, errors = self.run(course)
        assert status == 0, errors
        return output

    def rows(self, course: str) -> Rows:
        with embedded(self.home) as url:
            return rows_of(url, course)

    def files(self, course: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self._out / course).iterdir()}


def finish(process: subprocess.Popen[str], timeout_s: float = TIMEOUT_S) -> tuple[int, str, str]:
    try:
        output, errors = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
    return process.returncode, output, errors


def rows_of(url: str, course: str) -> Rows:
    engine = connect(url)
    belongs = "media_id in (select media_id from lecturemill.media where course_id = :course)"
    with engine.connect() as connection:
        rows = {
            view: sorted(
                map(
                    tuple,
                    connection.execute(text(f"select {columns} from {view} where {belongs}"), {"course": course}),
                ),
                key=repr,
            )
            for view, columns in VIEWS.items()
        }
    engine.dispose()
    return rows


def wait_until(condition: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_for_work(process: subprocess.Popen[str]) -> None:
    assert process.stderr
    assert any(line.strip() == AT_WORK for line in process.stderr), "it ended before the engine was at work"


def server_of(home: Path) -> psutil.Process:
    return psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))


def are_gone(processes: Sequence[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=PROMPTLY_S)
    return not alive


@contextmanager
def at_work(command: Command, course: str, call: int) -> Iterator[subprocess.Popen[str]]:
    """The command in the given call of its engine, where it would stay for two minutes."""
    process = command.start(course, {"WAIT_AT": str(call)})
    try:
        wait_for_work(process)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def command(make_home: MakeHome, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Five minutes of made-up sound: 11 slices, six batches."""
    folder = tmp_path_factory.mktemp("kill")
    media = write_sound(folder / "lecture.wav", *[(8.0, 0.6), (15.0, 1.4)] * 12)
    return Command(make_home("home"), media, folder)


@pytest.fixture(scope="module")
def undisturbed(command: Command) -> Rows:
    command.succeed("undisturbed")
    rows = command.rows("undisturbed")
    assert len(rows["lecturemill.slice_transcript"]) == 12
    assert len(rows["words"]) > 500
    return rows


@pytest.mark.parametrize(
    "moment",
    [
        {"DIE_AT": "record_media:1"},
        {"DIE_AT": "record_slices:1"},
        {"DIE_AFTER": "record_slices:3"},
        {"DIE_AT": "replace:4"},
        {"DIE_AT": "record_result:1"},
        {"DIE_AFTER": "record_result:1"},
    ],
    ids=["before the media", "before the first batch", "between batches", "in the finish", "before it", "after it"],
)
def test_killed_at_any_moment_the_same_command_ends_as_if_undisturbed(
    command: Command, undisturbed: Rows, moment: dict[str, str]
) -> None:
    course = " ".join([*moment, *moment.values()])
    status, _, _ = command.run(course, moment)
    assert status == -signal.SIGKILL
    command.succeed(course)
    assert command.rows(course) == undisturbed
    assert {name.split(".")[-1] for name in command.files(course)} == {"srt", "vtt"}


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda kind: str(kind.name))
def test_stopped_while_the_engine_is_at_work_it_says_one_line_and_leaves_no_child(
    command: Command, undisturbed: Rows, kind: signal.Signals
) -> None:
    with at_work(command, kind.name, call=3) as process:
        children = [*psutil.Process(process.pid).children(recursive=True), server_of(command.home)]
        assert {child.name().split("-")[0] for child in children} >= {"ffmpeg", "postgres"}
        process.send_signal(kind)
        status, output, errors = finish(process, PROMPTLY_S)
        assert (status, output, errors) == (130, "", "stopped; the same command goes on where it was\n")
        assert are_gone(children)
    command.succeed(kind.name)
    assert command.rows(kind.name) == undisturbed


def test_a_second_ctrl_c_does_not_stop_the_clean_up(command: Command) -> None:
    with at_work(command, "impatient", call=1) as process:
        server = server_of(command.home)
        for _ in range(5):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        status, _, errors = finish(process, PROMPTLY_S)
        assert (status, errors.count("\n")) == (130, 1)
        assert are_gone([server])


def test_a_killed_command_leaves_no_decoder_behind_and_a_server_that_the_next_one_takes(command: Command) -> None:
    with at_work(command, "orphan", call=1) as process:
        children = psutil.Process(process.pid).children(recursive=True)
        server = server_of(command.home)
        process.kill()
        assert children
        assert are_gone(children)
        assert server.is_running()
    command.succeed("orphan")
    assert are_gone([server])


def test_when_the_database_is_killed_too_the_next_run_recovers_it_and_goes_on(
    command: Command, undisturbed: Rows
) -> None:
    with at_work(command, "outage", call=4) as process:
        server = server_of(command.home)
        process.kill()
        server.kill()
    command.succeed("outage")
    assert command.rows("outage") == undisturbed


def test_when_only_the_database_is_killed_the_run_says_so_in_one_line_and_can_be_taken_up(
    command: Command, undisturbed: Rows
) -> None:
    process = command.start("no-database", {"WAIT_AT": "1"})
    wait_for_work(process)
    server_of(command.home).kill()
    process.send_signal(signal.SIGINT)
    status, _, errors = finish(process, PROMPTLY_S)
    assert status == 130
    assert "Traceback" not in errors
    command.succeed("no-database")
    assert command.rows("no-database") == undisturbed


def test_two_commands_at_once_on_a_new_home_and_one_file_both_succeed_and_leave_the_rows_of_one(
    command: Command, undisturbed: Rows, make_home: MakeHome, tmp_path: Path
) -> None:
    both = Command(make_home("new"), command._media, tmp_path)
    processes = [both.start("both") for _ in range(2)]
    ends = [finish(process) for process in processes]
    assert [status for status, _, _ in ends] == [0, 0], [errors for _, _, errors in ends]
    assert both.rows("both") == undisturbed
    assert not (both.home / "postgres" / "postmaster.pid").exists()


def test_with_the_real_engine_a_lecture_that_was_killed_in_its_only_batch_ends_as_if_undisturbed(
    make_home: MakeHome, tmp_path: Path
) -> None:
    media = Path(__file__).resolve().parents[2] / "demo" / "newton.mp4"
    lecture = Command(make_home("home"), media, tmp_path, REAL, "--model", "tiny.en", "--formats", "json")
    lecture.succeed("undisturbed")
    process = lecture.start("killed")
    assert process.stderr
    assert process.stderr.readline() == "newton.mp4: the only audio track\n"
    time.sleep(1)
    process.kill()
    process.communicate()
    assert slices_done(lecture.home, "killed") == 0
    lecture.succeed("killed")
    assert lecture.rows("killed") == lecture.rows("undisturbed")


@pytest.fixture(scope="module")
def real(make_home: MakeHome, tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Command:
    """A read text of four and a half minutes through the real engine: two batches."""
    media = shared_data / "derived" / "en_ljspeech_lecture.mp4"
    return Command(make_home("home"), media, tmp_path_factory.mktemp("real"), REAL, "--model", "tiny.en")


def slices_done(home: Path, course: str) -> int:
    if not (home / "postgres" / ".s.PGSQL.5432").exists():
        return 0
    with embedded(home) as url:
        return len(rows_of(url, course)["lecturemill.slice_transcript"])


@pytest.mark.fixtures
def test_with_the_real_engine_a_killed_and_a_stopped_run_end_as_if_undisturbed(real: Command) -> None:
    real.succeed("undisturbed")
    undisturbed = real.rows("undisturbed")
    assert len(undisturbed["lecturemill.slice_transcript"]) > 8
    process = real.start("disturbed")
    wait_until(lambda: slices_done(real.home, "disturbed"))
    process.kill()
    process.communicate()
    kept = slices_done(real.home, "disturbed")
    assert 0 < kept < len(undisturbed["lecturemill.slice_transcript"])
    assert kept % 4 == 0, "a batch is kept whole or not at all"
    real.succeed("disturbed")
    assert real.rows("disturbed") == undisturbed


@pytest.mark.fixtures
def test_the_real_engine_is_left_at_once_on_ctrl_c(real: Command) -> None:
    process = real.start("stopped")
    assert process.stderr
    assert process.stderr.readline() == "en_ljspeech_lecture.mp4: the only audio track\n"
    time.sleep(1)  # loading the model and the first batch take longer
    process.send_signal(signal.SIGINT)
    status, _, errors = finish(process, PROMPTLY_S)
    assert (status, errors) == (130, "stopped; the same command goes on where it was\n")
