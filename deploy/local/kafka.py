"""One Kafka broker on 127.0.0.1: its folder, its ports, its life."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path

from deploy.local.java import java
from deploy.local.kafka_jars import jars
from deploy.local.parts import Part
from deploy.local.ports import accepts, free_port
from deploy.local.processes import Program
from pipeline.errors import RetriableError

SETTINGS = Path(__file__).parents[1] / "kafka"
JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The quick compiler and the simple collector halve what a start costs: 3 s of a core instead of 6."""
START_TIMEOUT_S = 120.0
STARTED = "Kafka Server started"
NODE = "node.properties"


class Broker(Part):
    """A broker whose data and ports lie in ``folder`` and survive a restart.

    ``port`` 0 stands for a free one.
    """

    name = "kafka"

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self._asked_port = port
        self._program = Program(self.name, folder)
        self.programs = (self._program,)

    @property
    def address(self) -> str:
        """The bootstrap server, ``127.0.0.1:PORT``; empty until it is started for the first time."""
        return self._property("advertised.listeners").removeprefix("PLAINTEXT://")

    def start(self) -> None:
        """Return when it serves clients: about 5 s, 9 to 14 s after a kill. Harmless where it runs.

        Raises UsageError or RetriableError, with the last line of its log, where it does not come up.
        """
        if not (self.folder / NODE).exists():
            self._configure()
        self._program.start([*self._java(), "kafka.Kafka", self.folder / NODE])
        self._program.await_health(self.is_healthy, START_TIMEOUT_S)

    def is_healthy(self) -> bool:
        """Whether clients can work: it says so once its controller has let it in, after it opened its port."""
        return bool(self._program.pid()) and STARTED in self._program.said() and accepts(self.address)

    def _java(self) -> tuple[str, ...]:
        logging = f"-Dlog4j2.configurationFile={SETTINGS / 'log4j2.properties'}"
        return (str(java()), *JVM, "-cp", f"{jars()}/*", logging)

    def _property(self, name: str) -> str:
        node = self.folder / NODE
        lines = node.read_text("utf-8").splitlines() if node.exists() else []
        return next((line.partition("=")[2] for line in lines if line.startswith(f"{name}=")), "")

    def _configure(self) -> None:
        """The settings go to their place last: their presence says that the data folder is formatted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = self.folder / f"{NODE}.{os.getpid()}"
        own = self._own_settings(self._asked_port or free_port(), free_port())
        aside.write_text((SETTINGS / "server.properties").read_text("utf-8") + own, "utf-8")
        self._format(aside)
        aside.rename(self.folder / NODE)

    def _own_settings(self, port: int, controller: int) -> str:
        return f"""
log.dirs={self.folder / "data"}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.quorum.voters=1@127.0.0.1:{controller}
"""

    def _format(self, properties: Path) -> None:
        command = [*self._java(), "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        done = subprocess.run(
            # With an equals sign: one id in 64 begins with a minus, and would be taken for an option.
            [*command, f"--cluster-id={_uuid(os.urandom(16))}", "-c", str(properties)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines() or [f"status {done.returncode}"]
            raise RetriableError(f"{self.folder}: the broker's data cannot be formatted: {said[-1]}")


def _uuid(random: bytes) -> str:
    """Kafka's writing of a UUID: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(random).decode().rstrip("=")
