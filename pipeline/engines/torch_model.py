"""Whisper in PyTorch: the sound of a batch in, then texts with the times of their tokens out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pipeline.engines.alignment import token_starts
from pipeline.engines.beam_search import Rules, Text, search
from pipeline.engines.mark_tokens import MarkTokens, rounded
from pipeline.engines.sampling import Sampling, sample
from pipeline.engines.torch_alignment import costs, path
from pipeline.engines.torch_decoder import Decoder, Ops
from pipeline.engines.torch_encoder import ENCODED_TOGETHER, Encoder, LogMel, SoundMemory
from pipeline.engines.torch_packing import Place
from pipeline.engines.torch_search import BeamSearch, Written, capacity_for
from pipeline.engines.torch_stepping import HostSteps
from pipeline.engines.torch_texts import new_texts
from pipeline.engines.whisper_weights import WhisperWeights
from pipeline.transcription import Decoding
from pipeline.values import Samples

Tensor = Any

_ALIGNED_TOGETHER = 32
"""Slices whose attention is laid out at a time: those of 30 s take 0.5 GB."""
_PATHS_TOGETHER = 128
"""Slices whose paths are searched at a time, row by row: the more, the fewer calls of the device."""
_ARRAYS_HELD = 2
"""Sets of texts that are kept, one a beam: the ladder goes up and down."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of one slice."""

    tokens: list[int]
    probabilities: list[float]
    logprob: float
    """Sum over the tokens and the end."""
    starts: list[int]
    """The frame of 20 ms in which each token begins, and last that in which the text ends; empty if not asked for."""
    marks: Sequence[Sequence[float]]
    """See ``Text.marks``."""
    no_speech: float


@dataclass(frozen=True, slots=True)
class Sound:
    """One slice: its samples, and how many frames of 10 ms are encoded, silence after it included."""

    samples: Samples
    window: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for beside the way of decoding."""

    asking: int
    """How many tokens at the end of a prompt ask for the text."""
    no_speech: int
    """The token that says after the first of them that there is no speech."""
    max_tokens: int
    seeds: Sequence[int]
    """For texts drawn at random, one a slice."""
    with_starts: bool = True


class TorchModel:
    """The weights on a device. Not thread-safe."""

    def __init__(
        self, weights: WhisperWeights, place: Place, ops: Ops, marks: MarkTokens, *, is_compiled: bool = False
    ) -> None:
        self.weights, self.place, self._ops, self._marks = weights, place, ops, marks
        self._mel = LogMel(weights.mels, place)
        self._encoder = Encoder(weights, place, is_compiled=is_compiled)
        self._decoder = Decoder(weights, place, ops)
        self._searches: dict[int, BeamSearch] = {}
        self._sound: SoundMemory | None = None
        self._sounds: Sequence[Sound] = ()

    def forget(self) -> None:
        """Give back the memory of all batches."""
        self._searches, self._sound, self._sounds = {}, None, ()
        if self.place.device.type == "cuda":
            torch.cuda.empty_cache()

    def hear(self, sounds: Sequence[Sound]) -> None:
        """Encode a batch: what is asked for next is about these slices."""
        memory = self._memory(len(sounds))
        alike = defaultdict(list)
        for at, sound in enumerate(sounds):
            alike[sound.window].append(at)
        chunks = [
            (window, places[first : first + ENCODED_TOGETHER])
            for window, places in alike.items()
            for first in range(0, len(places), ENCODED_TOGETHER)
        ]
        # One transfer for all: the host would wait at each of them until the device has encoded what came before.
        slots = torch.tensor([at for _, some in chunks for at in some], device=self.place.device)
        for (window, some), into in zip(chunks, slots.split([len(some) for _, some in chunks]), strict=True):
            memory.fill(into, self._encoder(self._mel([sounds[at].samples for at in some], window)))
        self._sounds = sounds

    def _memory(self, slices: int) -> SoundMemory:
        if self._sound is None or self._sound.slots < slices:
            self.forget()
            self._sound = SoundMemory(self.weights, self.place, capacity_for(slices))
        return self._sound

    def _search(self, beam: int) -> BeamSearch:
        slices = len(self._sounds)
        held = self._searches.pop(beam, None)
        if held is None or held.texts.capacity < slices:
            while len(self._searches) >= _ARRAYS_HELD:
                self._searches.pop(next(iter(self._searches)))
            capacity = capacity_for(slices)
            texts = new_texts(self.weights, self.place, capacity, beam)
            held = BeamSearch(self._decoder, self._ops, texts, self._memory(slices), self.weights.end, self._marks)
        self._searches[beam] = held
        return held

    def shares(self, start: int, tokens: Sequence[int]) -> list[list[float]]:
        """For each slice, how likely each of ``tokens`` is after ``start``, among them."""
        states = self._read(self._search(1), [[start]] * len(self._sounds), 1, 1)
        chosen = self._decoder.logits(states[:, 0])[:, list(tokens)]
        shares: list[list[float]] = chosen.softmax(-1).cpu().tolist()
        return shares

    def first_tokens(self, prompts: Sequence[Sequence[int]]) -> list[int]:
        """The likeliest first token of each slice."""
        states = self._read(self._search(1), prompts, 1, 1)
        logits = self._decoder.logits(states[:, 0]) + self._decoder.hidden_first
        tokens: list[int] = logits.argmax(-1).cpu().tolist()
        return tokens

    def encoded(self, sounds: Sequence[Sound]) -> list[npt.NDArray[np.float32]]:
        """The encoder's output of each slice, ``(frames, width)``."""
        return [self._encoder(self._mel([one.samples], one.window))[0].float().cpu().numpy() for one in sounds]

    def write(self, prompts: Sequence[Sequence[int]], decoding: Decoding, wanted: Wanted) -> list[Decoded]:
        """The best text of each slice."""
        running = self._search(decoding.beam_size)
        longest = max(map(len, prompts))
        limit = min(wanted.max_tokens, self.weights.context_tokens - longest)
        states = self._read(running, prompts, wanted.asking, limit)
        logits = self._decoder.logits(states[:, 0])[:, : self.weights.vocabulary]
        silence = logits.softmax(-1)[:, wanted.no_speech].cpu().tolist()
        if decoding.temperature or decoding.no_repeat_ngram_tokens:
            return self._write_on_host(running, states, decoding, replace(wanted, max_tokens=limit), silence)
        written = running.run(self._decoder.logits(states[:, -1]))
        found = self._starts(running, written, wanted.asking) if wanted.with_starts else None
        return _decoded(written, found, wanted.asking - 1, self._frames(), silence)

    def _read(self, running: BeamSearch, prompts: Sequence[Sequence[int]], asking: int, limit: int) -> Tensor:
        lengths = [len(prompt) for prompt in prompts]
        padded = [[0] * (max(lengths) - len(prompt)) + list(prompt) for prompt in prompts]
        running.texts.begin(len(prompts), [sound.window // 2 for sound in self._sounds], lengths, limit)
        tokens = torch.tensor(padded, device=self.place.device)
        return self._decoder.read(running.texts, self._memory(len(prompts)), tokens, asking)

    def _frames(self) -> list[int]:
        return [max(1, len(sound.samples) // 320) for sound in self._sounds]

    def _starts(self, running: BeamSearch, written: Written, asking: int) -> Tensor:
        """The frame of each token of the texts and of their ends, after those of the prompts' last tokens."""
        device, slices = self.place.device, len(self._sounds)
        rows = written.lengths + (asking - 1) + ~written.is_cut
        frames = torch.tensor(self._frames(), device=device)
        first, longest = running.texts.prompt_length - asking, int(rows.max())
        cost = torch.empty(slices, longest, int(frames.max()), device=device)
        for at in range(0, slices, _ALIGNED_TOGETHER):
            some = torch.arange(at, min(at + _ALIGNED_TOGETHER, slices), device=device)
            lines = written.lines[some, first : first + longest]
            scores = self._decoder.followed(running.texts, self._memory(slices), some, lines, first)
            cost[some] = costs(scores[..., : cost.shape[2]], rows[some], frames[some], self._ops)
        parts = [slice(at, at + _PATHS_TOGETHER) for at in range(0, slices, _PATHS_TOGETHER)]
        return torch.cat([path(cost[part], rows[part], frames[part]) for part in parts])

    def _write_on_host(
        self, running: BeamSearch, states: Tensor, decoding: Decoding, wanted: Wanted, silence: Sequence[float]
    ) -> list[Decoded]:
        weights, memory, asking = self.weights, self._memory(len(states)), states.shape[1]
        steps = HostSteps(self._decoder, self._ops, running.texts, memory, weights.vocabulary)
        first = running.texts.prompt_length - asking
        slots = torch.arange(len(states), device=self.place.device)
        lines = (slots * running.texts.beam)[:, None].expand(-1, asking - 1)
        before = steps.attention(slots, lines, first).cpu().numpy().swapaxes(1, 2)
        if decoding.temperature:
            hidden = weights.suppressed, weights.suppressed_first
            rules = Sampling(decoding.temperature, weights.end, wanted.max_tokens, *hidden, self._marks)
            texts = sample(steps, steps.first(states[:, -1]), steps.logits, rules, wanted.seeds)
        else:
            sizes = decoding.beam_size, weights.end, wanted.max_tokens, decoding.no_repeat_ngram_tokens
            searched = Rules(*sizes, self._marks)
            texts = search(steps, steps.first(states[:, -1]), searched)
        return [
            _from_text(text, led, frames, quiet)
            for text, led, frames, quiet in zip(texts, before, self._frames(), silence, strict=True)
        ]


def _decoded(
    written: Written, found: Tensor | None, before: int, frames: Sequence[int], silence: Sequence[float]
) -> list[Decoded]:
    lengths, totals, is_cut = (of.cpu().tolist() for of in (written.lengths, written.totals, written.is_cut))
    tokens, probabilities = written.tokens.cpu().numpy(), written.logprobs.exp().cpu().numpy()
    marks = rounded(written.marks.double().cpu().numpy())
    begun = None if found is None else found[:, before:].cpu().numpy()
    texts = []
    for at, quiet in enumerate(silence):
        length = lengths[at]
        # A text that was cut has no end of its own: it goes on to the end of the sound.
        until = [frames[at]] if is_cut[at] else []
        timed = [] if begun is None else [*begun[at, : length + (not is_cut[at])].tolist(), *until]
        row = tokens[at, :length].tolist(), probabilities[at, :length].tolist()
        texts.append(Decoded(*row, totals[at], timed, marks[at][: length + (not is_cut[at])], quiet))
    return texts


def _from_text(text: Text, before: Any, frames: int, no_speech: float) -> Decoded:
    shown = min(text.attention.shape[-1], before.shape[-1])
    rows = np.concatenate([before[..., :shown], text.attention[..., :shown]])
    begun = [*token_starts(rows, frames)[len(before) :].tolist(), frames][: len(text.tokens) + 1]
    return Decoded(list(text.tokens), list(text.probabilities), text.logprob, begun, text.marks, no_speech)
