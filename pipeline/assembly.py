"""Puts the line together: options and models in, ``LineOptions`` and ``LineTools`` out. The one place that wires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pipeline.decoding import find_ffmpeg
from pipeline.driver import LineOptions, LineTools
from pipeline.errors import InvalidInputError, UsageError
from pipeline.glossary_file import LANGUAGES, load_glossary
from pipeline.hearing import HearingRules
from pipeline.judging import JudgeRules
from pipeline.keys import engine_key
from pipeline.models import LocalModel, fetch_model, find_model
from pipeline.postprocess import Glossary, PostprocessOptions, prompt_sentence
from pipeline.settings import Device, Settings, choose_device, open_database
from pipeline.speech import Detector
from pipeline.store_line import LineStore
from pipeline.transcription import LADDER, Engine, TranscriptionOptions

LANGUAGES_WITH_PROMPT = ("zh", "en")
MAX_PROMPT_CHARACTERS = 200
DETECTORS = ("silero", "pyannote")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user asked of ``lecturemill run``, as it was typed."""

    course_id: str
    language: str = "auto"
    glossary: Path | None = None
    model: str = "base"
    device: str = "auto"
    vad: str = "silero"
    audio_track: int | None = None
    usd_per_hour: float = 0.10
    engine: str = "auto"


def line_options(request: RunRequest) -> LineOptions:
    """Checks what can be checked before any work. Raises UsageError, also for a glossary with a bad row."""
    glossary = read_glossary(request.glossary)
    return LineOptions(
        course_id=checked_course(request.course_id),
        hearing=HearingRules(checked_language(request.language), request.audio_track),
        glossary=glossary,
        prompts=prompts_for(glossary),
        transcription=TranscriptionOptions(LADDER, JudgeRules()),
        postprocess=PostprocessOptions(),
    )


def with_stored_glossary(options: LineOptions, store: LineStore) -> LineOptions:
    """The options with the glossary that was imported for their course, which is empty where none was."""
    glossary = store.glossary(options.course_id)
    return replace(options, glossary=glossary, prompts=prompts_for(glossary))


def prompts_for(glossary: Glossary) -> dict[str, str]:
    """What Whisper is told before it listens, by language."""
    return {name: prompt_sentence(glossary, name, MAX_PROMPT_CHARACTERS) for name in LANGUAGES_WITH_PROMPT}


@contextmanager
def open_tools(request: RunRequest, settings: Settings, say: Callable[[str], None]) -> Iterator[LineTools]:
    """Models found (fetched, the first time), the database up; the engine is loaded when it is first needed."""
    device = choose_device(request.device, request.engine)
    make_detector, detector_fingerprint = find_detector(request.vad, settings, say)
    model = present_model(request.model, settings, say)
    fingerprint = engine_key(model.fingerprint, device.engine, device.name, device.compute_type)
    with open_database(settings) as url, LineStore.open(url) as store:
        yield LineTools(
            engine=cache(lambda: load_engine(model, fingerprint, device, settings)),
            engine_fingerprint=fingerprint,
            detector=make_detector,
            detector_fingerprint=detector_fingerprint,
            store=store,
            ffmpeg=find_ffmpeg(),
            usd_per_hour=request.usd_per_hour,
        )


def present_model(name: str, settings: Settings, say: Callable[[str], None]) -> LocalModel:
    """The model from its folder or the cache; a known name that is not there yet is fetched."""
    try:
        return find_model(name, settings.models)
    except UsageError:
        if Path(name).exists():
            raise
        return fetch_model(name, settings.models, say)


def read_glossary(path: Path | None) -> Glossary:
    """A course's terms from their CSV, empty without one. Raises UsageError where the file is bad.

    Status 1 would say that some media failed, and none was tried.
    """
    try:
        return load_glossary(path) if path else Glossary.empty()
    except InvalidInputError as error:
        raise UsageError(error.reason) from error


def checked_course(asked: str) -> str:
    """``asked``. Raises UsageError where it is no name."""
    if not asked.strip() or not asked.isprintable():
        raise UsageError(f"--course must be a name of printable characters, not {asked!a}")
    return asked


def checked_language(asked: str) -> str | None:
    """The code, or None for ``auto``. Raises UsageError where Whisper does not know it."""
    if asked == "auto":
        return None
    if asked not in LANGUAGES:
        raise UsageError(f"--language must be auto or one of Whisper's codes (zh, en, …), not {asked!r}")
    return asked


def load_engine(model: LocalModel, fingerprint: str, device: Device, settings: Settings) -> Engine:
    """The model in memory. Raises UsageError where it cannot be loaded on the device."""
    if (device.engine, device.name) == ("fused", "cuda"):
        from pipeline.engines.torch_whisper import TorchOptions, load_torch

        return load_torch(model.folder, fingerprint, TorchOptions(device.name, device.compute_type))
    if device.engine == "fused":
        from pipeline.engines.openvino_whisper import load_fused

        return load_fused(model.folder, fingerprint, arithmetic=device.compute_type, threads=settings.threads)
    from pipeline.engines.faster_whisper import FasterWhisperEngine

    return FasterWhisperEngine(
        model.folder, fingerprint, device=device.name, compute_type=device.compute_type, threads=settings.threads
    )


def find_detector(name: str, settings: Settings, say: Callable[[str], None]) -> tuple[Callable[[], Detector], str]:
    """How to make a detector (one per media), and the fingerprint of its weights."""
    if name == "silero":
        from pipeline.detectors.silero import SileroDetector, load_silero

        weights = present_model("silero-vad", settings, say)
        session = load_silero(next(weights.folder.glob("*.onnx")))
        return (lambda: SileroDetector(session, weights.fingerprint)), weights.fingerprint
    if name == "pyannote":
        from pipeline.detectors.pyannote import PyannoteDetector, load_pyannote

        weights = present_model("pyannote-segmentation", settings, say)
        model = load_pyannote(weights.folder / "pytorch_model.bin")
        return (lambda: PyannoteDetector(model, weights.fingerprint)), weights.fingerprint
    raise UsageError(f"--vad must be one of {', '.join(DETECTORS)}, not {name!r}")
