"""Make the two demo lectures: speak our own text, draw a few slides, write video, reference and all.

Usage::

    python demo/make_lectures.py VOICE_DIR [--out demo]

``VOICE_DIR`` holds ``kokoro.onnx`` (the int8 Kokoro-82M graph), ``vocab.json`` and ``voices/*.bin``;
README.md beside this file says from which packages they come. The script needs more than the project does:
misaki[zh], phonemizer-fork, espeakng-loader, onnxruntime, numpy, pillow and imageio-ffmpeg.

The sound is not byte-reproducible across versions of the runtime, so the results are committed and the script
is run again only to change a lecture. The reference times are exact by construction: each sentence is spoken
alone and laid on the clock at a known sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import slides
from lectures import NEWTON, PYTHAGORAS, Lecture, Line

Wave = npt.NDArray[np.float32]
"""Mono audio, shape ``(n,)``, float32 in [-1, 1], at ``RATE_HZ``."""

RATE_HZ = 24_000
"""What Kokoro speaks at; kept in the file, so that the line has something to resample."""
MODEL_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
MAX_TOKENS = 508
"""Kokoro's context is 512 tokens, two of them padding; a voice has a style for each length below that."""
STYLE_WIDTH = 256
LEAD_IN_MS = 800
AUDIBLE = 0.01
"""Samples below this count as silence where a sentence is trimmed: -40 dBFS."""
FRAMES_PER_S = 5


@dataclass(frozen=True, slots=True)
class Spoken:
    """A line with its place on the clock; ``start_ms`` and ``end_ms`` are where its sound begins and ends."""

    line: Line
    start_ms: int
    end_ms: int


# --- speech -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Voice:
    """Kokoro on the CPU, opened at first use; a graph whose sha256 is not the pinned one is refused."""

    folder: Path

    @cached_property
    def _graph(self) -> Any:
        import onnxruntime

        path = self.folder / "kokoro.onnx"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != MODEL_SHA256:
            raise SystemExit(f"{path}: sha256 is {digest}, not {MODEL_SHA256}; join the four parts again")
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        table: dict[str, int] = json.loads((self.folder / "vocab.json").read_text("utf-8"))["vocab"]
        return table

    @cached_property
    def _mandarin(self) -> Any:
        from misaki import zh

        return zh.ZHG2P()

    @cached_property
    def _english(self) -> Any:
        import espeakng_loader
        from phonemizer.backend import EspeakBackend
        from phonemizer.backend.espeak.wrapper import EspeakWrapper

        EspeakWrapper.set_library(espeakng_loader.get_library_path())
        EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
        return EspeakBackend("en-us", preserve_punctuation=True, with_stress=True)

    def phonemes(self, text: str, language: str) -> str:
        """``text`` as Kokoro's phonetic signs."""
        if language == "zh":
            found = self._mandarin(text)
            return str(found[0] if isinstance(found, tuple) else found)
        # espeak writes the American r with the sign that Kokoro keeps for a trill.
        return str(self._english.phonemize([text])[0]).strip().replace("r", "ɹ")

    def say(self, text: str, language: str, voice: str) -> Wave:
        """``text`` spoken, trimmed to where it is audible; ValueError where it is too long for one go."""
        tokens = [self._vocabulary[c] for c in self.phonemes(text, language) if c in self._vocabulary]
        if len(tokens) > MAX_TOKENS:
            raise ValueError(f"{len(tokens)} tokens, at most {MAX_TOKENS}: split the sentence {text!r}")
        styles = np.fromfile(self.folder / "voices" / f"{voice}.bin", np.float32).reshape(-1, STYLE_WIDTH)
        feed = {
            "tokens": np.array([[0, *tokens, 0]]),
            "style": styles[len(tokens)][None],
            "speed": np.ones(1, np.float32),
        }
        wave = self._graph.run(None, feed)[0].ravel()
        loud = np.flatnonzero(np.abs(wave) > AUDIBLE)
        return np.asarray(wave[loud[0] : loud[-1] + 1], np.float32)


def speak(lecture: Lecture, voice: Voice) -> tuple[Wave, list[Spoken]]:
    """The whole lecture at a peak of 0.7, and where each line lies in it."""
    pieces = [_silence(LEAD_IN_MS)]
    spoken: list[Spoken] = []
    for line in lecture.lines:
        wave = voice.say(line.text, lecture.language, lecture.voice)
        start = sum(map(len, pieces))
        spoken.append(Spoken(line, _ms(start), _ms(start + len(wave))))
        pieces += [wave, _silence(line.pause_ms)]
    whole = np.concatenate(pieces)
    return whole * np.float32(0.7 / np.abs(whole).max()), spoken


def _silence(duration_ms: int) -> Wave:
    return np.zeros(duration_ms * RATE_HZ // 1000, np.float32)


def _ms(samples: int) -> int:
    return round(samples * 1000 / RATE_HZ)


# --- files --------------------------------------------------------------------------------------------------


def frames(lecture: Lecture, spoken: Sequence[Spoken], duration_ms: int) -> Iterator[bytes]:
    """Raw RGB frames of the whole lecture: each slide from the start of its line to the start of the next."""
    drawn = [slides.draw(slide) for slide in lecture.slides]
    for frame in range(-(-duration_ms * FRAMES_PER_S // 1000)):
        now_ms = frame * 1000 // FRAMES_PER_S
        begun = [s.line.slide for s in spoken if s.start_ms <= now_ms]
        yield drawn[begun[-1] if begun else 0]


def write_video(lecture: Lecture, wave: Wave, spoken: Sequence[Spoken], out: Path) -> None:
    """H.264 and AAC in one MP4 that starts at 0; ffmpeg's error output is shown where it fails."""
    import imageio_ffmpeg

    sound = out.with_suffix(".pcm")
    sound.write_bytes((wave * 32767).astype("<i2").tobytes())
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y"]
    command += [
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-s",
        f"{slides.SIZE[0]}x{slides.SIZE[1]}",
        "-r",
        str(FRAMES_PER_S),
        "-i",
        "-",
    ]
    command += ["-f", "s16le", "-ar", str(RATE_HZ), "-ac", "1", "-i", str(sound)]
    command += [
        "-c:v",
        "libx264",
        "-preset",
        "veryslow",
        "-tune",
        "stillimage",
        "-crf",
        "30",
        "-pix_fmt",
        "yuv420p",
    ]
    command += [
        "-c:a",
        "aac",
        "-b:a",
        "56k",
        "-metadata",
        f"title={lecture.title}",
        "-movflags",
        "+faststart",
    ]
    command += ["-metadata:s:a:0", f"language={ {'zh': 'zho', 'en': 'eng'}[lecture.language] }", str(out)]
    picture = b"".join(frames(lecture, spoken, _ms(len(wave))))
    try:
        subprocess.run(command, input=picture, check=True, timeout=300)
    finally:
        sound.unlink()


def write_reference(spoken: Sequence[Spoken], out: Path) -> None:
    """A JSON list with the start, the end and the text of each sentence, on the media clock."""
    rows = [{"start_ms": s.start_ms, "end_ms": s.end_ms, "text": s.line.text} for s in spoken]
    out.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the demo lectures.")
    parser.add_argument("voice_dir", type=Path, help="folder with kokoro.onnx, vocab.json and voices/")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    voice = Voice(arguments.voice_dir)
    for lecture in (PYTHAGORAS, NEWTON):
        wave, spoken = speak(lecture, voice)
        write_video(lecture, wave, spoken, arguments.out / f"{lecture.name}.mp4")
        write_reference(spoken, arguments.out / f"{lecture.name}.json")
        print(f"{lecture.name}: {_ms(len(wave)) / 1000:.1f} s, {len(spoken)} sentences")


if __name__ == "__main__":
    main()
