"""Puts the line together: options and models in, ``LineOptions`` and ``LineTools`` out. The one place that wires."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pipeline.decoding import find_ffmpeg
from pipeline.devices import MAX_BATCH_SLICES, Device, choose_device
from pipeline.driver import LineOptions, LineTools, Listener
from pipeline.engine_loading import Wanted, load_guarded
from pipeline.errors import InvalidInputError, UsageError
from pipeline.glossary_file import LANGUAGES, load_glossary
from pipeline.guarding import Watch
from pipeline.hearing import HearingRules
from pipeline.identity import digest
from pipeline.judging import JudgeRules
from pipeline.memory import give_back_large_blocks
from pipeline.models import LocalModel, fetch_model, find_model
from pipeline.postprocess import Glossary, prompt_sentence
from pipeline.precision import Precision
from pipeline.profile_wishes import Wishes, profile_of
from pipeline.settings import Settings, open_database
from pipeline.speech import Detector
from pipeline.store_line import LineStore
from pipeline.subtitle_profiles import NETFLIX
from pipeline.transcription import LADDER, Engine, TranscriptionOptions

LANGUAGES_WITH_PROMPT = ("zh", "en")
MAX_PROMPT_TOKENS = 159
"""Engines cut a prompt at 160, and a space comes before it."""
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
    wanted: Wishes = field(default_factory=Wishes)
    """How the subtitles are wanted, where that is not left to the course."""
    speakers: bool = False


def line_options(request: RunRequest) -> LineOptions:
    """Checks what can be checked before any work. Raises UsageError, also for a glossary with a bad row."""
    glossary = read_glossary(request.glossary)
    profile = profile_of(request.wanted, NETFLIX)
    return LineOptions(
        course_id=checked_course(request.course_id),
        hearing=HearingRules(checked_language(request.language), request.audio_track),
        glossary=glossary,
        prompts=prompts_for(glossary),
        transcription=TranscriptionOptions(LADDER, JudgeRules()),
        postprocess=profile.postprocess,
        profile=profile,
        speakers=request.speakers,
    )


def with_stored_glossary(options: LineOptions, store: LineStore) -> LineOptions:
    """The options with the glossary that was imported for their course, which is empty where none was."""
    glossary = store.glossary(options.course_id)
    return replace(options, glossary=glossary, prompts=prompts_for(glossary))


def with_stored_profile(options: LineOptions, request: RunRequest, store: LineStore) -> LineOptions:
    """The options with the subtitle profile of their course, but for what was asked for."""
    profile = profile_of(request.wanted, store.profile(options.course_id))
    return replace(options, profile=profile, postprocess=profile.postprocess)


def with_title(options: LineOptions, title: str) -> LineOptions:
    """The options for a media of that title: of a large glossary, other terms go into the prompts."""
    return replace(options, prompts=prompts_for(options.glossary, title))


def prompts_for(glossary: Glossary, title: str = "") -> dict[str, str]:
    """What Whisper is told before it listens to a media of that title, by language."""
    return {name: prompt_sentence(glossary, name, MAX_PROMPT_TOKENS, title) for name in LANGUAGES_WITH_PROMPT}


@contextmanager
def open_tools(request: RunRequest, settings: Settings, say: Callable[[str], None]) -> Iterator[LineTools]:
    """Models found (fetched, the first time), the database up; the engine is loaded when it is first needed."""
    give_back_large_blocks()
    device = choose_device(request.device, request.engine, settings.precision, os.environ)
    make_detector, detector_fingerprint = find_detector(request.vad, settings, say)
    load_listener, listener_fingerprint = find_listener(settings, say) if request.speakers else (None, "")
    model = present_model(request.model, settings, say)
    fingerprint = wanted_of(model, device, settings).fingerprint
    with open_database(settings) as url, LineStore.open(url) as store:
        yield LineTools(
            engine=cache(lambda: load_engine(model, device, settings, None, SayingWatch(say))),
            engine_fingerprint=fingerprint,
            detector=make_detector,
            detector_fingerprint=detector_fingerprint,
            store=store,
            ffmpeg=find_ffmpeg(),
            usd_per_hour=request.usd_per_hour,
            listener=load_listener,
            listener_fingerprint=listener_fingerprint,
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


class SayingWatch(Watch):
    """Says what the guard of an engine does."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def stepped(self, label: str, precision: Precision, why: str, *, is_down: bool) -> None:
        self._say(f"precision {'down' if is_down else 'up'} to {precision} ({label}): {why}")

    def bounded(self, slices: int, why: str) -> None:
        self._say(f"at most {slices} slices at once: {why}")

    def ran_out(self, slices: int) -> None:
        self._say(f"out of memory with {slices} slices at once")

    def refused(self, slices: int, label: str, why: str) -> None:
        self._say(f"no batches of {slices} ({label}): {why}; run: lecturemill doctor --engine")


def wanted_of(model: LocalModel, device: Device, settings: Settings) -> Wanted:
    return Wanted(model.folder, model.fingerprint, device, settings.threads)


def load_engine(
    model: LocalModel,
    device: Device,
    settings: Settings,
    target_ms: int | None,
    watch: Watch,
    most: int = MAX_BATCH_SLICES,
) -> Engine:
    """The model in memory, under guard. ``target_ms``: how long a batch may take, where that counts.

    Raises UsageError where it cannot be loaded on the device, and OutOfMemoryError where it does not fit.
    """
    wanted = wanted_of(model, device, settings)
    return load_guarded(wanted, home=settings.home, most_slices=most, target_ms=target_ms, watch=watch)


def find_listener(settings: Settings, say: Callable[[str], None]) -> tuple[Callable[[], Listener], str]:
    """How to load what tells speakers apart, and the fingerprint of its weights.

    Raises UsageError where the extra is not installed, before any work is done.
    """
    if any(find_spec(name) is None for name in ("pyannote", "torchaudio")):
        raise UsageError("--speakers needs the extra 'diarization': pip install 'lecturemill[diarization]'")
    segmentation = present_model("pyannote-segmentation", settings, say)
    embedding = present_model("campplus", settings, say)

    @cache
    def load() -> Listener:
        from pipeline.detectors.speakers import load_speakers

        return load_speakers(segmentation.folder / "pytorch_model.bin", embedding.folder / "campplus_cn_en_common.pt")

    return load, digest(segmentation.fingerprint, embedding.fingerprint)


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
