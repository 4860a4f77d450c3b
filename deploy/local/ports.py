"""Free ports of 127.0.0.1."""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST, LAST = 20_000, 32_000
"""Below the range that the kernel gives to outgoing connections (ip_local_port_range begins at 32768), so that
none of those takes a port while its server is restarted."""
CONNECT_TIMEOUT_S = 2.0


def free_port() -> int:
    """A port that nobody listens on, other for each caller in all likelihood."""
    ports = random.SystemRandom().sample(range(FIRST, LAST), 100)
    return next(port for port in ports if is_free(port))


def kept_port(file: Path, asked: int = 0) -> int:
    """The port in ``file``; where there is none, ``asked``, or for 0 a free one, is chosen and kept there."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(asked or free_port()))
    return int(file.read_text())


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def accepts(address: str) -> bool:
    """Whether somebody accepts connections at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True
