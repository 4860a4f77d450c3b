"""An ffmpeg child that writes NUT to a pipe: started, read frame by frame, watched, and always ended.

What it says on stderr is gathered by a thread of its own, so that neither side waits for the other.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import av
import numpy as np

from pipeline.errors import RetriableError
from pipeline.media_clock import Frame, Pcm
from pipeline.values import SAMPLE_RATE_HZ

ORIGIN_S = 3600
"""Added to all time stamps on their way through the pipe, since NUT knows none below zero."""
BUFFER_BYTES = 1 << 18
COMPUTING = 0.1
"""The share of the time that a child in a loop gets on a busy machine at least; one that waits uses none."""
POLL_S = 0.01
GRACE_S = 5
"""How long a child that closed its pipe may take to end."""
KINDS_KEPT = 50
LINE_CHARACTERS = 300
ERRORS = {"error", "fatal", "panic"}

_LINE = re.compile(r"^(?:\[[^\]]*@[^\]]*\] )*\[(\w+)\] (.*)$")
_NOISE = re.compile(
    r"Conversion failed|Nothing was written|Task finished|Terminating thread|Error opening output"
    r"|Error submitting packet|Output file is empty|Error processing packet|Error while filtering"
    r"|Could not open encoder before EOF"
)
"""Lines in which ffmpeg only repeats that it failed, without a reason."""
_PICTURES = re.compile(r"^\[(h26[1-5]|hevc|av1|libdav1d|vp\d|vc1|wmv\d|theora|png|m?jpe?g\w*|\w*mpeg\d\w*|\w+video) @")
"""Decoders of pictures, which look at the streams beside the one that is decoded."""


class FfmpegChild:
    """A running ffmpeg. ``frames`` reads it to its end; ``close`` ends it, and may be called at any time."""

    def __init__(self, command: list[str], stall_timeout_s: float) -> None:
        """``command`` writes NUT to its stdout. Raises ``RetriableError`` where it cannot be started."""
        self._stall_timeout_s = stall_timeout_s
        self._failure: BaseException | None = None
        self._is_read = False
        self.ended_well = False
        self.death = ""
        """How it died, where it did not end by itself: ``crashed (SIGSEGV)`` or ``hung``."""
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # a wrapper script is killed together with what it runs
            )
        except OSError as error:
            raise RetriableError(f"{command[0]}: ffmpeg could not be started ({error.strerror})") from error
        self.messages = Messages(_opened(self._process.stderr))

    def frames(self) -> Iterator[Frame]:
        """The decoded frames in the order in which they come, each with its own place on the media clock.

        Raises ``RetriableError`` where nothing came for the stall time-out and the child did not compute.
        """
        try:
            with av.open(self, mode="r", format="nut", buffer_size=BUFFER_BYTES) as container:
                stream = container.streams.audio[0]
                channels = stream.codec_context.channels
                for packet in container.demux(stream):
                    pcm = _pcm(bytes(packet), channels)
                    if packet.pts is not None and len(pcm):
                        # At this sample rate NUT counts time in samples.
                        yield Frame(packet.pts - ORIGIN_S * SAMPLE_RATE_HZ, pcm)
        except (av.error.FFmpegError, IndexError):
            pass  # the pipe ended before its header or inside a packet; close() finds out why
        if self._failure is not None:
            raise self._failure
        self._is_read = True
        self.close()

    def read(self, size: int) -> bytes:
        """The next bytes of the pipe, for the demuxer; it swallows Ctrl-C, so errors are kept for later."""
        try:
            return self._read(size)
        except BaseException as error:  # noqa: BLE001 - raised again by frames()
            self._failure = error
            return b""

    def _read(self, size: int) -> bytes:
        output = _opened(self._process.stdout)
        if _is_readable(output, 0):
            return os.read(output.fileno(), size)
        computed_s = _cpu_s(self._process.pid)
        if _is_readable(output, self._stall_timeout_s):
            return os.read(output.fileno(), size)
        computed_s = _cpu_s(self._process.pid) - computed_s
        self._kill()
        if computed_s > self._stall_timeout_s * COMPUTING:
            self.death = "hung"
            return b""
        reason = f"the decoder waited for the disk for {self._stall_timeout_s:g} s and was ended"
        raise RetriableError(reason)

    def close(self) -> None:
        """Close the pipes and reap the process, which is killed if it has more to say. Idempotent."""
        if self._process.returncode is not None:
            return
        _opened(self._process.stdout).close()
        was_asked = not self._is_read or self._has_more()
        self._kill()
        code = self._process.wait()
        self.messages.finish()
        self.ended_well = code == 0
        if code < 0 and not was_asked and not self.death:
            self.death = f"crashed ({signal.Signals(-code).name})"

    def _has_more(self) -> bool:
        """Whether the process, its pipe read to the end, still runs; it is not reaped yet."""
        deadline = time.monotonic() + GRACE_S
        options = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while os.waitid(os.P_PID, self._process.pid, options) is None:
            if time.monotonic() > deadline:
                return True
            time.sleep(POLL_S)
        return False

    def _kill(self) -> None:
        """End the child and whatever it started; the group exists as long as the child is not reaped."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Messages:
    """What a child says, counted by kind; at most ``KINDS_KEPT`` kinds are kept, the rest is only drained."""

    def __init__(self, stderr: IO[bytes]) -> None:
        self.last_error = ""
        self._counts: Counter[str] = Counter()
        self._stderr = stderr
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        for line in self._stderr:
            severity, text = readable(line.decode(errors="replace"))
            if severity in ERRORS:
                self.last_error = text
            if text and (text in self._counts or len(self._counts) < KINDS_KEPT):
                self._counts[text] += 1

    def finish(self) -> None:
        """Wait for the last line; the child must have ended."""
        self._thread.join()
        self._stderr.close()

    def most_frequent(self, limit: int) -> tuple[str, ...]:
        """The messages that came most often, each once."""
        common = self._counts.most_common(limit)
        return tuple(f"ffmpeg: {text}" + (f" ({n} times)" if n > 1 else "") for text, n in common)


def readable(line: str) -> tuple[str, str]:
    """The severity and the text of a line of ffmpeg's log; no text where it tells nothing that is wrong.

    Of the warnings (guessed layouts, unknown metadata, skipped streams) only those of corruption count.

    >>> readable("[mp2 @ 0x55b16e376d80] [error] Header missing")
    ('error', 'Header missing')
    >>> readable("[warning] Conversion failed!")
    ('', '')
    >>> readable("[warning] Guessed Channel Layout: mono")
    ('', '')
    """
    match = _LINE.match(line.strip())
    if match is None or _NOISE.search(match[2]) or _PICTURES.match(line):
        return "", ""
    if match[1] not in ERRORS and "corrupt" not in match[2].lower():
        return "", ""
    return match[1], match[2][:LINE_CHARACTERS]


def _pcm(packet: bytes, channels: int) -> Pcm:
    """The whole samples of a packet; the last one of a decoder that died may end inside a sample."""
    whole = len(packet) // (2 * channels) * channels
    return np.frombuffer(packet, np.int16, count=whole).reshape(-1, channels)


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "the child was started with pipes"
    return pipe


def _is_readable(pipe: IO[bytes], timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _cpu_s(pid: int) -> float:
    """The CPU time a process has used; fields 14 and 15 of ``/proc/PID/stat``, see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
