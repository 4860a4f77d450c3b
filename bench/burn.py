"""Our subtitles as a viewer sees them: ``python -m bench.burn NAME... [--out FOLDER]``.

Makes subtitles of a video by the line's own steps (its transcripts are kept, see ``bench.transcripts``), burns them in
with ffmpeg's libass and writes one picture for each of the cues that are hardest to read, by their times. Needs an
ffmpeg with libass and a font for the language: Noto Sans CJK (Debian: fonts-noto-cjk; SIL Open Font License).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.data import CHECKOUT, load
from bench.postprocessing import run
from bench.transcripts import transcripts_of
from bench.values import Item
from pipeline.decoding import find_ffmpeg
from pipeline.errors import LecturemillError, RetriableError, UsageError
from pipeline.subtitles import Document, render
from pipeline.values import Cue, MediaResult

FONT = "Noto Sans CJK SC"
WIDTH_PX = 640
STYLE = f"FontName={FONT},FontSize=17,BorderStyle=3,Outline=2,OutlineColour=&H50000000,Shadow=0,MarginV=10"
"""White on a dark box, since slides are white."""


def hardest(cues: Sequence[Cue], count: int) -> list[Cue]:
    """The cues with the most to read a second, one from each stretch of the media, so that all of it is seen."""
    size = max(1, len(cues) // count)
    stretches = [cues[at : at + size] for at in range(0, len(cues), size)][:count]
    return [max(stretch, key=lambda cue: len(cue.text) / max(1, cue.end_ms - cue.start_ms)) for stretch in stretches]


def burn(video: Path, srt: Path, at_ms: int, picture: Path, ffmpeg: str) -> None:
    """One frame with its subtitle. The time stamps are kept (``-copyts``): the filter shows the cue of that time."""
    command = [ffmpeg, "-nostdin", "-v", "error", "-y", "-ss", f"{at_ms / 1000:.3f}", "-copyts", "-i", str(video)]
    scaled = f"scale={WIDTH_PX}:-2,subtitles={srt.name}:force_style='{STYLE}'"
    command += ["-vf", scaled, "-frames:v", "1", str(picture.resolve())]
    done = subprocess.run(command, cwd=srt.parent, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RetriableError(f"ffmpeg: {done.stderr.strip().splitlines()[-1]}; is it built with libass?")


def pictures(item: Item, out: Path, count: int) -> list[Path]:
    """Pictures of one video; their names say the time of the cue."""
    ffmpeg = find_ffmpeg()
    result: MediaResult = run(transcripts_of(item, with_glossary=item.glossary is not None))
    document = Document("", item.name, item.language, result.duration_ms, result.cues, result.sentences)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    with tempfile.TemporaryDirectory() as folder:
        srt = Path(folder) / "cues.srt"
        srt.write_text(render("srt", media=document), "utf-8")
        for cue in hardest(result.cues, count):
            made.append(out / f"{item.name}-{cue.start_ms // 1000:04d}.png")
            burn(item.path, srt, (cue.start_ms + cue.end_ms) // 2, made[-1], ffmpeg)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 written; 1 could not be; 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m bench.burn", description=__doc__)
    parser.add_argument("names", nargs="+", help="names of lectures of the demo or the shared folder")
    parser.add_argument("--count", type=int, default=5, help="pictures of each (default 5)")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "bench" / ".pictures")
    given = parser.parse_args(arguments)
    try:
        items = {item.name: item for name in ("demo", "lectures", "derived") for item in load(name)}
        if unknown := [name for name in given.names if name not in items]:
            raise UsageError(f"no lecture {unknown[0]!r}; there are {', '.join(items)}")
        for name in given.names:
            for path in pictures(items[name], given.out, given.count):
                print(path)
    except LecturemillError as error:
        print(error.reason, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
