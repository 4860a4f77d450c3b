"""The CSV that an editor keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import InvalidInputError, UsageError
from pipeline.glossary_file import load_glossary, parse_glossary
from pipeline.postprocess.terms import Glossary, Term

_HEADER = "term,aliases,language,note\n"


def _parse(body: str) -> Glossary:
    return parse_glossary((_HEADER + body).encode(), "course.csv")


def test_terms_aliases_languages_and_notes_are_read() -> None:
    glossary = _parse('勾股定理,购股定理|沟谷定理 ; 狗骨定理,zh,几何\nDNA,,,"a note, quoted"\n')
    assert glossary.terms == (
        Term("勾股定理", ("购股定理", "沟谷定理", "狗骨定理"), "zh", "几何"),
        Term("DNA", (), "", "a note, quoted"),
    )


def test_a_byte_order_mark_blank_lines_and_windows_line_ends_are_tolerated() -> None:
    content = b"\xef\xbb\xbf" + "term,aliases,language,note\r\n\r\n斜边,,zh,\r\n , ,,\r\n斜面\r\n".encode()
    assert [term.term for term in parse_glossary(content, "course.csv").terms] == ["斜边", "斜面"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (",购股,zh,\n", "row 2, column term: the term is missing"),
        ("斜边,,zh,\n\n，,,zh,\n", "row 4, column term"),
        ("斜边,,zz,\n", "row 2, column language"),
        ("斜边,,zh,,\n", "row 2, column 5"),
        ("斜边,。,zh,\n", "row 2, column aliases"),
        ("斜边,写边,zh,\n斜边,鞋边,zh,\n", "row 3, column term"),
        ("斜边,写边,zh,\n斜面,写边,zh,\n", "row 3, column aliases"),
        ("斜边,,zh,\n斜面,斜边,zh,\n", "row 3, column aliases"),
        ("斜面,斜边,zh,\n斜边,,zh,\n", "row 3, column term"),
        ('斜边,,zh,"open\n', "row 2, column term"),
    ],
)
def test_a_bad_row_refuses_the_whole_file_and_is_named_with_its_column(body: str, place: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        _parse(body)
    assert caught.value.reason.startswith(f"course.csv: {place}")


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", "term;aliases;language;note\n斜边;;zh;\n".encode(), "斜边,,zh,\n".encode()]
)
def test_a_file_without_the_header_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="the header must be term,aliases,language,note"):
        parse_glossary(content, "course.csv")


def test_text_that_is_not_utf_8_is_refused_with_its_place() -> None:
    content = _HEADER.encode() + "斜边,,zh,\n斜面,".encode() + "写面,zh,\n".encode("gbk")
    with pytest.raises(InvalidInputError, match="row 3, column aliases: the text is not UTF-8"):
        parse_glossary(content, "course.csv")


def test_a_row_that_repeats_another_one_counts_once() -> None:
    assert len(_parse("斜边,写边,zh,\n斜边,写边,zh,again\n").terms) == 1


def test_an_alias_that_is_the_term_itself_is_left_out() -> None:
    assert _parse("斜边,斜边|写边|写边,zh,\n").terms[0].aliases == ("写边",)


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.csv"):
        load_glossary(tmp_path / "none.csv")


def test_the_fingerprint_follows_all_that_text_depends_on_but_not_order() -> None:
    one = _parse("斜边,写边,zh,\n斜面,,zh,\n").fingerprint
    assert _parse("斜面,,zh,\n斜边,写边,zh,\n").fingerprint == one
    assert _parse("斜边,写边,zh,与斜面\n斜面,,zh,\n").fingerprint != one
    assert _parse("斜边,鞋边,zh,\n斜面,,zh,\n").fingerprint != one
    assert _parse("斜边,写边,,\n斜面,,zh,\n").fingerprint != one


def test_the_glossaries_of_the_lectures_are_read(shared_data: Path) -> None:
    glossary = load_glossary(shared_data / "lectures" / "glossary_physics.csv")
    assert Term("牛顿第二定律", (), "zh", "") in glossary.terms
    assert len(glossary.terms) == 13


def test_every_bad_row_has_a_line_of_its_own() -> None:
    with pytest.raises(InvalidInputError) as caught:
        _parse("斜边,,zz,\n斜面,,zh,\n,购股,zh,\n斜面,别名,zh,\n")
    lines = caught.value.reason.split("\n")
    assert [line.split(":")[1].strip() for line in lines] == [
        "row 2, column language",
        "row 4, column term",
        "row 5, column term",
    ]
