"""How likely Whisper finds a punctuation mark: the tokens that begin one, and their chances at each step.

The search keeps one text, and with it a mark or none at each place. How close that was tells more than the mark:
``pipeline.postprocess.mark_hearing`` uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_DIGITS = 3
_INSIDE = (",", "，", "、", ":", ";")
"""The full-width marks but 、 and 。 begin with one and the same byte, which is a token; most of them are commas."""
_ENDS = (".", "。", "?", "!", "…", "...")


@dataclass(frozen=True, slots=True)
class MarkTokens:
    """The tokens that begin a mark inside a sentence, and those of a mark that ends one."""

    inside: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    @staticmethod
    def of(tokenizer: Any) -> MarkTokens:
        """``tokenizer`` is the model's, of the ``tokenizers`` package."""

        def first(marks: Sequence[str]) -> tuple[int, ...]:
            return tuple({int(tokenizer.encode(mark, add_special_tokens=False).ids[0]): None for mark in marks})

        return MarkTokens(first(_INSIDE), first(_ENDS))

    def chances(self, best: npt.NDArray[np.integer], logprobs: npt.NDArray[np.floating]) -> list[tuple[float, float]]:
        """For each row, the chance that a mark inside the sentence comes next, and that its end does; 0 for a mark that
        is not among the likeliest tokens.

        ``best (rows, k)`` are the likeliest tokens of a step and ``logprobs (rows, k)`` their log-probabilities.
        """
        shares = np.exp(logprobs.astype(np.float64))
        inside, ends = (np.where(np.isin(best, group), shares, 0.0).sum(-1) for group in (self.inside, self.ends))
        return list(zip(rounded(inside), rounded(ends), strict=True))


NO_MARKS = MarkTokens()


def rounded(chances: npt.NDArray[np.float64]) -> Any:
    """As lists of numbers with few digits, for they are stored with each word; 0 for what a failing device gave."""
    return np.nan_to_num(chances.round(_DIGITS)).clip(0.0, 1.0).tolist()
