"""``make demo``: our own lecture through the line, with the very commands that a user would type."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

DEMO = Path("demo")
OUT = Path("build/demo")
COMMAND = Path(sys.executable).with_name("lecturemill")
RUN = (
    f"lecturemill run {DEMO}/pythagoras.mp4 --course demo --language zh --glossary {DEMO}/glossary.csv "
    f"--out {OUT} --formats srt,vtt,ass,ttml,json,txt"
)
QUERY = "SELECT start_time, text FROM search('勾股定理')"


def main() -> int:
    """Run the lecture, show its subtitles and one answer in SQL; the status of the first command that fails."""
    if status := _type(RUN):
        return status
    subtitles = OUT / "pythagoras.zh.srt"
    print(f"\n$ head -20 {subtitles}")
    print("\n".join(subtitles.read_text("utf-8").splitlines()[:20]))
    if status := _type(f"lecturemill db query {shlex.quote(QUERY)}") or _type("lecturemill ledger pythagoras"):
        return status
    print("Files:")
    for path in sorted(OUT.iterdir()):
        print(f"  {path.resolve()}")
    print(f"Now your own: .venv/bin/lecturemill run LECTURE.mp4 --course ID    (all options: {COMMAND} run --help)")
    return 0


def _type(line: str) -> int:
    """Show a command as it is typed, then run it with the program of this environment."""
    print(f"\n$ {line}", flush=True)
    return subprocess.run([str(COMMAND), *shlex.split(line)[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
