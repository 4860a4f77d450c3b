"""The mark model: vectors of units and of pairs, what was heard after each, dilated convolutions over them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

PAUSE_EDGES_MS = (50, 90, 130, 170, 210, 250, 300, 350, 400, 460, 540, 650, 800, 1100, 1800)
STRETCH_EDGES = (0.6, 0.85, 1.1, 1.35, 1.6, 2.0, 2.6)
PAIR_BUCKETS = {"zh": 32768, "en": 16384}
PAIR_MULTIPLIERS = (7919, 104729)
WIDTH = {"zh": 192, "en": 128}
DILATIONS = {"zh": (1, 2, 4, 8, 16, 1), "en": (1, 2, 4, 8, 1)}
"""English, with less to learn from, gained nothing by a wider network."""
UNIT_WIDTH, PAIR_WIDTH, ENDING_WIDTH, ENDINGS = 64, 32, 16, 1024
MARK_CLASSES = 8


class MarkNetwork(nn.Module):  # type: ignore[misc, unused-ignore]
    """(batch, units) of numbers and of what was heard -> (batch, units, classes) of scores before the softmax."""

    def __init__(self, language: str, units: int, classes: int, drop: float) -> None:
        super().__init__()
        self.pairs, self.dilations = PAIR_BUCKETS[language], DILATIONS[language]
        width = WIDTH[language]
        self.unit = nn.Embedding(units, UNIT_WIDTH)
        self.pair = nn.Embedding(self.pairs, PAIR_WIDTH)
        self.ending = nn.Embedding(ENDINGS, ENDING_WIDTH)
        heard = len(PAUSE_EDGES_MS) + len(STRETCH_EDGES) + MARK_CLASSES + 1
        self.enter = nn.Linear(UNIT_WIDTH + PAIR_WIDTH + ENDING_WIDTH + heard, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, padding=d, dilation=d) for d in self.dilations)
        self.leave = nn.Linear(width, classes)
        self.drop = nn.Dropout(drop)
        self.register_buffer("pause_edges", torch.tensor(PAUSE_EDGES_MS, dtype=torch.float32))
        self.register_buffer("stretch_edges", torch.tensor(STRETCH_EDGES))
        for table in (self.unit, self.pair, self.ending):
            nn.init.normal_(table.weight, std=0.3)

    def forward(
        self, ids: Tensor, endings: Tensor, pauses: Tensor, stretch: Tensor, marks: Tensor, capitals: Tensor
    ) -> Tensor:
        before = nn.functional.pad(ids[:, :-1], (1, 0))
        pair = (before.long() * PAIR_MULTIPLIERS[0] + ids.long() * PAIR_MULTIPLIERS[1]) % self.pairs
        heard = torch.cat(
            (
                (pauses[..., None] >= self.pause_edges).float(),
                (stretch[..., None] >= self.stretch_edges).float(),
                nn.functional.one_hot(marks.long(), MARK_CLASSES).float(),
                capitals[..., None],
            ),
            -1,
        )
        known = self.drop(torch.cat((self.unit(ids), self.pair(pair), self.ending(endings)), -1))
        state = self.enter(torch.cat((known, heard), -1)).relu().transpose(1, 2)
        for layer in self.layers:
            state = state + layer(self.drop(state)).relu()
        return self.leave(state.transpose(1, 2))


def export(network: MarkNetwork, units: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays for ``pipeline.postprocess.mark_model``: tables in 8 bits, a scale a row; the rest in half precision."""
    arrays: dict[str, np.ndarray] = {
        "units": np.array("\n".join(units.tolist())),
        "pause_edges_ms": np.array(PAUSE_EDGES_MS, np.int32),
        "stretch_edges": np.array(STRETCH_EDGES, np.float32),
        "pair_multipliers": np.array(PAIR_MULTIPLIERS, np.int64),
        "dilations": np.array(network.dilations, np.int32),
    }
    weights = {name: value.detach().float().cpu().numpy() for name, value in network.state_dict().items()}
    for name in ("unit", "pair", "ending"):
        table = weights[f"{name}.weight"]
        scale = np.abs(table).max(1, keepdims=True) / 127 + 1e-8
        arrays[f"{name}_table"] = np.round(table / scale).astype(np.int8)
        arrays[f"{name}_scale"] = scale.astype(np.float16)
    arrays["enter_weight"] = weights["enter.weight"].T.astype(np.float16)
    arrays["enter_bias"] = weights["enter.bias"].astype(np.float16)
    for at in range(len(network.dilations)):
        # (out, in, tap) -> (tap, in, out): three matrix products over shifted rows.
        arrays[f"layer{at}_weight"] = weights[f"layers.{at}.weight"].transpose(2, 1, 0).astype(np.float16)
        arrays[f"layer{at}_bias"] = weights[f"layers.{at}.bias"].astype(np.float16)
    arrays["leave_weight"] = weights["leave.weight"].T.astype(np.float16)
    arrays["leave_bias"] = weights["leave.bias"].astype(np.float16)
    return arrays
