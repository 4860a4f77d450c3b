"""What every part of the stack can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from deploy.local.processes import Program


class Part(ABC):
    """One part: a program, or a few that belong together. Its state lies in a folder and survives a restart.

    As a context it is started, and stopped at the end.
    """

    name: str
    programs: tuple[Program, ...]

    @property
    @abstractmethod
    def address(self) -> str:
        """Where clients find it; empty where none do, or before its first start."""

    @abstractmethod
    def start(self) -> None:
        """Return when it is healthy; harmless where it is.

        Raises RetriableError, with the last line of its log, where it does not come up, and UsageError where
        something that it needs is not installed.
        """

    @abstractmethod
    def is_healthy(self) -> bool:
        """Whether it runs and can do its work."""

    def pid(self) -> int:
        """The pid of its first program, 0 where that does not run."""
        return self.programs[0].pid()

    def stop(self) -> None:
        """End it in order, each program by its pid, all at the same time; harmless where it does not run."""
        pids = [program.ask_to_stop() for program in self.programs]
        for program, pid in zip(self.programs, pids, strict=True):
            program.end(pid)

    def kill(self) -> None:
        """As by ``kill -9``."""
        for program in self.programs:
            program.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
