"""The fused engine: the same Whisper weights, computed by graphs of our own, with beam search and alignment in one go.

Against the reference engine it saves most of a window's silence (a slice is encoded with 3 s after its end, not up to
30 s), the second run of the decoder for the word times (they come from the attention of the first), and reading a
slice's sound once for each of its beams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.engines.alignment import FRAME_MS, token_starts
from pipeline.engines.beam_search import CANDIDATES, Rules, Step, Stepper, Text, search
from pipeline.engines.hypotheses import (
    Answer,
    hypothesis_of,
    likeliest_languages,
    prompt_tokens,
    require_english,
    words_of,
)
from pipeline.engines.lanes import Lanes, even_shares
from pipeline.engines.mark_tokens import MarkTokens
from pipeline.engines.memory_faults import failure_of
from pipeline.engines.sampling import Sampling, sample
from pipeline.engines.special_tokens import SpecialTokens
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.errors import UsageError
from pipeline.one_thread import one_thread
from pipeline.transcription import Decoding, Hypothesis, Look, Request
from pipeline.values import SAMPLES_PER_MS, Word

Floats = npt.NDArray[np.float32]

PAD_MS = 3_000
"""The least that is encoded after a slice. Whisper learnt on windows of 30 s, padded: it waits for the silence."""
SHORTEST_WINDOW_MS = 24_000
"""In a shorter window short slices are heard worse: one of 3 s lost words in 6 s, and loops in 5 s. 71 utterances of
3 to 7 s had 178 errors in windows of 24 s, 195 in 20 s and 186 in 30 s."""
WINDOW_MS = 30_000
GRID_MS = 1_000
"""Windows are rounded up to it, so that few shapes are met."""
_MEL_MS = 10
MAX_BEAM = CANDIDATES // 2


def window_ms(duration_ms: int) -> int:
    """How much is encoded for a slice of ``duration_ms``: it depends on nothing else.

    >>> [window_ms(duration_ms) for duration_ms in (500, 18_200, 29_900)]
    [24000, 24000, 30000]
    """
    padded_ms = -(-(duration_ms + PAD_MS) // GRID_MS) * GRID_MS
    return min(WINDOW_MS, max(SHORTEST_WINDOW_MS, padded_ms))


class Listening(Stepper, Protocol):
    """The decoder over a batch of slices, from its prompts on."""

    def prompt(self, last: int) -> list[Step]:
        """Read the prompts: the steps after each of their ``last`` tokens, one row a slice."""


class Runtime(Protocol):
    """What computes the graphs, on one device."""

    weights: WhisperWeights

    def encode(self, mel: Floats) -> Any:
        """The decoder's memory of log-mel features ``(mels, frames of 10 ms)``."""

    def sound_of(self, memory: Any) -> Floats:
        """The values of its first layer: a linear image of the encoder's output, and as large."""

    def begin(self, memories: Sequence[Any], prompts: Sequence[Sequence[int]]) -> Listening:
        """Set the decoder before the sound of some slices, each with its prompt."""

    def logits(self, states: Floats) -> Floats:
        """Of all tokens, ``(rows, vocabulary)``, from a step's states."""


class FusedEngine:
    """A loaded Whisper model. Not thread-safe; one per process and device."""

    def __init__(self, runtimes: Sequence[Runtime], folder: Path, fingerprint: str) -> None:
        """``runtimes``, one a lane, have the same weights, whose tokenizer is in ``folder``; the first one encodes.

        ``fingerprint`` names weights and arithmetic.
        """
        # Imported here: it takes a second and is not needed to plan, export or look.
        from faster_whisper.feature_extractor import FeatureExtractor
        from tokenizers import Tokenizer

        self.fingerprint = fingerprint
        self._lanes = Lanes(runtimes)
        self._weights = runtimes[0].weights
        self._features = FeatureExtractor(feature_size=self._weights.mels)
        if not (folder / "tokenizer.json").is_file():
            raise UsageError(f"{folder}: tokenizer.json is missing; take it from the model's repository")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._special = SpecialTokens.of(self._tokenizer, self._weights)
        self._marks = MarkTokens.of(self._tokenizer)

    def transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        if decoding.beam_size > MAX_BEAM:
            raise UsageError(f"the fused engine searches with a beam of {MAX_BEAM} at most, not {decoding.beam_size}")
        try:
            return self._transcribe(requests, decoding)
        except (RuntimeError, MemoryError) as error:  # OpenVINO raises the first, for lack of memory too
            raise failure_of(error, len(requests)) from error

    def look(self, requests: Sequence[Request], *, with_sound: bool) -> list[Look]:
        try:
            return [self._look(request, with_sound) for request in requests]
        except (RuntimeError, MemoryError) as error:
            raise failure_of(error, len(requests)) from error

    def _look(self, request: Request, with_sound: bool) -> Look:
        runtime = self._lanes.first
        memory = runtime.encode(self._mel(request))
        sound = runtime.sound_of(memory) if with_sound else None
        prompt = prompt_tokens(self._tokens_of(request.language or "en"), "")
        (step,) = runtime.begin([memory], [prompt]).prompt(1)
        return Look(sound, int(self._beginning(runtime, step).best[0, 0]))

    def _transcribe(self, requests: Sequence[Request], decoding: Decoding) -> list[Hypothesis]:
        memories = [self._lanes.first.encode(self._mel(request)) for request in requests]
        languages = self._languages(requests, memories)
        encoded = [_Encoded(*each) for each in zip(requests, memories, languages, strict=True)]
        shares = even_shares([request.audio.slice.span.duration_ms for request in requests], self._lanes.count)
        written = self._lanes.each(
            lambda runtime, share: self._write(runtime, [encoded[at] for at in share], decoding), shares
        )
        found = dict(zip(chain(*shares), chain(*written), strict=True))
        return [found[at] for at in range(len(requests))]

    def _write(self, runtime: Runtime, encoded: Sequence[_Encoded], decoding: Decoding) -> list[Hypothesis]:
        """What the decoder makes of some slices together."""
        prompts = [prompt_tokens(self._tokens_of(one.language[0]), one.prompt(decoding)) for one in encoded]
        listening = runtime.begin([one.memory for one in encoded], prompts)
        asked = listening.prompt(self._special.asking)
        no_speech = _probabilities(runtime.logits(asked[0].states))[:, self._special.no_speech]
        texts = self._texts(runtime, listening, asked[-1], decoding, [one.request for one in encoded])
        before = np.stack([step.attention for step in asked[:-1]], axis=1)
        return [
            self._hypothesis(one.request, one.language, _Heard(text, led, float(silence)), decoding)
            for one, text, led, silence in zip(encoded, texts, before, no_speech, strict=True)
        ]

    def _mel(self, request: Request) -> Floats:
        """Log-mel features of a slice and the silence after it, shape ``(mels, frames)``."""
        frames = window_ms(request.audio.slice.span.duration_ms) // _MEL_MS
        with one_thread():
            heard: Floats = self._features(request.audio.samples)[:, :frames]
        mel = np.zeros((heard.shape[0], frames), np.float32)
        mel[:, : heard.shape[1]] = heard
        return mel

    def _languages(self, requests: Sequence[Request], memories: Sequence[Any]) -> list[tuple[str, float]]:
        """The language of each slice with its probability: as asked for, else detected."""
        asked = [request.language for request in requests]
        if not self._special.languages:
            require_english(asked)
            return [("en", 1.0)] * len(requests)
        if unknown := {language for language in asked if language} - set(self._special.languages):
            raise UsageError(f"the model does not speak {', '.join(sorted(unknown))}: choose another one")
        if all(asked):
            return [(language or "", 1.0) for language in asked]
        start = [[self._special.start]] * len(memories)
        runtime = self._lanes.first
        (step,) = runtime.begin(memories, start).prompt(1)
        among = _probabilities(runtime.logits(step.states)[:, list(self._special.languages.values())])
        scores = [dict(zip(self._special.languages, map(float, row), strict=True)) for row in among]
        return likeliest_languages(requests, scores)

    def _tokens_of(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        return Tokenizer(self._tokenizer, bool(self._special.languages), task="transcribe", language=language)

    def _texts(
        self,
        runtime: Runtime,
        listening: Listening,
        prompted: Step,
        decoding: Decoding,
        requests: Sequence[Request],
    ) -> list[Text]:
        weights = self._weights
        longest = weights.context_tokens // 2  # as in the reference; the longest prompt leaves room for more
        if decoding.temperature:
            seeds = [request.audio.slice.index for request in requests]
            hidden = weights.suppressed, weights.suppressed_first
            rules = Sampling(decoding.temperature, weights.end, longest, *hidden, self._marks)
            return sample(listening, prompted, runtime.logits, rules, seeds)
        rules_ = Rules(decoding.beam_size, weights.end, longest, decoding.no_repeat_ngram_tokens, self._marks)
        return search(listening, self._beginning(runtime, prompted), rules_)

    def _beginning(self, runtime: Runtime, prompted: Step) -> Step:
        """The step after the prompts, where more tokens are suppressed than later on."""
        logits = runtime.logits(prompted.states)
        logits[:, [*self._weights.suppressed, *self._weights.suppressed_first]] = -np.inf
        logprobs = np.log(np.maximum(_probabilities(logits), np.finfo(np.float32).tiny))
        best = np.argsort(-logprobs, axis=-1, kind="stable")[:, :CANDIDATES]
        return replace(prompted, best=best, logprobs=np.take_along_axis(logprobs, best, axis=-1))

    def _hypothesis(
        self, request: Request, language: tuple[str, float], heard: _Heard, decoding: Decoding
    ) -> Hypothesis:
        tokenizer, text = self._tokens_of(language[0]), heard.text
        answer = Answer(
            text=tokenizer.decode(list(text.tokens)).strip(),
            avg_logprob=text.logprob / (len(text.tokens) + 1),
            no_speech_probability=heard.no_speech,
        )
        return hypothesis_of(request, language, answer, self._words(request, heard, tokenizer), decoding)

    def _words(self, request: Request, heard: _Heard, tokenizer: Any) -> tuple[Word, ...]:
        """The words of a text, each from the start of its first token to the start of the next word's."""
        text = heard.text
        if not text.tokens:
            return ()
        starts_s = _starts_s(heard, max(1, len(request.audio.samples) // (FRAME_MS * SAMPLES_PER_MS)))
        aligned, at = [], 0
        for word, tokens in zip(*tokenizer.split_to_word_tokens([*text.tokens, tokenizer.eot]), strict=True):
            end = at + len(tokens)
            if end <= len(text.tokens):
                probability = float(np.mean(text.probabilities[at:end]))
                start_s, end_s = starts_s[at], starts_s[end]
                timed = {"word": word, "tokens": tokens, "start": start_s, "end": end_s, "probability": probability}
                aligned.append(timed | {"marks": text.marks[end] if end < len(text.marks) else None})
            at = end
        return words_of(aligned, request.audio)


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A slice that the decoder can be set before."""

    request: Request
    memory: Any
    language: tuple[str, float]

    def prompt(self, decoding: Decoding) -> str:
        return self.request.prompts.get(self.language[0], "") if decoding.use_prompt else ""


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the decoder made of one slice."""

    text: Text
    before: npt.NDArray[np.floating]
    """Attention while the prompt asked for a transcript, ``(tokens, heads, frames)``."""
    no_speech: float


def _starts_s(heard: _Heard, frames: int) -> npt.NDArray[np.float64]:
    """Where each token of a text begins, and last where the text ends, in seconds from the slice's start."""
    attention = heard.text.attention
    shown = min(attention.shape[-1], heard.before.shape[-1])
    rows = np.concatenate([heard.before[..., :shown], attention[..., :shown]])
    # A text that was cut has no end of its own: it goes on to the end of the sound.
    starts = [*token_starts(rows, frames)[len(heard.before) :], frames]
    return np.array(starts[: len(heard.text.tokens) + 1]) * (FRAME_MS / 1000)


def _probabilities(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares
