"""Restarts: a layer that has no effect if it is off, and saves work if it is on."""

from __future__ import annotations

import numpy as np
import pytest

import saddleback as sb
from saddleback.engine.registry import make
from saddleback.layers import Finish, Restarted, WorkingSet
from saddleback.layers.restarts import Point
from saddleback.methods import SPBCD, Start


@pytest.fixture
def quantile(rng):
    A = rng.standard_normal((150, 60))
    return sb.Problem(sb.L1(5.0), A, sb.Pinball(A[:, :6].sum(axis=1) + rng.standard_t(3, 150), 0.3))


def test_layers_can_be_switched_off(quantile):
    assert isinstance(make("sp-bcd", {}), Finish)
    assert isinstance(make("sp-bcd", {}).method, WorkingSet)
    assert isinstance(make("sp-bcd", {}).method.method, Restarted)
    assert isinstance(make("sp-bcd", {"restarts": True, "working_set": False, "finish": False}), Restarted)
    assert isinstance(make("sp-bcd", {"restarts": False, "working_set": False, "finish": False}), SPBCD)
    plain = sb.solve(quantile, restarts=False, finish=False, tol=0, max_passes=50)
    assert "restarts" not in plain.settings
    with pytest.raises(ValueError, match="expected 'auto', True or False"):
        sb.solve(quantile, restarts="often")


def test_the_first_epoch_is_the_plain_method(quantile):
    model = quantile.model
    start = Start(np.zeros(60), np.zeros(150), 5, 3)
    plain, wrapped = SPBCD(), Restarted(SPBCD())
    one, other = plain.init(model, start), wrapped.init(model, start)
    one, other = plain.advance(one, 3.0), wrapped.advance(other, 3.0)
    assert np.array_equal(one.x, other.x)
    assert np.array_equal(one.y, other.y)


def test_the_residual_is_zero_only_at_a_saddle_point(rng):
    A = rng.standard_normal((6, 4))
    problem = sb.Problem(sb.L1(0.5), A, sb.Squared(rng.standard_normal(6)))
    best = sb.solve(problem, tol=1e-14, max_passes=1e5)
    y = A @ best.x - problem.loss.b
    model, strengths = problem.model, SPBCD().init(problem.model, Start(np.zeros(4), np.zeros(6))).strengths
    assert Point(best.x, y, A @ best.x, A.T @ y).residual(model, strengths) < 1e-6
    assert Point(best.x + 0.1, y, A @ (best.x + 0.1), A.T @ y).residual(model, strengths) > 1e-3


def test_restarts_save_work_on_a_sharp_problem(quantile):
    restarted = sb.solve(quantile, method="sp-bcd", tol=1e-6, max_passes=30_000, finish=False)
    plain = sb.solve(quantile, tol=1e-6, max_passes=30_000, restarts=False, finish=False)
    assert restarted.status is sb.Status.OPTIMAL
    assert restarted.settings["restarts"] > 0
    assert restarted.passes < 0.7 * plain.passes


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_weight_adapts_to_the_units(scale, rng):
    """The tolerance is reached with A and alpha in any units."""
    A = rng.standard_normal((80, 30)) * scale
    b = A[:, :4].sum(axis=1) / scale + rng.standard_normal(80)
    result = sb.solve(sb.Problem(sb.L1(3.0 * scale), A, sb.Absolute(b)), "sp-bcd", tol=1e-6, max_passes=20_000)
    assert result.status is sb.Status.OPTIMAL


def test_the_weight_adapts_if_one_side_does_not_move(rng):
    """x = 0 is optimal and never moves, so that the weight cannot be a ratio of distances."""
    A = rng.standard_normal((120, 60)) * 10.0 ** rng.uniform(-3, 3, (120, 1))
    problem = sb.Problem(sb.L1(1e4), A, sb.Pinball(1e3 * rng.standard_normal(120), 0.3))
    result = sb.solve(problem, method="sp-bcd", tol=1e-4)
    assert result.status is sb.Status.OPTIMAL
    assert not np.any(result.x)
    assert result.settings["primal_weight"] > 1


def test_the_same_seed_gives_the_same_bits_however_long_an_iteration_takes(quantile, monkeypatch):
    """The slices in which iterates are summed must not depend on the clock."""
    import time

    quick = sb.solve(quantile, "sp-bcd", tol=1e-6)
    plain = SPBCD.advance

    def held_up(self, state, passes):
        time.sleep(0.002 * (state.passes % 3))
        return plain(self, state, passes)

    monkeypatch.setattr(SPBCD, "advance", held_up)
    slow = sb.solve(quantile, "sp-bcd", tol=1e-6)
    assert np.array_equal(quick.x, slow.x)
    assert quick.passes == slow.passes


def test_strengths_that_are_too_weak_are_detected(rng):
    """With steps that are ten times too long the method diverges, unless the layer doubles the strengths."""
    A = rng.standard_normal((20, 30))
    problem = sb.Problem(sb.L1(0.1), A, sb.Equality(A[:, 0]))
    weak = np.linalg.norm(A, 2) / 10
    assert sb.solve(problem, step=(weak, weak), blocks_per_iteration=30, restarts=False).status is sb.Status.DIVERGED
    assert sb.solve(problem, step=(weak, weak), blocks_per_iteration=30).status is sb.Status.OPTIMAL


@pytest.mark.parametrize("loss", ["Pinball", "Hinge", "Squared", "Absolute"])
def test_certificates_are_a_small_part_of_a_long_run(loss, rng, monkeypatch):
    """Norms, certificates and restart tests together take at most 10% of the work."""
    visits = 0.0
    plain = SPBCD.advance

    def counted(self, state, passes):
        nonlocal visits
        before = state.passes
        state = plain(self, state, passes)
        visits += state.passes - before
        return state

    monkeypatch.setattr(SPBCD, "advance", counted)
    A = rng.standard_normal((300, 150))
    b = A[:, :6].sum(axis=1) + rng.standard_t(3, 300)
    problem = sb.Problem(sb.L1(5.0), A, getattr(sb, loss)(np.sign(b) if loss == "Hinge" else b))
    result = sb.solve(problem, method="sp-bcd", tol=0, max_passes=5000, finish=False)
    assert visits >= 0.9 * result.passes
