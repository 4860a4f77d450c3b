"""The comparisons of the chaos find each fault that is made here, and none where all is well."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.broker import SLICE_TRANSCRIPTS, dead_topic
from pipeline.messages import TranscriptsCompleted, encode, slice_transcribed
from pipeline.values import MediaResult
from tests.chaos import verify
from tests.chaos.engine import undisturbed, undisturbed_transcripts
from tests.chaos.lectures import END, DeadLetter, dead_letter, lecture, plant, script

LECTURE = lecture(1, 1, range(8, 9))
MEDIA = LECTURE.media.media_id
TRANSCRIPTS = undisturbed_transcripts(LECTURE)
RESULT = undisturbed(LECTURE, TRANSCRIPTS)
IN_ORDER = [(MEDIA, index) for index in range(8)]
COUNTS = {MEDIA: 8}
COMPLETED = verify.completed_of(LECTURE.media, RESULT)


@given(st.data())
def test_slices_in_order_are_fine_however_often_earlier_ones_come_again(data: st.DataObject) -> None:
    seen: list[tuple[str, int]] = []
    for one in IN_ORDER:
        seen += [one, *data.draw(st.lists(st.sampled_from([*seen, one]), max_size=3))]
    assert verify.order_faults(COUNTS, [("another", 5), *seen]) == []


@given(st.integers(0, 7))
def test_a_lost_slice_is_found(index: int) -> None:
    seen = [one for one in IN_ORDER if one[1] != index]
    assert verify.order_faults(COUNTS, seen) == [f"{MEDIA}: slice {index} is lost"]


@given(st.integers(0, 6))
def test_a_swapped_order_is_found_though_all_come_again_in_order(index: int) -> None:
    seen = [*IN_ORDER]
    seen[index : index + 2] = reversed(seen[index : index + 2])
    faults = verify.order_faults(COUNTS, seen + IN_ORDER)
    assert faults == [f"{MEDIA}: slice {index} came first after slice {index + 1}"]


def test_a_slice_that_no_media_has_is_found() -> None:
    assert verify.order_faults(COUNTS, [*IN_ORDER, (MEDIA, 8)]) == [f"{MEDIA}: slice 8 is not one of its 8"]


def test_a_media_of_which_nothing_came_is_found() -> None:
    assert len(verify.order_faults(COUNTS, [])) == 8


def test_duplicates_are_counted() -> None:
    assert verify.duplicates(IN_ORDER) == 0
    assert verify.duplicates([*IN_ORDER, IN_ORDER[3], IN_ORDER[3]]) == 2


def test_rows_are_fine_whatever_time_the_engine_took() -> None:
    assert verify.row_faults(MEDIA, TRANSCRIPTS, [replace(one, engine_ms=977) for one in TRANSCRIPTS]) == []


def test_a_slice_without_a_row_and_one_with_two_are_found() -> None:
    found = [*TRANSCRIPTS[1:], TRANSCRIPTS[4]]
    assert verify.row_faults(MEDIA, TRANSCRIPTS, found) == [
        f"{MEDIA}: slice 0 has no row",
        f"{MEDIA}: slice 4 has 2 rows",
    ]


def test_a_row_with_the_text_of_another_slice_is_found() -> None:
    found = [replace(TRANSCRIPTS[1], slice_index=0), *TRANSCRIPTS[1:]]
    assert verify.row_faults(MEDIA, TRANSCRIPTS, found) == [f"{MEDIA}: the row of slice 0 is another"]


def test_a_row_of_a_slice_that_is_none_is_found() -> None:
    found = [*TRANSCRIPTS, replace(TRANSCRIPTS[0], slice_index=8)]
    assert verify.row_faults(MEDIA, TRANSCRIPTS, found) == [f"{MEDIA}: the row of slice 8 is another"]


def test_a_result_is_fine_whatever_it_cost() -> None:
    assert verify.result_faults(RESULT, replace(RESULT, cost=replace(RESULT.cost, engine_ms=977))) == []


@pytest.mark.parametrize("field", ["sentences", "cues", "ledger", "warnings"])
def test_a_part_of_a_result_that_is_shorter_is_found(field: str) -> None:
    found = replace(RESULT, **{field: getattr(RESULT, field)[1:]})
    assert f"{MEDIA}: its {field} are not those of an undisturbed run" in verify.result_faults(RESULT, found)


def test_another_word_is_found() -> None:
    sentence, *others = RESULT.sentences
    words = (replace(sentence.words[0], start_ms=sentence.words[0].start_ms + 1), *sentence.words[1:])
    found = replace(RESULT, sentences=[replace(sentence, words=words), *others])
    assert verify.result_faults(RESULT, found) == [f"{MEDIA}: its sentences are not those of an undisturbed run"]


def without(at: int) -> MediaResult:
    spans = list(RESULT.ledger)
    del spans[at]
    return replace(RESULT, ledger=spans)


@pytest.mark.parametrize("at", [0, 3, -1], ids=["at its beginning", "inside", "at its end"])
def test_a_ledger_with_a_hole_is_found(at: int) -> None:
    fault = f"{MEDIA}: its ledger does not add up to {RESULT.duration_ms} ms"
    assert verify.ledger_faults(MEDIA, RESULT.duration_ms, RESULT.ledger) == []
    assert verify.ledger_faults(MEDIA, RESULT.duration_ms, without(at).ledger) == [fault]


PLANTED = [DeadLetter("audio.slices.bulk.dead", "course-1", what) for what in ("bytes 00", "bytes 01")]


def test_dead_letters_are_fine_where_each_planted_one_is_there_once_or_more() -> None:
    assert verify.dead_faults(PLANTED, [*PLANTED, PLANTED[0]]) == []


def test_an_unplanned_dead_letter_and_a_lost_one_are_found() -> None:
    stranger = DeadLetter("audio.slices.bulk.dead", "course-1", "bytes 02")
    faults = verify.dead_faults(PLANTED, [PLANTED[0], stranger])
    assert faults == [
        f"planted, but not among the dead letters: {PLANTED[1]}",
        f"an unplanned dead letter: {stranger}",
    ]


def announced(**changed: object) -> TranscriptsCompleted:
    return msgspec.structs.replace(COMPLETED, files=("file:///1.zh.srt",), **changed)


def test_announcements_are_fine_where_each_media_has_one_or_more() -> None:
    assert verify.completed_faults({MEDIA: COMPLETED}, [announced(), announced()]) == []


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ([], "was not announced"),
        ([announced(), announced(cues=0)], "was announced as "),
        ([announced(), announced(media_id="other")], "was announced, but never sent"),
    ],
    ids=["none", "another the second time", "a stranger"],
)
def test_a_wrong_announcement_is_found(found: list[TranscriptsCompleted], fault: str) -> None:
    (one,) = verify.completed_faults({MEDIA: COMPLETED}, found)
    assert fault in one


def test_a_partition_that_is_not_committed_to_its_end_is_found() -> None:
    ends = {"slice.transcripts[0]": 7, "slice.transcripts[1]": 0, "slice.transcripts[2]": 3}
    assert verify.offset_faults("assemble", {"slice.transcripts[0]": 7, "slice.transcripts[2]": 3}, ends) == []
    faults = verify.offset_faults("assemble", {"slice.transcripts[0]": 6}, ends)
    assert faults == [
        "group assemble is at 6 of 7 in slice.transcripts[0]",
        "group assemble is at 0 of 3 in slice.transcripts[2]",
    ]


@given(st.integers(0, 300), st.randoms(use_true_random=False))
def test_a_script_sends_every_slice_in_order_but_for_what_was_sent_before_and_an_end_mark(
    slice_count: int, random: Random
) -> None:
    sent = [at for few in script(slice_count, random) for at in few]
    firsts = [at for at in dict.fromkeys(sent) if at != END]
    assert firsts == list(range(slice_count))
    assert END in sent


@given(st.integers(0, 1000), st.integers(0, 200))
def test_equal_seeds_make_equal_media_and_equal_faults(seed: int, number: int) -> None:
    assert lecture(seed, number, range(1, 4)) == lecture(seed, number, range(1, 4))
    assert plant(seed, number) == plant(seed, number)


def test_a_transcript_among_the_dead_is_known_whatever_time_its_engine_took() -> None:
    topic = dead_topic(SLICE_TRANSCRIPTS)
    ready = LECTURE.slice_message(0)
    slow = replace(TRANSCRIPTS[0], engine_ms=977)
    values = [encode(slice_transcribed(ready, one, "a stub")) for one in (TRANSCRIPTS[0], slow)]
    assert {dead_letter(topic, b"c", value) for value in values} == {DeadLetter(topic, "c", f"{MEDIA} 0")}
    assert dead_letter(topic, b"c", values[0][:-1]) != dead_letter(topic, b"c", values[0])


def test_media_differ_in_what_is_said_so_that_a_mix_up_shows() -> None:
    other = lecture(1, 2, range(8, 9))
    assert undisturbed_transcripts(LECTURE) == TRANSCRIPTS
    assert undisturbed(other, undisturbed_transcripts(other)).sentences != RESULT.sentences
