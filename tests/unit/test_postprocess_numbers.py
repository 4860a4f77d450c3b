"""Spoken numbers in digits, and everything that only looks like a number left alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.postprocess.chinese_numerals import in_digits, value_of
from pipeline.postprocess.english_numerals import english_value
from pipeline.postprocess.numbers import inside_numbers, write_numbers
from pipeline.postprocess.term_spans import NO_TERMS, spotter
from pipeline.values import Word


def _words(texts: list[str]) -> list[Word]:
    return [Word(text, at * 200, at * 200 + 180, 0.9) for at, text in enumerate(texts)]


def _zh(text: str) -> str:
    return "".join(word.text for word in write_numbers(_words(list(text)), "zh", NO_TERMS)[0])


def _en(text: str) -> str:
    words = [f" {word}" for word in text.split()]
    return "".join(word.text for word in write_numbers(_words(words), "en", NO_TERMS)[0]).strip()


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("斜边长是十三厘米", "斜边长是13厘米"),
        ("十三的平方减去五的平方等于一百四十四", "13的平方减去5的平方等于144"),
        ("x等于二，a大于零，等于负三", "x等于2，a大于0，等于负3"),
        ("二的三次方加一", "2的3次方加1"),
        ("二零二四年三月五日星期三", "2024年3月5日星期三"),
        ("十二月份，一九九八年七月", "12月份，1998年7月"),
        ("下午三点二十分，上午九点半", "下午3点20分，上午9点半"),
        ("百分之二十，百分之三点五，百分之百", "20%，3.5%，100%"),
        ("三点一四，零点五，一点二亿", "3.14，0.5，1.2亿"),
        ("第五十六页，第十二章", "第56页，第12章"),
        ("一万五千人，三万册，一亿五千万元", "15000人，3万册，1亿5000万元"),
        ("两百个，二十岁，十分钟", "200个，20岁，10分钟"),
        ("二十一世纪，九十年代", "21世纪，90年代"),
        ("三到五厘米，十到二十个，十一比八", "3到5厘米，10到20个，11比8"),
        ("房间三零五，电话一三八零零一三八零零零", "房间305，电话13800138000"),
        ("早上七点一刻，三点三刻，三点半", "早上7点一刻，3点三刻，3点半"),
        ("二的十次方，十的负三次方", "2的10次方，10的负3次方"),
        ("三角函数三十度的值，五加上十二", "三角函数30度的值，5加上12"),
        ("一点五万元，三点六万个", "1.5万元，3.6万个"),
        ("三点五加四点二，五加三", "3.5加4.2，5加3"),
        ("二十世纪九十年代，满分一百分", "20世纪90年代，满分100分"),
    ],
)
def test_a_chinese_measure_count_date_or_sum_is_written_in_digits(said: str, written: str) -> None:
    assert _zh(said) == written


@pytest.mark.parametrize(
    "text",
    [
        "一元二次方程，二次函数，三角形，四边形，二进制，十字相乘法",
        "一个，一下，一些，一般，一样，第一，第二定律，两个小时，三个苹果",
        "一心一意，三心二意，千方百计，九牛一毛，十全十美，一点一滴",
        "三五个人，十几个，七八十个，几十年，一百多人，数千人，两三天",
        "二分之一，三分之二，万一，千万不要，十分重要，一度认为",
        "两点之间线段最短，有一点一样，第一点，三五，一米八",
        "十二生肖，二十四节气，一千零一夜，双十一，十月革命，参加二班，增加三倍",
        "二零一几年，个位十位百位，十位和个位，十进制，数十个，上百人",
        "有三点整理一下，三点半径，两点三亿人，五加科",
        "直角边分别是三和四，相三四五这样的三个整数，从零开始",
    ],
)
def test_what_is_no_number_to_a_chinese_reader_stays_as_it_was_said(text: str) -> None:
    assert _zh(text) == text


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("it weighs twenty five grams and one hundred and five kilograms", "it weighs 25 grams and 105 kilograms"),
        ("a mass of one thousand two hundred kilograms", "a mass of 1,200 kilograms"),
        ("the sum is two point five", "the sum is 2.5"),
        ("it costs twenty five dollars and fifty cents", "it costs $25.50"),
        ("about twenty percent, zero point five percent", "about 20%, 0.5%"),
        ("problems three through seven on page forty two", "problems 3 through 7 on page 42"),
        ("in the year fourteen sixty-two, in nineteen sixty-eight", "in the year 1462, in 1968"),
        ("on March fifth, twenty twenty four", "on March 5th, 2024"),
        ("at three thirty pm, ten a.m.", "at 3:30 pm, 10 a.m."),
        ("in the fifteenth century, the twenty-first of June", "in the 15th century, the 21st of June"),
        ("we have two plus three equals five", "we have 2 plus 3 equals 5"),
        ("in two thousand and nine, the year two thousand", "in 2009, the year 2000"),
        ("from two thousand one to two thousand five", "from 2001 to 2005"),
        ("on March fifth two thousand twenty four", "on March 5th 2024"),
        ("for two thousand and nine people", "for 2,009 people"),
        ("in nineteen oh five, between nineteen fourteen and nineteen eighteen", "in 1905, between 1914 and 1918"),
        ("it is one plus one, at one point two meters", "it is 1 plus 1, at 1.2 meters"),
        ("on the twenty second of May", "on the 22nd of May"),
        ("there are three million people", "there are three million people".replace("three", "3")),
    ],
)
def test_an_english_measure_count_date_or_sum_is_written_in_digits(said: str, written: str) -> None:
    assert _en(said) == written


@pytest.mark.parametrize(
    "text",
    [
        "one of the three has no one",
        "two thirds of a hundred and one half",
        "Twenty students came. Thirty left.",
        "the Thirty Years War in the nineteen sixties",
        "one two three four five",
        "the first and the second, hundreds of them",
        "we may first say that the first may be the larger, as they march third",
        "so this one plus the other one squared, in this chapter one learns the step one takes, plus one of them",
        "some two to three hundred people, five or six thousand of them",
        "in the eighteen hundreds, version two point one point three, one oh eight",
        "at twenty second intervals, at one point three students left",
    ],
)
def test_what_is_no_number_to_an_english_reader_stays_as_it_was_said(text: str) -> None:
    assert _en(text) == text


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("read chapters one and two", "read chapters 1 and 2"),
        ("chapters one, two, and three and problem one or two", "chapters 1, 2, and 3 and problem 1 or 2"),
        ("chapters 1 and two, ages five, six and twelve", "chapters 1 and 2, ages 5, 6 and 12"),
        ("we have eight or twelve, by five or ten percent", "we have 8 or 12, by 5 or 10%"),
        ("he paid five dollars to 10 dollars", "he paid $5 to 10 dollars"),
        ("Five percent to ten percent agree.", "Five percent to ten percent agree."),
        ("Twenty to thirty came. One or two percent left.", "Twenty to thirty came. One or two percent left."),
        ("Five percent to 10% agree.", "5% to 10% agree."),
        ("chapter one and two students", "chapter 1 and two students"),
        (
            "chapter two and one of them, this one and fifteen others",
            "chapter 2 and one of them, this one and 15 others",
        ),
        ("a minute or two and fifteen seconds", "a minute or two and 15 seconds"),
        ("in nineteen fourteen and five years later", "in 1914 and five years later"),
    ],
)
def test_an_english_range_or_list_is_written_one_way(said: str, written: str) -> None:
    assert _en(said) == written


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("第五十届和第一届，第三题", "第50届和第1届，第三题"),
        ("第一届在雅典，第五十届在这里。第一届", "第1届在雅典，第50届在这里。第一届"),
        ("第一、第二、第十三题", "第1、第2、第13题"),
        ("三岁到十五岁，三、五、十五个", "3岁到15岁，3、5、15个"),
        ("百分之五到十，五到百分之十", "5%到10%，5%到10%"),
        ("一、十五个学生，一天到十五个", "一、15个学生，一天到15个"),
        ("第一次世界大战和第十一次实验", "第一次世界大战和第11次实验"),
        ("三个或十几个，统一到十五个", "三个或十几个，统一到15个"),
        ("三个苹果和十五个梨", "三个苹果和15个梨"),
        ("第一届到第三届", "第一届到第三届"),
    ],
)
def test_chinese_numbers_of_one_kind_that_stand_together_have_one_form(said: str, written: str) -> None:
    assert _zh(said) == written


def test_a_saying_keeps_its_number_and_the_count_beside_it_does_not() -> None:
    said = "三百六十行，行行出状元。相差十万八千里，八十一难，三百六十行代码"
    assert _zh(said) == said.replace("三百六十行代码", "360行代码")


def test_a_number_has_the_start_of_its_first_word_and_the_end_of_its_last() -> None:
    words, replacements = write_numbers(_words(["长", "十", "三", "厘", "米。"]), "zh", NO_TERMS)
    assert [(word.text, word.start_ms, word.end_ms) for word in words][1] == ("13", 200, 580)
    assert [(one.before, one.after, one.rule, one.start_ms, one.end_ms) for one in replacements] == [
        ("十三", "13", "number", 200, 580)
    ]


def test_a_pause_inside_a_number_or_before_its_unit_is_no_reason_for_a_mark() -> None:
    assert inside_numbers(_words(list("长三厘米，第五十六页")), "zh") == {1, 2, 6, 7, 8}
    assert inside_numbers(
        _words([" two", " hundred", " and", " five", " kilograms", " of", " 25", " percent"]), "en"
    ) == {
        *(0, 1, 2, 3),
        6,
    }
    assert inside_numbers(_words([" zwei", " Meter"]), "de") == frozenset()


def test_a_term_of_the_course_is_never_touched() -> None:
    words = _words(list("三十六计等于三十六个"))
    terms = spotter(("三十六个",))
    assert "".join(word.text for word in write_numbers(words, "zh", terms)[0]) == "三十六计等于三十六个"


def test_other_languages_pass_as_they_are() -> None:
    words = _words([" zwanzig", " twenty"])
    assert write_numbers(words, "de", NO_TERMS) == (tuple(words), ())


_SECTIONS = ("", "十", "百", "千")


def _said(value: int) -> str:
    """A number below a hundred million as it is said."""
    high, low = divmod(value, 10_000)
    parts = [f"{_below(high)}万"] if high else []
    if high and 0 < low < 1_000:
        parts.append("零")
    return "".join(parts) + (_below(low) if low else "") or "零"


def _below(value: int) -> str:
    text, zero = "", False
    for place in (3, 2, 1, 0):
        digit = value // 10**place % 10
        if digit:
            text += ("零" if zero and text else "") + "零一二三四五六七八九"[digit] + _SECTIONS[place]
        zero = not digit
    return text


@given(st.integers(0, 99_999_999))
def test_every_number_is_understood_as_it_is_said(value: int) -> None:
    assert value_of(_said(value)) == value


@given(st.integers(0, 10**9))
def test_digits_say_the_same_number(value: int) -> None:
    written = in_digits(value).replace("亿", "*100000000+").replace("万", "*10000+").rstrip("+")
    assert sum(_product(part) for part in written.split("+")) == value


def _product(part: str) -> int:
    factor, _, scale = part.partition("*")
    return int(factor) * int(scale or 1)


@given(st.lists(st.sampled_from("一二三十百千万亿零点个厘米第年月日分之，。的x几"), max_size=25))
def test_chinese_text_keeps_its_times_and_all_that_is_no_numeral(characters: list[str]) -> None:
    words = _words(characters)
    done, _ = write_numbers(words, "zh", NO_TERMS)

    def other(text: str) -> str:
        return "".join(char for char in text if char in "个厘米第年月日，。的x几")

    assert other("".join(word.text for word in done)) == other("".join(characters))
    starts, ends = {word.start_ms for word in words}, {word.end_ms for word in words}
    assert all(word.start_ms in starts and word.end_ms in ends for word in done)
    assert all(a.end_ms <= b.start_ms for a, b in pairwise(done))


_ENGLISH = [
    "one",
    "twenty",
    "twenty-five",
    "hundred",
    "thousand",
    "and",
    "point",
    "percent",
    "dollars",
    "page",
    "the.",
    "in",
]


@given(st.lists(st.sampled_from(_ENGLISH), max_size=16))
def test_english_text_keeps_its_times_and_all_that_is_no_number(texts: list[str]) -> None:
    words = _words([f" {text}" for text in texts])
    done, _ = write_numbers(words, "en", NO_TERMS)

    def other(text: str) -> list[str]:
        return [word for word in text.split() if word in ("page", "the.", "in")]

    assert other("".join(word.text for word in done)) == other(" ".join(texts))
    starts, ends = {word.start_ms for word in words}, {word.end_ms for word in words}
    assert all(word.start_ms in starts and word.end_ms in ends for word in done)
    assert all(a.end_ms <= b.start_ms for a, b in pairwise(done))


@given(
    st.lists(st.sampled_from(["one", "five", "eleven", "forty", "hundred", "million", "and"]), min_size=1, max_size=6)
)
def test_words_that_are_no_single_number_have_no_value(words: list[str]) -> None:
    value = english_value(" ".join(words))
    assert value is None or value > 0
