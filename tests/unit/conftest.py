"""Fixtures of the unit tests: the small models that they run for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.models import default_cache, fetch_model


@pytest.fixture(scope="session")
def silero_weights() -> Path:
    """Silero's weights in the user's model cache; fetched once (2 MB)."""
    model = fetch_model("silero-vad", default_cache(), print)
    return model.folder / "silero_vad_16k_sequence.onnx"
