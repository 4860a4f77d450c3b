"""The fused engine: the same Whisper weights, computed by graphs of our own, with beam search and alignment in one go.

Against the reference engine it saves most of a window's silence (a slice is encoded with 3 s after its end, not up to
30 s), the second run of the decoder for the word times (they come from the attention of the first), and reading a
slice's sound once for each of its beams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.engines.alignment import FRAME_MS, token_starts
from pipeline.engines.beam_search import Rules, Step, Stepper, Text, search
from pipeline.engines.hypotheses import (
    Answer,
    hypothesis_of,
    likeliest_languages,
    prompt_tokens,
    require_english,
    words_of,
)
from pipeline.engines.sampling import Sampling, sample
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.errors import RetriableError
from pipeline.transcription import Decoding, Hypothesis, Request
from pipeline.values import SAMPLES_PER_MS, Word

Floats = npt.NDArray[np.float32]

PAD_MS = 3_000
"""What is encoded after a slice's end. Whisper learnt on windows of 30 s, padded: it waits for the silence."""
GRID_MS = 1_000
"""Lengths are rounded up to it, so that few shapes are met."""
WINDOW_MS = 30_000
_MEL_MS = 10
_CANDIDATES = 10
_ENGLISH_VOCABULARY = 51_864
"""Tokens of the models that speak English only; the others have at least one more."""


class Listening(Stepper, Protocol):
    """The decoder over a batch of slices, from its prompts on."""

    def prompt(self, picked: Sequence[int]) -> tuple[Step, Floats]:
        """Read the prompts: the step after them, and the logits at ``picked`` places counted from their end."""

    def logits(self) -> Floats:
        """Of the last step, ``(rows, vocabulary)``."""


class Runtime(Protocol):
    """What computes the graphs, on one device."""

    weights: WhisperWeights
    name: str

    def encode(self, mel: Floats) -> Any:
        """The decoder's memory of log-mel features ``(mels, frames of 10 ms)``."""

    def begin(self, memories: Sequence[Any], prompts: Sequence[Sequence[int]]) -> Listening: ...


class FusedEngine:
    """A loaded Whisper model. Not thread-safe; one per process and device."""

    def __init__(self, runtime: Runtime, folder: Path, fingerprint: str) -> None:
        """``folder`` holds the tokenizer of the runtime's weights; ``fingerprint`` names weights and arithmetic."""
        # Imported here: it takes a second and is not needed to plan, export or look.
        from faster_whisper.feature_extractor import FeatureExtractor
        from tokenizers import Tokenizer

        self.fingerprint = fingerprint
        self._runtime = runtime
        self._features = FeatureExtractor(feature_size=runtime.weights.mels)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._special = _Special.of(self._tokenizer, runtime.weights)

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        if not requests:
            return []
        try:
            return self._transcribe(requests, decoding)
        except RuntimeError as error:  # OpenVINO raises it, for lack of memory too
            raise RetriableError(f"the engine failed on a batch of {len(requests)} slices: {error}") from error

    def _transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        memories = [self._runtime.encode(self._mel(request)) for request in requests]
        languages = self._languages(requests, memories)
        prompts = [
            prompt_tokens(self._tokens_of(language), request.prompts.get(language, "") if decoding.use_prompt else "")
            for request, (language, _) in zip(requests, languages, strict=True)
        ]
        listening = self._runtime.begin(memories, prompts)
        step, logits = listening.prompt([self._special.transcript_at, -1])
        no_speech = _probabilities(logits[:, 0])[:, self._special.no_speech]
        texts = self._texts(listening, step, logits[:, 1], decoding, max(map(len, prompts)), requests)
        return [
            self._hypothesis(request, language, text, float(silence), decoding)
            for request, language, text, silence in zip(requests, languages, texts, no_speech, strict=True)
        ]

    def _mel(self, request: Request) -> Floats:
        """Log-mel features of a slice and the silence after it, shape ``(mels, frames)``."""
        duration_ms = request.audio.slice.span.duration_ms
        padded_ms = min(WINDOW_MS, -(-(duration_ms + PAD_MS) // GRID_MS) * GRID_MS)
        heard: Floats = self._features(request.audio.samples)[:, : padded_ms // _MEL_MS]
        mel = np.zeros((heard.shape[0], padded_ms // _MEL_MS), np.float32)
        mel[:, : heard.shape[1]] = heard
        return mel

    def _languages(self, requests: Sequence[Request], memories: Sequence[Any]) -> list[tuple[str, float]]:
        """The language of each slice with its probability: as asked for, else detected."""
        asked = [request.language for request in requests]
        if not self._special.languages:
            require_english(asked)
            return [("en", 1.0)] * len(requests)
        if all(asked):
            return [(language or "", 1.0) for language in asked]
        start = [[self._special.start]] * len(memories)
        _, logits = self._runtime.begin(memories, start).prompt([-1])
        among = _probabilities(logits[:, 0][:, list(self._special.languages.values())])
        scores = [dict(zip(self._special.languages, map(float, row), strict=True)) for row in among]
        return likeliest_languages(requests, scores)

    def _tokens_of(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        return Tokenizer(self._tokenizer, bool(self._special.languages), task="transcribe", language=language)

    def _texts(
        self,
        listening: Listening,
        prompted: Step,
        logits: Floats,
        decoding: Decoding,
        prompt_length: int,
        requests: Sequence[Request],
    ) -> list[Text]:
        weights = self._runtime.weights
        longest = weights.context_tokens - prompt_length
        hidden = np.array(sorted({*weights.suppressed, *weights.suppressed_first}))
        logits[:, hidden] = -np.inf
        if decoding.temperature:
            seeds = [request.audio.slice.index for request in requests]
            rules = Sampling(decoding.temperature, self._special.end, longest, weights.suppressed)
            return sample(listening, prompted, logits, rules, seeds)
        first = _best_of(logits, prompted)
        rules_ = Rules(decoding.beam_size, self._special.end, longest, decoding.no_repeat_ngram_tokens)
        return search(listening, first, rules_)

    def _hypothesis(
        self, request: Request, language: tuple[str, float], text: Text, no_speech: float, decoding: Decoding
    ) -> Hypothesis:
        tokenizer = self._tokens_of(language[0])
        answer = Answer(
            text=tokenizer.decode(list(text.tokens)).strip(),
            avg_logprob=text.logprob / (len(text.tokens) + 1),
            no_speech_probability=no_speech,
        )
        return hypothesis_of(request, language, answer, self._words(request, text, tokenizer), decoding)

    def _words(self, request: Request, text: Text, tokenizer: Any) -> tuple[Word, ...]:
        """The words of a text, each from the start of its first token to the start of the next word's."""
        if not text.tokens:
            return ()
        frames = len(request.audio.samples) // (FRAME_MS * SAMPLES_PER_MS)
        starts_s = token_starts(text.attention, max(1, frames)) * FRAME_MS / 1000
        aligned, at = [], 0
        for word, tokens in zip(*tokenizer.split_to_word_tokens([*text.tokens, tokenizer.eot]), strict=True):
            end = at + len(tokens)
            if end <= len(text.tokens):
                # The end of the text has a start of its own, in the last row.
                probability = float(np.mean(text.probabilities[at:end]))
                start_s, end_s = starts_s[at], starts_s[min(end, len(starts_s) - 1)]
                timed = {"word": word, "tokens": tokens, "start": start_s, "end": end_s, "probability": probability}
                aligned.append(timed)
            at = end
        return words_of(aligned, request.audio.slice)


@dataclass(frozen=True, slots=True)
class _Special:
    """The special tokens of a model."""

    start: int
    end: int
    no_speech: int
    languages: Mapping[str, int]
    """Empty for a model that speaks English only."""
    transcript_at: int
    """Place of the start token, counted from the end of the prompt: there the model says whether it hears speech."""

    @staticmethod
    def of(tokenizer: Any, weights: WhisperWeights) -> _Special:
        from faster_whisper.tokenizer import _LANGUAGE_CODES

        def known(*names: str) -> int:
            return next(int(token) for token in map(tokenizer.token_to_id, names) if token is not None)

        is_multilingual = weights.vocabulary > _ENGLISH_VOCABULARY
        codes = {code: tokenizer.token_to_id(f"<|{code}|>") for code in _LANGUAGE_CODES} if is_multilingual else {}
        return _Special(
            start=known("<|startoftranscript|>"),
            end=known("<|endoftext|>"),
            no_speech=known("<|nospeech|>", "<|nocaptions|>"),
            languages={code: token for code, token in codes.items() if token is not None},
            # start, language, task, no timestamps; the English models have neither of the middle ones.
            transcript_at=-4 if is_multilingual else -2,
        )


def _probabilities(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _best_of(logits: Floats, prompted: Step) -> Step:
    logprobs = np.log(np.maximum(_probabilities(logits), np.finfo(np.float32).tiny))
    best = np.argsort(-logprobs, axis=-1, kind="stable")[:, :_CANDIDATES]
    return Step(best, np.take_along_axis(logprobs, best, axis=-1), prompted.attention)
