"""The speech that engines are proven on, out of the demo lectures: ``python -m demo.make_proof_speech``.

Writes ``zh.opus``, ``en.opus`` and ``speech.json`` into ``pipeline/proof/speech``: the sound of both lectures up to
their last word, small enough to travel with the package, and where each of their sentences lies.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np

from pipeline import audio_codec
from pipeline.decoding import find_ffmpeg
from pipeline.values import SAMPLES_PER_MS, Samples

HERE = Path(__file__).parent
TARGET = HERE.parent / "pipeline" / "proof" / "speech"
LECTURES = {"zh": "pythagoras", "en": "newton"}


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    sentences = {}
    for language, name in LECTURES.items():
        said = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
        sentences[language] = [[one["start_ms"], one["end_ms"], one["text"]] for one in said]
        samples = _sound(HERE / f"{name}.mp4")[: said[-1]["end_ms"] * SAMPLES_PER_MS]
        (TARGET / f"{language}.opus").write_bytes(audio_codec.encode(samples, "opus"))
    text = json.dumps(sentences, ensure_ascii=False, indent=1)
    (TARGET / "speech.json").write_text(text + "\n", encoding="utf-8")


def _sound(path: Path) -> Samples:
    command = [find_ffmpeg(), "-nostdin", "-loglevel", "error", "-i", path, "-vn", "-ac", "1", "-ar", "16000"]
    raw = subprocess.run([*command, "-f", "f32le", "-"], check=True, capture_output=True).stdout
    return np.frombuffer(raw, np.float32)


if __name__ == "__main__":
    main()
