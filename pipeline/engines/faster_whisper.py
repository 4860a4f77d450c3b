"""The reference engine: CTranslate2 through faster-whisper, one batch of slices at a time.

Decoding runs without timestamp tokens: with them Whisper base was seen to skip sentences, and the word times come
from the cross-attention (dynamic time warping) either way. The encoder runs once per slice, for language
detection, decoding and alignment together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.engines.hypotheses import (
    Answer,
    hypothesis_of,
    likeliest_languages,
    prompt_tokens,
    require_english,
    words_of,
)
from pipeline.engines.memory_faults import failure_of
from pipeline.errors import UsageError
from pipeline.one_thread import one_thread
from pipeline.transcription import Decoding, Hypothesis, Look, Request
from pipeline.values import Word

_MAX_TOKENS = 448  # Whisper's text context: prompt and answer together
_FRAMES_PER_MS = 0.1  # mel frames of 10 ms


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
        except (RuntimeError, MemoryError) as error:  # CTranslate2 raises the first for a lost device, too
            raise failure_of(error, len(requests)) from error
        return [
            hypothesis_of(request, language, answer.shown, timed, decoding)
            for request, language, answer, timed in zip(requests, languages, answers, words, strict=True)
        ]

    def look(self, requests: Sequence[Request], *, with_sound: bool) -> list[Look]:
        try:
            encoded = self._encode(self._features(requests))
            prompts = [prompt_tokens(self._tokenizer(request.language or "en"), "") for request in requests]
            results = self._model.model.generate(encoded, prompts, beam_size=1, max_length=2 * len(prompts[0]))
        except (RuntimeError, MemoryError) as error:
            raise failure_of(error, len(requests)) from error
        sound = _numbers(encoded) if with_sound else [None] * len(requests)
        return [Look(one, (*result.sequences_ids[0], -1)[0]) for one, result in zip(sound, results, strict=True)]

    def _features(self, requests: Sequence[Request]) -> npt.NDArray[np.float32]:
        """Log-mel features, shape ``(slices, mels, 3000)``."""
        from faster_whisper.audio import pad_or_trim

        extract = self._model.feature_extractor
        with one_thread():
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
            require_english(asked)
            return [("en", 1.0)] * len(requests)
        if all(asked):
            return [(language or "", 1.0) for language in asked]
        detected = [_scores(scores) for scores in self._model.model.detect_language(encoded)]
        return likeliest_languages(requests, detected)

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
        prompts = [
            prompt_tokens(self._tokenizer(name), asked.prompts.get(name, "") if decoding.use_prompt else "")
            for name, asked in zip(names, requests, strict=True)
        ]
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
                words[at] = words_of(timed, requests[at].audio)
        return words


class _Answer:
    """One decoded slice: its text tokens, and what is shown of it."""

    __slots__ = ("shown", "tokens")

    def __init__(self, result: Any, tokenizer: Any) -> None:
        ids = result.sequences_ids[0]
        self.tokens = [token for token in ids if token < tokenizer.eot]
        # CTranslate2's score is the mean over the tokens; Whisper's counts the end token too.
        avg_logprob = result.scores[0] * len(ids) / (len(ids) + 1)
        self.shown = Answer(tokenizer.decode(self.tokens).strip(), avg_logprob, result.no_speech_prob)


def _rows_of(encoded: Any, rows: Sequence[int]) -> Any:
    """Some slices of an encoded batch, shape ``(rows, 1500, width)``."""
    from ctranslate2 import Device, StorageView

    return StorageView.from_array(np.ascontiguousarray(np.asarray(encoded.to_device(Device.cpu))[list(rows)]))


def _numbers(encoded: Any) -> npt.NDArray[np.float32]:
    """The encoder's output ``(slices, 1500, width)`` in float32."""
    from ctranslate2 import DataType, Device

    return np.array(encoded.to(DataType.float32).to_device(Device.cpu), np.float32)


def _scores(detected: Sequence[tuple[str, float]]) -> dict[str, float]:
    return {token[2:-2]: probability for token, probability in detected}
