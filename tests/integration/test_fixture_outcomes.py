"""Every shared media file, and noise made here, goes down the whole line to the outcome that is stated for it."""

from __future__ import annotations

import csv
import subprocess
import wave
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.assembly import RunRequest, line_options, open_tools
from pipeline.decoding import find_ffmpeg
from pipeline.driver import LineTools, run_media
from pipeline.errors import InvalidInputError
from pipeline.identity import media_id_of
from pipeline.ledger import total_ms
from pipeline.models import default_cache
from pipeline.settings import Settings
from pipeline.values import LedgerSpan, Media, MediaResult, Outcome

pytestmark = pytest.mark.fixtures

TABLE = Path(__file__).parents[1] / "data" / "fixture_outcomes.tsv"
COVERED = (
    "derived/*",
    "en/ami_meetings/*",
    "en/common_voice/*",
    "fixtures/**/*",
    "lectures/zh_dialog3.*",
    "lectures/zh_espeak_unintelligible.*",
    "mixed/*",
    "other/**/*",
    "zh/azure_synthetic/*",
)
NOT_MEDIA = {".txt", ".srt", ".vtt", ".json", ".csv", ".rttm"}
COURSE = "fixtures"
TOLERANCE_MS = 30
"""Between two builds of ffmpeg."""
RATE_HZ = 16_000
MINUTE = 60 * RATE_HZ
Sound = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """What is expected of one file. ``says`` holds pieces of the transcript, ``reason`` a piece of the failure;
    ``too_fast`` is how many cues may be too fast to read, because the speaker is."""

    file: str
    language: str
    outcome: str
    has_words: bool
    duration_ms: int
    says: tuple[str, ...]
    reason: str
    too_fast: int


def _rows() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [_row(values) for values in csv.DictReader(file, delimiter="\t")]


def _row(values: dict[str, str]) -> Row:
    return Row(
        file=values["file"],
        language=values["language"],
        outcome=values["outcome"],
        has_words={"some": True, "none": False}[values["words"]],
        duration_ms=int(values["duration_ms"] or 0),
        says=tuple(filter(None, values["says"].split("|"))),
        reason=values["reason"],
        too_fast=int(values["too_fast"]),
    )


ROWS = _rows()


class Quiet:
    """Progress that nobody watches."""

    def begin(self, media: Media) -> None: ...

    def advance(self, done_ms: int) -> None: ...

    def say(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Line:
    """The whole line as the command opens it: one engine and one database for all files."""

    tools: LineTools

    def run(self, path: Path, language: str = "auto") -> MediaResult:
        options = line_options(RunRequest(COURSE, language))
        return run_media(path, options, self.tools, Quiet()).result


@pytest.fixture(scope="module")
def line(
    fresh_database: Callable[[], AbstractContextManager[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Line]:
    with fresh_database() as url:
        settings = Settings(tmp_path_factory.mktemp("home"), default_cache(), url, threads=2)
        with open_tools(RunRequest(COURSE), settings, say=print) as tools:
            yield Line(tools)


def text_of(result: MediaResult) -> str:
    return " ".join(" ".join(sentence.text for sentence in result.sentences).split())


def assert_adjacent(ledger: list[LedgerSpan], duration_ms: int) -> None:
    edges = [0, *(span.end_ms for span in ledger)]
    assert edges[:-1] == [span.start_ms for span in ledger]
    assert edges[-1] == duration_ms
    assert all(span.reason for span in ledger if span.outcome is not Outcome.TRANSCRIBED)


def assert_sound(result: MediaResult, too_fast: int = 0) -> None:
    """What holds for every finished media, whatever is in it."""
    assert_adjacent(list(result.ledger), result.duration_ms)
    times = [time for cue in result.cues for time in (cue.start_ms, cue.end_ms)]
    assert times == sorted(times)
    assert all(0 <= time <= result.duration_ms for time in times)
    assert all(cue.text.strip() for cue in result.cues)
    assert [violation.rule for violation in result.violations] in [["too_fast"] * n for n in range(too_fast + 1)]


def assert_wordless(result: MediaResult) -> None:
    assert (list(result.cues), list(result.sentences), result.language) == ([], [], "")
    assert total_ms(result.ledger, Outcome.TRANSCRIBED) == 0


@pytest.mark.parametrize("row", [row for row in ROWS if row.outcome == "done"], ids=lambda row: row.file)
def test_a_playable_file_is_done_with_the_words_that_are_in_it(row: Row, line: Line, shared_data: Path) -> None:
    result = line.run(shared_data / row.file, row.language)
    assert_sound(result, row.too_fast)
    assert result.duration_ms == pytest.approx(row.duration_ms, abs=TOLERANCE_MS)
    if not row.has_words:
        assert_wordless(result)
        return
    assert result.cues
    assert total_ms(result.ledger, Outcome.FILTERED) == 0, "real speech stays"
    assert [piece for piece in row.says if piece not in text_of(result)] == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.outcome == "failed"], ids=lambda row: row.file)
def test_an_unplayable_file_fails_with_one_line_that_names_it_and_says_why(
    row: Row, line: Line, shared_data: Path
) -> None:
    path = shared_data / row.file
    with pytest.raises(InvalidInputError) as caught:
        line.run(path, row.language)
    assert "\n" not in caught.value.reason
    assert path.name in caught.value.reason
    assert row.reason in caught.value.reason
    media_id = media_id_of(COURSE, path.resolve().as_uri())
    (status,) = line.tools.store.status(media_id)
    assert (status.state, status.reason) == ("failed", caught.value.reason)
    ledger = list(line.tools.store.ledger(media_id))
    assert_adjacent(ledger, status.duration_ms or 0)
    assert {span.outcome for span in ledger} <= {Outcome.FAILED}


def test_the_table_covers_exactly_the_files_that_there_are(shared_data: Path) -> None:
    files = {file for pattern in COVERED for file in shared_data.glob(pattern) if file.is_file()}
    media = {str(file.relative_to(shared_data)) for file in files if file.suffix not in NOT_MEDIA}
    assert {row.file for row in ROWS} == media
    assert len(ROWS) == len({(row.file, row.language) for row in ROWS})
    assert {row.outcome for row in ROWS} == {"done", "failed"}


def _seconds() -> Sound:
    return np.arange(MINUTE) / RATE_HZ


def _white(rng: np.random.Generator) -> Sound:
    return 0.1 * rng.standard_normal(MINUTE)


def _pink(rng: np.random.Generator) -> Sound:
    """Power falls with the frequency."""
    spectrum = np.fft.rfft(rng.standard_normal(MINUTE))
    sound = np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(len(spectrum)))), MINUTE)
    return np.asarray(0.1 * sound / sound.std())


def _tone(rng: np.random.Generator) -> Sound:
    del rng
    return np.asarray(0.3 * np.sin(2 * np.pi * 440 * _seconds()))


def _hum(rng: np.random.Generator) -> Sound:
    """Mains hum with its harmonics, as a bad cable makes it."""
    del rng
    return np.asarray(sum(0.1 / n * np.sin(2 * np.pi * 50 * n * _seconds()) for n in range(1, 12)))


def _applause(rng: np.random.Generator) -> Sound:
    """Nine thousand claps, each a burst of noise that dies in 10 ms, in waves of twelve seconds."""
    sound, clap = np.zeros(MINUTE), np.exp(-np.arange(2_000) / (0.01 * RATE_HZ))
    for start in rng.integers(0, MINUTE - len(clap), 9_000):
        sound[start : start + len(clap)] += rng.standard_normal(len(clap)) * clap
    return np.asarray(0.15 * sound / sound.std() * (np.sin(2 * np.pi * _seconds() / 12) > -0.2))


@pytest.mark.parametrize("make", [_white, _pink, _tone, _hum, _applause], ids=lambda make: make.__name__.strip("_"))
def test_a_minute_of_noise_has_no_words(
    make: Callable[[np.random.Generator], Sound], line: Line, tmp_path: Path
) -> None:
    path = tmp_path / "noise.wav"
    samples = np.clip(make(np.random.default_rng(7)), -1, 1) * 32_767
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(samples.astype("<i2").tobytes())
    result = line.run(path)
    assert_sound(result)
    assert_wordless(result)
    assert result.duration_ms == 60_000


def test_six_silent_minutes_are_all_silence(line: Line, tmp_path: Path) -> None:
    path = tmp_path / "silent.mp4"
    picture, sound = "color=black:size=160x120:rate=1", "anullsrc=r=16000:cl=mono"
    inputs = ["-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound, "-t", "360"]
    subprocess.run(
        [find_ffmpeg(), "-nostdin", "-v", "error", *inputs, "-c:v", "mpeg4", "-c:a", "aac", path],
        check=True,
        timeout=60,
    )
    result = line.run(path)
    assert_sound(result)
    assert_wordless(result)
    assert {span.outcome for span in result.ledger} == {Outcome.SILENCE}
    assert result.duration_ms == pytest.approx(360_000, abs=TOLERANCE_MS)


def test_both_languages_of_a_mixed_recording_are_written(line: Line, shared_data: Path) -> None:
    written = [sentence.text for sentence in line.run(shared_data / "mixed" / "en-us_zh-cn.flac").sentences]
    chinese = [any("\u4e00" <= character <= "\u9fff" for character in text) for text in written]
    assert chinese.count(True) == chinese.count(False) == 3
