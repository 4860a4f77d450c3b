"""Subtitle profiles: those that come with the project, and a school's own file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.postprocess.script import SCRIPTS
from pipeline.profile_wishes import Wishes, profile_of, read_profile
from pipeline.subtitle_profiles import (
    BUILT_IN,
    NETFLIX,
    profile_from_json,
    profile_from_toml,
    profile_named,
    profile_to_json,
)

SCHOOL = """
base = "bbc"
script = "s2hk"
numbers = false
fillers = "clean"

[wide]
max_units_per_line = 18
[narrow]
max_units_per_second = 15
closing_gap_ms = 40
"""


def test_the_languages_of_a_profile_have_the_rules_of_their_writing() -> None:
    hant = BUILT_IN["netflix-zh-hant"]
    assert hant.cues_for("zh-TW").name == "netflix-zh-hant"
    assert (hant.cues_for("en"), hant.script) == (NETFLIX.narrow, "s2twp")


def test_a_school_changes_what_its_file_names_and_nothing_else() -> None:
    bbc, school = BUILT_IN["bbc"], profile_from_toml(SCHOOL, "school.toml")
    assert school == replace(
        bbc,
        name="school.toml",
        wide=replace(bbc.wide, max_units_per_line=18),
        narrow=replace(bbc.narrow, max_units_per_second=15, closing_gap_ms=40),
        script="s2hk",
        numbers=False,
        fillers="clean",
    )
    assert (school.postprocess.script, school.postprocess.numbers) == ("s2hk", False)


def test_an_empty_file_is_netflix() -> None:
    assert replace(profile_from_toml("", "x.toml"), name="netflix") == NETFLIX


def test_the_file_in_the_manual_is_a_good_one() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "running.md").read_text("utf-8")
    school = profile_from_toml(manual.split("```toml\n")[1].split("```")[0], "school.toml")
    assert (school.script, school.wide.max_units_per_line, school.narrow.max_lines) == ("s2hk", 18, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[wide", "x.toml: Expected"),
        ("colour = 1", "x.toml: Object contains unknown field `colour`"),
        ("[wide]\nfoo = 1", "unknown field `foo` - at `$.wide`"),
        ("[wide]\nmax_units_per_line = 'a'", "at `$.wide.max_units_per_line`"),
        ("[narrow]\nmax_units_per_line = 0", "x.toml: [narrow] max_units_per_line must be from 1 to 200, not 0"),
        ("[wide]\nmax_lines = 3", "x.toml: [wide] max_lines must be from 1 to 2, not 3"),
        ("[wide]\nmin_duration_ms = 9000", "[wide] min_duration_ms must be above 0 and at most max_duration_ms"),
        ("[wide]\nmin_gap_ms = 900", "x.toml: [wide] min_gap_ms must be at least 1 and at most closing_gap_ms"),
        ("base = 'hbo'", "x.toml: there is no subtitle profile 'hbo'; choose netflix, netflix-zh-hant, bbc"),
        ("script = 'x'", f"x.toml: there is no script 'x'; choose one of {', '.join(SCRIPTS)}"),
        ("fillers = 'none'", "x.toml: fillers must be verbatim or clean, not 'none'"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_says_where(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile_from_toml(text, "x.toml")
    assert said in caught.value.reason
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_profile_survives_its_keeping(name: str) -> None:
    assert profile_from_json(profile_to_json(BUILT_IN[name])) == BUILT_IN[name]


def test_the_fingerprint_follows_the_rules_for_cues_only() -> None:
    assert replace(NETFLIX, name="other", script="s2t").fingerprint == NETFLIX.fingerprint
    assert len({profile.fingerprint for profile in (NETFLIX, BUILT_IN["bbc"], BUILT_IN["netflix-zh-hant"])}) == 3


def test_a_name_that_is_unknown_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match=r"choose netflix, netflix-zh-hant, bbc, or name a \.toml file"):
        profile_named("hbo")


def test_a_profile_is_read_from_a_file_and_single_wishes_go_before_it(tmp_path: Path) -> None:
    file = tmp_path / "school.toml"
    file.write_text(SCHOOL, "utf-8")
    assert read_profile(str(file)) == profile_from_toml(SCHOOL, "school.toml")
    wished = profile_of(Wishes(str(file), script="t2s"), NETFLIX)
    assert (wished.script, wished.fillers) == ("t2s", "clean")


def test_what_is_not_wished_for_stays_as_the_course_has_it() -> None:
    assert profile_of(Wishes(fillers="clean"), BUILT_IN["bbc"]) == replace(BUILT_IN["bbc"], fillers="clean")


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read"), (b"\xff\xfe\xfa", "no text in UTF-8"), (b"#" * 200_000, "short")]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "school.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_profile(str(file))


@pytest.mark.parametrize("name", ["x" * 256, "x" * 300 + ".toml"])
def test_a_name_that_no_file_can_have_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_profile(name)
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize("wish", [Wishes(script="x"), Wishes(fillers="x"), Wishes(profile="x")])
def test_a_wish_that_cannot_be_granted_is_refused(wish: Wishes) -> None:
    with pytest.raises(UsageError):
        profile_of(wish, NETFLIX)
