"""The lecturers, in a process of their own: ``python -m bench.load.producer`` (started by ``bench.load``).

Reads a JSON ``Job`` from a line of standard input, answers ``ready`` when its audio is encoded (which is the slicing
task's work and not measured here), begins at the next line, and ends with a line of JSON, ``Produced``.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import msgspec

from bench.load.audio import clips
from bench.load.lectures import Due, Turn, flat_out, live, turns
from pipeline.broker import AUDIO_SLICES, Outgoing, Sender
from pipeline.messages import SliceReady, encode
from pipeline.publishing import IN_FLIGHT_SLICES
from pipeline.values import Boundary, Priority

CLIPS = 64
FINGERPRINT = "load"


@dataclass(frozen=True, slots=True)
class Job:
    """``duration_ms`` of live lectures, or where that is 0 ``slices`` as fast as possible."""

    brokers: str
    run: str
    courses: int
    duration_ms: int
    slices: int
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Handed:
    """A slice that the broker has acknowledged. Times are milliseconds since 1970."""

    media_id: str
    slice_index: int
    due_ms: int
    """When its speech ended; flat out, when it was given to the sender."""
    acknowledged_ms: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Produced:
    """What a job did. ``cpu_s`` is the processor time since it began."""

    handed: tuple[Handed, ...]
    cpu_s: float


def media_id(run: str, course: int) -> str:
    """
    >>> media_id("flat", 7)
    'flat-0007'
    """
    return f"{run}-{course:04d}"


def dues(job: Job, choice: Sequence[Turn]) -> list[Due]:
    if job.duration_ms:
        return live(job.courses, job.duration_ms, choice, Random(job.seed))
    return flat_out(job.courses, job.slices, choice)


def message(run: str, due: Due, turn: Turn, audio: bytes) -> Outgoing:
    """As the slicing task would send it."""
    end_ms = due.start_ms + turn.speech_ms
    ready = SliceReady(
        course_id=f"course-{media_id(run, due.course)}",
        media_id=media_id(run, due.course),
        slice_index=due.index,
        start_ms=due.start_ms,
        end_ms=end_ms,
        boundary=Boundary.SILENCE,
        speech=((due.start_ms, end_ms),),
        language="en",
        prompts={},
        model="stub",
        slicing=FINGERPRINT,
        asr=FINGERPRINT,
        priority=Priority.NORMAL,
        codec="flac",
        audio=audio,
    )
    return Outgoing(AUDIO_SLICES[Priority.NORMAL], ready.course_id, encode(ready))


def hand_over(
    waiting: Sequence[Due],
    outgoing: Callable[[Due], Outgoing],
    send: Callable[[Sequence[Outgoing]], None],
    run: str,
    now_ms: Callable[[], int],
    wait_ms: Callable[[int], None],
) -> list[Handed]:
    """Send each slice when it is due, or as soon as those before are acknowledged; the wait counts as delay."""
    began_ms, left, handed = now_ms(), deque(waiting), []
    is_live = bool(left) and left[-1].at_ms > 0
    while left:
        wait_ms(left[0].at_ms - (now_ms() - began_ms))
        given_ms = now_ms()
        few = [left.popleft() for _ in range(_due(left, given_ms - began_ms))]
        outgoings = [outgoing(due) for due in few]
        send(outgoings)
        acknowledged_ms = now_ms()
        for due, out in zip(few, outgoings, strict=True):
            due_ms = began_ms + due.at_ms if is_live else given_ms
            key = media_id(run, due.course)
            handed.append(Handed(key, due.index, due_ms, acknowledged_ms, len(out.value)))
    return handed


def _due(left: Sequence[Due], elapsed_ms: int) -> int:
    """How many are, and no more than the slicing task has in flight."""
    few = [left[at] for at in range(min(IN_FLIGHT_SLICES, len(left)))]
    return sum(due.at_ms <= elapsed_ms for due in few)


def main() -> None:
    job = msgspec.json.decode(sys.stdin.readline(), type=Job)
    choice = turns(CLIPS, Random(job.seed))
    sounds, waiting = clips(choice), dues(job, choice)
    with Sender.open(job.brokers, "lecturemill-load") as sender:
        print("ready", flush=True)
        sys.stdin.readline()
        began_s = time.process_time()
        handed = hand_over(
            waiting,
            lambda due: message(job.run, due, choice[due.turn], sounds[due.turn]),
            sender.send,
            job.run,
            lambda: time.time_ns() // 1_000_000,
            lambda milliseconds: time.sleep(max(0, milliseconds) / 1000),
        )
        produced = Produced(tuple(handed), time.process_time() - began_s)
    print(msgspec.json.encode(produced).decode(), flush=True)


if __name__ == "__main__":
    main()
