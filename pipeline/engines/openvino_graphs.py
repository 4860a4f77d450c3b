"""Whisper as two OpenVINO graphs: sound to the decoder's cross-attention memory, and one decoder step.

The equations are those of Whisper (Radford et al. 2022, and the model code published with it). What is different is
where things are computed: the encoder's graph ends in the keys and values of every decoder layer, the keys scaled as
the step needs them, and the step returns its best tokens, so that no large array crosses over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
from openvino import PartialShape, Type
from openvino import opset6 as op6
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

from pipeline.engines.beam_search import CANDIDATES
from pipeline.engines.whisper_weights import Array, WhisperWeights

_BLOCK = 64
"""Tokens among which the highest is sought at once."""
_SECOND = 50
"""Frames of a block of keys. Multiplied as they lie, keys in blocks took a third of the time of keys in a row in
float32, four fifths in bfloat16: they need not be rearranged at each step. Not so with AMX, whose tiles take keys in a
row as the left factor: 0.66 ms for eight slices of a layer, 1.22 in blocks."""
_MASKED = np.float32(-1e9)
_EPSILON = 1e-5

Node = Any


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a processor computes in."""

    memory: str
    """Type of the cross-attention memory: ``bf16`` or ``f32``."""
    int8_decoder: bool
    """Whether the decoder's weights are held in 8 bits, a scale for each row."""
    int8_encoder: bool = False
    tiles: bool = False
    """Whether products are made of tiles (AMX)."""


def encoder_graph(weights: WhisperWeights, arithmetic: Arithmetic) -> Any:
    """Log-mel features ``mel (1, mels, frames)`` to the memory of each decoder layer L.

    ``values.L (1, heads, frames / 2, width / heads)``, and ``keys.L``, with tiles of the same shape, else ``(1, heads,
    seconds, width / heads, 50)``: the frames must make whole seconds.
    """
    net = _Net(weights, "encoder", quantize=arithmetic.int8_encoder)
    mel = op.parameter(PartialShape([1, weights.mels, -1]), Type.f32, name="mel")
    x = net.convolution(net.convolution(mel, "conv1", stride=1), "conv2", stride=2)
    x = op.transpose(x, _ints(0, 2, 1))
    positions = op.slice(net.constant("position_encodings/encodings"), _ints(0), _size(x, 1), _ints(1), _ints(0))
    x = op.add(x, positions)
    for layer in range(weights.encoder_layers):
        name = f"layer_{layer}"
        query, key, value = net.split_heads(net.normed_linear(x, f"{name}/self_attention", 0), 3)
        attended = net.join_heads(op.scaled_dot_product_attention(query, key, value))
        x = op.add(x, net.linear(attended, f"{name}/self_attention/linear_1"))
        x = net.feed_forward(x, name)
    return ov.Model(_memory(net.norm(x, "layer_norm"), weights, arithmetic), [mel], "encoder")


def _memory(encoded: Node, weights: WhisperWeights, arithmetic: Arithmetic) -> list[Node]:
    net = _Net(weights, "decoder", quantize=False)
    scale = op.constant(np.float32((weights.width // weights.heads) ** -0.5))
    kind = Type.bf16 if arithmetic.memory == "bf16" else Type.f32
    results = []
    for layer in range(weights.decoder_layers):
        key, value = net.split_heads(net.linear(encoded, f"layer_{layer}/attention/linear_1"), 2)
        scaled = op.multiply(key, scale)
        laid = scaled if arithmetic.tiles else _by_second(scaled)
        results += [
            _result(op.convert(laid, kind), f"keys.{layer}"),
            _result(op.convert(value, kind), f"values.{layer}"),
        ]
    return results


def _by_second(keys: Node) -> Node:
    """``(1, heads, frames, size)`` to ``(1, heads, seconds, size, 50)``."""
    size = op.slice(op.shape_of(keys), _ints(3), _ints(4), _ints(1))
    apart = op.reshape(keys, op.concat([_ints(0, 0, -1, _SECOND), size], 0), True)
    return op.transpose(apart, _ints(0, 1, 2, 4, 3))


def step_graph(weights: WhisperWeights, arithmetic: Arithmetic) -> Any:
    """One step of ``rows`` texts over ``slices`` memories; the rows of a slice lie side by side.

    Inputs: ``tokens (rows, n)``; ``positions (n,)``, their places in the text, prompt included; ``starts (rows,)``,
    where each row begins (what lies before is padding); ``parents (rows,)``, which row of the step before each goes
    on; ``picked (m,)``, after which of the n tokens answers are wanted; ``memory_mask (slices, 1, 1, frames)``, added
    to the scores; ``keys.L`` and ``values.L``. The keys and values of the text are state.

    Outputs, for each token picked: ``states (rows, m, width)``, of which ``logits`` are made; the likeliest tokens
    that are not suppressed, ``best (rows, m, 10)`` and ``logprobs (rows, m, 10)``; ``attention (slices, alignment
    heads, rows of a slice, m, frames)``. The logits themselves stay inside: copying them cost a tenth of a step.
    """
    net = _Net(weights, "decoder", quantize=arithmetic.int8_decoder)
    tokens = op.parameter(PartialShape([-1, -1]), Type.i64, name="tokens")
    positions, picked = (op.parameter(PartialShape([-1]), Type.i64, name=name) for name in ("positions", "picked"))
    starts = op.parameter(PartialShape([-1]), Type.i64, name="starts")
    parents = op.parameter(PartialShape([-1]), Type.i32, name="parents")
    memory_mask = op.parameter(PartialShape([-1, 1, 1, -1]), Type.f32, name="memory_mask")
    text = _Text(net, parents, _size(tokens, 0))
    x = net.embed(
        tokens, op.maximum(op.subtract(op.unsqueeze(positions, _ints(0)), op.unsqueeze(starts, _ints(1))), _int(0))
    )
    memory, attention = [], []
    for layer in range(weights.decoder_layers):
        name = f"layer_{layer}"
        query, key, value = net.split_heads(net.normed_linear(x, f"{name}/self_attention", 0), 3)
        keys, values = text.append(key, f"key.{layer}"), text.append(value, f"value.{layer}")
        mask = text.mask(keys, positions, starts)
        attended = net.join_heads(op.scaled_dot_product_attention(query, keys, values, mask))
        x = op.add(x, net.linear(attended, f"{name}/self_attention/linear_1"))
        cross = _CrossAttention(net, layer, arithmetic)
        attended, followed = cross.attend(net.normed_linear(x, f"{name}/attention", 0), memory_mask, tokens)
        x = op.add(x, net.linear(attended, f"{name}/attention/linear_2"))
        x = net.feed_forward(x, name)
        memory += cross.inputs
        heads = [head for at, head in weights.alignment_heads if at == layer]
        attention += [cross.of_heads(followed, heads, tokens, picked)] if heads else []
    states = net.norm(op.gather(x, picked, _int(1)), "layer_norm")
    results = [
        _result(states, "states"),
        *_best(net.logits(states), weights),
        _result(op.convert(op.concat(attention, 1), Type.f16), "attention"),
    ]
    inputs = [tokens, positions, starts, parents, picked, memory_mask, *memory]
    return ov.Model(results, text.assignments, inputs, "step")


def logits_graph(weights: WhisperWeights, arithmetic: Arithmetic) -> Any:
    """``states (rows, width)`` to the logits of every token, ``(rows, vocabulary)``, by the step's weights."""
    states = op.parameter(PartialShape([-1, weights.width]), Type.f32, name="states")
    logits = _Net(weights, "decoder", quantize=arithmetic.int8_decoder).logits(states)
    written = op.slice(logits, _ints(0), _ints(weights.vocabulary), _ints(1), _ints(1))
    return ov.Model([_result(written, "logits")], [states], "logits")


def _best(logits: Node, weights: WhisperWeights) -> list[Node]:
    """The likeliest tokens, sought among the blocks with the highest maxima: all were 15 % of what logits cost."""
    suppressed = np.full(_padded(weights.vocabulary), _MASKED)
    suppressed[: weights.vocabulary] = 0.0
    suppressed[list(weights.suppressed)] = _MASKED
    allowed = op.add(logits, op.constant(suppressed))  # becomes the bias of the product before it
    blocks = op.reshape(allowed, _ints(0, 0, -1, _BLOCK), True)
    found = op.topk(op.reduce_max(blocks, _ints(3)), _int(CANDIDATES), -1, "max", "index", index_element_type=Type.i32)
    among = op.reshape(op.gather(blocks, found.output(1), _int(2), 2), _ints(0, 0, CANDIDATES * _BLOCK), True)
    top = op.topk(among, _int(CANDIDATES), -1, "max", "value", index_element_type=Type.i32)
    size = op.constant(np.int32(_BLOCK))
    block = op.gather(found.output(1), op.divide(top.output(1), size), _int(2), 2)
    best = op.add(op.multiply(block, size), op.mod(top.output(1), size))
    highest = op.slice(top.output(0), _ints(0), _ints(1), _ints(1), _ints(2))
    rest = op.log(op.reduce_sum(op.exp(op.subtract(allowed, highest)), _ints(2), True))
    logprobs = op.subtract(op.subtract(top.output(0), highest), rest)
    return [_result(best, "best"), _result(logprobs, "logprobs")]


def _padded(vocabulary: int) -> int:
    """How many rows the vocabulary's matrix gets, so that blocks divide it."""
    return -(-vocabulary // _BLOCK) * _BLOCK


class _Net:
    """The layers of one half of the model, by the names of its arrays."""

    def __init__(self, weights: WhisperWeights, part: str, *, quantize: bool) -> None:
        self._weights, self._part, self._quantize = weights, part, quantize
        self._shared: dict[str, Node] = {}

    def constant(self, name: str) -> Node:
        return op.constant(self._weights[f"{self._part}/{name}"])

    def _matrix(self, name: str) -> Node:
        return self._constant(self._weights[f"{self._part}/{name}"], 0)

    def _constant(self, matrix: Array, more: int) -> Node:
        """A matrix, followed by ``more`` rows of zeros."""
        return _in_8_bits(matrix, more) if self._quantize else op.constant(_with_rows(matrix, more))

    def norm(self, x: Node, name: str) -> Node:
        normal = op.mvn(x, _ints(-1), True, _EPSILON, "inside_sqrt")
        return op.add(op.multiply(normal, self.constant(f"{name}/gamma")), self.constant(f"{name}/beta"))

    def linear(self, x: Node, name: str) -> Node:
        return op.add(op.matmul(x, self._matrix(f"{name}/weight"), False, True), self.constant(f"{name}/bias"))

    def normed_linear(self, x: Node, name: str, index: int) -> Node:
        return self.linear(self.norm(x, f"{name}/layer_norm"), f"{name}/linear_{index}")

    def feed_forward(self, x: Node, name: str) -> Node:
        hidden = op.gelu(self.normed_linear(x, f"{name}/ffn", 0), "erf")
        return op.add(x, self.linear(hidden, f"{name}/ffn/linear_1"))

    def convolution(self, x: Node, name: str, *, stride: int) -> Node:
        bias = op.constant(self._weights[f"{self._part}/{name}/bias"].reshape(1, -1, 1))
        return op.gelu(op.add(op.convolution(x, self.constant(f"{name}/weight"), [stride], [1], [1], [1]), bias), "erf")

    def split_heads(self, x: Node, parts: int) -> list[Node]:
        """``(rows, n, parts * width)`` to ``parts`` times ``(rows, heads, n, width / heads)``."""
        heads = self._weights.heads
        shape = np.array([0, 0, parts, heads, self._weights.width // heads])
        apart = op.transpose(op.reshape(x, shape, True), _ints(2, 0, 3, 1, 4))
        return [op.squeeze(one, _ints(0)) for one in op.split(apart, _int(0), parts).outputs()]

    def join_heads(self, x: Node) -> Node:
        return op.reshape(op.transpose(x, _ints(0, 2, 1, 3)), _ints(0, 0, self._weights.width), True)

    def embed(self, tokens: Node, positions: Node) -> Node:
        places = op.gather(self.constant("position_encodings/encodings"), positions, _int(0))
        return op.add(op.gather(self._vocabulary("embeddings/weight"), tokens, _int(0)), places)

    def logits(self, x: Node) -> Node:
        return op.matmul(x, self._vocabulary(self._weights.output.removeprefix("decoder/")), False, True)

    def _vocabulary(self, name: str) -> Node:
        """In most models one and the same matrix for both ends, followed by zeros up to a whole block."""
        if name not in self._shared:
            matrix = self._weights[f"{self._part}/{name}"]
            self._shared[name] = self._constant(matrix, _padded(len(matrix)) - len(matrix))
        return self._shared[name]

    @property
    def weights(self) -> WhisperWeights:
        return self._weights


class _Text:
    """The keys and values of the text so far: state of the graph, its rows put in the order of ``parents`` first."""

    def __init__(self, net: _Net, parents: Node, rows: Node) -> None:
        self._parents, self._rows, self._weights = parents, rows, net.weights
        self._mask: Node | None = None
        self.assignments: list[Node] = []

    def append(self, new: Node, name: str) -> Node:
        heads, size = self._weights.heads, self._weights.width // self._weights.heads
        info = VariableInfo()
        info.data_shape, info.data_type, info.variable_id = PartialShape([-1, heads, -1, size]), Type.f32, name
        variable = Variable(info)
        empty = op.broadcast(op.constant(np.float32(0)), op.concat([self._rows, _ints(heads, 0, size)], 0))
        before = op.gather(op6.read_value(empty, variable), self._parents, _int(0))
        joined = op.concat([before, new], 2)
        self.assignments.append(op6.assign(joined, variable))
        return joined

    def mask(self, keys: Node, positions: Node, starts: Node) -> Node:
        """``(rows, 1, n, length)``: a token sees itself and what came before it, from its row's start."""
        if self._mask is None:
            length = op.squeeze(_size(keys, 2), _ints(0))
            places = op.unsqueeze(op.range(_int(0), length, _int(1), "i64"), _ints(0))
            causal = op.unsqueeze(op.less_equal(places, op.unsqueeze(positions, _ints(1))), _ints(0))
            begun = op.unsqueeze(op.greater_equal(places, op.unsqueeze(starts, _ints(1))), _ints(1))
            seen = op.unsqueeze(op.logical_and(causal, begun), _ints(1))
            self._mask = op.select(seen, op.constant(np.float32(0)), op.constant(_MASKED))
        return self._mask


class _CrossAttention:
    """Attention over the memory of each row's slice. The rows of a slice share it: it is read once a step for all."""

    def __init__(self, net: _Net, layer: int, arithmetic: Arithmetic) -> None:
        self._weights = net.weights
        heads, size = self._weights.heads, self._weights.width // self._weights.heads
        kind = Type.bf16 if arithmetic.memory == "bf16" else Type.f32
        self._tiles = arithmetic.tiles
        laid = [-1, heads, -1, size] if self._tiles else [-1, heads, -1, size, _SECOND]
        self._keys = op.parameter(PartialShape(laid), kind, name=f"keys.{layer}")
        self._values = op.parameter(PartialShape([-1, heads, -1, size]), kind, name=f"values.{layer}")
        self.inputs = [self._keys, self._values]

    def attend(self, query: Node, mask: Node, tokens: Node) -> tuple[Node, Node]:
        """The attended values ``(rows, n, width)``, and the weights ``(slices, heads, rows a slice * n, frames)``."""
        heads, width = self._weights.heads, self._weights.width
        slices = _size(self._keys, 0)
        by_slice = op.reshape(query, op.concat([slices, _ints(-1, heads, width // heads)], 0), False)
        followed = op.softmax(op.add(self._scores(by_slice), mask), -1)
        attended = op.transpose(
            op.matmul(followed, op.convert(self._values, Type.f32), False, False), _ints(0, 2, 1, 3)
        )
        return op.reshape(attended, op.concat([op.shape_of(tokens), _ints(width)], 0), False), followed

    def _scores(self, queries: Node) -> Node:
        """``(slices, heads, n, frames)`` of ``(slices, n, heads, size)``."""
        keys = op.convert(self._keys, Type.f32)
        if self._tiles:
            return op.transpose(
                op.matmul(keys, op.transpose(queries, _ints(0, 2, 3, 1)), False, False), _ints(0, 1, 3, 2)
            )
        lines = op.unsqueeze(op.transpose(queries, _ints(0, 2, 1, 3)), _ints(2))
        by_second = op.matmul(lines, keys, False, False)
        return op.reshape(op.transpose(by_second, _ints(0, 1, 3, 2, 4)), _ints(0, 0, 0, -1), True)

    def of_heads(self, followed: Node, heads: Sequence[int], tokens: Node, picked: Node) -> Node:
        """``(slices, heads, rows a slice, picked, frames)`` of the weights."""
        slices, places = _size(self._keys, 0), _size(tokens, 1)
        apart = op.concat([slices, _ints(len(heads), -1), places, _size(self._values, 2)], 0)
        return op.gather(op.reshape(op.gather(followed, _ints(*heads), _int(1)), apart, False), picked, _int(3))


def _with_rows(matrix: Array, more: int) -> Array:
    return np.pad(matrix, ((0, more), (0, 0))) if more else matrix


def _in_8_bits(matrix: Array, more: int) -> Node:
    """Symmetric 8-bit weights with a scale for each row, as the CPU plugin computes with them without unpacking."""
    scale = np.maximum(np.abs(matrix).max(axis=1, keepdims=True) / 127, np.finfo(np.float32).tiny).astype(np.float32)
    packed = op.constant(_with_rows(np.rint(matrix / scale).astype(np.int8), more))
    return op.multiply(op.convert(packed, Type.f32), op.constant(_with_rows(scale, more)))


def _size(node: Node, axis: int) -> Node:
    return op.gather(op.shape_of(node), _ints(axis), _int(0))


def _ints(*values: int) -> Node:
    return op.constant(np.array(values, np.int64))


def _int(value: int) -> Node:
    return op.constant(np.int64(value))


def _result(node: Node, name: str) -> Node:
    result = op.result(node)
    result.output(0).get_tensor().set_names({name})
    return result
