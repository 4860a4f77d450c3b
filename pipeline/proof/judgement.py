"""When a precision, or a batch of some size, is as good as it must be. Pure.

A precision is compared with float32 on the same engine: what its encoder gives, the first token of many windows, the
texts. A batch size is compared with the same slices one by one: the texts must be the same, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from pipeline.precision import Precision

Floats = npt.NDArray[np.floating]

MOST_L2: Mapping[Precision, float] = {
    Precision.FP32: 1e-3,
    Precision.BF16: 5e-2,
    Precision.FP16: 1e-2,
    Precision.INT8: 1e-1,
}
"""Relative L2 of the encoder's output."""
LEAST_FIRST_TOKENS: Mapping[Precision, float] = {
    Precision.FP32: 0.998,
    # As far off in the encoder as 8 bits are.
    Precision.BF16: 0.975,
    Precision.FP16: 0.998,
    Precision.INT8: 0.975,
}
"""Share of windows whose first token is that of float32."""
MOST_CER = 0.10
"""Of the texts, against those of float32. Whisper base itself writes 7 % of this speech wrongly; a broken precision
writes another text altogether."""
MOST_BATCH_CER = 0.01
"""Of all texts of a batch, against those of the slices alone."""
MOST_SLICE_CER = 0.10
"""Of any one of them: where two words are almost equally likely, rounding decides, and it depends on the batch."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether something holds, and what was measured, for people."""

    holds: bool
    said: str


@dataclass(frozen=True, slots=True)
class Difference:
    """How far texts are from those that they should be."""

    cer: float
    """Edits over characters, of all texts together."""
    worst_cer: float
    """Of the one text that is furthest off."""
    differing: int
    texts: int


def difference(found: Sequence[str], right: Sequence[str]) -> Difference:
    """Compares texts pair by pair, character by character.

    >>> difference(["abcd", "xy"], ["abcd", "xz"])
    Difference(cer=0.16666666666666666, worst_cer=0.5, differing=1, texts=2)
    """
    edits = [Levenshtein.distance(*pair) for pair in zip(found, right, strict=True)]
    lengths = [max(1, len(text)) for text in right]
    worst = max((edit / length for edit, length in zip(edits, lengths, strict=True)), default=0.0)
    return Difference(sum(edits) / max(1, sum(lengths)), worst, sum(map(bool, edits)), len(edits))


def relative_l2(found: Sequence[Floats], right: Sequence[Floats]) -> float:
    """The length of the difference over that of ``right``, all arrays as one; infinite where ``found`` is no number."""
    wrong = sum(float(np.square(a.astype(np.float64) - b).sum()) for a, b in zip(found, right, strict=True))
    whole = sum(float(np.square(b.astype(np.float64)).sum()) for b in right)
    share = math.sqrt(wrong / whole) if whole else math.inf
    return share if math.isfinite(share) else math.inf


def judge_encoder(precision: Precision, l2: float) -> Verdict:
    most = MOST_L2[precision]
    return Verdict(l2 <= most, f"encoder output off by {100 * l2:.2f} %, {100 * most:g} % allowed")


def judge_first_tokens(precision: Precision, found: Sequence[int], right: Sequence[int]) -> Verdict:
    """Of fewer windows than would show the share, all must agree."""
    same, least = sum(a == b for a, b in zip(found, right, strict=True)), LEAST_FIRST_TOKENS[precision]
    share = same / max(1, len(right))
    return Verdict(share >= least, f"first tokens agree in {same} of {len(right)}, {100 * least:g} % wanted")


def judge_texts(found: Difference) -> Verdict:
    return Verdict(found.cer <= MOST_CER, f"texts differ by {100 * found.cer:.2f} %, {100 * MOST_CER:g} % allowed")


def judge_batch(found: Difference) -> Verdict:
    """A wrong batch is far off; one that rounds otherwise is hardly so."""
    if not found.differing:
        return Verdict(True, f"all {found.texts} texts as alone")
    said = (
        f"{found.differing} of {found.texts} texts differ from those alone, by {100 * found.cer:.2f} % in all and "
        f"{100 * found.worst_cer:.1f} % at worst ({100 * MOST_BATCH_CER:g} % and {100 * MOST_SLICE_CER:g} % allowed)"
    )
    return Verdict(found.cer <= MOST_BATCH_CER and found.worst_cer <= MOST_SLICE_CER, said)
