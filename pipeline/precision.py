"""Which precision an engine computes in, and how many slices at once, as memory and time allow. Pure.

The ladder goes from the precision that is wanted down to what the engine can at least do. Where memory is short, or
batches are late and the next rung is faster, it goes down one rung; at the bottom the batches are halved. When all has
been calm for a while the batches grow again first, then it goes up one rung, never above what is wanted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum


class Precision(StrEnum):
    """What the encoder computes in; the most exact first."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    INT8 = "int8"


def ladder(wanted: Precision, able: Collection[Precision]) -> tuple[Precision, ...]:
    """What is wanted, and what lies below it, of what the engine can do.

    >>> [str(one) for one in ladder(Precision.FP16, {Precision.FP32, Precision.FP16, Precision.INT8})]
    ['fp16', 'int8']
    """
    order = list(Precision)
    return tuple(one for one in order[order.index(wanted) :] if one in able)


@dataclass(frozen=True, slots=True)
class PaceRules:
    """When to go down and when up. Shares are of the device's whole memory."""

    least_free: float = 0.08
    late_batches: int = 3
    """So many in a row, each over the target."""
    calm_batches: int = 20
    """A step up loads the model anew: it must be worth it."""
    calm_free: float = 0.16
    calm_share: float = 0.5
    """Of the target, that a calm batch takes at most."""
    target_ms: int | None = None
    """The longest that a batch should take; None sets no limit."""


@dataclass(frozen=True, slots=True)
class Load:
    """What was seen of one batch."""

    slices: int
    took_ms: int
    free: float | None
    """Share of the device's memory that is free; None where it cannot be told."""
    ran_out: bool = False
    """Whether memory ran out, so that the batch was done in parts."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The last rung of the ladder, counted from 0, and the most slices at once."""

    last_rung: int
    most_slices: int
    last_fast_rung: int | None = None
    """Those below it save memory, not time; None where each is faster than the one above."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Where on the ladder an engine is, and how many slices it takes at once."""

    rung: int
    memory_slices: int
    """What memory allows."""
    time_slices: int
    """What the latency target allows."""
    late: int = 0
    calm: int = 0
    """Batches in a row that were so."""

    @property
    def slices(self) -> int:
        return min(self.memory_slices, self.time_slices)


def first_pace(bounds: Bounds) -> Pace:
    return Pace(0, bounds.most_slices, bounds.most_slices)


def ran_out(pace: Pace, tried_slices: int) -> Pace:
    """Memory ran out in a batch of ``tried_slices``: half of it from now on."""
    return replace(pace, memory_slices=max(1, min(pace.memory_slices, tried_slices // 2)), calm=0)


def after_batch(pace: Pace, load: Load, bounds: Bounds, rules: PaceRules) -> tuple[Pace, str]:
    """The pace of the next batch, and why it changed its rung or its memory's bound; an empty text where it did not."""
    pace = replace(pace, time_slices=_in_time(load, bounds, rules))
    late = pace.late + 1 if rules.target_ms is not None and load.took_ms > rules.target_ms else 0
    if load.free is not None and load.free < rules.least_free:
        return _down(pace, bounds, f"{100 * load.free:.1f} % of the memory free")
    if load.ran_out:
        return _down(replace(pace, late=late), bounds, "memory ran out")
    if late >= rules.late_batches:
        fast = bounds.last_rung if bounds.last_fast_rung is None else bounds.last_fast_rung
        why = f"{late} batches in a row took longer than {rules.target_ms} ms"
        return _down(pace, replace(bounds, last_rung=fast), why)
    calm = pace.calm + 1 if _is_calm(load, rules) else 0
    if calm >= rules.calm_batches:
        return _up(pace, bounds, f"{calm} calm batches")
    return replace(pace, late=late, calm=calm), ""


def _in_time(load: Load, bounds: Bounds, rules: PaceRules) -> int:
    """At the last batch's time for a slice; a small batch's is too long for a large one, which shows as it grows."""
    if rules.target_ms is None or not load.took_ms:
        return bounds.most_slices
    return max(1, min(bounds.most_slices, rules.target_ms * load.slices // load.took_ms))


def _is_calm(load: Load, rules: PaceRules) -> bool:
    has_room = load.free is None or load.free >= rules.calm_free
    return has_room and (rules.target_ms is None or load.took_ms <= rules.calm_share * rules.target_ms)


def _down(pace: Pace, bounds: Bounds, why: str) -> tuple[Pace, str]:
    pace = replace(pace, late=0, calm=0)
    if pace.rung < bounds.last_rung:
        return replace(pace, rung=pace.rung + 1), why
    if pace.memory_slices > 1:
        return replace(pace, memory_slices=pace.memory_slices // 2), why
    return pace, ""


def _up(pace: Pace, bounds: Bounds, why: str) -> tuple[Pace, str]:
    pace = replace(pace, late=0, calm=0)
    if pace.memory_slices < bounds.most_slices:
        return replace(pace, memory_slices=min(bounds.most_slices, 2 * pace.memory_slices)), why
    if pace.rung > 0:
        return replace(pace, rung=pace.rung - 1), why
    return pace, ""
