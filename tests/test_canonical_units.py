"""Problems whose rows and columns have very different units: the result has the same bits whatever these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz import families
from scipy import sparse

import saddleback as sb

OWN_UNITS = 14
"""The number of penalties, the first ones, in which not all columns share a unit."""

SEEDS = [k * len(families.PENALTIES) + j for k in range(12) for j in range(OWN_UNITS) if (k + j) % 3 == 0]


def in_units(drawn: families.Instance, seed: int) -> tuple[sb.Problem, np.ndarray, np.ndarray, float]:
    """Return a problem in random units of 2^-40 to 2^40, at least one of which is 2^-40 and one 2^40."""
    rng = np.random.default_rng(seed)
    rows, columns = drawn.loss.drawn_units(rng, 40), drawn.penalty.drawn_units(rng, 40)
    if np.ptp(columns) > 0:
        columns = np.where(drawn.penalty.together == drawn.penalty.together[0], 2.0**-40, columns)
        columns = np.where(drawn.penalty.together == drawn.penalty.together[-1], 2.0**40, columns)
    intercept = float(np.ldexp(1.0, rng.integers(-40, 41)))
    return drawn.problem(rows, columns, intercept, 1.0), rows, columns, intercept


def flat(result: sb.Result, rows: np.ndarray, columns: np.ndarray, intercept: float) -> tuple[Any, ...]:
    """Return a result in the units of the problem as it was drawn."""
    parts = result.x if isinstance(result.x, list) else [result.x]
    x = [np.ravel(parts[0]) * columns, *(np.ravel(part) * intercept for part in parts[1:])]
    return np.concatenate(x), np.ravel(result.y) * rows


@pytest.mark.parametrize("seed", SEEDS)
def test_all_bits_are_those_in_other_units(seed: int) -> None:
    drawn = families.drawn(seed)
    results = []
    for other in (1, 2):
        problem, *units = in_units(drawn, other)
        result = sb.solve(problem, max_passes=500)
        results.append((result, *flat(result, *units)))
    (here, x, y), (there, other_x, other_y) = results
    assert here.status is there.status
    assert here.method == there.method
    assert here.passes == there.passes
    assert np.array_equal(x, other_x)
    assert np.array_equal(y, other_y)
    assert here.objective == there.objective
    assert here.certificate.relative_gap == there.certificate.relative_gap


@pytest.mark.parametrize("storage", [np.asfortranarray, sparse.csc_array, sparse.csr_array])
def test_several_terms_keep_their_units(storage: Any, rng: np.random.Generator) -> None:
    """A loss, constraints and a penalty of differences: every row of each has its own unit."""
    A, C, b = rng.standard_normal((30, 8)), rng.standard_normal((3, 8)), rng.standard_normal(30)
    D = np.diff(np.eye(8), axis=0)
    values = []
    for scale in (0, 1, 2):
        r, c, k, d = (np.ldexp(1.0, scale * rng.integers(-18, 19, size)) for size in (30, 3, 8, 7))
        matrices = [storage(r[:, None] * A * k), storage(c[:, None] * C * k), storage(d[:, None] * D * k)]
        losses = [sb.Absolute(b * r, 1.0 / r), sb.Interval(-c, c), sb.L1(1.0, 0.5 / d)]
        result = sb.solve(sb.Problem(sb.L1(1.0, 2.0 * k), matrices, losses), tol=1e-8)
        assert result.status is sb.Status.OPTIMAL
        assert [part.size for part in result.y] == [30, 3, 7]
        values.append((result.objective, result.x * k))
    for value, x in values[1:]:
        assert value == pytest.approx(values[0][0], rel=1e-7)
        assert x == pytest.approx(values[0][1], abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_a_part_without_slopes_has_the_units_of_its_targets(seed: int) -> None:
    """Squares of x under equations: nothing but b tells the unit of the rows."""
    rng = np.random.default_rng(seed)
    A, results = rng.standard_normal((6, 9)), []
    b = A @ rng.standard_normal(9)
    for _ in range(2):
        k, r = (np.ldexp(1.0, rng.integers(-40, 41, size)) for size in (9, 6))
        problem = sb.Problem(sb.ElasticNet(1.0, 0.0, k * k), r[:, None] * A * k, sb.Equality(b * r))
        result = sb.solve(problem, max_passes=3000)
        assert result.status is sb.Status.OPTIMAL
        results.append(result.x * k)
    assert np.array_equal(*results)


@pytest.mark.parametrize("weight", [1e-300, 5e-324])
def test_a_slope_that_is_nearly_nothing_is_no_unit(weight: float, rng: np.random.Generator) -> None:
    A, b = rng.standard_normal((8, 5)) * [1.0, 1.0, 1.0, 1.0, 2.0**30], rng.standard_normal(8)
    for loss in (sb.Absolute(b), sb.Squared(b)):
        problem = sb.Problem(sb.L1(1.0, [weight, 1.0, 1.0, 1.0, 1.0]), A, loss)
        result = sb.solve(problem, max_passes=200)
        assert result.objective <= 1.01 * sb.solve(sb.Problem(sb.L1(1.0), A, loss)).objective


def test_a_path_is_solved_in_the_units_of_its_first_problem(rng: np.random.Generator) -> None:
    k = np.ldexp(1.0, rng.integers(-30, 31, 20))
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    here = sb.path(sb.L1(1.0), A, sb.Absolute(b), n_alphas=8, tol=1e-7)
    there = sb.path(sb.L1(1.0, k), A * k, sb.Absolute(b), n_alphas=8, tol=1e-7)
    for one, other in zip(here, there, strict=True):
        assert other.status is sb.Status.OPTIMAL
        assert other.objective == pytest.approx(one.objective, rel=1e-6)


def strange(rng: np.random.Generator) -> tuple[sb.Problem, np.ndarray]:
    """Return a problem with features in units from 2^-30 to 2^30."""
    k = np.ldexp(1.0, rng.integers(-30, 31, 20))
    A, b = rng.standard_normal((60, 20)) * k, rng.standard_normal(60)
    return sb.Problem(sb.L1(1.0, 3.0 * k), A, sb.Absolute(b)), k


def test_a_start_and_a_callback_are_in_the_units_of_the_user(rng: np.random.Generator) -> None:
    problem, _ = strange(rng)
    best = sb.solve(problem, tol=1e-9)
    seen = []

    def look(info: sb.Info) -> bool:
        seen.append(sb.certify(problem, info.x, info.y).primal_value)
        assert np.all(np.isfinite(info.current.x))
        return False

    again = sb.solve(problem, x0=best.x, y0=best.y, callback=look)
    assert again.status is sb.Status.OPTIMAL
    assert again.passes < best.passes
    assert seen[0] == pytest.approx(best.objective, rel=1e-6)


def test_a_run_goes_on_from_its_checkpoint(rng: np.random.Generator, tmp_path: Any) -> None:
    problem, _ = strange(rng)
    file = tmp_path / "run.npz"
    whole = sb.solve(problem, "sp-bcd", tol=1e-7)
    sb.solve(problem, "sp-bcd", tol=1e-7, max_passes=whole.passes / 2, checkpoint=file)
    rest = sb.solve(problem, "sp-bcd", tol=1e-7, resume=file)
    assert np.array_equal(rest.x, whole.x)
    assert np.array_equal(rest.y, whole.y)


def test_strengths_are_in_the_units_of_the_user(rng: np.random.Generator) -> None:
    """Strengths that are right for the problem as it is stated solve it, in as many passes as in other units."""
    A, b = rng.standard_normal((20, 5)), rng.standard_normal(20)
    k = np.ldexp(1.0, np.array([-12, -6, 0, 6, 12]))
    passes = []
    for unit in (np.ones(5), k):
        problem = sb.Problem(sb.L1(1.0, unit), A * unit, sb.Squared(b))
        strengths = 10.0 * unit**2, np.full(20, 10.0)
        result = sb.solve(problem, "sp-bcd", step=strengths, layers=False, max_passes=3000)
        assert result.status is sb.Status.OPTIMAL
        passes.append(result.passes)
    assert passes[0] == pytest.approx(passes[1], rel=0.5)


@pytest.mark.parametrize("units", [1.0, 2.0**30])
def test_rays_are_in_the_units_of_the_user(units: float) -> None:
    """Min -x1 - x2 + |x1 - 1e9 x2| falls along (1e9, 1)."""
    A = np.array([[1.0, -units], [0.0, 0.0]])
    problem = sb.Problem(sb.Linear([-1.0, -1.0]), A, sb.Absolute([0.0, 0.0], [0.5, 0.5]))
    result = sb.solve(problem)
    assert result.status is sb.Status.UNBOUNDED
    assert sb.certify_ray(problem, result.ray).proves is sb.Status.UNBOUNDED
