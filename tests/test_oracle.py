"""Every penalty with every loss compared with CVXPY, for many shapes, sparsities, intercepts and degenerate columns."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import FURTHER_LOSSES, FURTHER_PENALTIES, LOSSES, PENALTIES, has_no_minimiser, random_case
from scipy.optimize import linprog

import saddleback as sb

cp = pytest.importorskip("cvxpy")

TOL = 1e-6


@pytest.mark.parametrize(
    "seed", [0, 1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_cvxpy(penalty, loss, seed):
    case = random_case(penalty, loss, 1000 * seed + 17 * PENALTIES.index(penalty) + LOSSES.index(loss))
    assert_agrees(case, penalty)


FAST_SEEDS = 2


@pytest.mark.parametrize(
    "seed", [seed if seed < FAST_SEEDS else pytest.param(seed, marks=pytest.mark.slow) for seed in range(50)]
)
@pytest.mark.parametrize("name", [*FURTHER_PENALTIES, *FURTHER_LOSSES])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_further_functions_agree_with_cvxpy(name, seed):
    """Each with fifty problems: a penalty with every loss in turn, and a loss with every penalty of full domain."""
    penalties = ["L1", "GroupL2", "SquaredL2", "ElasticNet", "WeightedL1", "Box", "LInf", "L1+NonNegative"]
    losses = ["Squared", "Absolute", "Logistic", "Huber", "Hinge", "Poisson", "Norm2", "Interval"]
    pair = (name, losses[seed % 8]) if name in FURTHER_PENALTIES else (penalties[seed % 8], name)
    assert_agrees(random_case(*pair, 7000 + seed), pair[0], tol=0.1 * TOL)


def assert_agrees(case, penalty, tol=TOL):
    """Solve a problem, and compare its optimum with that of CVXPY."""
    if has_no_minimiser(case.problem, penalty):
        # there is only an infimum, which the dual value must not exceed
        result = sb.solve(case.problem, max_passes=2000, tol=TOL)
        if result.certificate.dual_infeasibility == 0:
            assert result.certificate.dual_value <= case.optimum() + 1e-7
        return
    result = sb.solve(case.problem, max_passes=100_000, tol=tol)
    optimum = case.optimum()
    if optimum == -np.inf:  # the largest residuals, without signs, fall with an intercept
        assert result.status is sb.Status.UNBOUNDED, result.message
        return
    assert result.status.solved, result.message
    assert case.oracle.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    scale = max(abs(optimum), 1e-6 * case.problem.model.value_at_zero)
    assert abs(result.certificate.primal_value - optimum) <= 3 * TOL * scale + 1e-8


def random_program(seed):
    """Return a small linear program with free, signed and bounded columns, and the status of HiGHS."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 9), rng.integers(2, 12)
    A = np.round(rng.standard_normal((m, n)), 2) * (rng.random((m, n)) < 0.7)
    c, b = np.round(rng.standard_normal(n), 2), np.round(2 * rng.standard_normal(m), 1)
    lower = np.where(rng.random(n) < 0.6, 0.0, -np.inf)
    upper = np.where(rng.random(n) < 0.3, np.round(rng.uniform(0.5, 3, n), 1), np.inf)
    below, above, equal = (rng.integers(3, size=m) == kind for kind in range(3))
    below, above = below & ~equal, above & ~equal & ~below
    equal = ~below & ~above
    verdict = linprog(
        c,
        A_ub=np.vstack([A[below], -A[above]]),
        b_ub=np.concatenate([b[below], -b[above]]),
        A_eq=A[equal],
        b_eq=b[equal],
        bounds=list(zip(lower, upper, strict=True)),
        options={"presolve": False},  # presolve may answer "infeasible or unbounded"
    )
    rows = sb.Interval(np.where(below, -np.inf, b), np.where(above, np.inf, b))
    return sb.Problem(sb.Linear(c) + sb.Box(lower, upper), A, rows), verdict


@pytest.mark.parametrize("seed", [*range(120), 229, 394, 572])  # the last three have rays of both kinds
def test_linear_programs_have_the_status_of_highs(seed):
    """The status is optimal, infeasible or unbounded."""
    problem, verdict = random_program(seed)
    expected = {0: sb.Status.OPTIMAL, 2: sb.Status.INFEASIBLE, 3: sb.Status.UNBOUNDED}.get(verdict.status)
    if expected is None:
        pytest.skip("HiGHS does not decide either")
    result = sb.solve(problem, max_passes=100_000, tol=TOL)
    assert result.status is expected
    if expected is sb.Status.OPTIMAL:
        assert result.certificate.primal_value == pytest.approx(verdict.fun, abs=3 * TOL * max(1, abs(verdict.fun)))
