"""A consumer of the line as a part: ``python -m consumers.NAME``, again and again where its surroundings stay away."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from deploy.local.parts import Part
from deploy.local.ports import kept_port
from deploy.local.processes import Program

START_TIMEOUT_S = 120.0
CONSUMES = " consumes "
"""What it says when its step is made and its brokers are found (consumers.wiring)."""


class Consumer(Part):
    """``name`` is the module's. ``environment`` is asked at each start, when the parts below are up.

    ``port`` is for its metrics; 0 stands for a free one, which is kept over restarts.
    """

    def __init__(self, name: str, folder: Path, environment: Callable[[], Mapping[str, str]], port: int = 0) -> None:
        self.name = name
        self._environment, self._asked_port = environment, port
        self._program = Program(name, folder)
        self._port_file = folder / f"{name}.port"
        self.programs = (self._program,)

    @property
    def address(self) -> str:
        """Where its metrics are."""
        return f"http://127.0.0.1:{self._port_file.read_text()}/metrics" if self._port_file.exists() else ""

    def start(self) -> None:
        own = {**self._environment(), "LECTUREMILL_METRICS_PORT": str(kept_port(self._port_file, self._asked_port))}
        command = [
            sys.executable,
            "-m",
            "deploy.local.again",
            self.name,
            sys.executable,
            "-m",
            f"consumers.{self.name}",
        ]
        self._program.start(command, {**os.environ, **own})
        self._program.await_health(self.is_healthy, START_TIMEOUT_S)

    def is_healthy(self) -> bool:
        return bool(self._program.pid()) and CONSUMES in self._program.said()
