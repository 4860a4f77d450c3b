"""The sound that engines are compared on: the lectures, cut by the line itself, as the messages that Kafka carries.

``python -m bench.clips --out FILE`` writes them into one file, for machines that have neither the lectures nor ffmpeg.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import msgspec

from bench.data import SHARED_DATA, load
from bench.values import Item, Timed
from pipeline.assembly import find_detector
from pipeline.decoding import find_ffmpeg
from pipeline.errors import LecturemillError
from pipeline.hearing import HearingRules, hear
from pipeline.media import probe
from pipeline.messages import SliceReady, decode_audio_topic, encode, slice_ready
from pipeline.settings import settings_from
from pipeline.transcription import Request
from pipeline.values import Priority

_KEY = "0" * 16


class Lecture(msgspec.Struct, frozen=True):
    """One file: what is said in it and when, and its slices as they lie in the topic, audio as FLAC."""

    name: str
    language: str
    duration_ms: int
    sentences: tuple[Timed, ...]
    messages: tuple[bytes, ...]
    text: str = ""
    """What is said in it, where it is not known when."""

    @property
    def item(self) -> Item:
        """As ``bench.scoring`` wants it."""
        text = self.text or "\n".join(sentence.text for sentence in self.sentences)
        return Item(self.name, Path(self.name), self.language, self.duration_ms, text, True, self.sentences)


def lectures(audio: Path, sets: Sequence[str] = ("lectures",)) -> tuple[Lecture, ...]:
    """Out of a file that this module has written, else of ``sets`` of a folder like the shared data."""
    if audio.is_file():
        return msgspec.msgpack.decode(audio.read_bytes(), type=tuple[Lecture, ...])
    # Among the lectures videos only: the rest is there to test other things than speed.
    items = [item for name in sets for item in load(name, audio) if name != "lectures" or item.path.suffix == ".mp4"]
    return tuple(_sliced(item) for item in items)


def ready(some: Sequence[Lecture], count: int) -> list[SliceReady]:
    """``count`` messages: every slice of every lecture once, then again, as of other media."""
    every = [decode_audio_topic(message) for lecture in some for message in lecture.messages]
    slices = [message for message in every if isinstance(message, SliceReady)]
    return [
        msgspec.structs.replace(message, media_id=f"{message.media_id}-{at // len(slices)}")
        for at, message in enumerate(islice(cycle(slices), count))
    ]


def requests(some: Sequence[Lecture], count: int) -> list[Request]:
    """The same with their samples, each decoded once."""
    once = sum(len(lecture.messages) for lecture in some)
    return list(islice(cycle([message.to_request() for message in ready(some, once)]), count))


def _sliced(item: Item) -> Lecture:
    detector, _ = find_detector("silero", settings_from(os.environ), print)
    rules = HearingRules(item.language, None)
    with hear(item.name, item.path, probe(item.path), rules, detector, find_ffmpeg()) as heard:
        messages = tuple(
            encode(
                slice_ready(
                    audio,
                    course_id=item.name,
                    language=item.language,
                    prompts={},
                    model="bench",
                    slicing=_KEY,
                    asr=_KEY,
                    priority=Priority.NORMAL,
                    codec="flac",
                )
            )
            for audio in heard
        )
    text = "" if item.sentences else item.text
    return Lecture(item.name, item.language, item.duration_ms, item.sentences, messages, text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.clips", description="The lectures as slices, in one file.")
    parser.add_argument("--audio", type=Path, default=SHARED_DATA)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        given.out.write_bytes(msgspec.msgpack.encode(lectures(given.audio)))
    except LecturemillError as error:
        sys.exit(error.reason)


if __name__ == "__main__":
    main()
