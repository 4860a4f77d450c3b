"""Cues by example: the rules one by one, and the inputs that are hard to serve."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import opencc
import pytest

from pipeline.cue_profiles import EN, ZH_HANS
from pipeline.cues import CueProfile, check_cues, make_cues, profile_for
from pipeline.postprocess.term_spans import spotter
from pipeline.subtitle_profiles import BUILT_IN, NETFLIX, SubtitleProfile
from pipeline.values import Cue, Sentence, Word

COMMA, QUESTION_MARK = "\uff0c", "\uff1f"


def sentence(
    text: str, start_ms: int = 1000, per_word_ms: int = 250, *, language: str = "zh", pieces: str = ""
) -> Sentence:
    """Speak a sentence evenly: a word a character in Chinese, a word between spaces in English."""
    tokens = pieces.split("|") if pieces else _tokens(text, language)
    words = tuple(
        Word(token, start_ms + index * per_word_ms, start_ms + (index + 1) * per_word_ms, 0.9)
        for index, token in enumerate(tokens)
    )
    return Sentence(words[0].start_ms, words[-1].end_ms, "".join(tokens).strip(), language, words)


def _tokens(text: str, language: str) -> list[str]:
    if language == "en":
        return [f" {word}" for word in text.split()]
    tokens: list[str] = []
    for character in text:
        if tokens and character in f"{COMMA}。{QUESTION_MARK}、」":
            tokens[-1] += character
        else:
            tokens.append(character)
    return tokens


def lines(*sentences: Sentence, media_end_ms: int = 600_000) -> list[tuple[str, ...]]:
    cues, violations = make_cues(sentences, profile_for, media_end_ms)
    assert violations == ()
    return [cue.lines for cue in cues]


def test_a_short_sentence_is_one_line_from_its_first_word_on() -> None:
    cues, violations = make_cues([sentence("今天天气很好。", 4321)], profile_for, 60_000)
    assert violations == ()
    assert [(cue.start_ms, cue.lines) for cue in cues] == [(4321, ("今天天气很好。",))]
    assert 4321 + 6 * 250 <= cues[0].end_ms <= 4321 + 6 * 250 + 500


def test_no_sentences_make_no_cues() -> None:
    assert make_cues([], profile_for, 1000) == ((), ())


def test_a_sentence_of_blank_words_makes_no_cue() -> None:
    assert make_cues([sentence("", pieces=" |  |\n")], profile_for, 9000) == ((), ())


def test_each_sentence_starts_its_own_cue_when_both_can_stand_alone() -> None:
    first, second = sentence("我们先看定义。", 1000), sentence("再看一个例子。", 2600)
    cues, violations = make_cues([first, second], profile_for, 60_000)
    assert violations == ()
    assert [cue.start_ms for cue in cues] == [1000, 2600]


def test_a_long_sentence_breaks_at_its_comma() -> None:
    clauses = (
        "如果一个三角形有一个角是直角",
        "那么两条直角边的平方和等于斜边的平方",
        "这就是定理的全部内容。",
    )
    assert all(cue[-1].endswith((COMMA, "。")) for cue in lines(sentence(COMMA.join(clauses))))


def test_a_dictionary_word_stays_whole() -> None:
    text = "同学们都知道毕达哥拉斯在很久以前就发现了直角三角形的勾股定理并且证明了它。"
    rows = [row for cue in lines(sentence(text)) for row in cue]
    assert len(rows) > 2
    assert all(any(word in row for row in rows) for word in ("毕达哥拉斯", "直角三角形", "勾股定理", "证明", "发现"))


@pytest.mark.parametrize("particle", ["的", "了", "吗", "呢"])
def test_no_line_begins_with_a_particle(particle: str) -> None:
    for length in range(8, 40):
        text = ("我们大家今天一起学习数学知识和物理现象" * 3)[:length] + particle + "第二部分的内容。"
        assert not any(row.startswith(particle) for cue in lines(sentence(text)) for row in cue)


def test_no_line_begins_with_a_closing_mark_or_ends_with_an_opening_one() -> None:
    text = f"老师说「勾股定理」、「余弦定理」、「正弦定理」都很重要{COMMA}你们知道「正切定理」吗{QUESTION_MARK}"
    pieces = "|".join(text)
    rows = [row for cue in lines(sentence(text, pieces=pieces, per_word_ms=200)) for row in cue]
    assert not any(row[0] in f"」、{COMMA}{QUESTION_MARK}" or row[-1] == "「" for row in rows)


def test_an_english_line_does_not_end_with_an_article_or_a_preposition() -> None:
    text = "The square of the long side is equal to the sum of the squares of the other two sides of the shape."
    rows = [row for cue in lines(sentence(text, language="en")) for row in cue]
    assert len(rows) >= 3
    assert not any(row.split()[-1].lower() in {"the", "of", "to", "is"} for row in rows)


def test_a_latin_word_in_pieces_and_a_number_stay_whole() -> None:
    pieces = "我|们|现|在|用|的|是|版|本| Post|gre|SQL|十|八|点|六|和|编|程|语|言| Py|thon| 3.|11|来|完|成|作|业。"
    rows = [row for cue in lines(sentence("", pieces=pieces)) for row in cue]
    assert all(any(word in row for row in rows) for word in ("PostgreSQL", "十八点六", "Python", "3.11"))


def test_a_sentence_breaks_where_the_speaker_pauses() -> None:
    before = sentence("we draw three circles around every corner point", 1000, 200, language="en")
    after = sentence("measure every angle twice before writing numbers down.", 4000, 200, language="en")
    whole = Sentence(1000, after.end_ms, "", "en", before.words + after.words)
    cues, violations = make_cues([whole], profile_for, 60_000)
    assert violations == ()
    assert [cue.start_ms for cue in cues] == [1000, 4000]


def test_two_lines_are_balanced() -> None:
    (cue,) = lines(sentence("Every student should measure both angles before writing numbers.", language="en"))
    assert abs(len(cue[0]) - len(cue[1])) <= 20


def test_a_word_too_short_to_read_shares_the_cue_of_its_neighbour() -> None:
    short, following = sentence("好。", 1000, 300), sentence("我们开始上课。", 1400)
    assert lines(short, following) == [("好。我们开始上课。",)]


def test_a_short_word_between_two_full_cues_is_served_without_a_violation() -> None:
    full = "如果一个三角形有一个角恰好是直角那么两条边的平方和等于斜边"
    before, short = sentence(full + "。", 1000, 220), sentence("好。", 7600, 300)
    after = sentence(full + "。", 8000, 220)
    cues, violations = make_cues([before, short, after], profile_for, 60_000)
    assert violations == ()
    assert "".join(cue.text.replace("\n", "") for cue in cues) == f"{full}。好。{full}。"


def test_sentences_far_apart_never_share_a_cue() -> None:
    short, following = sentence("好。", 1000, 300), sentence("我们开始上课。", 3000)
    assert lines(short, following) == [("好。",), ("我们开始上课。",)]


def test_a_last_word_at_the_very_end_of_the_media_starts_early_into_silence() -> None:
    cues, violations = make_cues([sentence("好。", 9700, 300)], profile_for, 10_000)
    assert violations == ()
    assert [(cue.start_ms, cue.end_ms) for cue in cues] == [(9167, 10_000)]


def test_reading_time_is_taken_from_the_silence_after() -> None:
    cues, violations = make_cues([sentence("这句话说得非常非常快。", 1000, 50)], profile_for, 60_000)
    assert violations == ()
    assert cues[0].end_ms - cues[0].start_ms >= 11 * 1000 / 9


def test_a_gap_below_twelve_frames_is_closed_to_two() -> None:
    cues, _ = make_cues([sentence("我们先看定义。", 1000), sentence("再看一个例子。", 3000)], profile_for, 60_000)
    assert cues[1].start_ms - cues[0].end_ms == 83


def test_words_that_outlast_their_cue_do_not_make_it_longer_than_seven_seconds() -> None:
    stretched = Sentence(0, 30_000, "", "zh", (Word("好。", 1000, 30_000, 0.9),))
    cues, violations = make_cues([stretched], profile_for, 60_000)
    assert violations == ()
    assert cues[0].end_ms == 8000


def test_a_minute_without_punctuation_is_cut_without_a_violation() -> None:
    chinese = sentence("我们今天继续学习如何证明直角三角形的性质并且讨论它们的应用" * 8, per_word_ms=250)
    english = sentence(
        "and then we move every term to the other side of this equation " * 14, 70_000, 300, language="en"
    )
    assert len(lines(chinese, english)) > 15


def test_a_sentence_of_two_hundred_characters_is_cut_without_a_violation() -> None:
    assert (
        len(lines(sentence(f"勾股定理是几何学中的基本定理{COMMA}" * 13 + "请大家牢牢记住它的内容。", per_word_ms=200)))
        >= 7
    )


def test_a_word_longer_than_a_line_is_reported_and_stands_alone() -> None:
    words = (
        *sentence("we call it", language="en").words,
        Word(" " + "a" * 80, 2000, 6500, 0.9),
        *sentence("in this class", 6500, language="en").words,
    )
    cues, violations = make_cues([Sentence(1000, 7250, "", "en", words)], profile_for, 60_000)
    assert [cue.lines for cue in cues if "aa" in cue.text] == [("a" * 80,)]
    assert [(violation.rule, violation.measured) for violation in violations] == [("line_too_long", 80)]


def test_half_width_characters_take_half_the_room_in_a_chinese_line() -> None:
    assert lines(sentence("", pieces="我|们|用| the| Pythagorean| theorem")) == [("我们用 the Pythagorean theorem",)]


def test_sentences_of_two_languages_may_share_a_cue_with_a_space_between_latin_words() -> None:
    first = sentence("Okay.", 1000, 200, language="en")
    second = sentence("", 1250, language="en", pieces="Now|  we| start.")
    third = sentence("好。", 2100, 250)
    cues, violations = make_cues([first, second, third], profile_for, 20_000)
    assert violations == ()
    assert cues[0].text.startswith("Okay. Now we start.")


def test_words_at_one_time_divide_the_time_until_the_next() -> None:
    words = tuple(Word(character, 2000, 2000, 0.5) for character in "我们今天学习勾股定理的证明方法" * 6)
    cues, _ = make_cues([Sentence(2000, 2000, "", "zh", words)], profile_for, 30_000)
    assert len(cues) >= 3
    assert all(len(cue.lines) <= 2 for cue in cues)
    assert all(a.end_ms + 83 <= b.start_ms for a, b in pairwise(cues))


def test_words_at_one_time_at_the_end_of_the_media_become_one_cue_and_are_reported() -> None:
    words = tuple(Word(character, 5000, 5000, 0.5) for character in "我们今天学习勾股定理的证明方法" * 6)
    cues, violations = make_cues([Sentence(5000, 5000, "", "zh", words)], profile_for, 5000)
    assert "".join(line for cue in cues for line in cue.lines) == "我们今天学习勾股定理的证明方法" * 6
    assert {"too_fast"} <= {violation.rule for violation in violations}
    assert all(cue.start_ms < cue.end_ms <= 5000 for cue in cues)


@pytest.mark.parametrize(
    ("cue", "rule"),
    [
        (Cue(0, 4000, ("字" * 17,)), "line_too_long"),
        (Cue(0, 4000, ("一", "二", "三")), "too_many_lines"),
        (Cue(0, 1000, ("字" * 10,)), "too_fast"),
        (Cue(0, 0, ("字",)), "too_fast"),
        (Cue(0, 832, ("字",)), "too_short"),
        (Cue(0, 7001, ("字",)), "too_long"),
        (Cue(0, 1000, ()), "empty"),
        (Cue(0, 1000, ("字", " ")), "empty"),
        (Cue(9000, 10_001, ("字",)), "past_media_end"),
    ],
)
def test_the_judge_names_each_broken_rule(cue: Cue, rule: str) -> None:
    assert rule in {violation.rule for violation in check_cues([cue], ZH_HANS, media_end_ms=10_000)}


@pytest.mark.parametrize(("start_ms", "rules"), [(2083, []), (2082, ["gap_too_small"]), (1999, ["overlap"])])
def test_the_judge_measures_the_gap_between_cues(start_ms: int, rules: list[str]) -> None:
    cues = [Cue(1000, 2000, ("好",)), Cue(start_ms, 4000, ("好",))]
    assert [(violation.cue_index, violation.rule) for violation in check_cues(cues, ZH_HANS)] == [
        (0, rule) for rule in rules
    ]


def test_the_judge_finds_nothing_in_a_cue_at_every_limit() -> None:
    assert check_cues([Cue(0, 833, ("x",)), Cue(916, 5116, ("a" * 42, "b" * 42))], EN) == ()


def test_a_profile_of_three_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="one line or two"):
        CueProfile("huge", 42, 20, is_wide=False, max_lines=3)


def test_a_profile_of_one_line_gets_cues_of_one_line() -> None:
    narrow = CueProfile("narrow", 16, 9, is_wide=True, max_lines=1)
    cues, violations = make_cues([sentence("我们今天继续学习如何证明直角三角形的性质。")], lambda _: narrow, 60_000)
    assert violations == ()
    assert [len(cue.lines) for cue in cues] == [1, 1]


@pytest.mark.parametrize("filler", range(6, 16))
def test_a_number_keeps_its_measure_word_and_a_term_stays_whole(filler: int) -> None:
    text = "我们今天一起学习数学知识和物理"[:filler] + "然后拿出十二个苹果和三百二十五条直线放进自由组合盒子里面去。"
    cues, violations = make_cues([sentence(text)], profile_for, 60_000, spotter(("自由组合盒子",)))
    assert violations == ()
    rows = [row for cue in cues for row in cue.lines]
    assert all(any(whole in row for row in rows) for whole in ("十二个", "三百二十五条", "自由组合盒子"))


@pytest.mark.parametrize("filler", range(4, 16))
@pytest.mark.parametrize("name", ["Ai|克|斯", "爱|克|斯", "達|不|溜", "西|格|玛"])
def test_the_name_of_a_letter_stays_whole(filler: int, name: str) -> None:
    words = [
        *"我们今天一起学习数学知识和物理的"[:filler],
        *name.split("|"),
        *"的平方加上常数项，也就等于右边的那一个式子。",
    ]
    cues, violations = make_cues([sentence("", pieces="|".join(words))], profile_for, 60_000)
    assert violations == ()
    assert any(name.replace("|", "") in row for cue in cues for row in cue.lines)


@pytest.mark.parametrize("filler", range(3, 12))
def test_an_english_number_keeps_its_unit_and_a_term_stays_whole(filler: int) -> None:
    lead = ["today", "we", "are", "going", "to", "look", "at", "how", "big", "the", "small", "one", "is"][:filler]
    text = " ".join([*lead, "weighs two hundred and five kilograms or 25 percent of the singular value decomposition."])
    cues, violations = make_cues(
        [sentence(text, language="en")], profile_for, 60_000, spotter(("singular value decomposition",))
    )
    assert violations == ()
    rows = [row for cue in cues for row in cue.lines]
    whole = ("two hundred and five", "25 percent", "singular value decomposition")
    assert all(any(part in row for row in rows) for part in whole)


def test_a_term_longer_than_a_line_is_broken_at_its_words() -> None:
    term = "the very long name of a theorem that nobody ever wrote on one line"
    cues, violations = make_cues([sentence(term, language="en")], profile_for, 60_000, spotter((term,)))
    assert violations == ()
    assert " ".join(row for cue in cues for row in cue.lines) == term


def test_a_number_with_its_measure_word_leads_what_it_counts() -> None:
    text = "这是我们昨天在教室里面买的那三个苹果和梨子的故事。"
    assert not any(row.endswith("三个") for cue in lines(sentence(text)) for row in cue)


def test_traditional_characters_break_where_simplified_ones_do() -> None:
    text = "同学们都知道毕达哥拉斯在很久以前就发现了直角三角形的勾股定理并且证明了它。"
    traditional = str(opencc.OpenCC("s2t").convert(text))
    assert [[len(row) for row in cue] for cue in lines(sentence(traditional))] == [
        [len(row) for row in cue] for cue in lines(sentence(text))
    ]


def test_gaps_are_closed_as_the_profile_says() -> None:
    def gaps(profile: SubtitleProfile) -> list[int]:
        spoken = [sentence("We look at it.", 1000, language="en"), sentence("Then we go on.", 3100, language="en")]
        cues, violations = make_cues(spoken, profile.cues_for, 60_000)
        assert violations == ()
        return [b.start_ms - a.end_ms for a, b in pairwise(cues)]

    keeps = replace(NETFLIX, narrow=replace(NETFLIX.narrow, closing_gap_ms=83))
    assert (gaps(NETFLIX), gaps(BUILT_IN["bbc"]), gaps(keeps)) == ([800], [40], [800])


def test_a_speaker_faster_than_the_profile_is_served_by_cues_that_lag_and_catch_up() -> None:
    fast = sentence(
        "we look at the very long sentence that she said without any pause whatever", 1000, 160, language="en"
    )
    slow = sentence("and then she took all the time in the world", fast.end_ms, 700, language="en")
    whole = Sentence(1000, slow.end_ms, "", "en", fast.words + slow.words)
    cues, violations = make_cues([whole], profile_for, 60_000)
    assert violations == ()
    starts = [word.start_ms for word in whole.words]
    assert all(min(abs(cue.start_ms - start) for start in starts) <= 1500 for cue in cues)


def test_loading_the_dictionary_says_nothing() -> None:
    program = (
        "from pipeline.cues import make_cues, profile_for\n"
        "from pipeline.values import Sentence, Word\n"
        "words = (Word('你', 0, 500, 1.0), Word('好', 500, 1000, 1.0))\n"
        "assert len(make_cues([Sentence(0, 1000, '你好', 'zh', words)], profile_for, 5000)[0]) == 1\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
