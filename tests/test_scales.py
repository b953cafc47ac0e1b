"""Units: the status of a problem must not depend on its units."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb

SCALES = [1e-12, 1e-8, 1e-4, 1.0, 1e4, 1e8, 1e12]


@pytest.mark.parametrize("scale", SCALES)
def test_constraints_in_other_units_of_x(scale):
    """x* grows as A shrinks; a large solution must not be mistaken for infeasibility."""
    result = sb.solve(sb.Problem(sb.L1(1.0), scale * np.eye(3), sb.Equality(np.ones(3))))
    assert result.status is sb.Status.OPTIMAL
    assert np.allclose(scale * result.x, 1, atol=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_constraints_in_other_units_of_b(scale, rng):
    A = rng.standard_normal((4, 8))
    b = A[:, 0] + A[:, 1]
    unit = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Equality(b)))
    result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Equality(scale * b)))
    assert unit.status is result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(scale * unit.certificate.primal_value, rel=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_programs_in_other_units_of_c(scale):
    c = np.array([-1.0, -2.0]) * scale
    result = sb.solve(sb.Problem(sb.Linear(c) + sb.NonNegative(), np.ones((1, 2)), sb.Interval(-np.inf, [4.0])))
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(-8 * scale, rel=1e-5)


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale <= 1e4])
def test_a_far_bound_is_a_bound(scale):
    """min -x with scale x <= 1: for a small scale the solution is far away, but the problem is not unbounded.

    For a large scale the objective is below 1e-6 P(0), where the gap is no longer relative to it.
    """
    result = sb.solve(sb.Problem(sb.Linear([-1.0]) + sb.NonNegative(), [[scale]], sb.Interval(-np.inf, [1.0])))
    assert result.status is sb.Status.OPTIMAL
    assert result.x[0] * scale == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_no_solution_in_any_units(scale, rng):
    A = rng.standard_normal((4, 6))
    rows = np.vstack([A, A[:1]])
    contradiction = sb.Problem(sb.L1(1.0), rows, sb.Equality(scale * np.array([1, 1, 1, 1, 5.0])))
    assert sb.solve(contradiction, max_passes=100_000).status is sb.Status.INFEASIBLE
    falling = sb.Problem(sb.Linear(scale * np.ones(6)), A, sb.Absolute(np.ones(4), scale=scale))
    assert sb.solve(falling, max_passes=100_000).status is sb.Status.UNBOUNDED


@pytest.mark.parametrize("unit", [1e-7, 1e-3, 1.0, 1e3, 1e7])
def test_one_column_in_other_units(unit, rng):
    """A small dual violation in a column of small entries is a large one in its units, and must be detected."""
    A = rng.uniform(size=(60, 4))
    b = A @ [1.0, 2, 3, 4] + 0.1 * rng.standard_normal(60)
    same = sb.solve(sb.Problem(sb.NonNegative(), A, sb.Absolute(b)), tol=1e-5, max_passes=100_000)
    other = sb.solve(sb.Problem(sb.NonNegative(), A * [1, 1, 1, unit], sb.Absolute(b)), tol=1e-5, max_passes=100_000)
    assert same.status is sb.Status.OPTIMAL
    assert other.status is sb.Status.OPTIMAL
    assert other.certificate.primal_value == pytest.approx(same.certificate.primal_value, rel=5e-5)


@pytest.mark.parametrize("method", ["admm", "pdhg", "sp-bcd"])
def test_a_penalty_whose_square_overflows(method, rng):
    """The primal weight is a ratio of norms, one of which is infinite here."""
    A = 1e49 * rng.standard_normal((2, 3))
    problem = sb.Problem(sb.L1(1e216), A, sb.Interval([-np.inf, 0], [1e14, 1e13]))
    result = sb.solve(problem, method=method, max_passes=60)
    assert result.status is sb.Status.OPTIMAL
    assert not np.any(result.x)


def test_a_result_that_is_not_optimal_says_which_problem_it_solves(data):
    from saddleback.io.problem_files import read_problem

    pytest.importorskip("highspy")
    problem = read_problem(data / "netlib" / "stocfor1.mps.gz")
    result = sb.solve(problem, tol=1e-4, max_passes=2000, finish=False)
    assert result.status is sb.Status.MAX_PASSES
    told = f"perturbation of the problem that explains them {result.certificate.perturbation:.1e}"
    assert told in result.message
