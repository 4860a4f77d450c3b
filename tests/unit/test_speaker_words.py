"""Speakers on words: a word is said by whose turn it lies in, a sentence has one speaker, no word is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipeline.cue_profiles import profile_for
from pipeline.cues import make_cues
from pipeline.speaker_words import SLIP_MS, with_speakers
from pipeline.values import Sentence, Turn, Word

TEACHER, STUDENT = "teacher", "speaker 2"


def sentence(text: str, start_ms: int, language: str = "zh", word_ms: int = 300) -> Sentence:
    parts = list(text) if language == "zh" else [" " + part for part in text.split()]
    words = [Word(part, start_ms + at * word_ms, start_ms + (at + 1) * word_ms, 0.9) for at, part in enumerate(parts)]
    return Sentence(start_ms, words[-1].end_ms, text, language, tuple(words))


def said(sentences: tuple[Sentence, ...]) -> list[tuple[str, str]]:
    return [(one.speaker, one.text) for one in sentences]


def test_without_turns_nothing_is_said_about_speakers() -> None:
    given_ = (sentence("老师好。", 0),)
    assert with_speakers(given_, ()) == given_


def test_each_sentence_has_the_speaker_of_its_turn() -> None:
    told = with_speakers(
        [sentence("谁知道？", 0), sentence("我知道。", 2_000)], [Turn(0, 1_300, TEACHER), Turn(1_900, 4_000, STUDENT)]
    )
    assert said(told) == [(TEACHER, "谁知道？"), (STUDENT, "我知道。")]
    assert {word.speaker for word in told[1].words} == {STUDENT}


def test_a_sentence_is_cut_where_the_speaker_changes() -> None:
    told = with_speakers([sentence("老师好请坐下", 0)], [Turn(0, 880, STUDENT), Turn(920, 2_000, TEACHER)])
    assert said(told) == [(STUDENT, "老师好。"), (TEACHER, "请坐下")]
    assert [(one.start_ms, one.end_ms) for one in told] == [(0, 900), (900, 1_800)]


def test_a_slip_inside_a_sentence_changes_no_speaker() -> None:
    turns = [Turn(0, 900, TEACHER), Turn(900, 900 + SLIP_MS - 150, STUDENT), Turn(1_150, 3_000, TEACHER)]
    assert said(with_speakers([sentence("我们看这个函数", 0)], turns)) == [(TEACHER, "我们看这个函数")]


def test_where_two_talk_at_once_the_longer_share_of_a_word_counts() -> None:
    told = with_speakers([sentence("ab", 0, word_ms=1_000)], [Turn(0, 1_200, TEACHER), Turn(800, 2_000, STUDENT)])
    assert said(told) == [(TEACHER, "a。"), (STUDENT, "b")]


def test_a_word_in_no_turn_belongs_to_the_nearest_one() -> None:
    turns = [Turn(0, 1_000, TEACHER), Turn(9_000, 9_900, STUDENT)]
    assert said(with_speakers([sentence("嗯嗯嗯", 1_500), sentence("嗯嗯嗯", 7_500)], turns)) == [
        (TEACHER, "嗯嗯嗯"),
        (STUDENT, "嗯嗯嗯"),
    ]


times = st.integers(0, 20_000)
turns = st.lists(
    st.tuples(times, st.integers(1, 4_000), st.sampled_from([TEACHER, STUDENT, "speaker 3"])).map(
        lambda drawn: Turn(drawn[0], drawn[0] + drawn[1], drawn[2])
    ),
    min_size=1,
    max_size=12,
)
sentences = st.lists(st.integers(1, 12), min_size=1, max_size=5).map(
    lambda lengths: [sentence("字" * length, at * 4_000) for at, length in enumerate(lengths)]
)


@given(sentences, turns)
def test_every_word_is_kept_and_every_sentence_has_one_known_speaker(given_: list[Sentence], talk: list[Turn]) -> None:
    told = with_speakers(given_, talk)
    before = [(word.text, word.start_ms, word.end_ms) for one in given_ for word in one.words]
    after = [(word.text.rstrip("。"), word.start_ms, word.end_ms) for one in told for word in one.words]
    assert after == before
    for one in told:
        assert {word.speaker for word in one.words} == {one.speaker}
        assert one.speaker in {turn.speaker for turn in talk}


@given(sentences, turns)
def test_a_change_of_speaker_begins_a_cue_with_a_dash(given_: list[Sentence], talk: list[Turn]) -> None:
    told = with_speakers(given_, talk)
    cues, _ = make_cues(told, profile_for, 60_000)
    shown = "".join(line.replace(" ", "") for cue in cues for line in cue.lines)
    changes = [one.speaker != before for before, one in zip(["", *(s.speaker for s in told)], told, strict=False)][1:]
    assert shown.count("-") == sum(changes)
    for before, cue in pairwise(cues):
        assert cue.text.startswith("- ") == (cue.speaker != before.speaker)


def test_an_english_answer_gets_its_dash_before_the_word() -> None:
    told = with_speakers(
        [sentence("Who knows?", 0, "en"), sentence("I do.", 2_000, "en")],
        [Turn(0, 900, TEACHER), Turn(2_000, 3_000, STUDENT)],
    )
    cues, _ = make_cues(told, profile_for, 10_000)
    assert [(cue.text, cue.speaker) for cue in cues] == [("Who knows?", TEACHER), ("- I do.", STUDENT)]
