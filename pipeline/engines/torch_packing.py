"""Numbers on a device: in a floating type, or in 8 bits with a scale for each vector.

In 8 bits weights, and the keys and values of sound and texts, take half the memory; all arithmetic stays in the
floating type. A vector's scale makes its largest number 127, so that each is off by 0.4 % of that at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Tensor = Any

_LARGEST = 127
_LEAST_SCALE = 1e-6
"""Of vectors that are zero; half precision can still hold it."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Vectors along the last axis."""

    numbers: Tensor
    """``(..., width)``, floating or int8."""
    scales: Tensor | None = None
    """``(...)``, of int8 numbers alone."""

    def __getitem__(self, at: Any) -> Packed:
        """Vectors chosen by the axes before the last one."""
        return Packed(self.numbers[at], None if self.scales is None else self.scales[at])

    def whole(self, dtype: Any) -> Tensor:
        """The numbers in a floating type."""
        if self.scales is None:
            return self.numbers
        return self.numbers.to(dtype) * self.scales[..., None].to(dtype)

    def put(self, at: Any, vectors: Tensor) -> None:
        """Put ``vectors``, in the floating type, where ``at`` chooses."""
        new = Packed(vectors) if self.scales is None else packed_of(vectors)
        self.numbers[at] = new.numbers
        if self.scales is not None:
            self.scales[at] = new.scales


def packed_of(vectors: Tensor) -> Packed:
    """In 8 bits; the scales in the type of ``vectors``."""
    highest = torch.linalg.vector_norm(vectors, torch.inf, dim=-1)
    scales = (highest / _LARGEST).clamp(min=_LEAST_SCALE)
    numbers = (vectors / scales[..., None]).round_()
    # A scale that was rounded down would make more of the largest one.
    return Packed(numbers.clamp_(-_LARGEST, _LARGEST).to(torch.int8), scales)


@dataclass(frozen=True, slots=True)
class Place:
    """Where and in what is computed: a device and a floating type, both PyTorch's."""

    device: Any
    dtype: Any
    is_int8: bool = False
    """Whether what is kept is packed into 8 bits."""

    def take(self, array: Any) -> Tensor:
        # Some arrays are views of a file that must not be written to; PyTorch wants writable ones.
        return torch.tensor(np.asarray(array)).to(self.device, self.dtype)

    def pack(self, vectors: Tensor) -> Packed:
        return packed_of(vectors) if self.is_int8 else Packed(vectors)

    def zeros(self, *shape: int) -> Packed:
        """Room for vectors."""
        numbers = torch.zeros(shape, device=self.device, dtype=torch.int8 if self.is_int8 else self.dtype)
        scales = torch.zeros(shape[:-1], device=self.device, dtype=self.dtype) if self.is_int8 else None
        return Packed(numbers, scales)

    @property
    def kept_bytes(self) -> int:
        """Of a number that is kept."""
        size: int = 1 if self.is_int8 else self.dtype.itemsize
        return size
