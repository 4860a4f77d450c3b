"""Fixtures for every test: where the shared speech and media lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from deploy.local.kafka import Broker

# They are no part of `make test`: PyTorch is only in the extra 'gpu'.
collect_ignore = [] if find_spec("torch") else ["gpu"]

# A deadline is a timed test, and machines are noisy.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real speech and odd media beside the checkout; without it the test is skipped by name.

    Where ``CI`` is set the absence is a failure: nothing may pass there by not being run.
    """
    if not (_SHARED_DATA / "MANIFEST.tsv").is_file():
        if os.environ.get("CI"):
            pytest.fail("../shared/data is missing, and under CI a skipped test is a failure")
        pytest.skip("../shared/data is not beside this checkout")
    return _SHARED_DATA


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap server of a real broker, one for all tests; each makes topics of its own. Not to be stopped."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.address
