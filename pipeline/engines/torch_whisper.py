"""The PyTorch engine: Whisper on a GPU, as many slices at once as its memory holds.

Against CTranslate2 on the same GPU it saves the silence of most windows, the second run of the decoder for the word
times, reading a slice's sound once for each of its beams, and the host's part in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pipeline.engines import torch_ops
from pipeline.engines.alignment import FRAME_MS
from pipeline.engines.footprint import slices_in
from pipeline.engines.fused import window_ms
from pipeline.engines.hypotheses import (
    Answer,
    hypothesis_of,
    likeliest_languages,
    prompt_tokens,
    require_english,
    words_of,
)
from pipeline.engines.mark_tokens import MarkTokens
from pipeline.engines.memory_faults import failure_of
from pipeline.engines.special_tokens import SpecialTokens
from pipeline.engines.torch_model import Decoded, Sound, TorchModel, Wanted
from pipeline.engines.torch_packing import Place
from pipeline.engines.torch_words import Splitter
from pipeline.engines.whisper_weights import WhisperWeights, load_weights
from pipeline.errors import OutOfMemoryError, RetriableError, UsageError
from pipeline.transcription import Decoding, Hypothesis, Look, Request
from pipeline.values import Word

MAX_BATCH = 256
"""Slices decoded together. More were not faster, and one that loops keeps the others waiting."""
_HOST_THREADS = 4
_MEMORY_SHARE = 0.7
"""Of the free memory that batches may take; spectra, activations and fragments need the rest."""


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """How the model is computed."""

    device: str = "cuda"
    dtype: str = "float16"
    """PyTorch's name; ``int8`` keeps weights, and what is attended to, in 8 bits and computes in half precision."""
    is_compiled: bool = False
    """The encoder through torch.compile: a minute at the start, then a fifth faster."""
    uses_triton: bool = True
    """Kernels of our own; without them the same by PyTorch's. A CPU has none."""
    max_batch: int = MAX_BATCH
    max_tokens: int | None = None
    """The longest text; None is half the model's context, as in Whisper."""
    with_words: bool = True


class TorchWhisperEngine:
    """A loaded Whisper model. Not thread-safe; one per process and device."""

    def __init__(self, weights: WhisperWeights, folder: Path, fingerprint: str, options: TorchOptions) -> None:
        """``folder`` holds the tokenizer; ``fingerprint`` names weights and arithmetic.

        Raises UsageError where the device or the tokenizer is not there.
        """
        # Imported here: it takes a second and is not needed to plan, export or look.
        from tokenizers import Tokenizer

        if not (folder / "tokenizer.json").is_file():
            raise UsageError(f"{folder}: tokenizer.json is missing; take it from the model's repository")
        self.fingerprint = fingerprint
        self._options = options
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._special = SpecialTokens.of(self._tokenizer, weights)
        self._splitter = Splitter(self._tokenizer, weights.end)
        place, ops, marks = _place(options), _ops(options), MarkTokens.of(self._tokenizer)
        self.model = TorchModel(weights, place, ops, marks, is_compiled=options.is_compiled)
        self.most_slices = min(options.max_batch, _slices_in_memory(weights, self.model.place))
        self._tokenizers: dict[str, Any] = {}

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        """One hypothesis per request, in order. Raises OutOfMemoryError where they do not fit into the memory."""
        self._heard: Sequence[int] = ()
        try:
            # The host makes words of one batch while the device decodes the next one.
            with torch.inference_mode(), ThreadPoolExecutor(max_workers=1) as finishing:
                return self._transcribe(requests, decoding, finishing)
        except (RuntimeError, MemoryError) as error:  # PyTorch raises the first for a device that is lost, too
            raise self._failed(error, len(requests)) from error

    def _failed(self, error: Exception, slices: int) -> RetriableError:
        """Arrays that were only made in part must not be met again."""
        failure = failure_of(error, slices)
        if isinstance(failure, OutOfMemoryError):
            self._heard = ()
            self.model.forget()
        return failure

    def look(self, requests: Sequence[Request], *, with_sound: bool) -> list[Look]:
        self._heard = ()
        prompts = [prompt_tokens(self._tokens_of(request.language or "en"), "") for request in requests]
        looks: dict[int, Look] = {}

        def look_at(batch: Sequence[int]) -> None:
            self._hear(requests, batch)
            first = self.model.first_tokens([prompts[at] for at in batch])
            sound = self.model.encoded([_sound(requests[at]) for at in batch]) if with_sound else [None] * len(batch)
            looks.update({at: Look(own, token) for at, own, token in zip(batch, sound, first, strict=True)})

        try:
            with torch.inference_mode():
                self._in_batches(requests, look_at)
        except (RuntimeError, MemoryError) as error:
            raise self._failed(error, len(requests)) from error
        return [looks[at] for at in range(len(requests))]

    def _transcribe(
        self, requests: Sequence[Request], decoding: Decoding, finishing: ThreadPoolExecutor
    ) -> list[Hypothesis]:
        languages = self._languages(requests)
        prompts = [
            prompt_tokens(self._tokens_of(name), request.prompts.get(name, "") if decoding.use_prompt else "")
            for request, (name, _) in zip(requests, languages, strict=True)
        ]
        found: dict[int, Future[Hypothesis]] = {}

        def write(batch: Sequence[int]) -> None:
            wanted = self._wanted([requests[at].audio.slice.index for at in batch])
            self._hear(requests, batch)
            texts = self.model.write([prompts[at] for at in batch], decoding, wanted)
            for at, text in zip(batch, texts, strict=True):
                found[at] = finishing.submit(self._hypothesis, requests[at], languages[at], text, decoding)

        self._in_batches(requests, write)
        return [found[at].result() for at in range(len(requests))]

    def _wanted(self, seeds: Sequence[int]) -> Wanted:
        longest = self._options.max_tokens or self.model.weights.context_tokens // 2
        return Wanted(self._special.asking, self._special.no_speech, longest, seeds, self._options.with_words)

    def _in_batches(self, requests: Sequence[Request], work: Callable[[Sequence[int]], None]) -> None:
        """Do the work for slices of like lengths together."""
        left = sorted(range(len(requests)), key=lambda at: len(requests[at].audio.samples))
        while left:
            size = -(-len(left) // -(-len(left) // self.most_slices))
            work(left[:size])
            left = left[size:]

    def _hear(self, requests: Sequence[Request], batch: Sequence[int]) -> None:
        """Encode a batch, unless it was the last one that was."""
        if self._heard != batch:
            self._heard = ()
            self.model.hear([_sound(requests[at]) for at in batch])
            self._heard = batch

    def _languages(self, requests: Sequence[Request]) -> list[tuple[str, float]]:
        """The language of each slice with its probability: as asked for, else detected."""
        asked = [request.language for request in requests]
        if not self._special.languages:
            require_english(asked)
            return [("en", 1.0)] * len(requests)
        if unknown := {language for language in asked if language} - set(self._special.languages):
            raise UsageError(f"the model does not speak {', '.join(sorted(unknown))}: choose another one")
        if all(asked):
            return [(language or "", 1.0) for language in asked]
        names, tokens = list(self._special.languages), list(self._special.languages.values())
        scores: dict[int, dict[str, float]] = {}

        def detect(batch: Sequence[int]) -> None:
            self._hear(requests, batch)
            shares = self.model.shares(self._special.start, tokens)
            scores.update({at: dict(zip(names, row, strict=True)) for at, row in zip(batch, shares, strict=True)})

        self._in_batches(requests, detect)
        return likeliest_languages(requests, [scores[at] for at in range(len(requests))])

    def _tokens_of(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._tokenizers:
            is_multilingual = bool(self._special.languages)
            self._tokenizers[language] = Tokenizer(
                self._tokenizer, is_multilingual, task="transcribe", language=language
            )
        return self._tokenizers[language]

    def _hypothesis(
        self, request: Request, language: tuple[str, float], text: Decoded, decoding: Decoding
    ) -> Hypothesis:
        answer = Answer(
            text=self._splitter.text(text.tokens).strip(),
            avg_logprob=text.logprob / (len(text.tokens) + 1),
            no_speech_probability=text.no_speech,
        )
        words = self._words(request, language[0], text) if text.starts else ()
        return hypothesis_of(request, language, answer, words, decoding)

    def _words(self, request: Request, language: str, text: Decoded) -> tuple[Word, ...]:
        """The words of a text, each from the start of its first token to the start of the next word's, at most."""
        aligned, at = [], 0
        for word, count in self._split(text.tokens, language):
            end = at + count
            aligned.append(
                {
                    "word": word,
                    "tokens": text.tokens[at:end],
                    "start": text.starts[at] * FRAME_MS / 1000,
                    "end": text.starts[end] * FRAME_MS / 1000,
                    "probability": sum(text.probabilities[at:end]) / count,
                    "marks": text.marks[end] if end < len(text.marks) else None,
                }
            )
            at = end
        return words_of(aligned, request.audio)

    def _split(self, tokens: Sequence[int], language: str) -> list[tuple[str, int]]:
        words = self._splitter.words(tokens, language)
        if words is not None:
            return words
        split = self._tokens_of(language).split_to_word_tokens([*tokens, self.model.weights.end])
        # What is left over at the end is no whole character; it comes together with the end.
        return [(word, len(own)) for word, own in zip(*split, strict=True) if self.model.weights.end not in own]


def load_torch(folder: Path, fingerprint: str, options: TorchOptions) -> TorchWhisperEngine:
    """The engine with the weights in ``folder``. Raises UsageError where they, or the device, cannot be used."""
    if options.device != "cpu":
        # The host only copies samples. More threads for that would wait for cores on which others decode audio.
        torch.set_num_threads(min(_HOST_THREADS, torch.get_num_threads()))
    return TorchWhisperEngine(load_weights(folder), folder, fingerprint, options)


def _sound(request: Request) -> Sound:
    """The slice with the silence that is encoded after it; the window depends on nothing but its own length."""
    return Sound(request.audio.samples, window_ms(request.audio.slice.span.duration_ms) // 10)


def _place(options: TorchOptions) -> Place:
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError("PyTorch sees no CUDA device: choose --device cpu")
    is_int8, half = options.dtype == "int8", "float32" if options.device == "cpu" else "float16"
    return Place(torch.device(options.device), getattr(torch, half if is_int8 else options.dtype), is_int8=is_int8)


def _ops(options: TorchOptions) -> Any:
    if not options.uses_triton or options.device == "cpu":
        return torch_ops
    from pipeline.engines import triton_ops

    return triton_ops


def _slices_in_memory(weights: WhisperWeights, place: Place) -> int:
    """How many slices can be decoded together, by what each one takes; at least 1."""
    if place.device.type != "cuda":
        return MAX_BATCH
    free, _ = torch.cuda.mem_get_info(place.device)
    return slices_in(int(free * _MEMORY_SHARE), weights, place.kept_bytes)
