"""Every loss above every loss or penalty, compared with CVXPY: solved to the tolerance, or proved infeasible."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import random_stack

import saddleback as sb

cp = pytest.importorskip("cvxpy")

TOL = 1e-6
FAR = 30.0
"""Length of CVXPY's solution from which a solve may end at its limit: the data have entries near 1, so that such a
problem is ill-conditioned, or has an infimum that no point attains."""

FAST = [10, *range(0, 500, 13)]  # every loss, nearly every loss or penalty below it, and one without a solution
FAST += [1, 166, 384, 486]  # an objective of 0 under a user's operator, and a ray of a loss that is no sum
FAST += [342]  # dust of a variable in a row that it violates


@pytest.mark.parametrize(
    "seed", [seed if seed in FAST else pytest.param(seed, marks=pytest.mark.slow) for seed in range(500)]
)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_agrees_with_cvxpy(seed):
    case = random_stack(seed)
    result, optimum = sb.solve(case.problem, max_passes=40_000, tol=TOL), case.optimum()
    if optimum == np.inf:
        assert result.status is sb.Status.INFEASIBLE, result.message
        assert sb.certify_ray(case.problem, result.ray).proves is sb.Status.INFEASIBLE
        return
    assert case.oracle.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    certificate = result.certificate
    error = 3 * TOL * max(abs(optimum), 1e-6 * case.problem.model.value_at_zero) + 1e-8
    if np.linalg.norm(case.oracle.var_dict["x"].value) > FAR and result.status is sb.Status.MAX_PASSES:
        assert certificate.primal_infeasibility > 0 or certificate.primal_value >= optimum - error
        assert certificate.dual_infeasibility > 0 or certificate.dual_value <= optimum + error
        return
    assert result.status.solved, result.message  # columns that depend on each other may leave rounding as the limit
    assert abs(certificate.primal_value - optimum) <= error


@pytest.mark.parametrize("seed", FAST)
def test_what_was_written_for_cvxpy_can_be_read(seed):
    case = random_stack(seed)
    again, rng = sb.from_cvxpy(case.oracle), np.random.default_rng(seed)
    for size in (0.1, 1.0):
        x = size * rng.random(case.problem.x_shapes[0])
        value = again.objective(again.value([x.reshape(again.x_shapes[0])]))
        assert value == pytest.approx(case.problem.value(x), rel=1e-9, abs=1e-9)
