"""Settings: what the environment and the options say, resolved once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.settings import open_database, settings_from


def test_options_come_before_the_environment_and_that_before_the_embedded_database() -> None:
    assert settings_from({}).database_url is None
    assert settings_from({"DATABASE_URL": ""}).database_url is None
    assert settings_from({"DATABASE_URL": "postgresql://a/b"}).database_url == "postgresql://a/b"
    assert settings_from({"DATABASE_URL": "postgresql://a/b"}, "postgresql://c/d").database_url == "postgresql://c/d"


def test_a_home_is_absolute_and_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert settings_from({"LECTUREMILL_HOME": "state"}).home == tmp_path / "state"
    assert settings_from({"LECTUREMILL_HOME": "~/state"}).home == tmp_path / "user" / "state"


def test_without_a_home_the_users_data_folder_is_taken() -> None:
    assert settings_from({}).home.name == "lecturemill"
    assert settings_from({"LECTUREMILL_HOME": ""}).home == settings_from({}).home


def test_the_model_cache_is_the_same_whichever_home_is_used(tmp_path: Path) -> None:
    assert settings_from({"LECTUREMILL_HOME": str(tmp_path)}).models == settings_from({}).models


@pytest.mark.parametrize("home", ["file", "file/below"])
def test_a_home_that_cannot_be_a_folder_is_wrong_usage(home: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = settings_from({"LECTUREMILL_HOME": str(tmp_path / home)})
    with pytest.raises(UsageError, match=r"cannot be written.*LECTUREMILL_HOME"), open_database(settings):
        pass


def test_the_latency_target_is_in_seconds_and_has_a_default() -> None:
    assert settings_from({}).latency_ms == 60_000
    assert settings_from({"LECTUREMILL_LATENCY_S": "2.5"}).latency_ms == 2_500


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
def test_a_latency_target_that_is_no_time_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="LECTUREMILL_LATENCY_S"):
        settings_from({"LECTUREMILL_LATENCY_S": text})
