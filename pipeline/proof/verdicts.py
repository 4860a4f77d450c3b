"""What was proven of an engine on this machine, kept in a file, so that each thing is proven once.

A file belongs to one model, engine, device and precision, in the versions that compute them: its name is a digest of
all these, so that whatever changes, the proof begins anew.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from pipeline.identity import digest
from pipeline.proof.judgement import Verdict

PROOF_VERSION = 1
"""Raised when the speech, the limits or the way of comparing change."""
_PACKAGES = {
    ("faster-whisper", "cpu"): ("ctranslate2", "faster-whisper"),
    ("faster-whisper", "cuda"): ("ctranslate2", "faster-whisper"),
    ("fused", "cpu"): ("openvino", "numpy"),
    ("fused", "cuda"): ("torch", "triton", "numpy"),
}


def proof_key(engine_fingerprint: str, engine: str, device: str, hardware: str) -> str:
    """``engine_fingerprint`` names weights, engine and precision; ``hardware`` the processor or the GPU."""
    computing = [f"{name} {_version(name)}" for name in ("lecturemill", *_PACKAGES[engine, device])]
    return digest(PROOF_VERSION, engine_fingerprint, engine, device, hardware, computing)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a checkout that is not installed
        return "none"


class Verdicts:
    """The verdicts in one file, by what they are about. Processes may share it: the last one to write is kept."""

    def __init__(self, path: Path | None) -> None:
        """``path`` None keeps them in memory."""
        self._path = path
        self._known = self._read()

    def get(self, about: str) -> Verdict | None:
        return self._known.get(about)

    def put(self, about: str, verdict: Verdict) -> None:
        self._known = {**self._read(), **self._known, about: verdict}
        # A disk that is full or read-only costs the proof its memory, not the work its verdict.
        with suppress(OSError):
            self._write()

    @property
    def all(self) -> Mapping[str, Verdict]:
        return self._known

    def _read(self) -> dict[str, Verdict]:
        """None where there is no such file, or a damaged one: what is not known is proven again."""
        if not self._path:
            return {}
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Verdict])
        except (OSError, msgspec.DecodeError):
            return {}

    def _write(self) -> None:
        if not self._path:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._path.parent, prefix=".proof-", delete=False) as file:
            file.write(msgspec.json.format(msgspec.json.encode(self._known), indent=1))
        os.replace(file.name, self._path)  # noqa: PTH105 - whole or not at all
