"""Intervals against optima that are known without any rounding, in any units: none may miss one by a single bit."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from known_optima import Known, KnownProgram, known, known_program, random_units, uncoupled

import saddleback as sb
from saddleback.certificates.bounds import EVERY, NONE, UNDECIDED

FREE = (0, 0, 1, 2, 5, 33, 60, 200)
WAYS = ("the optimum", "next to it", "relative to each entry", "relative to the longest", "short columns are wrong")


def offered(rng: np.random.Generator, case: Known, way: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a pair of points: an optimum, with a disturbance."""
    x, y = case.optima[0].copy(), case.y.copy()

    def noise(size: int) -> np.ndarray:
        return 2.0 ** -rng.integers(4, 56) * rng.standard_normal(size) * (rng.random(size) < rng.choice([0.3, 1.0]))

    if way == "next to it":
        return x + noise(x.size) / case.column_unit, y * (1.0 + noise(y.size))
    if way == "relative to each entry":
        return x * (1.0 + noise(x.size)), y * (1.0 + noise(y.size))
    if way == "relative to the longest":
        return x + np.abs(x).max() * noise(x.size), y + np.abs(y).max() * noise(y.size)
    if way == "short columns are wrong":
        lengths = np.abs(case.A).max(axis=0)
        short = (case.penalty == 0) & (lengths <= lengths.max() * 2.0 ** -rng.integers(10, 60))
        x[short] *= rng.choice([0.0, 0.5, 0.999], np.count_nonzero(short))
        return x, case.problem.model.g.subgradient(case.A @ x) if case.loss in ("Squared", "Huber") else y
    return x, y


def random_known(seed: int) -> tuple[Known, np.ndarray, np.ndarray]:
    """Return a problem with known optima in random units, and a pair of points."""
    rng = np.random.default_rng(seed)
    free = int(rng.choice(FREE, p=[0.15, 0.15, 0.2, 0.2, 0.15, 0.1, 0.04, 0.01]))
    case = uncoupled(rng, max(free, 1)) if seed % 10 == 0 else known(rng, free)
    if rng.random() < 0.8:
        units = random_units(rng, case.b.size, 40), random_units(rng, case.penalty.size, 40)
        case = case.in_units(*units, 2.0 ** rng.integers(-20, 21))
    return case, *offered(rng, case, WAYS[seed % len(WAYS)])


def misses(case: Known | KnownProgram, bounds: sb.Bounds) -> bool:
    """Return whether an interval does not contain the value of one of the optima, without any tolerance."""
    for x in case.optima:
        u = case.A @ x  # sums of few small integers: exact
        if not (np.all((bounds.lower <= x) & (x <= bounds.upper)) and np.all(bounds.decided[x == 0] != EVERY)):
            return True
        if not np.all((bounds.fitted.lower <= u) & (u <= bounds.fitted.upper)) or np.any(x[bounds.decided == NONE]):
            return True
    return bounds.unique and bool(np.any(case.optima != case.optima[0]))


def missed(seeds: range) -> tuple[list[int], Counter[str]]:
    """Return the seeds whose intervals miss an optimum, and how often something was found out."""
    found, counts = [], Counter[str]()
    for seed in seeds:
        case, x, y = random_known(seed)
        bounds = sb.bounds(case.problem, x, y)
        if misses(case, bounds):
            found.append(seed)
        counts["unique"] += bounds.unique
        counts["finite"] += np.isfinite(bounds.gap)
        counts["several optima"] += len(case.optima) > 1
        counts["decided"] += x.size - bounds.count(UNDECIDED)
        counts["columns"] += x.size
    return found, counts


def test_no_interval_of_200_random_problems_misses_a_known_optimum() -> None:
    found, counts = missed(range(200))
    assert not found
    assert counts["unique"] > 5  # most of these points are far from an optimum, or there are several
    assert counts["finite"] > 180
    assert counts["several optima"] > 40


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(5))
def test_no_interval_of_5000_random_problems_misses_a_known_optimum(thousand: int) -> None:
    found, counts = missed(range(1000 * thousand, 1000 * thousand + 1000))
    print(counts)
    assert not found


def test_no_vertex_of_a_random_program_misses_a_known_optimum() -> None:
    unique = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        case = known_program(rng)
        rows, columns = random_units(rng, case.y.size, 40), random_units(rng, case.cost.size, 40)
        other = case.in_units(rows, columns, 4.0 ** rng.integers(-10, 11))
        x, y = case.optima[0], case.y
        noise = 2.0 ** -rng.integers(20, 60)
        x, y = (each * (1.0 + noise * rng.standard_normal(each.size)) for each in (x, y))
        one = sb.bounds(case.problem, x, y)
        two = sb.bounds(other.problem, x / columns, y * (other.y / np.where(case.y, case.y, 1.0)))
        assert not misses(case, one), seed
        assert not misses(other, two), seed
        assert one.unique == two.unique, seed
        assert np.array_equal(one.decided, two.decided), seed
        unique += one.unique
    assert unique > 60


@pytest.mark.parametrize("free", [1, 32, 33, 300])
def test_free_columns_of_a_small_unit_are_not_forgotten(free: int) -> None:
    """The dual point is wrong in rows whose columns are short beside another one: fitted values there are 1, not 0."""
    lengths = np.array([1e7, *[1e-7] * free, 1e7])
    weights, b, x = np.zeros(free + 2), np.ones(free + 2), np.zeros(free + 2)
    weights[-1], b[-1], x[[0, -1]] = 1e7, 2.0, 1e-7
    problem = sb.Problem(sb.L1(1.0, weights=weights), np.diag(lengths), sb.Squared(b))
    bounds = sb.bounds(problem, x, lengths * x - b)
    assert bounds.gap >= 0.5 * free
    assert np.all((bounds.fitted.lower[:-1] <= 1.0) & (bounds.fitted.upper[:-1] >= 1.0))
    assert np.all((bounds.lower[1:-1] <= 1e7) & (bounds.upper[1:-1] >= 1e7))
    assert np.all(np.isfinite(bounds.lower))


@pytest.mark.parametrize("free", [33, 300])
def test_free_columns_are_enclosed_by_the_ellipsoid(free: int) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2 * free, free))
    b = A @ np.ones(free) + rng.standard_normal(2 * free)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    bounds = sb.bounds(sb.Problem(sb.Zero(), A, sb.Squared(b)), x, A @ x - b)
    assert np.all((bounds.lower <= x) & (x <= bounds.upper))
    assert np.max(bounds.upper - bounds.lower) < 1e-5
    assert bounds.count(EVERY) == free


@pytest.mark.parametrize("seed", range(40))
def test_units_change_no_decision_and_no_digit(seed: int) -> None:
    """Rows, columns and the objective in other units: the same intervals, in these units.

    The gap has the same bits, unless columns are balanced: then matrices are factorised, by any LAPACK.
    """
    rng = np.random.default_rng(seed)
    free = int(rng.choice([0, 1, 5, 33]))
    case = known(rng, free)
    x, y = offered(rng, case, WAYS[seed % 3])
    rows, columns = random_units(rng, y.size, 40), random_units(rng, x.size, 40)
    objective = 4.0 ** rng.integers(-10, 11)
    other = case.in_units(rows, columns, objective)
    one, two = sb.bounds(case.problem, x, y), sb.bounds(other.problem, x / columns, y / rows * objective)
    assert two.gap / objective == (one.gap if free == 0 else pytest.approx(one.gap, rel=1e-9))
    assert two.unique == one.unique
    assert np.array_equal(two.decided, one.decided)
    for end in ("lower", "upper"):
        assert np.allclose(getattr(two, end) * columns, getattr(one, end), rtol=1e-9, atol=0.0)
        assert np.allclose(getattr(two.fitted, end) / rows, getattr(one.fitted, end), rtol=1e-9, atol=0.0)
