"""What engines have in common: prompts in, languages chosen, words and hypotheses out."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from pipeline.engines.quiet import quiet_after_ms
from pipeline.errors import UsageError
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import Ending, Segment, Slice, SliceAudio, Word

Aligned = dict[str, Any]
"""A word: ``word``, ``tokens``, ``start`` and ``end`` in seconds from the slice's start, ``probability``; ``marks`` as
``Text`` has them, of the step after the word, where the engine tells."""

MAX_PROMPT_TOKENS = 160
_CERTAIN_LANGUAGE = 0.5
_SENTENCE_ENDS = frozenset(".。!！?？")
_LONGEST_MEDIAN_S = 0.7
"""A longer median is that of a text which hardly is one."""
_PREPENDED = "\"'“¿([{-「『《（"
_APPENDED = "\"'.。,，!！?？:：”)]}、;；」』》）…"


@dataclass(frozen=True, slots=True)
class Answer:
    """One decoded slice."""

    text: str
    avg_logprob: float
    """Over its tokens and the end."""
    no_speech_probability: float


def prompt_tokens(tokenizer: Any, context: str) -> list[int]:
    """What the decoder reads before it writes: ``context``, then the tokens that say what is asked for."""
    told = [tokenizer.sot_prev, *tokenizer.encode(" " + context)[:MAX_PROMPT_TOKENS]] if context else []
    return [*told, *tokenizer.sot_sequence, tokenizer.no_timestamps]


def require_english(asked: Sequence[str | None]) -> None:
    if foreign := next((language for language in asked if language not in (None, "en")), None):
        raise UsageError(f"the model speaks English only, not {foreign!r}: choose a multilingual one, such as base")


def likeliest_languages(requests: Sequence[Request], detected: Sequence[dict[str, float]]) -> list[tuple[str, float]]:
    """The language of each slice with its probability: as asked for, else as detected.

    Where a slice is not clear, the slices of its media in the batch have a say.
    """
    votes = defaultdict(list)
    for request, scores in zip(requests, detected, strict=True):
        votes[request.audio.slice.media_id].append(scores)
    return [
        (request.language, 1.0) if request.language else _likeliest(scores, votes[request.audio.slice.media_id])
        for request, scores in zip(requests, detected, strict=True)
    ]


def _likeliest(scores: dict[str, float], votes: Sequence[dict[str, float]]) -> tuple[str, float]:
    language = max(scores, key=scores.__getitem__)
    if scores[language] >= _CERTAIN_LANGUAGE:
        return language, scores[language]
    common = max(scores, key=lambda name: sum(other[name] for other in votes))
    return common, scores[common]


def words_of(aligned: Sequence[Aligned], audio: SliceAudio) -> tuple[Word, ...]:
    """Words as they are displayed, on the media clock, from tokens' words as they were aligned."""
    from faster_whisper.transcribe import merge_punctuations

    words = [dict(word) for word in without_stretches(aligned)]
    merge_punctuations(words, _PREPENDED, _APPENDED)
    shown = [word for word in words if word["word"].strip()]
    quiet = quiet_after_ms(audio.samples, [(word["start"] + word["end"]) * 500 for word in shown])
    return tuple(_word(word, quiet_ms, audio.slice) for word, quiet_ms in zip(shown, quiet, strict=True))


def _word(word: dict[str, Any], quiet_ms: int, piece: Slice) -> Word:
    first, last = piece.span.start_ms, piece.span.end_ms
    start_ms = min(first + round(word["start"] * 1000), last)
    end_ms = min(max(start_ms, first + round(word["end"] * 1000)), last)
    marks = word.get("marks")
    ending = Ending(marks[0], marks[1], quiet_ms) if marks else None
    return Word(word["word"], start_ms, end_ms, float(word["probability"]), ending=ending)


def without_stretches(words: Sequence[Aligned]) -> list[Aligned]:
    """Words at the ends of sentences, with the pause beside them taken out.

    The path of an alignment has no place for a pause: the mark before it or the word after it is drawn over it. As in
    faster-whisper (``add_word_timestamps``), neither lasts longer than twice the median word.
    """
    lasting_s = [word["end"] - word["start"] for word in words if word["end"] > word["start"]]
    longest_s = 2 * min(_LONGEST_MEDIAN_S, median(lasting_s)) if lasting_s else 0.0
    return [words[0], *(_shortened(*pair, longest_s) for pair in pairwise(words))] if words else []


def _shortened(before: Aligned, word: Aligned, longest_s: float) -> Aligned:
    if word["end"] - word["start"] <= longest_s:
        return word
    if word["word"].strip() in _SENTENCE_ENDS:
        return word | {"end": word["start"] + longest_s}
    if before["word"].strip() in _SENTENCE_ENDS:
        return word | {"start": word["end"] - longest_s}
    return word


def hypothesis_of(
    request: Request, language: tuple[str, float], answer: Answer, words: tuple[Word, ...], decoding: Decoding
) -> Hypothesis:
    span = request.audio.slice.span
    data = answer.text.encode()
    segment = Segment(
        start_ms=words[0].start_ms if words else span.start_ms,
        end_ms=words[-1].end_ms if words else span.start_ms,
        text=answer.text,
        words=words,
        avg_logprob=answer.avg_logprob,
        no_speech_probability=answer.no_speech_probability,
        compression_ratio=len(data) / len(zlib.compress(data)) if data else 0.0,
        temperature=decoding.temperature,
    )
    return Hypothesis(language[0], language[1], segment)
