"""Times on a device and on two cores of its host: ``python -m saddleback.bench.device --out FILE``.

Times are those of ``solve`` with the data already on the device: the median of some runs after a first one, which loads
libraries and computes what later runs reuse. The floor of a dense problem is the time to read A twice per pass of
``result.passes``, at the speed of a copy on the device, which is measured first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

import saddleback as sb
from saddleback.datasets import make_group_hinge, make_robust_pca

TOL = 1e-6
CORES = 2
NOISE = 1e-3**0.5
COPIED = 1 << 29
"""Entries of the array whose copy is timed."""

WIDTH = 4000
"""Columns per panel when the data are generated."""


class Case(NamedTuple):
    """A problem on the device, the same problem on the host, and the bytes of A; 0 bytes if no floor is reported."""

    name: str
    there: Any
    here: Callable[[], Any] | None
    bytes: int
    device: Any = None
    options: dict[str, Any] = {}  # noqa: RUF012


def main() -> None:
    """Measure the cases and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="where to write all figures, as JSON lines")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="", help="only cases whose names contain this")
    parser.add_argument(
        "--host-limit", type=float, default=2e9, help="largest number of bytes of A for a run on the host"
    )
    chosen = parser.parse_args()
    speed = copy_speed(chosen.device)
    print(f"copy: {speed / 1e12:.2f} TB/s, read and written")
    for make in MAKERS:
        for case in make(chosen.device, chosen.cases):
            measure(case, speed, chosen)


def measure(case: Case, speed: float, chosen: argparse.Namespace) -> None:
    """Solve on the device and on the host, and print the figures."""
    result, seconds = timed(lambda: sb.solve(case.there, tol=TOL, device=case.device, **case.options), chosen.runs)
    figures: dict[str, Any] = {
        "case": case.name,
        "status": result.status.name,
        "error": result.certificate.error,
        "objective": result.objective,
        "method": result.method,
        "passes": result.passes,
        "seconds": seconds,
    }
    if case.bytes:
        figures["floor"] = 2 * result.passes * case.bytes / speed
        figures["over floor"] = seconds / figures["floor"]
    if case.here is not None and case.bytes <= chosen.host_limit:
        host = case.here()
        there, on_host = timed(lambda: sb.solve(host, tol=TOL, threads=CORES, **case.options), 2)
        figures |= {"host seconds": on_host, "host objective": there.objective, "host / device": on_host / seconds}
    print(json.dumps({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in figures.items()}), flush=True)
    if chosen.out:
        with chosen.out.open("a") as file:
            file.write(json.dumps(figures) + "\n")


def timed(solve: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """Return the result of the last run, and the median time of all but the first."""
    seconds, result = [], None
    for _ in range(runs + 1):
        result = None
        _wait()
        begin = time.perf_counter()
        result = solve()
        _wait()
        seconds.append(time.perf_counter() - begin)
    return result, median(seconds[1:])


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def copy_speed(device: str) -> float:
    """Return the bytes that a copy on the device reads and writes per second."""
    first = torch.ones(COPIED, dtype=torch.float64, device=device)
    second = torch.empty_like(first)
    _, seconds = timed(lambda: second.copy_(first), 5)
    return 16.0 * COPIED / seconds


def lasso_data(m: int, n: int, nonzeros: int, dtype: Any, device: str) -> tuple[Any, Any, float]:
    """Return A, b and a tenth of the smallest alpha with x = 0, generated as in ``saddleback.datasets``."""
    draw = torch.Generator(device).manual_seed(0)
    columns = torch.empty(n, m, dtype=dtype, device=device)
    x = torch.zeros(n, dtype=torch.float64, device=device)
    x[torch.randperm(n, device=device, generator=draw)[:nonzeros]] = torch.randn(
        nonzeros, dtype=torch.float64, device=device, generator=draw
    )
    b = NOISE * torch.randn(m, dtype=torch.float64, device=device, generator=draw)
    for panel, own in zip(torch.split(columns, WIDTH), torch.split(x, WIDTH), strict=True):
        panel.normal_(generator=draw)
        panel /= torch.linalg.vector_norm(panel, dim=1, keepdim=True)
        b += panel.double().T @ own
    largest = max(float((panel.double() @ b).abs().max()) for panel in torch.split(columns, WIDTH))
    return columns.T, b, 0.1 * largest


def lassos(device: str, named: str) -> Iterator[Case]:
    """Yield dense Lasso problems from small to large, and one in float32."""
    sizes = [(500, 2000, 200), (1000, 5000, 500), (2000, 10000, 1000), (5000, 20000, 2000), (20000, 100000, 2000)]
    kinds = [(*size, torch.float64) for size in sizes] + [(5000, 20000, 2000, torch.float32)]
    for m, n, nonzeros, dtype in kinds:
        name = f"lasso {m} x {n} {str(dtype).split('.')[-1]}"
        if named not in name:
            continue
        A, b, alpha = lasso_data(m, n, nonzeros, dtype, device)

        def here(A: Any = A, b: Any = b, alpha: float = alpha) -> Any:
            return sb.Problem(sb.L1(alpha), A.T.cpu().numpy().T, sb.Squared(b.cpu().numpy()))

        yield Case(name, sb.Problem(sb.L1(alpha), A, sb.Squared(b)), here, A.numel() * A.element_size())
        if dtype == torch.float64 and n >= 20000:
            fista(name, A, b, alpha)


def fista(name: str, A: Any, b: Any, alpha: float) -> None:
    """Time FISTA with restarts, written in torch on all columns, until its scaled residual proves a gap of TOL."""
    vector = torch.randn(A.shape[1], dtype=A.dtype, device=A.device)
    for _ in range(30):
        vector = A.T @ (A @ vector)
        vector /= torch.linalg.vector_norm(vector)
    norm = 1.02 * float(torch.linalg.vector_norm(A @ vector)) ** 2

    def run() -> int:
        x = torch.zeros(A.shape[1], dtype=A.dtype, device=A.device)
        ahead, momentum = x, 1.0
        for step in range(1, 100_000):
            residual = A @ ahead - b
            pull = A.T @ residual
            if step % 20 == 0:
                scale = min(1.0, alpha / float(pull.abs().max()))
                dual = -0.5 * scale**2 * float(residual @ residual) - scale * float(b @ residual)
                primal = 0.5 * float(residual @ residual) + alpha * float(ahead.abs().sum())
                if primal - dual <= TOL * primal:
                    return step
            v = ahead - pull / norm
            new = v - v.clamp(-alpha / norm, alpha / norm)
            if float((ahead - new) @ (new - x)) > 0:
                momentum = 1.0
            following = 0.5 * (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5)
            ahead, x, momentum = new + (momentum - 1.0) / following * (new - x), new, following
        return 0

    steps, seconds = timed(run, 1)
    print(f"{name}: FISTA in torch {seconds:.4g} s, {steps} steps")


def robust_pca(device: str, named: str) -> Iterator[Case]:
    """Yield robust PCA of a matrix on the device."""
    for m, n, rank in ((200, 500, 10), (1000, 2500, 50), (2000, 5000, 100)):
        name = f"robust pca {m} x {n}"
        if named not in name:
            continue
        data = make_robust_pca(m, n, rank)
        penalties = [sb.SquaredL2(1.0), sb.L1(data.sparse_alpha), sb.Nuclear(data.nuclear_alpha, data.B.shape)]

        def problem(B: Any, penalties: Any = penalties) -> Any:
            return sb.Problem(penalties, [sb.Identity()] * 3, sb.Equality(B))

        there = problem(torch.from_numpy(data.B).to(device))
        yield Case(name, there, lambda data=data, problem=problem: problem(data.B), 0)  # type: ignore[misc]


def group_hinge(device: str, named: str) -> Iterator[Case]:
    """Yield the hinge loss with a group penalty on one-hot interactions, whose equal rows are merged."""
    for samples in (20_000, 1_000_000):
        name = f"group hinge {samples} x 2604"
        if named not in name:
            continue
        data = make_group_hinge(samples)
        penalty, loss = sb.GroupL2(1e-4, data.groups), sb.Hinge(data.labels, scale=1.0 / samples)
        problem = sb.Problem(penalty, data.A, loss)
        yield Case(name, problem.placed(_opened(device)), lambda problem=problem: problem, 0, device)  # type: ignore[misc]


def _opened(device: str) -> Any:
    from saddleback.places.torch import open_device

    return open_device(device)


MAKERS = (lassos, robust_pca, group_hinge)

if __name__ == "__main__":
    main()
