"""Airflow on 127.0.0.1: its four programs and its health."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from deploy.local.airflow_client import AirflowClient
from deploy.local.airflow_settings import Surroundings, airflow_settings
from deploy.local.parts import Part
from deploy.local.ports import kept_port
from deploy.local.processes import Program, wait_until
from pipeline.errors import RetriableError, UsageError

PROGRAMS = {
    "api-server": ("--host", "127.0.0.1", "--workers", "1"),
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "triggerer": ("--skip-serve-logs",),
}
"""In the order of their start. Without --skip-serve-logs a log server listens on every interface."""
POOLS = {"slicing": 2}
"""Decoding and cutting keep a core busy; the other tasks wait or ask the database."""
START_TIMEOUT_S = 300.0
"""Twenty seconds on an idle machine, ninety on one with six times as much to do as it has cores."""


class Airflow(Part):
    """Airflow in ``folder`` over the DAGs of the folder ``dags``.

    ``surroundings`` is asked at each start, when the parts that it tells of are up. ``port`` 0 stands for a
    free one, which is kept over restarts.
    """

    name = "airflow"

    def __init__(self, folder: Path, dags: Path, surroundings: Callable[[], Surroundings], port: int = 0) -> None:
        self.folder = folder
        self._dags, self._surroundings, self._asked_port = dags, surroundings, port
        self._port_file = folder / "port"
        self.programs = tuple(Program(f"airflow-{kind}", folder) for kind in PROGRAMS)

    @property
    def address(self) -> str:
        """The URL of its API and UI."""
        return f"http://127.0.0.1:{self._port_file.read_text()}" if self._port_file.exists() else ""

    def start(self) -> None:
        """Return when all four programs are healthy and every DAG file is read: about 20 s."""
        if importlib.util.find_spec("airflow") is None:
            raise UsageError("Airflow is missing: install the extra 'stack' (pip install 'lecturemill[stack]')")
        if not all(program.pid() for program in self.programs):
            self._start_programs()
        self._await_health()
        client = AirflowClient(self.address)
        for pool, slots in POOLS.items():
            client.create_pool(pool, slots)
        if not wait_until(lambda: self._dag_files() <= client.read_files(), START_TIMEOUT_S):
            missing = ", ".join(sorted(self._dag_files() - client.read_files()))
            raise RetriableError(f"Airflow does not read {missing}: {self.program('dag-processor').complaint()}")

    def is_healthy(self) -> bool:
        """Whether its programs run and have all sent a sign of life lately (Airflow's own measure: 30 s)."""
        return all(program.pid() for program in self.programs) and AirflowClient(self.address).is_healthy()

    def program(self, kind: str) -> Program:
        """One of ``PROGRAMS``."""
        return dict(zip(PROGRAMS, self.programs, strict=True))[kind]

    def _start_programs(self) -> None:
        port = str(kept_port(self._port_file, self._asked_port))
        environment = self._environment()
        if not any(program.pid() for program in self.programs):
            self._migrate(environment)
        for (kind, options), program in zip(PROGRAMS.items(), self.programs, strict=True):
            own = ("--port", port) if kind == "api-server" else ()
            program.start([sys.executable, "-m", "airflow", kind, *options, *own], environment)

    def _environment(self) -> dict[str, str]:
        given = self._surroundings()
        settings = airflow_settings(self.folder, self._dags, self.address, given.database_url)
        # Airflow's settings in the caller's environment are meant for another Airflow.
        own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
        return {**own, **given.environment, **settings}

    def _migrate(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        log = self.folder / "airflow-migrate.log"
        with log.open("wb") as out:
            done = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False
            )
        if done.returncode:
            lines = log.read_text("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
            raise RetriableError(f"Airflow's database cannot be migrated: {lines[-1]} (log: {log})")

    def _await_health(self) -> None:
        """A program that ended will not become healthy: it is complained of at once."""
        ended: list[Program] = []

        def is_decided() -> bool:
            ended.extend(program for program in self.programs if not program.pid())
            return bool(ended) or self.is_healthy()

        if not wait_until(is_decided, START_TIMEOUT_S):
            raise RetriableError(f"Airflow is not healthy after {START_TIMEOUT_S:.0f} s (logs: {self.folder})")
        if ended:
            raise RetriableError(f"{ended[0].name} ended: {ended[0].complaint()}")

    def _dag_files(self) -> set[str]:
        return {path.name for path in self._dags.glob("*.py") if "@dag" in path.read_text("utf-8")}
