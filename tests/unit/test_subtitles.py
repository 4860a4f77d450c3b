"""Subtitle files: what is written is read back by parsers that are not ours; hostile texts included."""

from __future__ import annotations

import errno
import html
import json
import os
import re
import stat
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pysubs2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import RetriableError, UsageError
from pipeline.subtitles import FORMATS, Document, export_path, render, write_whole
from pipeline.values import Cue, Sentence, Word

TT = "{http://www.w3.org/ns/ttml}"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
TIMED = ("srt", "vtt", "ass", "ttml")
HOSTILE = [
    "a < b & c > d",
    "f{x} = {1, 2}",
    r"\notin \N \h \\",
    "1\n\n2 --> 3",
    "-->",
    "<b>bold</b>",
    "42",
    "&amp;",
]


def document(*cues: Cue, sentences: tuple[Sentence, ...] = (), language: str = "zh") -> Document:
    return Document("m1", "勾股定理 & <proof>", language, 60_000, cues, sentences)


def spoken(text: str, start_ms: int, end_ms: int) -> Sentence:
    return Sentence(start_ms, end_ms, text, "zh", (Word(text, start_ms, end_ms, 0.87654),))


def srt_blocks(text: str) -> list[tuple[str, list[str]]]:
    """Read SRT or WebVTT by its grammar alone: blocks parted by blank lines; timing, then text."""
    blocks = [block.split("\n") for block in text.removeprefix("WEBVTT\n\n").strip("\n").split("\n\n") if block]
    return [(timing, lines) for _, timing, *lines in blocks]


def ttml_lines(paragraph: ET.Element) -> list[str]:
    return [paragraph.text or "", *(line_break.tail or "" for line_break in paragraph.findall(f"{TT}br"))]


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def one_line(text: str) -> str:
    return " ".join(text.split())


hostile_lines = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE))


@st.composite
def cue_lists(draw: st.DrawFn) -> list[Cue]:
    clock_ms, cues = 0, []
    for _ in range(draw(st.integers(0, 5))):
        start_ms = clock_ms + draw(st.integers(83, 40_000_000))
        clock_ms = start_ms + draw(st.integers(1, 7000))
        cues.append(Cue(start_ms, clock_ms, tuple(draw(st.lists(hostile_lines, min_size=1, max_size=2)))))
    return cues


@pytest.mark.parametrize("format", ["srt", "vtt", "ttml"])
def test_times_and_texts_come_back_exactly(format: str) -> None:
    cues = [
        Cue(1, 834, ("好。",)),
        Cue(917, 3_599_999, ("第一行", "second line")),
        Cue(35_999_999, 36_000_832, ("x",)),
    ]
    read = pysubs2.SSAFile.from_string(render(format, media=document(*cues)), format_=format)
    assert [(event.start, event.end, event.plaintext) for event in read] == [
        (cue.start_ms, cue.end_ms, cue.text) for cue in cues
    ]


def test_ass_times_come_back_within_half_a_hundredth() -> None:
    cues = [
        Cue(1, 834, ("好。",)),
        Cue(917, 4000, ("第一行", "second line")),
        Cue(36_000_005, 36_001_000, ("x",)),
    ]
    read = pysubs2.SSAFile.from_string(render("ass", media=document(*cues)), format_="ass")
    assert [event.plaintext for event in read] == [cue.text for cue in cues]
    for event, cue in zip(read, cues, strict=True):
        assert abs(event.start - cue.start_ms) <= 5
        assert abs(event.end - cue.end_ms) <= 5


@given(cue_lists())
def test_ass_rounding_makes_no_overlap(cues: list[Cue]) -> None:
    read = pysubs2.SSAFile.from_string(render("ass", media=document(*cues)), format_="ass")
    assert all(earlier.end <= later.start for earlier, later in pairwise(read))


@given(cue_lists())
def test_hostile_texts_survive_srt(cues: list[Cue]) -> None:
    blocks = srt_blocks(render("srt", media=document(*cues)))
    assert [lines for _, lines in blocks] == [kept for cue in cues if (kept := arrows(visible(cue)))]


@given(cue_lists())
def test_hostile_texts_survive_vtt_escaped(cues: list[Cue]) -> None:
    text = render("vtt", media=document(*cues))
    assert text.startswith("WEBVTT\n")
    assert not re.search(r"[<>]", text.replace(" --> ", ""))
    blocks = srt_blocks(text)
    assert [[html.unescape(line) for line in lines] for _, lines in blocks] == [
        kept for cue in cues if (kept := [html.unescape(html.escape(line)) for line in visible(cue)])
    ]


@given(cue_lists())
def test_hostile_texts_survive_ttml(cues: list[Cue]) -> None:
    root = ET.fromstring(render("ttml", media=document(*cues)))
    assert root.attrib == {XML_LANG: "zh"}
    assert [ttml_lines(p) for p in root.iter(f"{TT}p")] == [kept for cue in cues if (kept := visible(cue))]


@given(cue_lists())
def test_hostile_texts_hold_no_tag_in_ass(cues: list[Cue]) -> None:
    text = render("ass", media=document(*cues))
    dialogues = [line.split(",", 9)[9] for line in text.split("\n") if line.startswith("Dialogue: ")]
    full_width = str.maketrans("\\{}", "\uff3c\uff5b\uff5d")
    assert dialogues == [
        r"\N".join(line.translate(full_width) for line in kept) for cue in cues if (kept := visible(cue))
    ]


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=20))
def test_json_holds_any_text(texts: list[str], title: str) -> None:
    sentences = tuple(spoken(text, index * 10, index * 10 + 5) for index, text in enumerate(texts))
    read = json.loads(render("json", media=Document("m1", title, "en", 1000, (), sentences)))
    assert len(read["words"]) == len(texts)
    assert all(word["text"] == text for word, text in zip(read["words"], texts, strict=True) if text.isprintable())


def visible(cue: Cue) -> list[str]:
    dropped = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff]")
    return [kept for line in cue.lines if (kept := one_line(dropped.sub("", line)))]


def arrows(lines: list[str]) -> list[str]:
    return [line.replace("-->", "→") for line in lines]


@pytest.mark.parametrize("format", FORMATS)
def test_a_document_without_cues_is_a_valid_empty_file(format: str) -> None:
    text = render(format, media=document(language=""))
    if format == "ttml":
        root = ET.fromstring(text)
        assert (root.tag, root.get(XML_LANG), list(root.iter(f"{TT}p"))) == (f"{TT}tt", "", [])
    elif format == "json":
        assert json.loads(text)["cues"] == []
    elif format in ("vtt", "ass"):
        assert list(pysubs2.SSAFile.from_string(text, format_=format)) == []
    else:
        assert text == ""


def test_json_has_exactly_the_stated_keys_and_is_not_escaped() -> None:
    text = render(
        "json", media=document(Cue(1000, 2000, ("你好", "世界")), sentences=(spoken("你好世界", 1000, 1900),))
    )
    assert "你好世界" in text
    assert json.loads(text) == {
        "media": {"media_id": "m1", "title": "勾股定理 & <proof>", "language": "zh", "duration_ms": 60_000},
        "cues": [{"start_ms": 1000, "end_ms": 2000, "text": "你好\n世界"}],
        "words": [{"start_ms": 1000, "end_ms": 1900, "text": "你好世界", "probability": 0.8765}],
    }


def test_json_says_who_speaks_where_speakers_were_told_apart() -> None:
    said = Sentence(0, 900, "你好", "zh", (Word("你好", 0, 900, 0.9, "teacher"),))
    read = json.loads(render("json", media=document(Cue(0, 900, ("你好",), "teacher"), sentences=(said,))))
    assert [part["speaker"] for part in (*read["cues"], *read["words"])] == ["teacher", "teacher"]


def test_json_stays_json_when_a_probability_is_not_a_number() -> None:
    sentence = Sentence(0, 9, "x", "en", (Word("x", 0, 9, float("nan")),))
    assert json.loads(render("json", media=document(sentences=(sentence,))))["words"][0]["probability"] == 0.0


def test_plain_text_has_a_sentence_a_line_and_parts_paragraphs_at_long_pauses() -> None:
    sentences = (
        spoken("一。", 0, 1000),
        spoken("二\n。", 2999, 4000),
        spoken("  ", 4000, 4100),
        spoken("三。", 6100, 7000),
    )
    assert render("txt", media=document(sentences=sentences)) == "一。\n二 。\n\n三。\n"


def test_a_lone_surrogate_cannot_break_a_file() -> None:
    cue = Cue(0, 1000, ("a\ud800b",))
    for format in FORMATS:
        sentences = (spoken("a\ud800b", 0, 1000),)
        assert "ab" in render(format, media=document(cue, sentences=sentences)).encode("utf-8").decode("utf-8")


def test_an_unknown_format_is_a_usage_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'doc'.*srt, vtt, ass, ttml, json, txt"):
        render("doc", media=document())
    with pytest.raises(UsageError, match="'doc'"):
        export_path(Path(), "a", "zh", "doc")


@pytest.mark.parametrize(
    ("stem", "language", "name"),
    [
        ("lecture 1.part", "zh", "lecture 1.part.zh.srt"),
        ("讲座", "", "讲座.und.srt"),
        ("x", "../../etc", "x.und.srt"),
        ("a/b\nc\0", "en", "a_b_c_.en.srt"),
        ("", "en", "media.en.srt"),
        ("..", "en", "...en.srt"),
    ],
)
def test_an_export_is_named_after_its_media(stem: str, language: str, name: str) -> None:
    assert export_path(Path("out"), stem, language, "srt") == Path("out") / name


@given(st.text(max_size=400), st.sampled_from(["zh", "en-US", ""]), st.sampled_from(FORMATS))
def test_no_export_leaves_its_folder_or_has_too_long_a_name(stem: str, language: str, format: str) -> None:
    path = export_path(Path("out"), stem.encode("utf-8", "ignore").decode(), language, format)
    assert path.parent == Path("out")
    assert len(os.fsencode(path.name)) <= 255


def test_two_long_stems_do_not_share_a_file() -> None:
    first, second = (export_path(Path(), "讲" * 100 + end, "zh", "srt") for end in "ab")
    assert first != second


def test_a_stem_that_is_not_utf8_keeps_its_bytes() -> None:
    assert os.fsencode(export_path(Path(), "\udcff", "zh", "srt").name) == b"\xff.zh.srt"


def test_a_file_is_written_whole_with_ordinary_permissions(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.zh.srt"
    write_whole(path, "你好\n")
    write_whole(path, "再见\n")
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert path.read_bytes() == "再见\n".encode()
    assert names(path.parent) == ["a.zh.srt"]
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_failing_write_leaves_the_former_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "a.srt"
    write_whole(path, "before\n")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step, fail)
    with pytest.raises(RetriableError, match=r"cannot write .*a\.srt: No space left on device"):
        write_whole(path, "after\n")
    assert path.read_text() == "before\n"
    assert names(tmp_path) == ["a.srt"]


def test_an_interrupted_write_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.srt", "text\n")
    assert names(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_a_usage_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError) as caught:
        write_whole(tmp_path / "taken" / "a.srt", "text\n")
    assert "taken/a.srt" in caught.value.reason
    assert "\n" not in caught.value.reason


def test_a_folder_in_place_of_the_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "a.srt").mkdir()
    with pytest.raises(UsageError, match=r"a\.srt"):
        write_whole(tmp_path / "a.srt", "text\n")
    assert names(tmp_path) == ["a.srt"]


def test_a_refused_permission_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UsageError, match=r"Permission denied; choose a folder"):
        write_whole(tmp_path / "a.srt", "text\n")


def test_pysubs2_reads_a_cue_that_is_only_a_number() -> None:
    cues = [Cue(0, 1000, ("42",)), Cue(2000, 3000, ("43",))]
    for format in TIMED:
        read = pysubs2.SSAFile.from_string(render(format, media=document(*cues)), format_=format)
        assert [event.start for event in read] == [0, 2000]
