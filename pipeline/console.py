"""What a person sees: a bar per file on a terminal, plain lines in a pipe, tables at the end."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

import msgspec
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from pipeline.values import Media

_PIPE_WIDTH = 10_000  # wide enough that nothing is cut or wrapped where a program reads it
_LINE_EVERY_S = 30.0
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def printable(text: str) -> str:
    r"""``text`` without what a terminal obeys, or cannot show: a file's name may hold any byte.

    >>> printable("caf\udce9\x1b[31m.mp4")
    'caf��[31m.mp4'
    """
    return _CONTROL.sub("\ufffd", text)


def complain(line: str) -> None:
    """One line on standard error."""
    print(printable(line.replace("\n", " ")), file=sys.stderr)


def write_out(text: str) -> None:
    """Results for programs: on standard output, UTF-8 whatever the locale is; paths byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """One JSON document, on one line; what JSON has no form for is written as text."""
    encoder = msgspec.json.Encoder(enc_hook=str, decimal_format="number")
    write_out(encoder.encode(value).decode() + "\n")


def clock(time_ms: int | None) -> str:
    """Hours, minutes and seconds as people write them.

    >>> clock(3_725_400), clock(59_900), clock(None)
    ('1:02:05', '0:59', '?')
    """
    if time_ms is None:
        return "?"
    minutes, seconds = divmod(time_ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class _Speed(ProgressColumn):
    """How many times faster than playing, and the time left."""

    def render(self, task: Task) -> Text:
        if "state" in task.fields:
            return Text("")
        elapsed_s = task.finished_time or task.elapsed or 0.0
        if not task.completed or elapsed_s < 0.5:
            return Text("")
        speed = task.completed / 1000 / elapsed_s
        if task.finished or not task.total:
            return Text(f"{speed:.1f} x real time")
        left_ms = round((task.total - task.completed) / speed)
        return Text(f"{speed:.1f} x real time, {clock(left_ms)} left")


class _Position(ProgressColumn):
    def render(self, task: Task) -> Text:
        if "state" in task.fields:
            return Text(task.fields["state"])
        total = round(task.total) if task.total else None
        return Text(f"{clock(round(task.completed))} / {clock(total)}")


class Bars:
    """Progress of a run. Everything goes to standard error, so that standard output stays for results."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self._is_live = self._console.is_terminal and not quiet
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), _Position(), _Speed())
        self._progress = Progress(*columns, console=self._console, disable=not self._is_live)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        self._progress.console.print(printable(line.replace("\n", " ")), markup=False)

    def bar(self, label: str) -> Bar:
        """The bar of one file."""
        return Bar(label, self, self._progress, self._is_live)

    def counter(self, label: str) -> Counter:
        """The bar of one media that is worked on elsewhere."""
        return Counter(label, self, self._progress, self._is_live)


class Bar:
    """One file's progress (``pipeline.driver.Progress``)."""

    def __init__(self, label: str, bars: Bars, progress: Progress, is_live: bool) -> None:
        self._label, self._bars, self._progress, self._is_live = label, bars, progress, is_live
        self._task: TaskID | None = None
        self._total_ms: int | None = None
        self._said_at = time.monotonic()

    def begin(self, media: Media) -> None:
        self._total_ms = media.duration_ms
        self._task = self._progress.add_task(self._label, total=media.duration_ms)

    def advance(self, done_ms: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=done_ms)
        if not self._is_live and time.monotonic() - self._said_at >= _LINE_EVERY_S:
            self._said_at = time.monotonic()
            self.say(f"{clock(done_ms)} of {clock(self._total_ms)}")

    def say(self, line: str) -> None:
        self._bars.say(f"{self._label}: {line}")


class Counter:
    """How far one media is that others work on: its state in words, and pieces of it that are done."""

    def __init__(self, label: str, bars: Bars, progress: Progress, is_live: bool) -> None:
        self._label, self._bars, self._progress, self._is_live = label, bars, progress, is_live
        self._task: TaskID | None = None
        self._said = ("", "")
        self._said_at = time.monotonic()

    def show(self, state: str, pieces: str, done: int, total: int | None) -> None:
        """``pieces`` says ``done`` and ``total`` (None: not known yet) in words, and may be empty."""
        words = f"{state}, {pieces}" if pieces else state
        if self._task is None:
            self._task = self._progress.add_task(self._label, total=total, state=words)
        self._progress.update(self._task, completed=done, total=total, state=words)
        if not self._is_live and self._is_news(state, words):
            self._say(state, words)

    def end(self, words: str) -> None:
        """The bar makes room for those that go on."""
        if self._task is not None:
            self._progress.update(self._task, visible=False)
        self._say(words, words)

    def _is_news(self, state: str, words: str) -> bool:
        """Another state at once, other pieces now and then."""
        is_due = time.monotonic() - self._said_at >= _LINE_EVERY_S
        return state != self._said[0] or (is_due and words != self._said[1])

    def _say(self, state: str, words: str) -> None:
        self._said, self._said_at = (state, words), time.monotonic()
        self._bars.say(f"{self._label}: {words}")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on standard output; numbers to the right. In a pipe nothing is cut off."""
    is_terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if is_terminal else _PIPE_WIDTH)
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE, pad_edge=False)
    kept = [[_cell(value) for value in row] for row in rows]
    for at, column in enumerate(columns):
        is_number = bool(kept) and all(_is_number(row[at]) for row in kept)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in kept:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.2f}" if isinstance(value, float) else printable(str(value))


def _is_number(cell: str) -> bool:
    return cell == "" or cell.replace(",", "").replace(".", "").replace(":", "").replace("%", "").strip().isdigit()
