"""The judge: each rule has a text that it objects to, and one like it that it lets stand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judging import JudgeRules, Objection, _speech_until, judge
from pipeline.values import Boundary, Segment, Slice, Span, Word

RULES = JudgeRules()
SENTENCE = "We add the two sides and take the root."


def a_slice(*speech: tuple[int, int]) -> Slice:
    """A slice of 30 s with speech at these milliseconds; by default, as long as the sentence takes."""
    return Slice("m", 0, Span(0, 30_000), Boundary.SILENCE, tuple(Span(*span) for span in speech or [(0, 3_600)]))


def spread(text: str, start_ms: int = 0, end_ms: int | None = None, probability: float = 0.9) -> tuple[Word, ...]:
    """The words of the text (the characters, without spaces) at even times; by default, calmly spoken."""
    words, calm_ms = (text.split(), 400) if " " in text else (list(text), 250)
    step = (end_ms - start_ms) / max(1, len(words)) if end_ms is not None else calm_ms
    times = [round(start_ms + at * step) for at in range(len(words) + 1)]
    return tuple(Word(word, times[at], times[at + 1], probability) for at, word in enumerate(words))


def a_segment(
    text: str = SENTENCE,
    logprob: float = -0.2,
    no_speech: float = 0.05,
    ratio: float = 1.3,
    words: tuple[Word, ...] | None = None,
) -> Segment:
    """As Whisper gives it for speech that it hears well."""
    return Segment(0, 30_000, text, spread(text) if words is None else words, logprob, no_speech, ratio, 0.0)


def objections(segment: Segment, piece: Slice | None = None, prompt: str = "", rules: JudgeRules = RULES) -> list[str]:
    """The names of the rules; where no slice is given, its speech is as long as the words."""
    heard = piece or a_slice((0, max((word.end_ms for word in segment.words), default=0)))
    return [objection.rule for objection in judge(segment, heard, prompt, rules)]


def test_a_sentence_that_was_heard_well_stands() -> None:
    assert objections(a_segment()) == []


@pytest.mark.parametrize("text", ["", " ", "...", "。", "♪ ♪"])
def test_a_text_without_a_letter_is_none_and_no_retry_can_help(text: str) -> None:
    assert judge(a_segment(text), a_slice(), "", RULES) == (Objection("no text", is_final=True),)


@pytest.mark.parametrize(("logprob", "expected"), [(-1.01, ["improbable"]), (-0.99, [])])
def test_an_improbable_text_is_refused(logprob: float, expected: list[str]) -> None:
    assert objections(a_segment(logprob=logprob)) == expected


@pytest.mark.parametrize(
    ("logprob", "no_speech", "expected"), [(-0.7, 0.7, ["no speech"]), (-0.3, 0.7, []), (-0.7, 0.3, [])]
)
def test_no_speech_needs_two_signs(logprob: float, no_speech: float, expected: list[str]) -> None:
    found = judge(a_segment(logprob=logprob, no_speech=no_speech), a_slice(), "", RULES)
    assert [objection.rule for objection in found] == expected
    assert all(objection.is_final for objection in found)


@pytest.mark.parametrize(
    "text",
    ["Thanks for watching!", "Please like and subscribe.", "謝謝觀看", "字幕由志愿者提供", "Thank you.", "谢谢。"],
)
def test_a_stock_phrase_is_refused_unless_it_was_clearly_said(text: str) -> None:
    assert objections(a_segment(text, logprob=-0.7)) == ["stock phrase"]
    assert objections(a_segment(text, logprob=-0.3)) == []


def test_a_doubtful_sentence_of_its_own_stands() -> None:
    assert objections(a_segment("Thank you, so the next step is the proof.", logprob=-0.7)) == []


@pytest.mark.parametrize(
    ("speech_ms", "logprob", "expected"), [(390, -0.7, ["too short"]), (390, -0.5, []), (800, -0.7, [])]
)
def test_a_doubtful_text_over_a_mere_sound_is_refused(speech_ms: int, logprob: float, expected: list[str]) -> None:
    segment = a_segment("Right", logprob=logprob, words=spread("Right", 0, 380))
    assert objections(segment, a_slice((0, speech_ms))) == expected


@pytest.mark.parametrize(("probability", "expected"), [(0.59, ["unsure"]), (0.61, [])])
def test_words_that_are_unsure_on_the_whole_are_refused(probability: float, expected: list[str]) -> None:
    assert objections(a_segment(words=spread(SENTENCE, probability=probability))) == expected


def test_too_few_words_say_nothing_about_their_probability() -> None:
    assert objections(a_segment("Eigenvalue four", words=spread("Eigenvalue four", probability=0.1))) == []


def test_a_retry_must_convince() -> None:
    middling = a_segment(words=spread(SENTENCE, probability=0.7))
    assert objections(middling) == []
    assert objections(middling, rules=RULES.for_retries()) == ["unsure"]


@pytest.mark.parametrize(("ratio", "expected"), [(2.41, ["repetitive"]), (2.39, [])])
def test_a_text_that_compresses_too_well_is_refused(ratio: float, expected: list[str]) -> None:
    assert objections(a_segment(ratio=ratio)) == expected


@pytest.mark.parametrize("text", ["and then we go on " * 6, "我们来看一下这个" * 6])
def test_a_loop_is_refused(text: str) -> None:
    assert objections(a_segment(text)) == ["repetitive"]


@pytest.mark.parametrize(
    "text",
    [
        "Plus one is two, plus one is three, plus one is four, plus one is five, plus one is six.",
        "左边加一，右边加一，左边减二，右边减二，左边乘三，右边乘三。",
    ],
)
def test_a_drill_is_no_loop(text: str) -> None:
    assert objections(a_segment(text)) == []


@given(st.lists(st.sampled_from("abcdefghij"), min_size=4, max_size=8), st.integers(6, 12))
def test_a_phrase_said_more_often_than_the_limit_is_always_a_loop(letters: list[str], times: int) -> None:
    phrase = " ".join(letter * 5 for letter in letters)
    assert "repetitive" in objections(a_segment(" ".join([phrase] * times)))


@given(st.lists(st.text("abcdefgh", min_size=3, max_size=9), unique=True, min_size=1, max_size=60))
def test_words_that_all_differ_are_never_a_loop(words: list[str]) -> None:
    assert "repetitive" not in objections(a_segment(" ".join(words)))


@pytest.mark.parametrize(
    "text", ["2-0-4-1-0-2-3-1-5-4-10-1", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.", "A, B, C, D, E, F, G, H, I, J, K."]
)
def test_counting_is_refused_unless_it_was_clearly_said(text: str) -> None:
    numbers = text.replace("-", " -")
    assert objections(a_segment(text, words=spread(numbers, probability=0.73))) == ["counting"]
    assert objections(a_segment(text, words=spread(numbers, probability=0.83))) == []


def test_a_few_numbers_in_a_sentence_are_not_counting() -> None:
    text = "Put 1, 2 and 3 in the first row, 4, 5 and 6 in the second."
    assert objections(a_segment(text, words=spread(text, probability=0.65))) == []


@pytest.mark.parametrize(
    ("text", "speech_ms", "expected"),
    [
        ("今天我们继续学习二次函数的图像和性质", 1_300, ["too fast"]),
        ("今天我们继续学习二次函数的图像和性质", 1_600, []),
        ("The invention of movable letters", 900, ["too fast"]),
        ("The invention of movable letters", 1_000, []),
    ],
)
def test_nobody_speaks_faster_than_the_limit(text: str, speech_ms: int, expected: list[str]) -> None:
    segment = a_segment(text, words=spread(text, 0, speech_ms))
    assert objections(segment, a_slice((0, speech_ms))) == expected


def test_english_in_a_chinese_lecture_is_measured_as_english() -> None:
    text = "这句话是 the invention of movable letters"
    assert objections(a_segment(text, words=spread(text, 0, 1_700)), a_slice((0, 1_700))) == []


def test_marks_and_spaces_take_no_time() -> None:
    text = "A - - - - , , , , . . . . ! ! ! ! ? ? ? ? B"
    assert objections(a_segment(text, words=spread("A B", 0, 600)), a_slice((0, 600))) == []


@pytest.mark.parametrize(("start_ms", "expected"), [(10_500, ["outside speech"]), (10_300, []), (8_600, [])])
def test_words_must_lie_near_the_speech(start_ms: int, expected: list[str]) -> None:
    words = tuple(replace(word, start_ms=start_ms, end_ms=start_ms + 80) for word in spread(SENTENCE))
    assert objections(a_segment(words=words), a_slice((9_000, 10_000))) == expected


@pytest.mark.parametrize(("untimed", "expected"), [(4, ["untimed"]), (2, [])])
def test_words_for_which_the_alignment_found_no_sound_were_not_said(untimed: int, expected: list[str]) -> None:
    words = [replace(word, end_ms=word.start_ms) if at < untimed else word for at, word in enumerate(spread(SENTENCE))]
    assert objections(a_segment(words=tuple(words))) == expected


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        ("今天我们讲勾股定理。", "大家好，今天我们讲勾股定理。", ["prompt echo"]),
        ("今天我们讲勾股定理的证明。", "大家好，今天我们讲勾股定理。", []),
        ("勾股定理", "大家好，今天我们讲勾股定理。", []),
        ("今天我们讲勾股定理。", "", []),
    ],
)
def test_the_prompt_said_back_is_refused(text: str, prompt: str, expected: list[str]) -> None:
    assert objections(a_segment(text), prompt=prompt) == expected


@pytest.mark.parametrize(("second_end_ms", "lost_ms"), [(14_000, 2_900), (13_000, 0)])
def test_long_speech_without_a_word_asks_for_a_retry_and_filters_nothing(second_end_ms: int, lost_ms: int) -> None:
    """The last word begins 900 ms before the pause."""
    words = spread(SENTENCE, 0, 9 * 900)
    found = judge(a_segment(words=words), a_slice((0, 9 * 900), (12_000, second_end_ms)), "", RULES)
    assert found == ((Objection("skipped speech", is_fatal=False, lost_ms=lost_ms),) if lost_ms else ())


def test_a_sentence_that_is_missing_under_a_drawn_out_word_was_skipped() -> None:
    words = (replace(spread("For ")[0], end_ms=6_000), *spread(SENTENCE, 6_000, 10_000))
    assert objections(a_segment(words=words)) == ["skipped speech"]


def test_a_sentence_that_is_missing_before_the_first_word_was_skipped() -> None:
    assert objections(a_segment(words=spread(SENTENCE, 2_100, 6_000))) == ["skipped speech"]


def test_a_word_drawn_out_over_silence_hides_nothing() -> None:
    words = (Word("Yes.", 0, 9_000, 0.9), Word("Good.", 9_000, 9_800, 0.9))
    assert objections(a_segment("Yes. Good.", words=words), a_slice((0, 700), (9_000, 9_800))) == []


MEASURES = {
    "logprob": st.floats(-5, 0),
    "no_speech": st.floats(0, 1),
    "ratio": st.floats(0.1, 9),
}


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    text = draw(st.one_of(st.text(max_size=60), st.sampled_from([SENTENCE, "一二三四五", "1-2-3-4-5-6-7-8-9-10-11"])))
    end_ms = draw(st.integers(0, 30_000))
    words = spread(text, draw(st.integers(0, end_ms)), end_ms, draw(st.floats(0, 1)))
    return a_segment(text, words=words, **{name: draw(values) for name, values in MEASURES.items()})


@given(segments(), st.text(max_size=20))
def test_any_text_is_judged_and_no_rule_speaks_twice(segment: Segment, prompt: str) -> None:
    rules = objections(segment, prompt=prompt)
    assert len(rules) == len(set(rules))


@given(segments(), st.floats(0, 5))
def test_a_more_probable_text_meets_no_new_objection(segment: Segment, gain: float) -> None:
    better = replace(segment, avg_logprob=segment.avg_logprob + gain, no_speech_probability=0.0)
    assert set(objections(better)) <= set(objections(segment))


@given(segments())
def test_a_retry_is_judged_at_least_as_strictly(segment: Segment) -> None:
    assert set(objections(segment)) <= set(objections(segment, rules=RULES.for_retries()))


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 90)), max_size=6),
    st.lists(st.integers(0, 400), max_size=9).map(sorted),
)
def test_the_speech_until_a_time_is_what_its_spans_hold_of_it(spans: list[tuple[int, int]], times: list[int]) -> None:
    speech = tuple(Span(start_ms, start_ms + duration_ms) for start_ms, duration_ms in spans)
    held = [sum(max(0, min(one.end_ms, time_ms) - one.start_ms) for one in speech) for time_ms in times]
    assert _speech_until(speech, times) == held
