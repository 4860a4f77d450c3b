"""What a slice takes of a device's memory while it is decoded, by the shape of the model."""

from __future__ import annotations

from pipeline.engines.whisper_weights import WhisperWeights

_WIDEST_BEAM = 5


def slice_bytes(weights: WhisperWeights, number_bytes: int) -> int:
    """Sound and texts of a slice for every layer, the queries that are kept, and the logits of a step.

    ``number_bytes`` is the size of one number of keys and values.
    """
    layer = 2 * weights.width * number_bytes * weights.decoder_layers
    kept = len(weights.alignment_heads) * (weights.width // weights.heads) * number_bytes
    row = weights.context_tokens * (layer + kept) + 3 * 4 * weights.vocabulary
    # Two sets of texts are held.
    return weights.frames * layer + 2 * _WIDEST_BEAM * row


def slices_in(free_bytes: int, weights: WhisperWeights, number_bytes: int) -> int:
    """How many slices that memory holds; at least 1."""
    return max(1, free_bytes // slice_bytes(weights, number_bytes))
