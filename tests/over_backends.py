"""The test suite on one backend: ``pytest --backend NAME``, where NAME is one of those below.

By default a solve uses the fastest backend. With this option every solve uses the same backend:

- ``numpy``, ``native``: the kernels of that name, if the test does not choose a backend. A method without kernels runs
  as usual.
- ``torch``, ``cuda``: A lies on the CPU device of torch, or on a GPU, in every ``sb.solve``.
- ``mpi``: ``sb.solve`` and ``sb.certify`` run on all processes of ``mpiexec -n 2 python -m pytest --backend mpi``. Each
  process runs the same tests.

A test whose problem the backend does not accept is skipped, if the error message is one of ``REFUSALS``. A test of a
feature that a backend does not have is marked ``@pytest.mark.not_on("mpi", reason=...)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import saddleback as sb
from saddleback.places import choose as backends
from saddleback.places.mpi.communicator import MPICommunicator
from saddleback.places.mpi.distribute import gathered

DEVICES = {"torch": "cpu", "cuda": "cuda"}

NOT_MOVED = ["cannot be moved to a device"]  # it is a LinearOperator or streamed
REFUSALS = {
    "torch": NOT_MOVED,
    "cuda": NOT_MOVED,
    "mpi": [
        "comm: A has a block that is no matrix",  # there are no columns to spread
        "comm: a group holds some entries of a row",
        "its columns are spread over processes, and HiGHS runs in one",
    ],
}
"""Error messages of ``solve`` if a backend does not accept a problem."""


def use_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the kernels of that name in every solve that does not choose a backend."""
    choose = backends._chosen

    def chosen(model: Any, asked: Any, kernel: Any) -> Any:
        if asked != "auto" or model.A.traits.panels is not None:
            return choose(model, asked, kernel)
        try:
            return choose(model, name, kernel)
        except ValueError as refusal:
            pytest.skip(str(refusal))

    monkeypatch.setattr(backends, "_chosen", chosen)


def use_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve with A on a device of torch."""
    pytest.importorskip("torch").set_num_threads(1)  # more threads would only wait for each other
    from saddleback.places.torch import open_device
    from saddleback.places.torch import operator as on_device_operators

    monkeypatch.setattr(
        on_device_operators, "LAUNCH_ENTRIES", 0
    )  # small problems run the code for large ones, on a GPU too
    solve, certify = sb.solve, sb.certify

    def on_device(problem: Any, *arguments: Any, **options: Any) -> sb.Result:
        if options.get("backend") in ("numpy", "native"):
            pytest.skip(f"torch: the test asks for backend={options['backend']!r}")
        return accepted(name, solve, problem, *arguments, **({"device": DEVICES[name]} | options))

    def certify_on_device(problem: Any, x: Any, y: Any) -> sb.Certificate:
        """Compute products as ``solve`` does: sums on a device are rounded differently."""
        if isinstance(problem, sb.Problem):
            problem = accepted(name, problem.placed, open_device(DEVICES[name]))
        return certify(problem, x, y)

    monkeypatch.setattr(sb, "solve", on_device)
    monkeypatch.setattr(sb, "certify", certify_on_device)


def use_mpi(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve on all processes."""
    from mpi4py import MPI

    solve, certify = sb.solve, sb.certify

    def together(problem: Any, *arguments: Any, **options: Any) -> sb.Result:
        if options.get("device") is not None:
            pytest.skip("mpi: the test asks for device=")
        return accepted(name, solve, problem, *arguments, **options | {"comm": MPI.COMM_WORLD})

    def certify_together(problem: Any, x: Any, y: Any) -> sb.Certificate:
        """Compute products as ``solve`` does: sums over processes are rounded differently."""
        if isinstance(problem, sb.Problem):
            problem = accepted(name, gathered, problem, MPICommunicator(MPI.COMM_WORLD))
        return certify(problem, x, y)

    monkeypatch.setattr(sb, "solve", together)
    monkeypatch.setattr(sb, "certify", certify_together)


def accepted(name: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result of a call, or skip the test if the backend does not accept the problem."""
    try:
        return call(*arguments, **options)
    except (TypeError, ValueError) as error:
        if any(re.search(said, str(error)) for said in REFUSALS[name]):
            pytest.skip(f"{name}: {error}")
        raise


BACKENDS: dict[str, Callable[[str, pytest.MonkeyPatch], None]] = {
    "numpy": use_kernels,
    "native": use_kernels,
    "torch": use_torch,
    "cuda": use_torch,
    "mpi": use_mpi,
}
