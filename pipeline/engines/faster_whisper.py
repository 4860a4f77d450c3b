"""The reference engine: CTranslate2 through faster-whisper, one batch of slices at a time.

Decoding runs without timestamp tokens: with them Whisper base was seen to skip sentences, and the word times come
from the cross-attention (dynamic time warping) either way. The encoder runs once per slice, for language
detection, decoding and alignment together.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import RetriableError, UsageError
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import Segment, Slice, Word

_MAX_TOKENS = 448  # Whisper's text context: prompt and answer together
_MAX_PROMPT_TOKENS = 160
_FRAMES_PER_MS = 0.1  # mel frames of 10 ms
_CERTAIN_LANGUAGE = 0.5
_PREPENDED = "\"'“¿([{-「『《（"
_APPENDED = "\"'.。,，!！?？:：”)]}、;；」』》）…"


class FasterWhisperEngine:
    """A loaded CTranslate2 Whisper model. Not thread-safe; one per process and device."""

    def __init__(self, folder: Path, fingerprint: str, *, device: str, compute_type: str, threads: int) -> None:
        """Load ``folder`` (``model.bin``, ``tokenizer.json``…) on ``device`` (``cpu``, ``cuda``).

        ``fingerprint`` names the weights and the arithmetic. Raises UsageError where the model cannot be loaded.
        """
        # Imported here: it takes a second and is not needed to plan, export or look.
        from faster_whisper import WhisperModel

        self.fingerprint = fingerprint
        try:
            self._model: Any = WhisperModel(
                str(folder), device=device, compute_type=compute_type, cpu_threads=threads, local_files_only=True
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise UsageError(f"the model in {folder} cannot be loaded on {device}: {error}") from error

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        if not requests:
            return []
        try:
            encoded = self._encode(self._features(requests))
            languages = self._languages(requests, encoded)
            answers = self._generate(encoded, languages, decoding, requests)
            words = self._words(encoded, languages, requests, answers)
        except RuntimeError as error:  # CTranslate2 raises it for lack of memory and for a lost device
            raise RetriableError(f"the engine failed on a batch of {len(requests)} slices: {error}") from error
        return [
            _hypothesis(request, language, answer, timed, decoding)
            for request, language, answer, timed in zip(requests, languages, answers, words, strict=True)
        ]

    def _features(self, requests: Sequence[Request]) -> npt.NDArray[np.float32]:
        """Log-mel features, shape ``(slices, mels, 3000)``."""
        from faster_whisper.audio import pad_or_trim

        extract = self._model.feature_extractor
        return np.stack([pad_or_trim(extract(request.audio.samples)) for request in requests])

    def _encode(self, features: npt.NDArray[np.float32]) -> Any:
        """The encoder's output for a batch, in one piece.

        On a CPU slice by slice: a batch of 8 took 1.2 x the processor time and 670 MB more (the attention scores
        of 8 windows leave the cache), and the decoder does not mind.
        """
        if self._model.model.device != "cpu":
            return self._model.encode(features)
        from ctranslate2 import StorageView

        return StorageView.from_array(np.concatenate([np.asarray(self._model.encode(one)) for one in features]))

    def _languages(self, requests: Sequence[Request], encoded: Any) -> list[tuple[str, float]]:
        """The language of each slice with its probability: as asked for, else detected."""
        asked = [request.language for request in requests]
        if not self._model.model.is_multilingual:
            _require_english(asked)
            return [("en", 1.0)] * len(requests)
        if all(asked):
            return [(language or "", 1.0) for language in asked]
        detected = [_scores(scores) for scores in self._model.model.detect_language(encoded)]
        votes = defaultdict(list)
        for request, scores in zip(requests, detected, strict=True):
            votes[request.audio.slice.media_id].append(scores)
        return [
            (request.language, 1.0) if request.language else _likeliest(scores, votes[request.audio.slice.media_id])
            for request, scores in zip(requests, detected, strict=True)
        ]

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        multilingual = self._model.model.is_multilingual
        return Tokenizer(self._model.hf_tokenizer, multilingual, task="transcribe", language=language)

    def _generate(
        self,
        encoded: Any,
        languages: Sequence[tuple[str, float]],
        decoding: Decoding,
        requests: Sequence[Request],
    ) -> list[_Answer]:
        """CTranslate2 wants prompts of one length in a batch, so that each length is a batch of its own.

        Cut to a common length, a slice's text would depend on whose slices it met.
        """
        names = [language for language, _ in languages]
        prompts = [self._prompt(name, decoding, asked.prompts) for name, asked in zip(names, requests, strict=True)]
        answers: dict[int, _Answer] = {}
        for length in dict.fromkeys(map(len, prompts)):
            rows = [at for at, prompt in enumerate(prompts) if len(prompt) == length]
            part = encoded if len(rows) == len(requests) else _rows_of(encoded, rows)
            results = self._search(part, [prompts[at] for at in rows], decoding)
            answers |= {
                at: _Answer(result, self._tokenizer(names[at])) for at, result in zip(rows, results, strict=True)
            }
        return [answers[at] for at in range(len(requests))]

    def _search(self, encoded: Any, prompts: Sequence[Sequence[int]], decoding: Decoding) -> Any:
        return self._model.model.generate(
            encoded,
            prompts,
            beam_size=decoding.beam_size,
            max_length=_MAX_TOKENS,
            return_scores=True,
            return_no_speech_prob=True,
            no_repeat_ngram_size=decoding.no_repeat_ngram_tokens,
            sampling_topk=0 if decoding.temperature else 1,
            sampling_temperature=decoding.temperature or 1.0,
        )

    def _prompt(self, language: str, decoding: Decoding, prompts: Mapping[str, str]) -> list[int]:
        tokenizer = self._tokenizer(language)
        text = prompts.get(language, "") if decoding.use_prompt else ""
        context = [tokenizer.sot_prev, *tokenizer.encode(" " + text)[:_MAX_PROMPT_TOKENS]] if text else []
        return [*context, *tokenizer.sot_sequence, tokenizer.no_timestamps]

    def _words(
        self,
        encoded: Any,
        languages: Sequence[tuple[str, float]],
        requests: Sequence[Request],
        answers: Sequence[_Answer],
    ) -> list[tuple[Word, ...]]:
        """Times of the words by the cross-attention of the alignment heads, on the media clock.

        One call per language: what a word is depends on it, and the model aligns under one language token.
        """
        words: list[tuple[Word, ...]] = [()] * len(requests)
        for language in dict.fromkeys(name for name, _ in languages):
            rows = [at for at, (name, _) in enumerate(languages) if name == language]
            frames = [round(requests[at].audio.slice.span.duration_ms * _FRAMES_PER_MS) for at in rows]
            texts = [answers[at].tokens for at in rows]
            part = encoded if len(rows) == len(requests) else _rows_of(encoded, rows)
            aligned = self._model.find_alignment(self._tokenizer(language), texts, part, frames)
            for at, timed in zip(rows, aligned, strict=True):
                words[at] = _timed(timed, requests[at].audio.slice)
        return words


class _Answer:
    """One decoded slice: its text tokens and their measures."""

    __slots__ = ("avg_logprob", "no_speech_probability", "text", "tokens")

    def __init__(self, result: Any, tokenizer: Any) -> None:
        ids = result.sequences_ids[0]
        self.tokens = [token for token in ids if token < tokenizer.eot]
        self.text = tokenizer.decode(self.tokens).strip()
        # CTranslate2's score is the mean over the tokens; Whisper's counts the end token too.
        self.avg_logprob = result.scores[0] * len(ids) / (len(ids) + 1)
        self.no_speech_probability = result.no_speech_prob


def _rows_of(encoded: Any, rows: Sequence[int]) -> Any:
    """Some slices of an encoded batch, shape ``(rows, 1500, width)``."""
    from ctranslate2 import Device, StorageView

    return StorageView.from_array(np.ascontiguousarray(np.asarray(encoded.to_device(Device.cpu))[list(rows)]))


def _require_english(asked: Sequence[str | None]) -> None:
    if foreign := next((language for language in asked if language not in (None, "en")), None):
        raise UsageError(f"the model speaks English only, not {foreign!r}: choose a multilingual one, such as base")


def _scores(detected: Sequence[tuple[str, float]]) -> dict[str, float]:
    return {token[2:-2]: probability for token, probability in detected}


def _likeliest(scores: dict[str, float], votes: Sequence[dict[str, float]]) -> tuple[str, float]:
    """The slice's own language where it is clear, else the one that its media speaks in the batch for the most part."""
    language = max(scores, key=scores.__getitem__)
    if scores[language] >= _CERTAIN_LANGUAGE:
        return language, scores[language]
    common = max(scores, key=lambda name: sum(other[name] for other in votes))
    return common, scores[common]


def _timed(aligned: Sequence[dict[str, Any]], piece: Slice) -> tuple[Word, ...]:
    from faster_whisper.transcribe import merge_punctuations

    words = [dict(word) for word in aligned]
    merge_punctuations(words, _PREPENDED, _APPENDED)
    return tuple(_word(word, piece) for word in words if word["word"].strip())


def _word(word: dict[str, Any], piece: Slice) -> Word:
    first, last = piece.span.start_ms, piece.span.end_ms
    start_ms = min(first + round(word["start"] * 1000), last)
    end_ms = min(max(start_ms, first + round(word["end"] * 1000)), last)
    return Word(word["word"], start_ms, end_ms, float(word["probability"]))


def _hypothesis(
    request: Request,
    language: tuple[str, float],
    answer: _Answer,
    words: tuple[Word, ...],
    decoding: Decoding,
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
