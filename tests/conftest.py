"""Fixtures and options that the tests share: the folder with real data, and the backends."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
import profiles  # noqa: F401 - the settings of hypothesis
import pytest
from over_backends import BACKENDS, DEVICES

STATUS = pytest.StashKey[int]()
BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backend", choices=list(BACKENDS), help="run over one backend: see over_backends.py")


def pytest_configure(config: pytest.Config) -> None:
    """Enable Ctrl-C for the tests that need it, and give each process of an ``mpiexec`` its own temporary folder.

    A shell starts background jobs with SIGINT ignored. Processes that share a folder would compete when pytest clears
    it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "not_on(*backends, reason): the backends lack what is tested")
    if config.getoption("--backend") == "mpi":
        folder = tempfile.mkdtemp(prefix="saddleback-")
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[STATUS] = exitstatus


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the other processes if tests failed only in this one: they would wait for it without end."""
    if config.getoption("--backend") == "mpi" and config.stash.get(STATUS, 0):
        from mpi4py import MPI

        sys.stdout.flush()
        MPI.COMM_WORLD.Abort(1)


@pytest.fixture(autouse=True)
def over_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --backend, run the test on that backend."""
    name = request.config.getoption("--backend")
    if name is None:
        return
    for mark in request.node.iter_markers("not_on"):
        if name in mark.args:
            pytest.skip(f"{name}: {mark.kwargs['reason']}")
    BACKENDS[name](name, monkeypatch)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with real data sets; tests that need it are skipped if it does not exist."""
    named = os.environ.get("SADDLEBACK_DATA")
    folder = Path(named) if named else BESIDE_THE_CHECKOUT
    if not folder.is_dir():
        pytest.skip("no real data: set SADDLEBACK_DATA to the folder with the data sets")
    return folder


@pytest.fixture(params=["numpy", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend in turn, for ``solve(..., backend=backend)``."""
    return str(request.param)


@pytest.fixture(params=["host", "device"])
def device(request: pytest.FixtureRequest) -> str | None:
    """Each device in turn, for ``solve(..., device=device)``: None for the host, and the CPU device of torch."""
    if request.param == "host":
        return None
    pytest.importorskip("torch").set_num_threads(1)  # more threads would only wait for each other
    return DEVICES.get(request.config.getoption("--backend"), "cpu")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture
def regression(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sixty samples of twelve features with nonzero means, of which three determine the target."""
    X = rng.standard_normal((60, 12)) + 3.0
    return X, 5.0 + X[:, :3].sum(axis=1) + rng.standard_normal(60)


@pytest.fixture
def classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ninety samples of three classes that overlap."""
    X = rng.standard_normal((90, 6))
    return X, np.array(["ape", "bee", "cat"])[np.argmax(X[:, :3] + 0.5 * rng.standard_normal((90, 3)), axis=1)]


TABLES = ("test_every_method", "test_estimators_storage", "test_oracle", "test_finish", "test_estimators_oracle")
"""Files with large tables of cases. The fast tests run every other case, so that CI stays within ten minutes."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    cases = [item for item in items if item.path.stem in TABLES and hasattr(item, "callspec")]
    for item in cases[1::2]:
        item.add_marker(pytest.mark.slow)
