"""The suite over one backend: ``pytest --backend NAME``, with NAME one of those below.

Where nothing is asked for, a run takes what is fastest. Here all of them take one backend:

- ``numpy``, ``native``: the kernels of that name, wherever a method leaves the choice of them open. A method without
  kernels has none to choose from, and runs as it always does.
- ``torch``, ``cuda``: A lies on torch's own CPU device, or on a GPU, in every ``sb.solve``.
- ``mpi``: ``sb.solve`` and ``sb.certify`` on all processes, under ``mpiexec -n 2 python -m pytest --backend mpi``: each
  runs the same tests.

What a backend does not accept is skipped, with the reason that the library gives, if it is one of ``REFUSALS``. A test
that is about something else than the answer says so itself: ``@pytest.mark.not_on("mpi", reason=...)``.
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
from saddleback.places.torch import open_device
from saddleback.places.torch import operator as on_device_operators

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
"""What ``solve`` may say where a backend does not accept a problem."""


def use_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the kernels of that name where they are left open."""
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
    pytest.importorskip("torch").set_num_threads(1)  # more of them only wait for each other on such small problems
    monkeypatch.setattr(
        on_device_operators, "LAUNCH_ENTRIES", 0
    )  # small problems take the way of large ones, on a GPU too
    solve, certify = sb.solve, sb.certify

    def on_device(problem: Any, *arguments: Any, **options: Any) -> sb.Result:
        if options.get("backend") in ("numpy", "native"):
            pytest.skip(f"torch: the test asks for backend={options['backend']!r}")
        return accepted(name, solve, problem, *arguments, **({"device": DEVICES[name]} | options))

    def certify_on_device(problem: Any, x: Any, y: Any) -> sb.Certificate:
        """Add up as ``solve`` does: sums on a device are rounded differently."""
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
        """Add up as ``solve`` does: sums over processes are rounded differently."""
        if isinstance(problem, sb.Problem):
            problem = accepted(name, gathered, problem, MPICommunicator(MPI.COMM_WORLD))
        return certify(problem, x, y)

    monkeypatch.setattr(sb, "solve", together)
    monkeypatch.setattr(sb, "certify", certify_together)


def accepted(name: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a call gives, or skip the test where the backend says that it does not accept the problem."""
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
