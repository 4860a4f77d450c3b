"""What Whisper and a voice make of punctuation, as plain rules: the noise that the mark model is trained against.

A paragraph's true marks become what the line would see of them: pauses (drawn for each kind of mark), stretched
syllables where a pause was not detected, Whisper's own marks (kept, lost, exchanged, one place off; whole stretches
without any, or with commas only), and words that were misheard. All figures are choices made by hand after counting
marks and pauses in lectures of our own; none is fitted to the recordings that the benchmark scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

READ_SHARE = 0.67
"""So many paragraphs are heard as lectures are that somebody reads out."""

NONE, COMMA, LIST, END, QUESTION, EXCLAMATION, COLON, SEMICOLON = range(8)
"""The classes inside this module, for both languages; LIST is the Chinese enumeration comma."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Tensors of one shape (batch, units); stretch is of the usual length, ``pauses_ms`` are after each unit."""

    ids: Tensor
    pauses_ms: Tensor
    stretch: Tensor
    marks: Tensor
    capitals: Tensor


def _uniform(like: Tensor, low: float, high: float) -> Tensor:
    """One draw a paragraph."""
    return torch.rand(len(like), 1, device=like.device) * (high - low) + low


def _lognormal(like: Tensor, median: float, spread: float) -> Tensor:
    return median * torch.exp(torch.randn(like.shape, device=like.device) * spread)


def _chance(like: Tensor) -> Tensor:
    return torch.rand(like.shape, device=like.device)


def hear(ids: Tensor, labels: Tensor, capitals: Tensor, homophones: Tensor, openers: Tensor, is_chinese: bool) -> Heard:
    """One random hearing of a batch of paragraphs; ``labels`` are of the classes above.

    ``openers`` tells of each unit of the vocabulary whether a phrase may begin with it: voices pause there, too.
    """
    ends = (labels == END) | (labels == QUESTION) | (labels == EXCLAMATION)
    commas = (labels == COMMA) | (labels == COLON) | (labels == SEMICOLON)
    pauses = _pauses(labels, ends, commas, torch.roll(openers[ids], -1, 1), is_chinese)
    marks = _whisper(labels, pauses, ends, is_chinese)
    pauses = _where_marks_are(pauses, marks)
    # A voice lengthens the syllable before a pause; where it does not pause, it seldom does.
    usual = 1.03 if is_chinese else 0.65
    lengthened = (pauses >= 100) | ((labels != NONE) & (_chance(labels) < 0.2))
    stretch = torch.where(lengthened, _lognormal(labels, 1.42 * usual, 0.3), _lognormal(labels, usual, 0.33))
    original = capitals.bool()
    lost_end = _after(ends & ~_is_end(marks))
    new_end = _after(_is_end(marks) & ~ends)
    capitals = torch.where(lost_end & (_chance(labels) < 0.7), torch.zeros_like(original), original) | new_end
    return Heard(_misheard(ids, homophones, is_chinese), pauses, stretch, marks, capitals.float())


def _is_end(marks: Tensor) -> Tensor:
    return (marks == END) | (marks == QUESTION) | (marks == EXCLAMATION)


def _after(flags: Tensor) -> Tensor:
    return torch.nn.functional.pad(flags[:, :-1], (1, 0))


def _moved(values: Tensor, share: float, empty: float) -> Tensor:
    """A ``share`` of the values one unit later or earlier, where nothing stands yet."""
    for step in (1, -1):
        picked = (values != empty) & (_chance(values) < share / 2)
        target = torch.roll(picked, step, 1) & (values == empty)
        source = torch.roll(target, -step, 1)
        moved = torch.where(target, torch.roll(values, step, 1), values)
        values = torch.where(source, torch.full_like(values, empty), moved)
    return values


def _pauses(labels: Tensor, ends: Tensor, commas: Tensor, before_phrase: Tensor, is_chinese: bool) -> Tensor:
    nothing = torch.zeros(labels.shape, device=labels.device)
    run_on = torch.where(_uniform(labels, 0, 1) < 0.25, 0.35, 0.06)
    short = torch.where(_chance(labels) < 0.15, nothing, _lognormal(labels, 210, 0.25))
    at_end = torch.where(_chance(labels) < run_on, short, _lognormal(labels, 520, 0.5).clamp(220, 5000))
    at_comma = torch.where(_chance(labels) < _uniform(labels, 0.05, 0.5), nothing, _lognormal(labels, 240, 0.33))
    at_list = torch.where(_chance(labels) < _uniform(labels, 0.2, 0.8), nothing, _lognormal(labels, 190, 0.4))
    kind = _uniform(labels, 0, 1)
    rates = (0.004, 0.012, 0.04) if is_chinese else (0.02, 0.045, 0.09)
    rate = torch.where(kind < 0.6, rates[0], torch.where(kind < 0.88, rates[1], rates[2]))
    rate = torch.where(before_phrase, rate * (6 if is_chinese else 3), rate * 0.4)
    inside = torch.where(_chance(labels) < rate, _lognormal(labels, 220 if is_chinese else 290, 0.4), nothing)
    pauses = torch.where(ends, at_end, torch.where(commas, at_comma, torch.where(labels == LIST, at_list, inside)))
    return _moved(torch.where(pauses < 40, nothing, pauses).round(), 0.03, 0.0)


def _where_marks_are(pauses: Tensor, marks: Tensor) -> Tensor:
    """Of two paragraphs in three, as of lectures that are read out: a pause is heard where Whisper set a mark.

    The alignment gives the silence to the mark; without one, the words around it swallow a pause below 200 ms.
    """
    is_read = _uniform(pauses, 0, 1) < READ_SHARE
    swallowed = is_read & (marks == NONE) & (_chance(pauses) < 0.985)
    given = is_read & (marks != NONE) & (pauses == 0) & (_chance(pauses) < 0.97)
    silent = torch.where(swallowed, torch.zeros_like(pauses), pauses)
    return torch.where(given, _lognormal(pauses, 250, 0.3).round(), silent)


_SURE = {  # true class -> chances of what a careful Whisper writes for it
    COMMA: {COMMA: 0.84, NONE: 0.12, END: 0.03, LIST: 0.01},
    LIST: {LIST: 0.38, COMMA: 0.4, NONE: 0.22},
    END: {END: 0.87, COMMA: 0.10, NONE: 0.03},
    QUESTION: {QUESTION: 0.66, END: 0.2, COMMA: 0.1, NONE: 0.04},
    EXCLAMATION: {END: 0.6, EXCLAMATION: 0.25, COMMA: 0.1, NONE: 0.05},
    COLON: {COMMA: 0.35, COLON: 0.3, NONE: 0.2, END: 0.15},
    SEMICOLON: {COMMA: 0.45, END: 0.35, SEMICOLON: 0.1, NONE: 0.1},
}


def _whisper(labels: Tensor, pauses: Tensor, ends: Tensor, is_chinese: bool) -> Tensor:
    """Careful, bare, or commas only; the manner may change once in a paragraph, as it does from slice to slice."""
    drawn, marks = _chance(labels), torch.zeros_like(labels)
    if not is_chinese:  # in which Whisper is surer: half of its slips
        drawn = torch.where(_chance(labels) < 0.5, drawn * 0.5, drawn)
    for true, chances in _SURE.items():
        reached = 0.0
        for given, chance in chances.items():
            marks = torch.where((labels == true) & (drawn >= reached) & (drawn < reached + chance), given, marks)
            reached += chance
    marks = torch.where((labels == COMMA) & (pauses == 0) & (_chance(labels) < 0.3), NONE, marks)
    wanted = 0.004 + 0.22 * ((pauses >= 160) & (labels == NONE))
    marks = torch.where((labels == NONE) & (_chance(labels) < wanted), COMMA, marks)
    full = 0.0007 + 0.06 * (pauses >= 320)
    marks = torch.where((labels == NONE) & (_chance(labels) < full), END, marks)
    places = torch.arange(labels.shape[1], device=labels.device)[None]
    is_late = places >= _uniform(labels, 0, labels.shape[1] * 1.6)
    manner = torch.where(is_late, _uniform(labels, 0, 1), _uniform(labels, 0, 1))
    commas, bare = (0.1, 0.1) if is_chinese else (0.03, 0.06)
    commas_only = (manner < commas) & ends & (_chance(labels) < 0.8)
    marks = torch.where(commas_only, COMMA, marks)
    is_bare = (manner > 1 - bare) & (_chance(labels) < 0.96)
    return _moved(torch.where(is_bare, NONE, marks), 0.015, NONE)


def _misheard(ids: Tensor, homophones: Tensor, is_chinese: bool) -> Tensor:
    """Words exchanged in clumps, as unknown terms are: for homophones in Chinese, for any others in English."""
    rate = _uniform(ids, 0, 0.22 if is_chinese else 0.06)
    seeds = _chance(ids) < rate / 2
    picked = seeds | (_after(seeds) & (_chance(ids) < 0.8))
    if is_chinese:
        column = torch.randint(0, homophones.shape[1], ids.shape, device=ids.device)
        other = homophones[ids, column]
    else:
        row, column = (torch.randint(0, size, ids.shape, device=ids.device) for size in ids.shape)
        other = ids[row, column]
    forgotten = (_chance(ids) < _uniform(ids, 0, 0.08)) & (ids > 4)
    return torch.where(forgotten, 1, torch.where(picked & (ids > 4), other, ids))
