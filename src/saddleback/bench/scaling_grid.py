"""The default method without options, on 200 problems in all kinds of units.

There are five families of loss and penalty, each in 40 scalings: the rows and columns of A are multiplied by factors
drawn from several decades, b and lambda by one factor each, from 1e-3 to 1e3. ``solve`` gets a tolerance (1e-6 for a
smooth loss, otherwise 1e-4) and no other option. The output is one JSON line per problem, and then a table with the
distribution of passes per family, the failures, and every problem that took more than 20 times the median of its
family, with what was measured about it.

Run ``python -m saddleback.bench.scaling_grid [--only FAMILY] [--every N] [--out FILE]``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

Array = NDArray[np.float64]

ROWS, COLUMNS, GROUP, ACTIVE = 120, 60, 5, 10
OUTLIER = 20.0
"""Passes, relative to the median of the family, above which a problem is an outlier and is explained."""


@dataclass(frozen=True)
class Scaling:
    """The units of the data: ``rows`` and ``columns`` are decades on either side of 1, ``b`` and ``lam`` exponents."""

    rows: float = 0.0
    columns: float = 0.0
    b: float = 0.0
    lam: float = 0.0


SERIAL = [Scaling()] + [Scaling(**{name: size}) for name in ("rows", "columns") for size in (1.0, 2.0, 3.0)]
SERIAL += [Scaling(**{name: size}) for name in ("b", "lam") for size in (-3.0, -1.5, 1.5, 3.0)]
TOGETHER = [
    Scaling(rows, columns, b, lam)
    for (rows, columns), (b, lam) in product(
        [(1.0, 1.0), (3.0, 0.0), (0.0, 3.0), (3.0, 3.0), (2.0, 3.0)],
        [(-3.0, -3.0), (-3.0, 1.5), (1.5, -1.5), (3.0, -3.0), (3.0, 3.0)],
    )
]
SCALINGS = SERIAL + TOGETHER


@dataclass(frozen=True)
class Family:
    """A loss and a penalty: ``build`` takes A, b, the weight of the penalty, the factor of b and the seed."""

    name: str
    tol: float
    build: Callable[[Array, Array, float, float, int], sb.Problem]
    strength: float


def _squared_l1(A: Array, b: Array, lam: float, unit: float, seed: int) -> sb.Problem:
    return sb.Problem(sb.L1(lam), A, sb.Squared(unit * b))


def _smooth_elastic_net(A: Array, b: Array, lam: float, unit: float, seed: int) -> sb.Problem:
    if seed % 2:
        return sb.Problem(sb.ElasticNet(unit * lam, l1_ratio=0.5), A, sb.Logistic(_labels(b), scale=unit))
    return sb.Problem(sb.ElasticNet(lam, l1_ratio=0.5), A, sb.Huber(unit * b, delta=unit))


def _pinball_l1(A: Array, b: Array, lam: float, unit: float, seed: int) -> sb.Problem:
    return sb.Problem(sb.L1(lam), A, sb.Pinball(unit * b, 0.3))


def _hinge_group(A: Array, b: Array, lam: float, unit: float, seed: int) -> sb.Problem:
    return sb.Problem(sb.GroupL2(unit * lam, GROUP), A, sb.Hinge(_labels(b), scale=unit))


def _absolute_sparse_group(A: Array, b: Array, lam: float, unit: float, seed: int) -> sb.Problem:
    loss = sb.EpsilonInsensitive(unit * b, epsilon=0.5 * unit) if seed % 2 else sb.Absolute(unit * b)
    return sb.Problem(sb.SparseGroup(lam, GROUP, l1_ratio=0.5), A, loss)


def _labels(b: Array) -> Array:
    return np.where(b >= 0, 1.0, -1.0)


FAMILIES = [
    Family("squared + l1", 1e-6, _squared_l1, 10.0),
    Family("logistic or Huber + elastic net", 1e-6, _smooth_elastic_net, 5.0),
    Family("pinball + l1", 1e-4, _pinball_l1, 5.0),
    Family("hinge + group", 1e-4, _hinge_group, 3.0),
    Family("absolute or epsilon-insensitive + sparse group", 1e-4, _absolute_sparse_group, 5.0),
]


@dataclass(frozen=True)
class Case:
    """A problem of the grid. Labels have no unit: for them ``b`` scales the whole objective, including lambda."""

    family: Family
    scaling: Scaling
    seed: int

    def problem(self) -> sb.Problem:
        """Return the problem: a few columns explain b up to noise with heavy tails; then everything is scaled."""
        rng = np.random.default_rng(self.seed)
        A = rng.standard_normal((ROWS, COLUMNS))
        b = A[:, :ACTIVE].sum(axis=1) + rng.standard_t(3, ROWS)
        A = A * _factors(rng, self.scaling.rows, ROWS)[:, None] * _factors(rng, self.scaling.columns, COLUMNS)
        lam = self.family.strength * 10.0**self.scaling.lam
        return self.family.build(A, b, lam, 10.0**self.scaling.b, self.seed)


def _factors(rng: np.random.Generator, decades: float, size: int) -> Array:
    return np.asarray(10.0 ** rng.uniform(-decades, decades, size))


def cases(every: int = 1, only: str = "") -> list[Case]:
    """Return every n-th problem of the grid; the families alternate, so that a slice has all of them."""
    grid = [
        Case(family, scaling, seed)
        for seed, (scaling, family) in enumerate(product(SCALINGS, FAMILIES))
        if only in family.name
    ]
    return grid[::every]


@dataclass(frozen=True)
class Row:
    """The result of a problem.

    Attributes
    ----------
    family, scaling, seed : the problem.
    tol, status, error, passes, seconds : the tolerance, and the outcome.
    strength : weight of the penalty, relative to the smallest one with x = 0.
    nonzeros, condition : number of nonzeros of x, and condition number of their columns, scaled to length 1.
    weight : primal weight at the end, relative to the one that the data suggested.
    message : the message of the result.
    """

    family: str
    scaling: dict[str, float]
    seed: int
    tol: float
    status: str
    error: float
    passes: float
    seconds: float
    strength: float
    nonzeros: int
    condition: float
    weight: float
    message: str


def run(case: Case) -> Row:
    """Solve a problem with a tolerance and no other option."""
    problem = case.problem()
    result = sb.solve(problem, tol=case.family.tol)
    nonzero = np.flatnonzero(result.x)
    model = problem.model
    slope = -model.A.rmatvec(model.g.subgradient(np.zeros(ROWS)))
    return Row(
        family=case.family.name,
        scaling=asdict(case.scaling),
        seed=case.seed,
        tol=case.family.tol,
        status=result.status.name,
        error=result.certificate.error,
        passes=result.passes,
        seconds=result.seconds,
        strength=_relative_strength(model.f, slope),
        nonzeros=int(nonzero.size),
        condition=_condition(model.A.entries(nonzero)) if nonzero.size else 1.0,
        weight=float(result.settings.get("primal_weight", 1.0)),
        message=result.message,
    )


def _relative_strength(penalty: Any, slope: Array) -> float:
    """Return alpha / alpha_max, at most 1, from the slacks of the penalty at 0."""
    slack, at_rest = penalty.zero_slack(slope), penalty.zero_slack(np.zeros_like(slope))
    return float(min(1.0, np.min(at_rest / np.maximum(at_rest - slack, 1e-300))))


def _condition(columns: Array) -> float:
    return float(np.linalg.cond(columns / np.linalg.norm(columns, axis=0)))


def rows(every: int = 1, only: str = "") -> Iterator[Row]:
    """Yield the result of each problem of the grid."""
    return (run(case) for case in cases(every, only))


def explanation(row: Row, median: float) -> str:
    """Return what is unusual about an outlier, in figures."""
    scales = ", ".join(f"{name} 1e{value:+g}" for name, value in row.scaling.items() if value)
    return (
        f"{row.passes / median:.0f} times the median; {scales or 'as it is'}; lambda {row.strength:.1e} of the largest,"
        f" {row.nonzeros} nonzeros, condition {row.condition:.1e}, weight moved to {row.weight:.1e}"
    )


def table(results: Sequence[Row]) -> str:
    """Return the distribution of passes per family, the failures and the outliers."""
    lines = [f"{'family':<48}{'n':>4}{'failed':>8}{'min':>8}{'median':>8}{'90%':>8}{'max':>8}"]
    notes = []
    for family in dict.fromkeys(row.family for row in results):
        own = [row for row in results if row.family == family]
        failed = [row for row in own if row.status != "OPTIMAL"]
        passes = np.array([row.passes for row in own])
        median = float(np.median(passes))
        figures = "".join(f"{x:>8.0f}" for x in (passes.min(), median, np.percentile(passes, 90), passes.max()))
        lines.append(f"{family:<48}{len(own):>4}{len(failed):>8}{figures}")
        notes += [f"failed, {family}, seed {row.seed}: error {row.error:.1e}. {row.message}" for row in failed]
        notes += [
            f"slow, {family}, seed {row.seed}: {explanation(row, median)}"
            for row in own
            if row.passes > OUTLIER * median
        ]
    return "\n".join(lines + notes)


def main() -> int:
    """Solve the grid, print the table, and return 1 if a problem failed."""
    parser = argparse.ArgumentParser(description="the default method in all kinds of units")
    parser.add_argument("--only", default="", help="only families whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="solve only every N-th problem")
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout, help="where the JSON lines go")
    arguments = parser.parse_args()
    results = []
    for row in rows(arguments.every, arguments.only):
        results.append(row)
        print(json.dumps(asdict(row)), file=arguments.out, flush=True)
    print(table(results))
    return int(any(row.status != "OPTIMAL" for row in results))


if __name__ == "__main__":
    sys.exit(main())
