"""The jars of Apache Kafka, fetched once into the user's cache by Maven."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

from deploy.local.java import maven
from pipeline.errors import RetriableError

VERSION = "4.4.0"
POM = Path(__file__).parents[1] / "kafka" / "pom.xml"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
MANIFEST = "MANIFEST.tsv"
"""In the folder of the jars: the name and the size in bytes of each."""


def jars() -> Path:
    """The folder of the jars (43 MB): found, or fetched in about 20 s.

    Raises UsageError where Maven is missing, RetriableError where it cannot fetch them.
    """
    folder = user_cache_path("lecturemill") / f"kafka-{VERSION}"
    if not is_complete(folder):
        _fetch(folder)
    return folder


def is_complete(folder: Path) -> bool:
    """Whether every jar of the manifest is there in its whole size."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return False
    sizes = dict(line.split("\t") for line in manifest.read_text("utf-8").splitlines())
    return bool(sizes) and sizes == _sizes(folder)


def _sizes(folder: Path) -> dict[str, str]:
    return {jar.name: str(jar.stat().st_size) for jar in sorted(folder.glob("*.jar"))}


def _fetch(folder: Path) -> None:
    """Made aside and put in place whole: a killed fetch, or two at once, leave no half folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as aside:
        fresh = Path(aside) / "jars"
        _copy_dependencies(fresh)
        manifest = "".join(f"{name}\t{size}\n" for name, size in _sizes(fresh).items())
        (fresh / MANIFEST).write_text(manifest, "utf-8")
        if not is_complete(folder):
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)


def _copy_dependencies(target: Path) -> None:
    options = [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    done = subprocess.run(
        [maven(), "-q", "-B", "-f", str(POM), COPY_GOAL, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        complaints = [line for line in done.stdout.splitlines() if "ERROR" in line] or [f"status {done.returncode}"]
        raise RetriableError(f"Maven cannot fetch the Kafka broker: {complaints[0]}")
