"""``lecturemill run``: files and folders through the line, one after the other, and what is said at the end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pipeline.assembly import with_title
from pipeline.console import Bars, clock, complain, print_json, print_table, printable
from pipeline.driver import Finished, LineOptions, LineTools, run_media
from pipeline.errors import InvalidInputError, UsageError
from pipeline.ledger import total_ms
from pipeline.media import shown
from pipeline.subtitles import FORMATS, export_path, render, write_whole
from pipeline.subtitles import check_formats as check_formats
from pipeline.subtitles import document_of as document_of
from pipeline.values import Media, MediaResult, Outcome

_SUFFIXES = """
3gp aac amr asf avi caf flac flv m2ts m4a m4b m4v mka mkv mov mp3 mp4 mpeg mpg mts mxf oga ogg ogv opus ps rm rmvb ts
vob wav webm wma wmv
"""
MEDIA_SUFFIXES = frozenset(f".{name}" for name in _SUFFIXES.split())
"""What is taken from a folder. A file that is named on the command line is always tried."""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one file; a line of the summary and of ``--json``."""

    file: str
    media_id: str
    state: str
    """``done``; ``partial``, where slices failed; or ``failed``; the last two with their ``reason``."""
    reason: str
    was_done: bool
    language: str
    duration_ms: int
    speech_ms: int
    filtered_ms: int
    failed_ms: int
    cues: int
    violations: int
    replacements: int
    x_real_time: float
    usd: float
    warnings: tuple[str, ...]
    files: tuple[str, ...]


def collect(inputs: Sequence[Path]) -> tuple[Path, ...]:
    """The files to process, each once, in order; folders are searched. Raises UsageError where nothing is found."""
    found: dict[Path, Path] = {}
    for path in inputs:
        for file in _files_of(path):
            found.setdefault(file.resolve(), file)
    if not found:
        raise UsageError(f"no media files in {', '.join(map(str, inputs))}; name a file, or a folder that holds some")
    return tuple(found.values())


def check_targets(files: Sequence[Path], out: Path | None) -> None:
    """Raises UsageError, before any work is done, for a folder in which no subtitles can be written."""
    for folder in [out] if out else dict.fromkeys(file.parent for file in files if file.exists()):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be made ({error.strerror}); choose another --out") from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(f"{folder}: cannot be written; choose another folder by --out")


def run_all(
    files: Sequence[Path],
    options: LineOptions,
    tools: LineTools,
    bars: Bars,
    out: Path | None,
    formats: Sequence[str],
) -> Iterator[Report]:
    """Process the files in order; one that fails is reported and the others go on."""
    targets = Counter(_target(file, out) for file in files)
    for file in files:
        bar = bars.bar(printable(file.name.replace("\n", " ")))
        try:
            finished = run_media(file, with_title(options, file.stem), tools, bar)
        except InvalidInputError as error:
            bars.say(f"failed: {error.reason}")
            yield _failed(file, error.reason)
            continue
        for warning in finished.result.warnings:
            bar.say(f"warning: {warning}")
        if finished.failed:
            bar.say(f"partial: {_why_partial(file, finished)}")
        stem = file.stem if targets[_target(file, out)] == 1 else f"{file.stem}-{finished.media.media_id[:8]}"
        written = export_all(finished.media, finished.result, out or file.parent, stem, formats)
        yield _done(file, finished, written)


def _target(file: Path, out: Path | None) -> Path:
    """Where the subtitles of ``file`` go, but for language and format: two media must not share it."""
    return export_path(out or file.parent, file.stem, "", FORMATS[0])


def export_all(media: Media, result: MediaResult, out: Path, stem: str, formats: Sequence[str]) -> tuple[Path, ...]:
    """Write the subtitle files, each whole or not at all; returns their paths."""
    document = document_of(media, result)
    paths = []
    for name in formats:
        path = export_path(out, stem, document.language, name)
        write_whole(path, render(name, media=document))
        paths.append(path)
    return tuple(paths)


def print_reports(reports: Sequence[Report], *, as_json: bool, quiet: bool) -> None:
    """The end of a run; nothing where no file was reached."""
    if as_json and reports:
        print_json(reports)
    elif reports and not quiet:
        print_summary(reports)
    if quiet or as_json:
        for report in reports:
            if report.state != "done":
                complain(f"{report.state}: {report.reason}")


def print_summary(reports: Sequence[Report]) -> None:
    """The table at the end of a run."""
    columns = ("file", "state", "duration", "speech", "x real time", "cues", "violations", "filtered", "failed", "USD")
    print_table("", columns, [_row(report) for report in reports])


def _files_of(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path, onerror=_refuse):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if looks_like_media(name))


def looks_like_media(name: str) -> bool:
    """Hidden files are not: macOS leaves a ``._lecture.mp4`` beside every lecture that it copies."""
    return Path(name).suffix.lower() in MEDIA_SUFFIXES and not name.startswith(".")


def _refuse(error: OSError) -> NoReturn:
    raise UsageError(f"{error.filename}: cannot be searched ({error.strerror})") from error


def _row(report: Report) -> tuple[object, ...]:
    state = f"{report.state} before" if report.was_done else report.state
    if report.state == "failed":
        return (Path(report.file).name, state, *[""] * 8)
    share = f"{100 * report.speech_ms / report.duration_ms:.0f} %" if report.duration_ms else ""
    return (
        Path(report.file).name,
        state,
        clock(report.duration_ms),
        share,
        f"{report.x_real_time:.1f}",
        report.cues,
        report.violations,
        clock(report.filtered_ms),
        clock(report.failed_ms),
        f"{report.usd:.5f}",
    )


def _failed(file: Path, reason: str) -> Report:
    return Report(shown(file), "", "failed", reason, False, "", 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, (), ())


def _why_partial(file: Path, finished: Finished) -> str:
    slices = "1 slice" if len(finished.failed) == 1 else f"{len(finished.failed)} slices"
    why = ", ".join(dict.fromkeys(finished.failed))
    return f"{shown(file)}: {slices} failed ({why}); the same command tries them again"


def _done(file: Path, finished: Finished, written: Sequence[Path]) -> Report:
    result = finished.result
    return Report(
        file=shown(file),
        media_id=finished.media.media_id,
        state="partial" if finished.failed else "done",
        reason=_why_partial(file, finished) if finished.failed else "",
        was_done=finished.was_done,
        language=result.language,
        duration_ms=result.duration_ms,
        speech_ms=result.speech_ms,
        filtered_ms=total_ms(result.ledger, Outcome.FILTERED),
        failed_ms=total_ms(result.ledger, Outcome.FAILED),
        cues=len(result.cues),
        violations=len(result.violations),
        replacements=len(result.replacements),
        x_real_time=result.duration_ms / max(1, result.cost.wall_ms),
        usd=result.cost.usd,
        warnings=tuple(result.warnings),
        files=tuple(shown(path) for path in written),
    )
