"""What can go wrong, said by what the caller must do about it.

LecturemillError
├── InvalidInputError   the input is at fault: record the failure, go on with the next (a message: dead-letter it)
├── RetriableError      the surroundings are at fault: stop, keep the place, try again later
│   ├── OutOfMemoryError    a batch was too large for the device: try a smaller one
│   └── DeviceLostError     this process has lost its device: end it, another one can work
└── UsageError          the command line is at fault: exit status 2
"""

from __future__ import annotations


class LecturemillError(Exception):
    """The root: every error that this project raises on purpose.

    ``reason`` is one line that says what is wrong, where, and what to do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InvalidInputError(LecturemillError):
    """The input can never be processed; trying again is useless.

    ``source`` names the offending input (a path, a URI, a row of a file).
    """

    def __init__(self, reason: str, *, source: str = "") -> None:
        super().__init__(f"{source}: {reason}" if source else reason)
        self.source = source


class RetriableError(LecturemillError):
    """The database, the broker, the disk or a child process is unwell; the same input may succeed later."""


class OutOfMemoryError(RetriableError):
    """The device has not the memory for what it was given at once; less may do."""


class DeviceLostError(RetriableError):
    """The device does nothing for this process any more; a new process may be well. To try again here is useless."""


class UsageError(LecturemillError):
    """The command was called wrongly, or something it needs (a model, a folder) is not there."""
