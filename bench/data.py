"""The references: which files there are, what is said in them, and when.

Two roots: the demo lectures of this project and, where it lies beside the checkout, the folder of real
speech. Sets: demo, lectures, derived, aishell, librispeech, ljspeech, swc, others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pysubs2

from bench.values import Item, Timed
from pipeline.errors import UsageError

CHECKOUT = Path(__file__).resolve().parents[1]
DEMO = CHECKOUT / "demo"
SHARED_DATA = CHECKOUT.parent / "shared" / "data"
SETS = ("demo", "lectures", "derived", "aishell", "librispeech", "ljspeech", "swc", "others")

_GLOSSARIES = {
    "pythagoras": "glossary",
    "zh_math": "glossary_math",
    "zh_physics": "glossary_physics",
    "zh_biology": "glossary_biology",
}
"""Start of a lecture's name -> its glossary; other lectures have none."""
_FOLDERS = {
    "aishell": ("zh/aishell1/", False),
    "librispeech": ("en/librispeech/", False),
    "ljspeech": ("en/ljspeech/", True),
    "swc": ("en/swc_lecture/", True),
}
"""Set -> where its files lie, and whether its references have punctuation."""
_MEDIA = (".mp4", ".opus", ".mp3", ".flac", ".wav")
_DEMO_LANGUAGES = {"pythagoras": "zh", "newton": "en"}


def load(name: str, shared_data: Path = SHARED_DATA) -> tuple[Item, ...]:
    """The files of a set, in a fixed order; UsageError where there is no such set or no such folder."""
    if name not in SETS:
        raise UsageError(f"no set {name!r}; there are {', '.join(SETS)}")
    if name != "demo" and not shared_data.is_dir():
        raise UsageError(f"set {name!r} needs the folder {shared_data}; without it, use --sets demo")
    if name in ("demo", "lectures"):
        return tuple(_lectures(DEMO if name == "demo" else shared_data / "lectures"))
    if name == "derived":
        return tuple(_derived(shared_data / "derived"))
    if name == "others":
        named = tuple(folder for folder, _ in _FOLDERS.values())
        return tuple(item for item in _utterances(shared_data, "", False) if not _lies_in(item, shared_data, named))
    return tuple(_utterances(shared_data, *_FOLDERS[name]))


def _lies_in(item: Item, shared_data: Path, folders: tuple[str, ...]) -> bool:
    return item.path.relative_to(shared_data).as_posix().startswith(folders)


def duration_ms(path: Path) -> int:
    """The container's duration; UsageError where it declares none (then no speed can be told)."""
    with av.open(str(path)) as container:
        if container.duration is None:
            raise UsageError(f"{path}: the container declares no duration")
        return int(container.duration * 1000 // av.time_base)


def _lectures(folder: Path) -> Iterator[Item]:
    for reference in sorted(folder.glob("*.json")):
        path = _media(reference)
        rows = json.loads(reference.read_text("utf-8"))
        sentences = tuple(Timed(row["text"], row["start_ms"], row["end_ms"]) for row in rows)
        language = _DEMO_LANGUAGES.get(reference.stem, reference.stem[:2])
        yield item_of(path, language, sentences, glossary=_glossary(path))


def _derived(folder: Path) -> Iterator[Item]:
    for reference in sorted(folder.glob("*.srt")):
        subtitles = pysubs2.load(str(reference), encoding="utf-8")
        sentences = tuple(Timed(line.plaintext, line.start, line.end) for line in subtitles)
        language = reference.stem[:2]
        # The Mandarin reference is made of AISHELL's, which have no marks.
        yield item_of(_media(reference), language, sentences, is_punctuated=language == "en")


def _utterances(shared_data: Path, folder: str, is_punctuated: bool) -> Iterator[Item]:
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (shared_data / "refs.jsonl").read_text("utf-8").splitlines()
    ]
    for row in sorted(rows, key=lambda row: str(row["path"])):
        if row["path"].startswith(folder):
            path = shared_data / row["path"]
            yield Item(path.stem, path, row["language"], duration_ms(path), row["text"], is_punctuated)


def item_of(
    path: Path,
    language: str,
    sentences: tuple[Timed, ...],
    *,
    is_punctuated: bool = True,
    glossary: Path | None = None,
) -> Item:
    text = "\n".join(sentence.text for sentence in sentences)
    return Item(path.stem, path, language, duration_ms(path), text, is_punctuated, sentences, glossary)


def _media(reference: Path) -> Path:
    for suffix in _MEDIA:
        if (path := reference.with_suffix(suffix)).is_file():
            return path
    raise UsageError(f"{reference}: no media file of that name beside it ({', '.join(_MEDIA)})")


def _glossary(path: Path) -> Path | None:
    for start, name in _GLOSSARIES.items():
        if path.stem.startswith(start):
            return path.parent / f"{name}.csv"
    return None
