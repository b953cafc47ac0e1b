"""Stress tests: solves with tolerances that floating point cannot reach, and with limits that must hold.

Each seed is a problem with options. A solve has to return with a status, without an error, without a warning, and
within a second of its time limit. ``python tests/stress.py --count 5000`` tries 5000 seeds and prints the failures;
``test_stress.py`` tries a few.
"""

from __future__ import annotations

import argparse
import time
import traceback
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import saddleback as sb

GRACE = 1.0
"""Seconds by which a solve may exceed its time limit. The smaller of wall time and CPU time counts, because the machine
may be busy with other work."""


class Trial(NamedTuple):
    """A problem, the options of its solve, and a description of both."""

    problem: sb.Problem
    options: dict[str, Any]
    words: str


def matrix(rng: np.random.Generator, m: int, n: int) -> tuple[Any, str]:
    """Return a matrix of a random kind."""
    kind = str(rng.choice(["dense", "sparse", "correlated", "deficient", "scaled", "repeated"]))
    A = rng.standard_normal((m, n))
    match kind:
        case "sparse":
            return sparse.csc_matrix(A * (rng.random((m, n)) < 0.1)), kind
        case "correlated":
            A += 3.0 * rng.standard_normal((m, 1))
        case "deficient":
            A = rng.standard_normal((m, max(1, min(m, n) // 3))) @ rng.standard_normal((max(1, min(m, n) // 3), n))
        case "scaled":
            A *= 10.0 ** rng.uniform(-3, 3, n)
        case "repeated":
            A = A[:, rng.integers(0, max(1, n // 2), n)]
    return A, kind


def penalty(rng: np.random.Generator, n: int, alpha: float) -> Any:
    """Return a penalty of a random kind."""
    group = next(size for size in (4, 3, 2, 1) if n % size == 0)
    return [
        sb.L1(alpha),
        sb.L1(alpha) + sb.NonNegative(),
        sb.ElasticNet(alpha, 0.8),
        sb.GroupL2(alpha, group),
        sb.SparseGroup(alpha, group, 0.5),
        sb.Zero(),
        sb.NonNegative(),
        sb.Box(-1.0, 1.0) + sb.Linear(alpha * rng.standard_normal(n)),
        sb.SquaredL2(alpha),
    ][rng.integers(9)]


def loss(rng: np.random.Generator, b: Any, scale: float) -> Any:
    """Return a loss of a random kind."""
    z = np.where(b > np.median(b), 1.0, -1.0)
    return [
        sb.Squared(b, scale=scale),
        sb.Absolute(b, scale=scale),
        sb.Huber(b, 0.5 * float(np.std(b)) + 1e-3, scale=scale),
        sb.Pinball(b, 0.3, scale=scale),
        sb.EpsilonInsensitive(b, 0.1, scale=scale),
        sb.Hinge(z, scale=scale),
        sb.SquaredHinge(z, scale=scale),
        sb.Logistic(z, scale=scale),
        sb.Norm2(b, scale=scale),
        sb.Equality(b),
        sb.Interval(b - 0.5, b + 0.5),
    ][rng.integers(11)]


def options(rng: np.random.Generator) -> dict[str, Any]:
    """Return random options of a solve, for a method that accepts them."""
    method = str(rng.choice(["auto", "auto", "sp-bcd", "finish", "r2hpdhg", "pure-cd", "descent"]))
    chosen: dict[str, Any] = {
        "method": method,
        "tol": float(rng.choice([0.0, 1e-15, 1e-14, 1e-12, 1e-10])),
        "max_passes": float(rng.choice([300, 3000, 30_000])),
        "time_limit": float(rng.choice([0.2, 0.2, 0.4, 1.0])),
        "seed": int(rng.integers(100)),
        "threads": int(rng.integers(1, 3)),
    }
    if method in ("sp-bcd", "descent", "pure-cd", "auto"):
        chosen["working_set"] = [True, True, "auto"][rng.integers(3)]
    if method in ("sp-bcd", "descent", "r2hpdhg", "auto"):
        chosen["finish"] = [True, False, "auto"][rng.integers(3)]
    return chosen


def trial(seed: int) -> Trial:
    """Return the problem and the options of a seed."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 120)), int(rng.choice([rng.integers(2, 60), rng.integers(400, 1200)]))
    A, kind = matrix(rng, m, n)
    x = rng.standard_normal(n) * (rng.random(n) < 0.2)
    noise = float(rng.choice([0.0, 0.1, 1.0]))
    b = (A @ x + noise * rng.standard_normal(m)) * 10.0 ** rng.uniform(-4, 4) + float(rng.choice([0.0, 0.0, 1e3, 1e6]))
    scale = float(rng.choice([1.0, 1.0 / m, 1e-6]))
    g = loss(rng, b, scale)
    f = penalty(rng, n, scale * 10.0 ** rng.uniform(-6, 1) * float(np.abs(A.T @ b).max() or 1.0))
    chosen = options(rng)
    with_intercept = rng.random() < 0.3
    problem = sb.Problem([f, sb.Zero()], [A, np.ones(m)], g) if with_intercept else sb.Problem(f, A, g)
    return Trial(problem, chosen, f"{kind} {m} x {n}, {f}, {g}, intercept={with_intercept}, {chosen}")


def complaint(seed: int) -> str | None:
    """Return the failure of a seed; None if the solve is correct, "" if the method does not accept the problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = trial(seed)
        wall, processor = time.perf_counter(), time.process_time()
        try:
            result = sb.solve(made.problem, **made.options)
        except TypeError as error:
            if "cannot treat this problem" in str(error) or "is not an option" in str(error):
                return ""
            return f"seed {seed}: {made.words}\n{traceback.format_exc()}"
        except Exception:
            return f"seed {seed}: {made.words}\n{traceback.format_exc()}"
        taken = min(time.perf_counter() - wall, time.process_time() - processor)
        if taken > made.options["time_limit"] + GRACE:
            return f"seed {seed}: {taken:.1f} s, {made.words}"
        if not np.all(np.isfinite(np.concatenate([np.ravel(block) for block in _blocks(result.x)]))):
            return f"seed {seed}: x is not finite, {made.words}"
        if result.status is sb.Status.OPTIMAL and result.certificate.error > made.options["tol"]:
            return f"seed {seed}: OPTIMAL with an error of {result.certificate.error:.1e}, {made.words}"
    return None


def _blocks(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def main() -> None:
    """Try many seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    begin, wrong, refused = time.perf_counter(), 0, 0
    for done, seed in enumerate(range(arguments.first, arguments.first + arguments.count), 1):
        found = complaint(seed)
        refused += found == ""
        if found:
            wrong += 1
            print(found, flush=True)
        if done % 500 == 0 or done == arguments.count:
            seconds = time.perf_counter() - begin
            print(f"{done} seeds, {done - refused} runs, {wrong} wrong, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
