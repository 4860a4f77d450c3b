"""What the figures of ``bench.engine`` come to: ratios, errors, how far texts agree, how words are timed; a table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.clips import Lecture
from bench.engine_measure import Loaded
from bench.engine_systems import BATCHED, OURS, REFERENCE, Heard
from bench.folding import plain_text, tokens_of
from bench.scoring import ErrorCount, Score, error_count, percentile, score
from bench.values import Hypothesis, Timed
from pipeline.values import Word
from pipeline.word_times import snap_words

LEGEND = """× is times real time at the best of the batch sizes tried. Error: characters (zh) or words (en) against the
references. Differs: the same between its text and that of ours (reference), where that was measured, else ours. Word
start: distance of the start of each reference sentence from that of the word that holds its first token; in the line:
after its step 6. Memory: the most in use meanwhile, less what was in use before the system was loaded."""


def judged(heard: Sequence[Heard], lectures: Sequence[Lecture]) -> dict[str, Score]:
    """By lecture, over the first round of slices."""
    scores, at = {}, 0
    for lecture in lectures:
        own = heard[at : at + len(lecture.messages)]
        at += len(lecture.messages)
        # As cues the texts need no times: only errors and words are looked at here.
        texts = tuple(Timed(one.text, 0, 0) for one in own)
        words = tuple(word for one in own for word in one.words)
        scores[lecture.name] = score(lecture.item, Hypothesis(texts, words), Hypothesis(texts, words))
    return scores


def differences(own: Sequence[Heard], other: Sequence[Heard], languages: Sequence[str]) -> ErrorCount:
    """Edits from the texts of ``other`` to those of ``own``, slice by slice."""
    total = ErrorCount()
    for one, two, language in zip(own, other, languages, strict=False):
        context = plain_text(tokens_of([Timed(one.text, 0, 0)], language), language)
        there = tokens_of([Timed(two.text, 0, 0)], language, context=context)
        here = tokens_of([Timed(one.text, 0, 0)], language, context=plain_text(there, language))
        total += error_count(there, here)
    return total


def summary(loaded: Mapping[str, Loaded], lectures: Sequence[Lecture] | None) -> dict[str, Any]:
    """Every figure, for the JSON file. ``lectures`` is None where texts mean nothing (random weights)."""
    found: dict[str, Any] = {"systems": {name: _figures(one) for name, one in loaded.items()}}
    if {OURS, BATCHED} <= set(loaded):
        found["ratio_to_faster_whisper_batched"] = ratio(loaded[OURS], loaded[BATCHED], with_words=True)
        found["ratio_without_words"] = ratio(loaded[OURS], loaded[BATCHED], with_words=False)
    for name, one in loaded.items() if lectures else ():
        found["systems"][name] |= _texts(one, loaded.get(REFERENCE, loaded[OURS]), lectures or ())
    return found


def ratio(own: Loaded, other: Loaded, *, with_words: bool) -> float | None:
    """Ours over theirs, each at its best batch size, round by round; the median."""
    pairs = list(zip(own.rounds(with_words), other.rounds(with_words), strict=False))
    return statistics.median(one / two for one, two in pairs) if pairs else None


def _figures(one: Loaded) -> dict[str, Any]:
    tried = {str(timing.batch): timing.x_real_time for timing in reversed(one.of(True))}
    return {
        "batch": one.best_batch,
        "x_real_time": one.x_real_time(True),
        "x_real_time_without_words": one.x_real_time(False),
        "ms_per_slice": 1000 * min(timing.seconds for timing in one.of(True)) / len(one.slices),
        "rounds": one.rounds(True),
        "tried": tried,
        "peak_gib": one.peak_gib,
        "slices": len(one.slices),
    }


def _texts(one: Loaded, beside: Loaded, lectures: Sequence[Lecture]) -> dict[str, Any]:
    scores, snapped = judged(one.heard, lectures), judged(_snapped(one), lectures)
    languages = [lecture.language for lecture in lectures for _ in lecture.messages]
    by_language = {
        language: sum((scores[file.name].error for file in lectures if file.language == language), ErrorCount()).rate
        for language in dict.fromkeys(languages)
    }
    return {
        "error_rate": by_language,
        "error_rate_by_file": {name: file.error.rate for name, file in scores.items()},
        "differs_from_reference": differences(one.heard, beside.heard, languages).rate,
        "word_start_ms": _starts(scores),
        "word_start_after_line_ms": _starts(snapped) if one.system.is_ours else {},
    }


def _starts(scores: Mapping[str, Score]) -> dict[str, float]:
    errors = [ms for file in scores.values() for ms in file.word_starts.errors_ms]
    return {"median": percentile(errors, 50), "p90": percentile(errors, 90)} if errors else {}


def _snapped(one: Loaded) -> list[Heard]:
    """With the word times that the line makes of them (step 6, ``pipeline.word_times``)."""
    return [
        replace(heard, words=tuple(_timed(word) for word in snap_words(_words(heard), request.audio.slice.speech)))
        for heard, request in zip(one.heard, one.slices, strict=False)
    ]


def _words(heard: Heard) -> list[Word]:
    return [Word(word.text, word.start_ms, word.end_ms, 1.0) for word in heard.words]


def _timed(word: Word) -> Timed:
    return Timed(word.text, word.start_ms, word.end_ms)


def table(found: Mapping[str, Any]) -> str:
    """In Markdown."""
    lines = [
        "| system | batch | × with word times | × without | ms a slice | memory GiB | error zh / en % | differs % | "
        "word start ms, median / p90 | in the line |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_row(name, one) for name, one in found["systems"].items()),
    ]
    return "\n".join(lines)


def _row(name: str, one: Mapping[str, Any]) -> str:
    errors = one.get("error_rate", {})
    cells = (
        name,
        one["batch"],
        _number(one["x_real_time"]),
        _number(one["x_real_time_without_words"]),
        _number(one["ms_per_slice"]),
        f"{one['peak_gib']:.1f}",
        " / ".join(f"{100 * errors[language]:.1f}" for language in ("zh", "en") if language in errors) or "–",
        f"{100 * one['differs_from_reference']:.1f}" if errors else "–",
        _milliseconds(one.get("word_start_ms")),
        _milliseconds(one.get("word_start_after_line_ms")),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _milliseconds(starts: Mapping[str, float] | None) -> str:
    return f"{starts['median']:.0f} / {starts['p90']:.0f}" if starts else "–"


def _number(value: float | None) -> str:
    """Three digits are enough."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
