"""The picture of the README: ``python -m bench.engine_picture RESULT.json --out PICTURE.svg``.

One bar a system: times real time with word times, out of a file that ``bench.engine --json`` has written.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from bench.engine_systems import OURS

WIDTH, LEFT, RIGHT, TOP, BAR, STEP = 760, 190, 90, 44, 22, 34
_LABELS = {OURS: "Lecturemill"}
_LEFT_OUT = ("ours (reference)",)
_OWN, _OTHER, _INK = "#1a7f5a", "#9aa4ad", "#57606a"


def picture(found: Mapping[str, Any]) -> str:
    """An SVG of a few hundred bytes a bar; its grey is readable on light and dark pages."""
    rates = {name: one["x_real_time"] for name, one in found["systems"].items() if name not in _LEFT_OUT}
    height = TOP + STEP * len(rates) + 8
    machine = found["machine"]
    title = f"Whisper {machine['model']}, word times, × real time · {machine['card'] or machine['processor']}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
            f'font-family="sans-serif" font-size="14" fill="{_INK}">',
            f"<title>{escape(title)}</title>",
            f'<text x="8" y="24">{escape(title)} · {machine["date"]}</text>',
            *_bars(rates),
            "</svg>\n",
        ]
    )


def _bars(rates: Mapping[str, float]) -> Iterator[str]:
    longest = max(rates.values())
    for at, (name, rate) in enumerate(rates.items()):
        y, size = TOP + STEP * at, max(1.0, (WIDTH - LEFT - RIGHT) * rate / longest)
        colour = _OWN if name == OURS else _OTHER
        yield f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(_LABELS.get(name, name))}</text>'
        yield f'<rect x="{LEFT}" y="{y}" width="{size:.1f}" height="{BAR}" rx="3" fill="{colour}"/>'
        yield f'<text x="{LEFT + size + 8:.1f}" y="{y + 16}">{rate:,.0f} ×</text>'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.engine_picture", description="Bars of a bench.engine run.")
    parser.add_argument("result", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.write_text(picture(json.loads(given.result.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
