"""What the tests share: the folder with real data, and the backends to run over."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with real data sets; tests that ask for it are skipped where there is none."""
    named = os.environ.get("SADDLEBACK_DATA")
    folder = Path(named) if named else BESIDE_THE_CHECKOUT
    if not folder.is_dir():
        pytest.skip("no real data: set SADDLEBACK_DATA to the folder that has it")
    return folder


@pytest.fixture(params=["numpy", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    """Every backend in turn, as ``solve(..., backend=backend)`` takes it."""
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(0)
