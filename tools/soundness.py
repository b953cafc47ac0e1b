"""A campaign against the certificates: ``make soundness``, CASES=300, SEED=0, KINDS=units,bounds, BASE=commit.

``units``: problems over the whole catalogue, in units of 2^-40 to 2^40 per row and column, against the same problems in
units near 1. ``bounds``: intervals against optima that are known exactly, with up to 200 free columns and several
optima. ``exact``: runs that are stopped after any number of passes, with offsets up to 1e12 and up to 1e6 rows, against
optima that are known exactly. ``complete``: which problems in units near 1 end OPTIMAL, here and at the commit BASE.

Each failure is printed with its seed. The generators are those of the fuzzer and of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from exact_functions import exact, exactly
from fuzz import families, twins
from known_optima import Known, known, random_units
from test_bounds_known import misses, random_known

import saddleback as sb
from compare import environments
from saddleback.certificates.certificate import NOTHING
from saddleback.functions.traits import rise_within, subgradient_scale

TESTS = Path(__file__).resolve().parents[1] / "tests"

LARGEST = 40
"""Largest exponent of a unit."""

TOLERANCES = (1e-6, 1e-8)
"""Tolerances at which completeness is counted."""

ROWS = (1, 1, 1, 1, 10, 100, 1000, 100_000)
"""How often the rows of a problem are repeated."""

PASSES = (0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 1000.0)
"""Limits at which runs are stopped."""

MOST_ENTRIES = 2 * 10**7
"""Largest number of entries of a matrix whose rows are repeated."""

EXACT_ROWS = 100
"""Up to so many rows the objective at x is computed with 60 digits."""


class Wrong(Exception):
    """A claim that is refuted."""


def in_units(seed: int) -> str:
    """Solve a problem of the catalogue in units near 1 and in others, and return both statuses."""
    drawn, rng = families.drawn(seed), np.random.default_rng([seed, 1])
    m, n = drawn.A.shape
    objective = 4.0 ** int(rng.integers(-LARGEST // 2, LARGEST // 2 + 1))
    rows, columns = drawn.loss.drawn_units(rng, LARGEST), drawn.penalty.drawn_units(rng, LARGEST)
    intercept = 2.0 ** int(rng.integers(-LARGEST, LARGEST + 1))
    near = drawn.problem(np.ones(m), np.ones(n), 1.0, 1.0)
    here = sb.solve(near, tol=1e-9, max_passes=3000)
    there = sb.solve(drawn.problem(rows, columns, intercept, objective), tol=1e-6, max_passes=3000)
    found = twins.disagreement(here.certificate, there.certificate, objective, 1e-6, same_points=False)
    if found := found or twins.refuted(here, there):
        raise Wrong(f"{drawn.name}: {found}")
    reference = here.certificate
    if there.status is sb.Status.OPTIMAL and there.certificate.attained and reference.error <= 1e-8:
        value = there.objective / objective
        scale = max(abs(value), abs(there.certificate.dual_value / objective), there.certificate.floor / objective)
        loss = near.model.g
        explained = rise_within(loss, NOTHING * np.abs(subgradient_scale(loss.conjugate())))  # the data explain it
        if value - reference.primal_value > max(1.1e-6 * scale, explained):
            raise Wrong(f"{drawn.name}: OPTIMAL at {value!r}, and {reference.primal_value!r} in units near 1")
    return f"{here.status.name} in units near 1, {there.status.name} in others"


def intervals(seed: int) -> str:
    """Compute intervals next to a known optimum and return what they decide."""
    case, x, y = random_known(seed)
    bounds = sb.bounds(case.problem, x, y)
    if misses(case, bounds):
        raise Wrong(f"an interval misses an optimum: {case.loss}, {np.sum(case.penalty == 0)} free columns")
    several = "several optima" if len(case.optima) > 1 else "one optimum"
    return f"{several}, {'finite' if np.isfinite(bounds.gap) else 'infinite'} gap"


def with_offset(case: Known, rng: np.random.Generator) -> Known:
    """Move the targets along a free column; all optima move with them, and the optimum stays."""
    free = np.flatnonzero(case.penalty == 0)
    if not free.size or np.isfinite(case.box):
        return case
    j, length = int(free[0]), float(np.round(10.0 ** rng.uniform(2, 12)))
    optima = case.optima.copy()
    optima[:, j] += length
    return replace(case, b=case.b + length * case.A[:, j], optima=optima)


def repeated(case: Known, times: int) -> Known:
    """Repeat all rows; the objective is multiplied."""
    rows = {name: np.tile(getattr(case, name), times) for name in ("b", "weight", "y", "row_unit")}
    return replace(case, A=np.tile(case.A, (times, 1)), penalty=times * case.penalty, **rows)


def optimum_of(case: Known) -> Fraction:
    """Return the optimum of a known problem, whose numbers are short, in rational arithmetic."""
    return objective_at(case.problem, case.A, case.optima[0])


def objective_at(problem: sb.Problem, A: np.ndarray, x: np.ndarray) -> Fraction:
    """Return the objective at a point with 60 digits."""
    f, g = exact(problem.model.f), exact(problem.model.g)
    assert f is not None
    assert g is not None
    point = exactly(x)
    image = [sum((a * v for a, v in zip(exactly(row), point, strict=True)), start=point[0] * 0) for row in A]
    return Fraction(f.value(point)) + Fraction(g.value(image))


def stopped(seed: int) -> str:
    """Stop a run on a problem whose optimum is known, and return its status."""
    rng = np.random.default_rng([seed, 2])
    base = with_offset(known(rng, int(rng.choice([0, 1, 1, 2, 5, 33]))), rng)
    times = int(rng.choice(ROWS))
    times = max(1, min(times, MOST_ENTRIES // base.A.size, 10**6 // base.b.size))
    objective = 4.0 ** int(rng.integers(-10, 11))
    expected = optimum_of(base) * times * Fraction(objective)
    case = repeated(base, times)
    units = random_units(rng, case.b.size, LARGEST), random_units(rng, case.penalty.size, LARGEST)
    ones = np.ones(case.b.size), np.ones(case.penalty.size)
    case = case.in_units(*(units if rng.random() < 0.5 else ones), objective)
    passes, tol = float(rng.choice(PASSES)), float(rng.choice([1e-4, 1e-6, 1e-10]))
    result = sb.solve(case.problem, max_passes=passes, tol=tol)
    certificate = result.certificate
    what = f"{case.loss} {case.A.shape[0]}x{case.A.shape[1]}, {passes:g} passes, tol={tol}"
    if certificate.proved and Fraction(certificate.dual_value) > expected:
        raise Wrong(f"{what}: the bound {certificate.dual_value!r} is above the optimum {float(expected)!r}")
    if certificate.attained and Fraction(certificate.primal_value) < expected:
        raise Wrong(f"{what}: the value {certificate.primal_value!r} is below the optimum {float(expected)!r}")
    if certificate.attained and case.b.size <= EXACT_ROWS:
        value = objective_at(case.problem, case.A, result.x)
        if Fraction(certificate.primal_value) < value:
            raise Wrong(f"{what}: the value {certificate.primal_value!r} is below the objective {float(value)!r}")
    if result.status in (sb.Status.INFEASIBLE, sb.Status.UNBOUNDED):
        raise Wrong(f"{what}: {result.status.name}")
    return f"{result.status.name}, {'proved' if certificate.proved else 'not proved'}"


def solved(seed: int) -> str:
    """Return how a problem in units near 1 ends, at each tolerance."""
    drawn = families.drawn(seed)
    m, n = drawn.A.shape
    problem = drawn.problem(np.ones(m), np.ones(n), 1.0, 1.0)
    return " ".join(sb.solve(problem, tol=tol).status.name for tol in TOLERANCES)


KINDS: dict[str, Callable[[int], str]] = {"units": in_units, "bounds": intervals, "exact": stopped, "complete": solved}


def attempt(kind: str, seed: int) -> tuple[str, str]:
    """Return the outcome of a case and its failure; one of the two is empty."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return KINDS[kind](seed), ""
    except Wrong as wrong:
        return "", str(wrong)
    except Exception:
        return "", "error: " + traceback.format_exc(limit=-2).strip().replace("\n", " ")


def campaign(kind: str, seeds: range) -> int:
    """Run all seeds of a kind, print the counts and the failures, and return the number of failures."""
    began, counts, failures = time.perf_counter(), Counter[str](), 0
    for seed in seeds:
        outcome, failure = attempt(kind, seed)
        counts[outcome or "FAILED"] += 1
        if failure:
            failures += 1
            print(f"{kind}, seed {seed}: {failure}", flush=True)
    print(f"\n{kind}: {counts.total()} cases, {failures} failures, {time.perf_counter() - began:.0f} s")
    for outcome, count in counts.most_common():
        print(f"  {count:6} {outcome}")
    return failures


def at(python: Path, seeds: range) -> dict[int, str]:
    """Return how the problems end with the package of another interpreter."""
    command = [str(python), __file__, "--work", "--seed", str(seeds.start), "--cases", str(len(seeds))]
    paths = os.pathsep.join([str(TESTS), str(Path(__file__).parent)])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, check=True)
    return {int(seed): outcome for seed, outcome in json.loads(done.stdout).items()}


def completeness(base: Path, seeds: range) -> int:
    """Compare with the package of another interpreter, and return how many problems do not end OPTIMAL any more."""
    before, now = at(base, seeds), at(Path(sys.executable), seeds)
    lost = 0
    for position, tol in enumerate(TOLERANCES):
        ended = {seed: (before[seed].split()[position], now[seed].split()[position]) for seed in before}
        optimal = {seed: status for seed, (earlier, status) in ended.items() if earlier == "OPTIMAL"}
        gone = {seed: status for seed, status in optimal.items() if status != "OPTIMAL"}
        lost += len(gone)
        print(f"\ncomplete at {tol}: {len(optimal) - len(gone)} of {len(optimal)} that were OPTIMAL still are")
        for seed, status in gone.items():
            print(f"  seed {seed}: {status}: {families.drawn(seed).name}")
        for pair, count in Counter(ended.values()).most_common():
            print(f"  {count:6} {pair[0]} before, {pair[1]} now")
    return lost


def main() -> int:
    """Run the campaign from the command line; the exit code says whether a claim was refuted."""
    parser = argparse.ArgumentParser(prog="soundness", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--cases", type=int, default=300, help="number of cases of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    base = parser.add_mutually_exclusive_group()
    base.add_argument("--base", help="a commit to compare with, which is built: for the kind complete")
    base.add_argument("--base-python", type=Path, help="an interpreter with that commit, instead of building it")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.cases)
    if given.work:
        print(json.dumps({seed: attempt("complete", seed)[0] or "FAILED FAILED" for seed in seeds}))
        return 0
    wanted = [kind for kind in KINDS if kind in given.kinds.split(",")]
    if unknown := set(given.kinds.split(",")) - set(KINDS):
        parser.error(f"--kinds {','.join(sorted(unknown))}: expected some of {','.join(KINDS)}")
    other = environments.commit(given.base).python if given.base else given.base_python
    compared = other is not None and "complete" in wanted
    failures = sum(campaign(kind, seeds) for kind in wanted if kind != "complete" or not compared)
    if compared:
        completeness(other, seeds)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
