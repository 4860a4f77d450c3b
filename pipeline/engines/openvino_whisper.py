"""Whisper on a CPU through OpenVINO: sound in, steps out.

OpenVINO was measured against ONNX Runtime and CTranslate2: it alone computes in bfloat16 where the processor can.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import openvino as ov
from openvino._offline_transformations import compress_model_transformation

from pipeline.devices import TILES, processor_flags
from pipeline.engines.beam_search import Step, Tokens
from pipeline.engines.fused import FusedEngine
from pipeline.engines.openvino_graphs import Arithmetic, encoder_graph, logits_graph, step_graph
from pipeline.engines.whisper_weights import WhisperWeights, load_weights
from pipeline.errors import UsageError

Floats = npt.NDArray[np.float32]
_MASKED = np.float32(-1e9)
MAX_LANES = 2
"""Each holds what it decodes with. Two serve two cores best."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the decoder looks at of one slice: keys and values of every layer. ``frames`` of 20 ms.

    The decoder moves the tensors of a batch together, and drops those of a slice that is done: a slice of 30 s holds
    18 MiB in the base model, 36 in float32, of which there is one copy at any time.
    """

    tensors: dict[str, Any]
    frames: int


class OpenVinoWhisper:
    """The compiled graphs, and one lane's use of them. Not thread-safe: a lane has one thread."""

    def __init__(self, weights: WhisperWeights, arithmetic: Arithmetic, threads: int, lanes: int = 1) -> None:
        """``threads`` in all, shared by as many uses at the same time as there are ``lanes``."""
        core = ov.Core()
        options = {
            "INFERENCE_PRECISION_HINT": arithmetic.memory,
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            # 8 bits by default, which rounded a text otherwise beside a longer prompt, and saved nothing here.
            "KV_CACHE_PRECISION": arithmetic.memory,
        }
        # Beside weights of 8 bits the states are rounded to 8 bits too, with a scale for so many of them. One for each
        # row took 15 % off a step of 20 rows where the default of 32 was; the rounding of the weights is larger.
        grouped = options | {"DYNAMIC_QUANTIZATION_GROUP_SIZE": weights.width, "NUM_STREAMS": lanes}
        # Without the arrays, which the graphs have now: the file's pages would count as memory of this process.
        self.weights = replace(weights, arrays={})
        encoder = encoder_graph(weights, arithmetic)
        # The runtime keeps the weights beside those that it arranged anew; 16 bits is what the file has.
        compress_model_transformation(encoder)
        # A scale for each row would put an encoder in 8 bits 11 % off, one for 128 numbers 8 %, in a tenth more time.
        encoding = options | ({"DYNAMIC_QUANTIZATION_GROUP_SIZE": 128} if arithmetic.int8_encoder else {})
        # All threads encode one slice after the other: lanes would be no faster, and take 80 MiB more.
        self._encoder = core.compile_model(encoder, "CPU", encoding).create_infer_request()
        self._compiled = (
            core.compile_model(step_graph(weights, arithmetic), "CPU", grouped),
            core.compile_model(logits_graph(weights, arithmetic), "CPU", grouped),
        )
        self._decoder, self._logits = (graph.create_infer_request() for graph in self._compiled)

    def beside(self) -> Self:
        """Another lane over the same weights, to decode; the encoder is this one's."""
        other = copy(self)
        other._decoder, other._logits = (graph.create_infer_request() for graph in self._compiled)
        return other

    def encode(self, mel: Floats) -> Memory:
        """The memory of log-mel features ``(mels, frames of 10 ms)``, whole seconds of them."""
        self._encoder.infer({"mel": np.ascontiguousarray(mel[None])})
        tensors = {}
        for name in self._names():
            given = self._encoder.get_tensor(name)
            tensors[name] = ov.Tensor(given.element_type, given.shape)
            given.copy_to(tensors[name])
        return Memory(tensors, mel.shape[1] // 2)

    def sound_of(self, memory: Memory) -> Floats:
        """The values of the first layer, ``(heads, frames, size)``: a linear image of the encoder's output."""
        values = memory.tensors["values.0"]
        if values.element_type != ov.Type.bf16:
            return np.array(values.data[0], np.float32)
        wide = values.data.view(np.uint16)[0].astype(np.uint32) << 16  # bfloat16 is the upper half of float32
        return np.ascontiguousarray(wide).view(np.float32)

    def _names(self) -> list[str]:
        return [f"{part}.{layer}" for layer in range(self.weights.decoder_layers) for part in ("keys", "values")]

    def begin(self, memories: Sequence[Memory], prompts: Sequence[Sequence[int]]) -> Listening:
        """Set the decoder before the sound of some slices, each with its prompt."""
        return Listening(self._decoder, memories, prompts)

    def logits(self, states: Floats) -> Floats:
        """Of all tokens, ``(rows, vocabulary)``, from ``states (rows, width)``."""
        self._logits.infer({"states": np.ascontiguousarray(states, np.float32)})
        logits: Floats = self._logits.get_tensor("logits").data.copy()
        return logits


class Listening:
    """The decoder over a batch of slices, from its prompts on; ``Stepper`` of the search.

    Only the newest one may be used: the text so far is state of the decoder.
    """

    def __init__(self, decoder: Any, memories: Sequence[Memory], prompts: Sequence[Sequence[int]]) -> None:
        self._decoder, self._memories = decoder, memories
        self._starts = max(map(len, prompts)) - np.array([len(prompt) for prompt in prompts])
        self._tokens = np.array([[0] * pad + list(prompt) for pad, prompt in zip(self._starts, prompts, strict=True)])
        self._length = 0
        self._present: tuple[int, ...] = ()

    def prompt(self, last: int) -> list[Step]:
        """Read the prompts: the steps after each of their ``last`` tokens, one row a slice."""
        self._decoder.reset_state()
        rows = np.arange(len(self._tokens))
        length = self._tokens.shape[1]
        return self._infer(self._tokens, rows, rows, range(length - last, length))

    def step(self, tokens: Tokens, parents: Tokens, slices: Tokens) -> Step:
        (step,) = self._infer(tokens[:, None], parents, slices, [0])
        return step

    def _infer(self, tokens: Tokens, parents: Tokens, slices: Tokens, picked: Sequence[int]) -> list[Step]:
        width = self._arrange(slices)
        padded, real = _in_even_groups(slices, self._present, width)
        count = tokens.shape[1]
        self._decoder.infer(
            {
                "tokens": np.ascontiguousarray(tokens[padded], np.int64),
                "positions": np.arange(self._length, self._length + count, dtype=np.int64),
                "starts": np.ascontiguousarray(self._starts[slices[padded]], np.int64),
                "parents": np.ascontiguousarray(self._parents(parents)[padded], np.int32),
                "picked": np.array(picked, np.int64),
            }
        )
        self._length += count
        self._rows = real
        return [self._answer(real, at) for at in range(len(picked))]

    def _parents(self, parents: Tokens) -> Tokens:
        """The rows of the step before as they lay in the graph, which held some of them twice."""
        return self._rows[parents] if self._length else parents

    def _answer(self, real: Tokens, at: int) -> Step:
        """The step after the token picked as number ``at``, without the rows that only fill a group."""
        best, logprobs, states = (
            self._decoder.get_tensor(name).data[real, at] for name in ("best", "logprobs", "states")
        )
        # (slices, heads, rows of a slice, picked, frames)
        attention = self._decoder.get_tensor("attention").data[:, :, :, at]
        slices, heads, width, frames = attention.shape
        by_row = attention.transpose(0, 2, 1, 3).reshape(slices * width, heads, frames)
        return Step(best.astype(np.int64), logprobs, by_row[real], states)

    def _arrange(self, slices: Tokens) -> int:
        """Put the memory of the slices that are left before the decoder; returns how many rows each one takes."""
        present, counts = np.unique(slices, return_counts=True)
        if tuple(present) != self._present:
            self._present = tuple(int(at) for at in present)
            for at in set(range(len(self._memories))) - set(self._present):
                self._memories[at].tensors.clear()
            self._set_memory([self._memories[at] for at in self._present])
        return int(counts.max())

    def _set_memory(self, memories: Sequence[Memory]) -> None:
        frames = max(memory.frames for memory in memories)
        for name in memories[0].tensors:
            self._decoder.set_tensor(name, _move_together(name, memories))
        mask = np.zeros((len(memories), 1, 1, frames), np.float32)
        for at, memory in enumerate(memories):
            mask[at, ..., memory.frames :] = _MASKED
        self._decoder.set_tensor("memory_mask", ov.Tensor(mask))


def _move_together(name: str, memories: Sequence[Memory]) -> Any:
    """One tensor of all slices, the shorter ones followed by zeros; theirs are views of it."""
    tensors = [memory.tensors[name] for memory in memories]
    # Frames, or seconds, are the third axis; the others are the same for all.
    longest = max((tensor.shape for tensor in tensors), key=lambda shape: shape[2])
    joined = ov.Tensor(tensors[0].element_type, ov.Shape([len(tensors), *list(longest)[1:]]))
    # Masked places are multiplied by 0, which does not help against the infinities of unset memory.
    joined.data.view(np.uint8)[...] = 0
    for at, (memory, tensor) in enumerate(zip(memories, tensors, strict=True)):
        begin, end = [at] + [0] * (len(longest) - 1), [at + 1, *list(tensor.shape)[1:]]
        view = ov.Tensor(joined, ov.Coordinate(begin), ov.Coordinate(end))
        tensor.copy_to(view)
        memory.tensors[name] = view
    return joined


def _in_even_groups(slices: Tokens, present: Sequence[int], width: int) -> tuple[Tokens, Tokens]:
    """Rows padded so that each slice has ``width`` of them: which row stands where, and where each row stands."""
    padded = np.concatenate([np.resize(np.flatnonzero(slices == at), width) for at in present])
    real = np.concatenate(
        [group * width + np.arange(np.count_nonzero(slices == at)) for group, at in enumerate(present)]
    )
    return padded, real


def load_fused(
    folder: Path,
    fingerprint: str,
    *,
    arithmetic: str,
    threads: int,
    int8_encoder: bool = False,
    int8_decoder: bool = True,
    most_lanes: int = MAX_LANES,
) -> FusedEngine:
    """The fused engine on this CPU, in ``bf16`` or ``f32``. Raises UsageError where the model cannot be loaded."""
    weights = load_weights(folder)
    lanes = min(threads, most_lanes)
    try:
        tiles = arithmetic == "bf16" and TILES in processor_flags()
        first = OpenVinoWhisper(weights, Arithmetic(arithmetic, int8_decoder, int8_encoder, tiles), threads, lanes)
        runtimes = [first, *(first.beside() for _ in range(lanes - 1))]
    except RuntimeError as error:
        raise UsageError(f"OpenVINO cannot compute the model in {folder}: {error}") from error
    return FusedEngine(runtimes, folder, fingerprint)
