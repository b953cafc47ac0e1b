"""Dual repair: points become closer to feasible, stay inside the domain of the loss, and give better bounds."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb
from saddleback.certificates.sides import dual_side
from saddleback.datasets import make_group_hinge
from saddleback.functions.points import DensePoint
from saddleback.layers import restarts
from saddleback.layers.dual_repair import repair


def hinge(rng, m=200, n=60):
    A = rng.standard_normal((m, n))
    labels = np.sign(A[:, :3].sum(axis=1) + rng.standard_normal(m))
    return sb.Problem(sb.GroupL2(2.0, 5), A, sb.Hinge(labels)).model


def test_a_feasible_point_is_not_moved(rng):
    model = hinge(rng)
    y = 1e-3 * model.g_star.domain.project(rng.standard_normal(200))
    z = -model.A.rmatvec(y)
    found = repair(model, y, z)
    assert np.array_equal(found.y, y)
    assert found.passes == 0


@pytest.mark.parametrize("loss", [sb.Absolute, sb.Pinball, sb.EpsilonInsensitive, sb.Hinge])
@pytest.mark.parametrize("penalty", [sb.L1(5.0), sb.GroupL2(2.0, 5), sb.SparseGroup(4.0, 5, 0.5)])
def test_a_repaired_point_is_closer_to_feasible_and_inside_the_domain(loss, penalty, rng):
    A = rng.standard_normal((200, 60))
    b = A[:, :3].sum(axis=1) + rng.standard_normal(200)
    b = np.sign(b) if loss is sb.Hinge else b
    extra = {sb.Pinball: (0.3,), sb.EpsilonInsensitive: (0.1,)}.get(loss, ())
    model = sb.Problem(penalty, A, loss(b, *extra)).model
    near = sb.solve(sb.Problem(penalty, A, loss(b, *extra)), tol=1e-3).y
    y = model.g_star.domain.project(near * (1 + 0.05 * rng.standard_normal(200)))
    z = -model.A.rmatvec(y)
    found = repair(model, y, z)
    assert np.allclose(found.z, -model.A.rmatvec(found.y), atol=1e-12)
    assert np.allclose(model.g_star.domain.project(found.y), found.y, atol=1e-14)
    off, left = (np.linalg.norm(v - model.f_star.domain.project(v)) for v in (z, found.z))
    assert left < 0.5 * off
    x, u = DensePoint(np.zeros(60)), DensePoint(np.zeros(200))
    assert dual_side(model, found.y, x, u, found.z).value > dual_side(model, y, x, u, z).value


def test_a_run_with_repairs_ends_certified():
    data = make_group_hinge(1000)
    problem = sb.Problem(sb.GroupL2(1e-4, data.groups), data.A, sb.Hinge(data.labels, scale=1e-3))
    result = sb.solve(problem, tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert result.passes > restarts.FIRST_REPAIR
    assert sb.certify(problem, result.x, result.y) == result.certificate
