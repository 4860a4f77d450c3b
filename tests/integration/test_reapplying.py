"""New terms for old lectures: what is made anew, what stays, and that the rows are those of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.decoding import find_ffmpeg
from pipeline.diarization import TEACHER
from pipeline.driver import LineOptions, LineTools, run_media
from pipeline.errors import InvalidInputError, RetriableError
from pipeline.postprocess import Glossary, Term
from pipeline.reapplying import State, reapply
from pipeline.store_line import LineStore
from pipeline.values import MediaPlan, MediaResult
from tests.integration.speaking import LoudnessDetector, SpeakingEngine, write_sound
from tests.integration.test_driver import OPTIONS, Alternating, Told


@pytest.fixture
def store(database_url: str) -> Iterator[LineStore]:
    with LineStore.open(database_url) as store:
        yield store


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound(tmp_path_factory.mktemp("media") / "lecture.wav", (9.0, 1.0), (14.0, 1.2))


def run(path: Path, store: LineStore, options: LineOptions = OPTIONS) -> MediaResult:
    engine = SpeakingEngine()
    tools = LineTools(
        engine=lambda: engine,
        engine_fingerprint=SpeakingEngine.fingerprint,
        detector=LoudnessDetector,
        detector_fingerprint=LoudnessDetector.fingerprint,
        store=store,
        ffmpeg=find_ffmpeg(),
        usd_per_hour=0.36,
        listener=Alternating,
        listener_fingerprint="listener",
    )
    return run_media(path, options, tools, Told()).result


def terms_for(result: MediaResult) -> Glossary:
    """A glossary by which the first words of the lecture change."""
    return Glossary((Term("勾股定理", (result.sentences[0].text[:4],), "zh"),))


def test_a_dry_run_shows_the_difference_and_changes_nothing(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    store.record_glossary("geometry", terms_for(before))
    done = reapply(before.media_id, store, is_dry=True)
    assert done.state is State.CHANGED
    assert done.result
    old, new = ([sentence.text for sentence in result.sentences] for result in (before, done.result))
    # The first sentence by its term; marks near it may be others, too.
    assert [text for change in done.changes for text in change.before] == [text for text in old if text not in new]
    assert [text for change in done.changes for text in change.after] == [text for text in new if text not in old]
    assert (done.changes[0].before[0], done.changes[0].after[0][:4]) == (old[0], "勾股定理")
    assert store.result(before.media_id) == before


def test_the_rows_are_those_of_a_run_with_the_new_glossary(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    version = store.record_glossary("geometry", terms_for(before))
    done = reapply(before.media_id, store, is_dry=False)
    assert store.result(before.media_id) == done.result
    assert done.glossary_version == version
    options = replace(OPTIONS, glossary=store.glossary("geometry"))
    assert run(lecture, store, options) == done.result  # and it was done before


def test_reapplying_twice_does_nothing_twice(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    store.record_glossary("geometry", terms_for(before))
    reapply(before.media_id, store, is_dry=False)
    updated = store.status(before.media_id)[0].updated_at
    assert reapply(before.media_id, store, is_dry=False).state is State.UP_TO_DATE
    assert store.status(before.media_id)[0].updated_at == updated


def test_speakers_that_were_told_apart_are_no_reason_to_write_anything(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store, replace(OPTIONS, speakers=True))
    assert {sentence.speaker for sentence in before.sentences} == {TEACHER}
    updated = store.status(before.media_id)[0].updated_at
    assert reapply(before.media_id, store, is_dry=False).state is State.UP_TO_DATE
    assert store.status(before.media_id)[0].updated_at == updated


def test_speakers_stay_when_the_text_is_made_anew_and_the_next_run_finds_it_done(
    store: LineStore, lecture: Path
) -> None:
    before = run(lecture, store, replace(OPTIONS, speakers=True))
    store.record_glossary("geometry", terms_for(before))
    done = reapply(before.media_id, store, is_dry=False)
    assert done.result is not None
    assert {sentence.speaker for sentence in done.result.sentences} == {TEACHER}
    assert reapply(before.media_id, store, is_dry=False).state is State.UP_TO_DATE
    options = replace(OPTIONS, glossary=store.glossary("geometry"), speakers=True)
    assert run(lecture, store, options) == done.result


def test_a_glossary_without_a_term_of_the_lecture_changes_no_text_and_is_noted(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    store.record_glossary("geometry", Glossary((Term("抛物线", (), "zh"),)))
    done = reapply(before.media_id, store, is_dry=False)
    assert (done.state, done.changes) == (State.SAME, ())
    assert reapply(before.media_id, store, is_dry=False).state is State.UP_TO_DATE


def test_going_back_to_an_older_glossary_brings_the_older_text_back(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    store.record_glossary("geometry", terms_for(before))
    reapply(before.media_id, store, is_dry=False)
    store.record_glossary("geometry", Glossary.empty())
    assert reapply(before.media_id, store, is_dry=False).state is State.CHANGED
    assert store.result(before.media_id) == before


def test_a_media_of_the_distributed_line_is_made_of_its_plan(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    made = store.made_under(before.media_id)
    assert made.slicing
    assert made.asr
    count = len(store.made_of(before.media_id, made.slicing, made.asr))
    plan = MediaPlan(before.media_id, made.slicing, made.asr, count, before.duration_ms, (), (), 5)
    store.record_line((), [plan])
    store.record_glossary("geometry", terms_for(before))
    assert reapply(before.media_id, store, is_dry=False).state is State.CHANGED


def test_a_media_that_is_not_done_is_left_alone(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    store.record_failure(before.media_id, "broken", ())
    assert reapply(before.media_id, store, is_dry=False).state is State.NOT_DONE
    with pytest.raises(InvalidInputError, match="no such media"):
        reapply("unknown", store, is_dry=False)


def test_a_result_that_was_made_anew_meanwhile_is_not_overwritten(store: LineStore, lecture: Path) -> None:
    before = run(lecture, store)
    with pytest.raises(RetriableError, match="made anew meanwhile"):
        store.record_result(replace(before, sentences=()), "mine", replacing="another")
    assert store.result(before.media_id) == before
