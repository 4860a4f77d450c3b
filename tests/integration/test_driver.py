"""The driver: what is done once is not done again, what fails is recorded, and a stop is felt at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pipeline.decoding import find_ffmpeg
from pipeline.diarization import TEACHER, Voice
from pipeline.driver import Finished, LineOptions, LineTools, Listener, run_media
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.hearing import HearingRules
from pipeline.judging import JudgeRules
from pipeline.postprocess import Glossary, PostprocessOptions, Term
from pipeline.slicing import SlicingRules
from pipeline.store import Store
from pipeline.subtitle_profiles import BUILT_IN, NETFLIX
from pipeline.transcription import LADDER, Decoding, Failed, Hypothesis, Request, TranscriptionOptions
from pipeline.values import Media, MediaResult, Outcome, SliceAudio
from tests.integration.speaking import LoudnessDetector, SpeakingEngine, write_sound

OPTIONS = LineOptions(
    course_id="geometry",
    hearing=HearingRules(None, None),
    glossary=Glossary.empty(),
    prompts={},
    transcription=TranscriptionOptions(LADDER, JudgeRules()),
    postprocess=PostprocessOptions(),
    batch_slices=2,
)


@dataclass
class Told:
    """Progress that remembers what it was told."""

    media: Media | None = None
    done_ms: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def begin(self, media: Media) -> None:
        self.media = media

    def advance(self, done_ms: int) -> None:
        self.done_ms.append(done_ms)

    def say(self, line: str) -> None:
        self.lines.append(line)


def no_engine() -> SpeakingEngine:
    raise AssertionError("the engine was loaded although everything was done")


@dataclass(frozen=True)
class Line:
    """The driver over one database."""

    store: Store

    def run(
        self,
        path: Path,
        engine: SpeakingEngine | None,
        options: LineOptions = OPTIONS,
        progress: Told | None = None,
        listener: Callable[[], Listener] | None = None,
    ) -> Finished:
        """``None`` for the engine stands for one that must not be asked for."""
        tools = LineTools(
            engine=no_engine if engine is None else lambda: engine,
            engine_fingerprint=SpeakingEngine.fingerprint,
            detector=LoudnessDetector,
            detector_fingerprint=LoudnessDetector.fingerprint,
            store=self.store,
            ffmpeg=find_ffmpeg(),
            usd_per_hour=0.36,
            listener=listener,
            listener_fingerprint="listener",
        )
        return run_media(path, options, tools, progress or Told())


@pytest.fixture
def line(store: Store) -> Line:
    return Line(store)


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes: five slices, so three batches of two."""
    return write_sound(tmp_path_factory.mktemp("media") / "lecture.wav", *[(9.0, 1.0), (14.0, 1.2)] * 5)


def uncosted(result: MediaResult) -> MediaResult:
    return replace(result, cost=replace(result.cost, wall_ms=0, engine_ms=0, usd=0.0))


def fail_at(number: int, call: int) -> None:
    if call == number:
        raise RetriableError("the engine failed")


def test_a_media_goes_down_the_line_in_batches_of_consecutive_slices(line: Line, lecture: Path) -> None:
    engine, told = SpeakingEngine(), Told()
    finished = line.run(lecture, engine, progress=told)
    assert engine.batches == [[0, 1], [2, 3], [4]]
    assert not finished.was_done
    assert line.store.result(finished.media.media_id) == finished.result
    assert told.media == finished.media
    assert told.done_ms == sorted(told.done_ms)
    assert told.done_ms[-1] == finished.result.duration_ms == 126_000
    assert told.lines == ["the only audio track"]


def test_every_second_is_accounted_for_and_priced(line: Line, lecture: Path) -> None:
    result = line.run(lecture, SpeakingEngine()).result
    assert sum(span.end_ms - span.start_ms for span in result.ledger) == result.duration_ms
    assert {span.outcome for span in result.ledger} == {Outcome.TRANSCRIBED, Outcome.SILENCE}
    assert result.speech_ms == pytest.approx(115_000, abs=1_000)
    assert result.cost.usd == pytest.approx(result.cost.wall_ms / 3_600_000 * 0.36)
    assert result.cost.wall_ms >= result.cost.engine_ms


def test_a_second_run_finds_everything_done_and_loads_no_engine(line: Line, lecture: Path) -> None:
    first = line.run(lecture, SpeakingEngine())
    again = line.run(lecture, None)
    assert again.was_done
    assert again.result == first.result


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_run_that_failed_in_any_batch_goes_on_there_and_ends_alike(line: Line, lecture: Path, call: int) -> None:
    with pytest.raises(RetriableError):
        line.run(lecture, SpeakingEngine(partial(fail_at, call)))
    (status,) = line.store.status()
    assert (status.state, status.slices_done) == ("running", 2 * (call - 1))
    engine = SpeakingEngine()
    resumed = line.run(lecture, engine)
    assert engine.batches == [[0, 1], [2, 3], [4]][call - 1 :]
    other = replace(OPTIONS, course_id="undisturbed")
    undisturbed = line.run(lecture, SpeakingEngine(), other).result
    assert uncosted(resumed.result) == uncosted(replace(undisturbed, media_id=resumed.media.media_id))


def test_a_new_profile_needs_no_engine_and_changes_the_cues(line: Line, lecture: Path) -> None:
    netflix = line.run(lecture, SpeakingEngine()).result
    narrow = replace(NETFLIX, wide=replace(NETFLIX.wide, max_units_per_line=6), narrow=BUILT_IN["bbc"].narrow)
    school = line.run(lecture, None, replace(OPTIONS, profile=narrow))
    assert not school.was_done
    assert (school.result.sentences, school.result.ledger) == (netflix.sentences, netflix.ledger)
    assert school.result.cues != netflix.cues


class Alternating:
    """A listener to whom each slice sounds like another person than the one before it."""

    def hear(self, audio: SliceAudio) -> tuple[Voice, ...]:
        span = audio.slice.span
        return (Voice(span, span.duration_ms, np.eye(2, 192, dtype=np.float32)[audio.slice.index % 2]),)


def test_speakers_need_no_engine_once_the_text_is_there(line: Line, lecture: Path) -> None:
    plain = line.run(lecture, SpeakingEngine()).result
    told = line.run(lecture, None, replace(OPTIONS, speakers=True), listener=Alternating).result
    assert {cue.speaker for cue in plain.cues} == {""}
    assert {cue.speaker for cue in told.cues} == {TEACHER, "speaker 2"}
    assert line.store.result(told.media_id).sentences == told.sentences
    assert not line.run(lecture, None).was_done


def test_a_new_glossary_needs_no_engine(line: Line, lecture: Path) -> None:
    before = line.run(lecture, SpeakingEngine()).result
    written = "".join(filter(str.isalnum, before.sentences[0].text))[:4]
    glossary = Glossary((Term("勾股定理", (written,), "zh", ""),))
    after = line.run(lecture, None, replace(OPTIONS, glossary=glossary))
    assert not after.was_done
    assert after.result.replacements[0].before == written
    assert after.result.sentences[0].text.startswith("勾股定理")


@pytest.mark.parametrize(
    "changed",
    [
        replace(OPTIONS, hearing=HearingRules("zh", None)),
        replace(OPTIONS, batch_slices=3),
        replace(OPTIONS, hearing=HearingRules(None, None, slicing=SlicingRules(pad_ms=100))),
        replace(OPTIONS, prompts={"zh": "你好。"}),
    ],
    ids=["language", "batch", "slicing", "prompt"],
)
def test_what_changes_the_text_asks_the_engine_again(line: Line, lecture: Path, changed: LineOptions) -> None:
    line.run(lecture, SpeakingEngine())
    engine = SpeakingEngine()
    assert not line.run(lecture, engine, changed).was_done
    assert [index for batch in engine.batches for index in batch] == [0, 1, 2, 3, 4]


def test_a_file_with_new_content_is_done_anew_under_its_old_id(line: Line, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", (5.0, 1.0))
    first = line.run(path, SpeakingEngine())
    write_sound(path, (3.0, 1.0))
    second = line.run(path, SpeakingEngine())
    assert second.media.media_id == first.media.media_id
    assert not second.was_done
    assert line.store.result(first.media.media_id).duration_ms == 4_000


def test_a_file_that_is_no_media_is_recorded_as_failed_with_its_reason(line: Line, tmp_path: Path) -> None:
    path = tmp_path / "notes.mp4"
    path.write_text("not a video")
    with pytest.raises(InvalidInputError, match=r"notes\.mp4: not a media file"):
        line.run(path, None)
    (status,) = line.store.status()
    assert (status.state, status.title) == ("failed", "notes")
    assert "not a media file" in status.reason


def test_a_file_that_fails_later_is_failed_for_all_of_its_declared_time(line: Line, lecture: Path) -> None:
    with pytest.raises(InvalidInputError, match="no audio track 7"):
        line.run(lecture, None, replace(OPTIONS, hearing=HearingRules(None, 7)))
    (status,) = line.store.status()
    assert (status.state, status.failed_ms) == ("failed", 126_000)


def test_a_failed_media_is_tried_again_and_can_succeed(line: Line, lecture: Path) -> None:
    with pytest.raises(InvalidInputError):
        line.run(lecture, None, replace(OPTIONS, hearing=HearingRules(None, 7)))
    line.run(lecture, SpeakingEngine())
    (status,) = line.store.status()
    assert (status.state, status.reason, status.failed_ms) == ("done", "", 0)


def test_a_file_that_is_not_there_leaves_no_trace(line: Line, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such file"):
        line.run(tmp_path / "typo.mp4", None)
    assert line.store.status() == ()


def test_a_file_that_is_away_costs_its_media_nothing(line: Line, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", (5.0, 1.0))
    first = line.run(path, SpeakingEngine())
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(InvalidInputError, match="no such file"):
        line.run(path, None)
    assert line.store.result(first.media.media_id) == first.result


def test_silence_gives_no_cue_and_asks_no_engine(line: Line, tmp_path: Path) -> None:
    result = line.run(write_sound(tmp_path / "silent.wav", (0.0, 8.0)), None).result
    assert (result.cues, result.sentences, result.language) == ((), (), "")
    assert [(span.start_ms, span.end_ms, span.outcome) for span in result.ledger] == [(0, 8_000, Outcome.SILENCE)]


@pytest.fixture
def interrupt_after() -> Iterator[Callable[[float], None]]:
    """Sends this process a Ctrl-C after so many seconds."""
    timers: list[threading.Timer] = []

    def start(seconds: float) -> None:
        timers.append(threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield start
    for timer in timers:
        timer.cancel()


def test_ctrl_c_is_felt_while_the_engine_is_at_work_and_keeps_what_was_done(
    line: Line, lecture: Path, interrupt_after: Callable[[float], None]
) -> None:
    released = threading.Event()

    def work_long(call: int) -> None:
        if call == 2:
            interrupt_after(0.1)
            released.wait(30)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        line.run(lecture, SpeakingEngine(work_long))
    released.set()
    assert time.monotonic() - started < 20
    assert line.store.status()[0].slices_done == 2
    engine = SpeakingEngine()
    line.run(lecture, engine)
    assert engine.batches == [[2, 3], [4]]


def test_an_error_of_the_engine_is_raised_as_it_is(line: Line, lecture: Path) -> None:
    def fail(_: int) -> None:
        raise RetriableError("out of memory")

    with pytest.raises(RetriableError, match=r"^out of memory$"):
        line.run(lecture, SpeakingEngine(fail))


def test_two_drivers_on_one_media_at_once_leave_the_rows_of_one(line: Line, lecture: Path) -> None:
    alone = line.run(lecture, SpeakingEngine(), replace(OPTIONS, course_id="alone")).result
    both_are_there = threading.Barrier(2, timeout=60)
    done: list[Finished] = []

    def take(call: int) -> None:
        if call == 1:
            both_are_there.wait()

    threads = [threading.Thread(target=lambda: done.append(line.run(lecture, SpeakingEngine(take)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.was_done for one in done] == [False, False]
    media_id = done[0].media.media_id
    assert uncosted(line.store.result(media_id)) == uncosted(replace(alone, media_id=media_id))
    assert states(line.store.status()) == ["done", "done"]


def states(found: Sequence[object]) -> list[str]:
    return [str(getattr(one, "state", "")) for one in found]


class ShortOfMemory(SpeakingEngine):
    """Cannot do the slices in ``lacking``; says in which precision it does the others."""

    label = "speaking fp16"
    lacking = frozenset({1})

    def settle(self, slices: int, took_ms: int) -> None:
        """Nothing changes."""

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis | Failed]:  # type: ignore[override]
        made = super().transcribe(requests, decoding)
        numbers = [request.audio.slice.index for request in requests]
        return [Failed("no memory") if at in self.lacking else one for at, one in zip(numbers, made, strict=True)]


def test_a_slice_that_failed_is_in_the_ledger_and_is_tried_again_by_the_same_command(line: Line, lecture: Path) -> None:
    finished = line.run(lecture, ShortOfMemory())
    assert finished.failed == ("no memory",)
    assert {(span.outcome, span.reason) for span in finished.result.ledger if span.outcome is Outcome.FAILED} == {
        (Outcome.FAILED, "no memory")
    }
    well = SpeakingEngine()
    again = line.run(lecture, well)
    assert (again.failed, again.was_done, well.batches) == ((), False, [[0, 1]])
    assert not [span for span in again.result.ledger if span.outcome is Outcome.FAILED]
    assert line.run(lecture, None).was_done


def test_each_row_says_what_engine_made_it_in_which_precision(line: Line, lecture: Path) -> None:
    line.run(lecture, ShortOfMemory())
    with line.store._transaction() as connection:
        found = connection.exec_driver_sql("select distinct engine from lecturemill.slice_transcript").scalars().all()
    assert found == ["speaking fp16"]
