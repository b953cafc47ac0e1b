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


@pytest.fixture
def regression(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sixty samples of twelve features, columns with means, of which three count."""
    X = rng.standard_normal((60, 12)) + 3.0
    return X, 5.0 + X[:, :3].sum(axis=1) + rng.standard_normal(60)


@pytest.fixture
def classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ninety samples of three classes that overlap."""
    X = rng.standard_normal((90, 6))
    return X, np.array(["ape", "bee", "cat"])[np.argmax(X[:, :3] + 0.5 * rng.standard_normal((90, 3)), axis=1)]
