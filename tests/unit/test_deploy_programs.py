"""Programs in the background: found, ended and complained of by whoever knows their folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploy.local import kafka_jars
from deploy.local.consumer import Consumer
from deploy.local.java import java, maven
from deploy.local.ports import accepts, free_port, is_free, kept_port
from deploy.local.processes import Program, wait_until
from pipeline.errors import RetriableError, UsageError

WAITS = "print('waits', flush=True); import signal; signal.pause()"
IGNORES_ITS_STOP = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAITS}"
HAS_A_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '''{WAITS}''']); {WAITS}"
LONG_S = 30.0


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program("sample", tmp_path)
    yield made
    made.kill()


def start(program: Program, code: str, waiting: int = 1) -> int:
    """Its pid, as soon as ``waiting`` processes of its group have said that they wait."""
    program.start([sys.executable, "-c", code])
    assert wait_until(lambda: program.said().count("waits") == waiting, LONG_S)
    return program.pid()


def test_a_program_is_found_and_ended_by_whoever_knows_its_folder(program: Program) -> None:
    pid = start(program, WAITS)
    other = Program(program.name, program.folder)
    assert other.pid() == pid
    other.stop()
    assert not psutil.pid_exists(pid)
    assert program.pid() == 0


def test_a_running_program_is_not_started_twice(program: Program) -> None:
    pid = start(program, WAITS)
    program.start([sys.executable, "-c", WAITS])
    assert program.pid() == pid


def test_the_children_of_a_stopped_program_are_ended_too(program: Program) -> None:
    children = psutil.Process(start(program, HAS_A_CHILD, waiting=2)).children()
    program.stop()
    assert children
    _, alive = psutil.wait_procs(children, timeout=LONG_S)
    assert not alive


def test_a_program_that_ignores_its_stop_is_killed(program: Program) -> None:
    pid = start(program, IGNORES_ITS_STOP)
    program.end(program.ask_to_stop(), timeout_s=0.2)
    assert not psutil.pid_exists(pid)


def test_a_program_that_ended_by_itself_is_not_taken_for_running(program: Program) -> None:
    pid = start(program, WAITS)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not program.pid(), LONG_S)


def test_a_pid_that_a_stranger_got_is_left_alone(program: Program) -> None:
    stranger = Program("stranger", program.folder)
    pid = start(stranger, WAITS)
    program.pid_file.write_text(f"{pid} 1\n")
    program.stop()
    program.kill()
    assert stranger.pid() == pid
    stranger.stop()


def test_a_pid_file_that_holds_no_pid_means_not_running(program: Program) -> None:
    program.pid_file.write_text("")
    assert program.pid() == 0


def test_a_program_that_ends_at_its_start_is_complained_of_with_its_last_line_and_its_log(program: Program) -> None:
    program.start([sys.executable, "-c", "print('no such tape'); raise SystemExit(1)"])
    with pytest.raises(RetriableError, match=r"sample ended: no such tape \(log: .*sample\.log\)"):
        program.await_health(lambda: False, LONG_S)


def test_a_program_that_stays_unwell_is_complained_of(program: Program) -> None:
    start(program, WAITS)
    with pytest.raises(RetriableError, match=r"sample is not healthy after 0 s: waits \(log: "):
        program.await_health(lambda: False, timeout_s=0)


def test_only_what_it_said_since_its_last_start_counts(program: Program) -> None:
    start(program, WAITS)
    program.stop()
    program.start([sys.executable, "-c", "print('again', flush=True); import signal; signal.pause()"])
    assert wait_until(lambda: "again" in program.said(), LONG_S)
    assert "waits" not in program.said()
    assert "waits" in program.log.read_text()


def test_a_part_whose_module_is_missing_says_so(tmp_path: Path) -> None:
    part = Consumer("dishes", tmp_path, dict)
    with pytest.raises(RetriableError, match=r"dishes ended: .*No module named consumers\.dishes \(log: "):
        part.start()


def test_a_chosen_port_is_kept(tmp_path: Path) -> None:
    assert kept_port(tmp_path / "a" / "port", 4711) == 4711
    assert kept_port(tmp_path / "a" / "port", 4712) == 4711
    assert kept_port(tmp_path / "b" / "port") == kept_port(tmp_path / "b" / "port")


def test_nobody_listens_on_a_free_port() -> None:
    port = free_port()
    assert is_free(port)
    assert not accepts(f"127.0.0.1:{port}")


@pytest.fixture
def jar_folder(tmp_path: Path) -> Path:
    for name in ("broker.jar", "log.jar"):
        (tmp_path / name).write_bytes(b"12345")
    (tmp_path / kafka_jars.MANIFEST).write_text("broker.jar\t5\nlog.jar\t5\n")
    return tmp_path


def test_whole_jars_are_complete(jar_folder: Path) -> None:
    assert kafka_jars.is_complete(jar_folder)


@pytest.mark.parametrize("damage", ["missing", "truncated", "no manifest", "empty manifest"])
def test_damaged_jars_are_not_complete(jar_folder: Path, damage: str) -> None:
    match damage:
        case "missing":
            (jar_folder / "log.jar").unlink()
        case "truncated":
            (jar_folder / "log.jar").write_bytes(b"12")
        case "no manifest":
            (jar_folder / kafka_jars.MANIFEST).unlink()
        case _:
            (jar_folder / kafka_jars.MANIFEST).write_text("")
    assert not kafka_jars.is_complete(jar_folder)


def test_a_missing_maven_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"Maven is missing.*apt-get install maven"):
        maven()


def test_the_java_of_the_lock_is_new_enough_for_the_broker() -> None:
    said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    assert int(said.split('"')[1].partition(".")[0]) >= 17
