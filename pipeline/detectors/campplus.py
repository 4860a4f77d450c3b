"""CAM++ speaker embeddings: how a voice sounds, as 192 numbers (Wang et al., Interspeech 2023).

The weights are those of 3D-Speaker for Mandarin and English; the network is written here as a function over them: a
convolutional front end, a time-delay network of three dense blocks whose layers are masked by their context, and
statistics over time. Needs PyTorch and torchaudio, which the extra ``diarization`` brings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.diarization import Embedding
from pipeline.errors import UsageError
from pipeline.values import SAMPLE_RATE_HZ, Samples

MEL_BANDS = 80
BLOCKS = ((12, 1), (24, 2), (16, 2))
"""Layers and dilation of each dense block."""
CONTEXT_FRAMES = 100
"""The context of a layer's mask: the mean of the whole and of each such stretch (1 s, two frames of sound each)."""

Weights = Mapping[str, Any]
Embedder = Callable[[Samples], Embedding]
"""Audio of one voice, shape ``(n,)``, at least 25 ms, to its embedding, shape ``(192,)``, of length 1."""


def load_campplus(checkpoint: Path) -> Embedder:
    """Load ``campplus_cn_en_common.pt``. Raises UsageError where the extra is not installed or the file is another."""
    try:
        import torch
        from torchaudio.compliance import kaldi
    except ModuleNotFoundError as error:
        raise UsageError(
            "telling speakers apart needs the extra 'diarization': pip install 'lecturemill[diarization]'"
        ) from error
    torch.set_num_threads(1)
    weights = torch.load(checkpoint, map_location="cpu", weights_only=True)
    if "xvector.dense.linear.weight" not in weights:
        raise UsageError(f"{checkpoint} holds no CAM++ network")

    def embed(samples: Samples) -> Embedding:
        with torch.inference_mode():
            sound = torch.from_numpy(samples)[None]
            bands = kaldi.fbank(sound, num_mel_bins=MEL_BANDS, sample_frequency=SAMPLE_RATE_HZ, dither=0.0)
            vector = _Network(torch, weights).embedding((bands - bands.mean(0))[None])[0]
            return np.asarray(vector / vector.norm(), np.float32)

    return embed


class _Network:
    """The layers by the names that their weights have in the checkpoint."""

    def __init__(self, torch: Any, weights: Weights) -> None:
        self._torch, self._weights = torch, weights
        self._of = torch.nn.functional

    def embedding(self, bands: Any) -> Any:
        """Mel bands, shape ``(1, frames, 80)``, to the embedding, shape ``(1, 192)``."""
        x = self._front(bands.transpose(1, 2)[:, None]).flatten(1, 2)
        x = self._normed_relu(
            self._of.conv1d(x, self._weights["xvector.tdnn.linear.weight"], stride=2, padding=2),
            "xvector.tdnn.nonlinear.batchnorm",
        )
        for number, (layers, dilation) in enumerate(BLOCKS, start=1):
            for layer in range(1, layers + 1):
                x = self._torch.cat([x, self._dense(x, f"xvector.block{number}.tdnnd{layer}", dilation)], 1)
            transit = f"xvector.transit{number}"
            x = self._pointwise(self._normed_relu(x, f"{transit}.nonlinear.batchnorm"), f"{transit}.linear")
        x = self._normed_relu(x, "xvector.out_nonlinear.batchnorm")
        statistics = self._torch.cat([x.mean(-1), x.std(-1)], -1)[..., None]
        return self._normed(self._pointwise(statistics, "xvector.dense.linear"), "xvector.dense.nonlinear.batchnorm")[
            ..., 0
        ]

    def _front(self, x: Any) -> Any:
        x = self._of.relu(self._normed(self._convolved(x, "head.conv1", 1), "head.bn1"))
        for layer in ("head.layer1", "head.layer2"):
            x = self._residual(self._residual(x, f"{layer}.0", 2), f"{layer}.1", 1)
        return self._of.relu(self._normed(self._convolved(x, "head.conv2", 2), "head.bn2"))

    def _residual(self, x: Any, name: str, stride: int) -> Any:
        y = self._of.relu(self._normed(self._convolved(x, f"{name}.conv1", stride), f"{name}.bn1"))
        y = self._normed(self._convolved(y, f"{name}.conv2", 1), f"{name}.bn2")
        if stride > 1:
            x = self._of.conv2d(x, self._weights[f"{name}.shortcut.0.weight"], stride=(stride, 1))
            x = self._normed(x, f"{name}.shortcut.1")
        return self._of.relu(y + x)

    def _dense(self, x: Any, name: str, dilation: int) -> Any:
        y = self._pointwise(self._normed_relu(x, f"{name}.nonlinear1.batchnorm"), f"{name}.linear1")
        y = self._normed_relu(y, f"{name}.nonlinear2.batchnorm")
        mask = f"{name}.cam_layer"
        local = self._of.conv1d(y, self._weights[f"{mask}.linear_local.weight"], padding=dilation, dilation=dilation)
        context = self._of.relu(self._pointwise(self._context(y), f"{mask}.linear1"))
        return local * self._torch.sigmoid(self._pointwise(context, f"{mask}.linear2"))

    def _context(self, x: Any) -> Any:
        stretches = self._of.avg_pool1d(x, CONTEXT_FRAMES, CONTEXT_FRAMES, ceil_mode=True)
        spread = stretches.repeat_interleave(CONTEXT_FRAMES, -1)[..., : x.shape[-1]]
        return x.mean(-1, keepdim=True) + spread

    def _convolved(self, x: Any, name: str, stride: int) -> Any:
        return self._of.conv2d(x, self._weights[f"{name}.weight"], stride=(stride, 1), padding=1)

    def _pointwise(self, x: Any, name: str) -> Any:
        return self._of.conv1d(x, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

    def _normed_relu(self, x: Any, name: str) -> Any:
        return self._of.relu(self._normed(x, name))

    def _normed(self, x: Any, name: str) -> Any:
        mean, variance = self._weights[f"{name}.running_mean"], self._weights[f"{name}.running_var"]
        scale, shift = self._weights.get(f"{name}.weight"), self._weights.get(f"{name}.bias")
        return self._of.batch_norm(x, mean, variance, scale, shift)
