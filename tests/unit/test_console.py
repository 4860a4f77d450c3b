"""What a person sees: nothing that a terminal would obey, nothing cut off in a pipe."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.console import Bars, clock, complain, print_json, print_table, printable, write_out
from pipeline.values import Media

MEDIA = Media("m", "c", "file:///m", "m", "", 60_000, None)


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_printable_holds_no_control_character_and_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert shown.encode().decode() == shown
    assert len(shown) == len(text)
    assert all(char.isprintable() or char in "\t\n" or ord(char) > 0x9F for char in shown)


@given(st.integers(0, 10**10))
def test_a_clock_counts_whole_seconds(time_ms: int) -> None:
    seconds = 0
    for part in clock(time_ms).split(":"):
        seconds = seconds * 60 + int(part)
    assert seconds == time_ms // 1000


def test_a_table_in_a_pipe_is_plain_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    long = "很长的讲座" * 100
    print_table("", ("title", "cues"), [(long, 12), ("[bold]x[/bold]\x1b[31m", 3)])
    output = capsys.readouterr().out
    assert long in output
    assert "[bold]x[/bold]�[31m" in output
    assert "\x1b" not in output


def test_numbers_stand_to_the_right_and_nothing_stands_for_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("name", "count", "usd"), [("a", 12_345, 0.5), ("b", 7, None)])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line.split() for line in lines[2:]] == [["a", "12345", "0.50"], ["b", "7"]]
    assert lines[2].index("12345") + 4 == lines[3].index("7")


def test_a_table_without_rows_still_shows_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("title", "cues"), [])
    assert "title" in capsys.readouterr().out


@dataclass(frozen=True, slots=True)
class _Row:
    at: datetime
    price: Decimal
    odd: object


def test_json_is_one_line_with_numbers_as_numbers_and_the_unknown_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json([_Row(datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.50"), Path("讲座/a\nb"))])
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert json.loads(output) == [{"at": "2026-01-02T00:00:00Z", "price": 1.5, "odd": "讲座/a\nb"}]


def test_results_are_written_byte_for_byte(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_out("字\x1b caf\udce9\n")
    assert capfdbinary.readouterr().out == "字\x1b caf".encode() + b"\xe9\n"


def test_a_complaint_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    complain("a\nb\x1b[2J\udcff")
    assert capsys.readouterr() == ("", "a b�[2J�\n")


def test_progress_in_a_pipe_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("pipeline.console.time.monotonic", lambda: now[0])
    with Bars(quiet=False) as bars:
        bar = bars.bar("[red]a.mp4")
        bar.begin(MEDIA)
        for now[0], done_ms in ((10.0, 10_000), (31.0, 20_000), (40.0, 30_000), (70.0, 50_000)):
            bar.advance(done_ms)
    assert capsys.readouterr() == ("", "[red]a.mp4: 0:20 of 1:00\n[red]a.mp4: 0:50 of 1:00\n")


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars(quiet=True) as bars:
        bar = bars.bar("a.mp4")
        bar.begin(MEDIA)
        bar.say("the only audio track")
        bars.say("failed")
    assert capsys.readouterr() == ("", "")
