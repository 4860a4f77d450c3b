"""Every media file among the shared fixtures comes out as ``tests/data/fixture_media.tsv`` says."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.decoding import decode, find_ffmpeg
from pipeline.errors import InvalidInputError
from pipeline.media import choose_track, probe

TABLE = Path(__file__).parents[1] / "data" / "fixture_media.tsv"
FOLDERS = ("derived", "fixtures", "mixed", "other")
NOT_MEDIA = {".txt", ".srt", ".json", ".csv", ".rttm"}
TOLERANCE_MS = 30
INAUDIBLE = 0.001


@dataclass(frozen=True, slots=True)
class Row:
    """What is expected of one file; empty numbers are None."""

    path: str
    outcome: str
    duration_ms: int | None
    decoded_ms: int | None


def _rows() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                row["path"],
                row["outcome"],
                int(row["duration_ms"]) if row["duration_ms"] else None,
                int(row["decoded_ms"]) if row["decoded_ms"] else None,
            )
            for row in csv.DictReader(file, delimiter="\t")
        ]


def _seen(path: Path) -> tuple[str, int | None, int | None]:
    """The outcome in words, the duration and what was decoded."""
    info = probe(path)
    track = choose_track(info, None, None).track
    if track is None:
        return "no-audio", info.duration_ms, None
    loudest, length = 0.0, 0
    with decode(path, info, track, ffmpeg=find_ffmpeg()) as decoding:
        for block in decoding:
            assert block.start_ms * 16 == length, "blocks are contiguous from 0"
            loudest = max(loudest, float(abs(block.samples).max()))
            length += len(block.samples)
    report = decoding.report
    assert abs(length / 16 - report.decoded_ms - report.padded_ms) <= 1
    assert all(span.end_ms <= report.duration_ms for span in report.missing)
    outcome = "partial" if report.missing else "silent" if loudest < INAUDIBLE else "ok"
    return outcome, report.duration_ms, report.decoded_ms


@pytest.mark.fixtures
@pytest.mark.parametrize("row", _rows(), ids=lambda row: row.path)
def test_a_shared_file_comes_out_as_the_table_says(row: Row, shared_data: Path) -> None:
    path = shared_data / row.path
    if row.outcome.startswith("failed:"):
        with pytest.raises(InvalidInputError, match=row.outcome.removeprefix("failed:")) as caught:
            _seen(path)
        assert "\n" not in caught.value.reason
        assert path.name in caught.value.reason
        return
    outcome, duration_ms, decoded_ms = _seen(path)
    assert outcome == row.outcome
    assert duration_ms == pytest.approx(row.duration_ms, abs=TOLERANCE_MS)
    assert decoded_ms == (None if row.decoded_ms is None else pytest.approx(row.decoded_ms, abs=TOLERANCE_MS))


@pytest.mark.fixtures
def test_the_table_names_every_media_file_that_there_is(shared_data: Path) -> None:
    files = [file for folder in FOLDERS for file in (shared_data / folder).rglob("*") if file.is_file()]
    media = {str(file.relative_to(shared_data)) for file in files if file.suffix not in NOT_MEDIA}
    assert {row.path for row in _rows()} == media
