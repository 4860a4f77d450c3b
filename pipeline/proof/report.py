"""The whole proof, on demand: every precision of an engine against float32, every batch size against its slices alone.

What is found is kept where the engine looks before it works: a precision or a size that does not hold is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.engine_loading import Wanted, load_exact, load_plain, rungs_of, verdicts_of
from pipeline.errors import OutOfMemoryError, RetriableError
from pipeline.precision import Precision
from pipeline.proof.batches import PRECISION, SIZES, BatchProof
from pipeline.proof.judgement import (
    Verdict,
    difference,
    judge_encoder,
    judge_first_tokens,
    judge_texts,
    relative_l2,
)
from pipeline.proof.speech import windows
from pipeline.proof.verdicts import Verdicts
from pipeline.transcription import LADDER, Inspectable, Look

WINDOWS = {"cpu": 80, "cuda": 512}
"""Whose first tokens are compared: so many that the share that is wanted can be told, in a minute."""
_SOUNDS = 8
"""Of which the encoder's output is compared; those of a large model are 8 MB each."""
_TEXTS = 8
_TOGETHER = 16
_BEAM = LADDER[0].beam_size
_OTHER = "set LECTUREMILL_PRECISION or LECTUREMILL_ENGINE to another one"


@dataclass(frozen=True, slots=True)
class Proven:
    """One thing that was tried. ``remedy`` says what to do where it does not hold."""

    what: str
    holds: bool
    said: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Shown:
    """What an engine made of the proof's speech."""

    looks: Sequence[Look]
    texts: Sequence[str]


def prove(wanted: Wanted, most_slices: int, home: Path, say: Callable[[str], None]) -> Iterator[Proven]:
    """Everything that is in use: the rungs of the ladder, and batches up to ``most_slices``.

    Raises UsageError, or OutOfMemoryError, where the engine cannot be loaded.
    """
    say(f"{wanted.label_in(Precision.FP32)}, to compare with")
    right = _exact(wanted)
    for precision in rungs_of(wanted.device):
        label = wanted.label_in(precision)
        say(label)
        try:
            yield from _rung(wanted, precision, right, most_slices, verdicts_of(wanted, precision, home))
        except RetriableError as error:  # the other precisions are proven all the same
            yield Proven(label, False, error.reason, f"end what else uses the device; {_OTHER}")


def _exact(wanted: Wanted) -> _Shown:
    """In a function of its own: the engine must be gone before the next one is loaded."""
    engine = load_exact(wanted)
    return _shown(engine, BatchProof(engine, Verdicts(None)), WINDOWS[wanted.device.name])


def _shown(engine: Inspectable, proof: BatchProof, count: int) -> _Shown:
    looked = windows(count, proof.languages)
    parts = [looked[:_SOUNDS], *(looked[at : at + _TOGETHER] for at in range(_SOUNDS, count, _TOGETHER))]
    looks = [look for at, part in enumerate(parts) for look in engine.look(part, with_sound=at == 0)]
    return _Shown(looks, proof.texts_alone(_TEXTS, _BEAM))


def _rung(
    wanted: Wanted, precision: Precision, right: _Shown, most_slices: int, verdicts: Verdicts
) -> Iterator[Proven]:
    engine = load_plain(wanted, precision)
    proof = BatchProof(engine, verdicts)
    label = wanted.label_in(precision)
    judged = list(_judged(precision, _shown(engine, proof, len(right.looks)), right))
    verdicts.put(PRECISION, Verdict(all(one.holds for one in judged), "; ".join(one.said for one in judged)))
    yield from (_proven(label, one, f"{label} is not used, but another one; or {_OTHER}") for one in judged)
    most = min(most_slices, getattr(engine, "most_slices", most_slices))
    sizes = [size for size in SIZES if 1 < size <= most]
    # Retries search otherwise and are few: the largest batch stands for them.
    tried = [(size, _BEAM) for size in sizes] + [(size, beam) for size in sizes[-1:] for beam in _other_beams()]
    for size, beam_size in tried:
        yield _size(label, proof, size, beam_size)


def _other_beams() -> list[int]:
    return sorted({decoding.beam_size for decoding in LADDER} - {_BEAM}, reverse=True)


def _judged(precision: Precision, found: _Shown, right: _Shown) -> Iterator[Verdict]:
    sounds = [
        (one.encoded, other.encoded)
        for one, other in zip(found.looks, right.looks, strict=True)
        if one.encoded is not None and other.encoded is not None
    ]
    yield judge_encoder(precision, relative_l2([one for one, _ in sounds], [other for _, other in sounds]))
    first, right_first = ([look.first_token for look in looks] for looks in (found.looks, right.looks))
    yield judge_first_tokens(precision, first, right_first)
    yield judge_texts(difference(_folded(found.texts), _folded(right.texts)))


def _folded(texts: Sequence[str]) -> list[str]:
    """In simplified characters, without marks and spaces: Whisper turns from one script to the other at a whim."""
    from opencc import OpenCC  # a quarter of a second, which only the proof needs

    simplified = map(OpenCC("t2s").convert, texts)
    return ["".join(letter for letter in text.lower() if letter.isalnum()) for text in simplified]


def _size(label: str, proof: BatchProof, size: int, beam_size: int) -> Proven:
    what = f"{label}, batch {size}, beam {beam_size}"
    try:
        verdict = proof.of_size(size, beam_size, anew=True)
    except OutOfMemoryError:
        return Proven(what, True, "does not fit into the memory now: smaller ones are used", "")
    return _proven(what, verdict, f"batches of {size} are not used; nothing need be done, or update the libraries")


def _proven(what: str, verdict: Verdict, remedy: str) -> Proven:
    return Proven(what, verdict.holds, verdict.said, "" if verdict.holds else remedy)
