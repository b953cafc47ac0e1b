"""The floor of the relative gap: no offset of the data hides an error, and an optimum of 0 is recognised."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, OPEN, PENALTIES, SIZE

import saddleback as sb
from saddleback.functions.row_sum import one_above_the_other
from saddleback.functions.traits import SumOverCoordinates, rise, rise_within

M, N = 200, 10
TARGETS = {
    "Squared": sb.Squared,
    "Absolute": sb.Absolute,
    "Huber": sb.Huber,
    "Pinball": lambda b: sb.Pinball(b, 0.3),
}


def regression(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N))
    return A, A @ rng.standard_normal(N) + rng.standard_normal(M)


@pytest.mark.parametrize("tol", [1e-4, 1e-6])
@pytest.mark.parametrize("mean", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("penalty", [sb.L1(1.0), sb.Zero(), sb.NonNegative()])
def test_targets_far_from_zero_are_fitted_as_well_as_centred_ones(penalty, loss, mean, tol):
    A, b = regression()
    columns = [A, np.ones(M)]
    moved = b + mean  # the data are the values after rounding to float64
    best = sb.solve(sb.Problem([penalty, sb.Zero()], columns, TARGETS[loss](moved - mean)), tol=1e-9)
    result = sb.solve(sb.Problem([penalty, sb.Zero()], columns, TARGETS[loss](moved)), tol=tol)
    assert result.status is sb.Status.OPTIMAL
    assert abs(result.objective - best.objective) <= tol * best.objective


def test_an_offset_against_a_bound_hides_no_error():
    """No column is free here, so that a measure based on free columns alone would miss the error."""
    A, b = regression()
    best = sb.solve(sb.Problem([sb.Zero(), sb.NonNegative()], [A, np.ones(M)], sb.Squared(b + 10)), tol=1e-9)
    far = sb.solve(sb.Problem([sb.Zero(), sb.NonNegative()], [A, np.ones(M)], sb.Squared(b + 1e6)), tol=1e-6)
    assert far.status is sb.Status.OPTIMAL
    assert far.objective == pytest.approx(best.objective, rel=1e-6)


def interpolated(shape=(30, 80), seed=1):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal(shape)
    return A, A @ rng.uniform(0.1, 1.0, shape[1])


ZERO = {
    "least squares": lambda A, b: sb.Problem(sb.Zero(), A, sb.Squared(b)),
    "nonnegative least squares": lambda A, b: sb.Problem(sb.NonNegative(), A, sb.Squared(b)),
    "absolute": lambda A, b: sb.Problem(sb.Zero(), A, sb.Absolute(b)),
    "nonnegative absolute": lambda A, b: sb.Problem(sb.NonNegative(), A, sb.Absolute(b)),
    "quantile with an intercept": lambda A, b: sb.Problem([sb.Zero()] * 2, [A, np.ones(len(b))], sb.Pinball(b, 0.2)),
    "huber": lambda A, b: sb.Problem(sb.Zero(), A, sb.Huber(b)),
    "norm": lambda A, b: sb.Problem(sb.Zero(), A, sb.Norm2(b)),
    "separable hinge": lambda A, b: sb.Problem(sb.Zero(), A, sb.Hinge(np.sign(b))),
    "separable squared hinge": lambda A, b: sb.Problem(sb.Zero(), A, sb.SquaredHinge(np.sign(b))),
    "constant targets": lambda A, b: sb.Problem([sb.L1(1.0), sb.Zero()], [A, np.ones(len(b))], sb.Squared(0 * b + 3.7)),
    "targets 0": lambda A, b: sb.Problem(sb.Zero(), A, sb.Absolute(0 * b)),
    "equations": lambda A, b: sb.Problem(sb.NonNegative(), A, sb.Equality(b)),
    "inequalities": lambda A, b: sb.Problem(sb.Box(0, 1), A, sb.Interval(b - 0.1, b + 0.1)),
}


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("name", ZERO)
def test_an_optimum_of_zero_is_recognised(name, tol):
    result = sb.solve(ZERO[name](*interpolated()), tol=tol, max_passes=2000)
    assert result.status.solved, result.message
    assert abs(result.objective) <= 1e-8


def test_zero_is_found_without_targets_from_any_start(rng):
    """Iterates that are halved in each step never become 0."""
    problem = sb.Problem(sb.Zero(), rng.standard_normal((40, 20)), sb.Absolute(np.zeros(40)))
    result = sb.solve(problem, x0=rng.standard_normal(20))
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == 0


@pytest.mark.parametrize("alpha", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_a_small_penalty_is_minimised_and_not_lost_in_the_floor(loss, alpha):
    """As alpha tends to 0, the solution tends to that of basis pursuit, and the optimum to alpha times its norm."""
    A, b = interpolated()
    pursuit = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Equality(b)), tol=1e-8).objective
    result = sb.solve(sb.Problem(sb.L1(alpha), A, loss(b)), tol=1e-6)
    assert result.status.solved
    if alpha <= 1e-8:
        assert result.objective == pytest.approx(alpha * pursuit, rel=1e-5)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("loss", ["Squared", "Absolute", "Huber", "Pinball", "Norm2"])
def test_the_relative_gap_does_not_depend_on_the_units(loss, unit, rng):
    """Targets, x and the loss in other units, at pairs near and far from an optimum of 0."""
    A, b = interpolated()

    def made(unit):
        degree = 2 if loss in ("Squared", "Huber") else 1
        options = {"Huber": {"delta": unit}, "Pinball": {"quantile": 0.3}}.get(loss, {})
        return getattr(sb, loss)(b * unit, scale=unit**-degree, **options)

    x = np.linalg.lstsq(A, b, rcond=None)[0]
    for off in (1e-2, 1e-9, 1e-12, 0.0):
        at = x + off * rng.standard_normal(x.size)
        y = np.zeros(b.size)
        here = sb.certify(sb.Problem(sb.Zero(), A, made(1.0)), at, y)
        there = sb.certify(sb.Problem(sb.Zero(), A, made(unit)), at * unit, y / unit)
        rounding = 1e-9 if off else 1e-5  # at x itself the residuals are rounding, which differs between units
        assert there.relative_gap == pytest.approx(here.relative_gap, rel=1e-3, abs=rounding)


@pytest.mark.parametrize("length", [0.0, 1e6, 1e12, 1e15])
def test_a_long_dual_point_does_not_make_a_gap_small(length):
    """Both rows are the same, so that y may have any length along (1, -1)."""
    problem = sb.Problem(sb.Linear([1.0, 2.0]) + sb.NonNegative(), np.ones((2, 2)), sb.Equality([1.0, 1.0]))
    assert sb.certify(problem, [0.0, 1.0], [length - 1, -length]).relative_gap == pytest.approx(0.5)


@pytest.mark.parametrize("method", ["auto", "r2hpdhg", "finish"])
def test_a_linear_objective_whose_terms_cancel_is_recognised(method, rng):
    A, x = rng.standard_normal((6, 12)), np.maximum(rng.standard_normal(12), 0.0)
    y = rng.standard_normal(6)
    y -= (A @ x) @ y / ((A @ x) @ (A @ x)) * (A @ x)  # makes the optimum <b, y> equal to 0
    cost = A.T @ y + np.where(x > 0, 0.0, rng.uniform(0.1, 1.0, 12))
    result = sb.solve(sb.Problem(sb.Linear(cost) + sb.NonNegative(), A, sb.Equality(A @ x)), method, tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert abs(result.objective) <= 1e-8


@pytest.mark.parametrize("name", LOSSES)
def test_rise_bounds_what_a_loss_is_above_its_minimum(name, rng):
    g = LOSSES[name].bind((SIZE,))
    if name in ("Equality", "Interval", "Interval mixed"):
        assert rise(g, 1.0) == 0
        return
    for length in (1e-6, 1e-2, 1.0, 1e3):
        for _ in range(20):
            direction = rng.standard_normal(SIZE)
            move = length * direction / np.linalg.norm(direction)
            if name == "Logistic" or not (name.startswith("Norm2") or isinstance(g, SumOverCoordinates)):
                u = rng.standard_normal(SIZE)
            elif name.startswith("Norm2"):
                u = LOSSES[name].b
            else:
                u = np.nan_to_num(g.minimiser())
            if name in OPEN:
                move = np.abs(move)  # the others leave the domain
            risen = g.value(u + move) - g.value(u)
            assert risen <= rise(g, length) * (1 + 1e-9) + 1e-15
            assert risen <= rise_within(g, np.abs(move)) * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("name", [name for name in PENALTIES if PENALTIES[name].bind((SIZE,)).domain.everything])
def test_rise_bounds_what_a_penalty_is_above_0(name, rng):
    """A penalty may stand in the place of a loss."""
    f = one_above_the_other([PENALTIES[name].bind((SIZE,))], [SIZE])
    for length in (1e-6, 1.0, 1e3):
        for _ in range(20):
            direction = rng.standard_normal(SIZE)
            move = length * direction / np.linalg.norm(direction)
            assert f.value(move) <= rise(f, length) * (1 + 1e-9)
            assert f.value(move) <= rise_within(f, np.abs(move)) * (1 + 1e-9)


@pytest.mark.parametrize("term", [sb.Norm2(np.zeros(4)), sb.GroupL2(1.0, 2), sb.Nuclear(1.0, (2, 2)), sb.LInf(1.0)])
def test_an_optimum_of_0_is_recognised_with_several_terms(term, rng):
    """There are fewer rows than columns, so that both terms can be 0, which no run reaches exactly."""
    A, D = rng.standard_normal((4, 12)), rng.standard_normal((4, 12))
    result = sb.solve(sb.Problem(sb.Zero(), [A, D], [sb.Absolute(rng.standard_normal(4)), term]), tol=1e-6)
    assert result.status.solved, result.message


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_that_violates_constraints_is_feasible_for_a_perturbed_problem(seed):
    """With b moved by the violation of Ax and c by that of -A'y, the gap loses what the violations add to it."""
    rng = np.random.default_rng(seed)
    A, b, c = rng.standard_normal((5, 8)), rng.standard_normal(5), -9 - rng.random(8)
    x, y = np.abs(rng.standard_normal(8)), rng.standard_normal(5)  # no y near this one is feasible
    v = A @ x - b
    t = np.maximum(-A.T @ y - c, 0.0)
    given = sb.certify(sb.Problem(sb.Linear(c) + sb.NonNegative(), A, sb.Equality(b)), x, y)
    moved = sb.certify(sb.Problem(sb.Linear(c + t) + sb.NonNegative(), A, sb.Equality(b + v)), x, y)
    assert moved.primal_infeasibility <= 1e-15
    assert moved.dual_infeasibility <= 1e-15
    assert moved.gap >= 0
    assert moved.gap == pytest.approx(given.gap - x @ t - np.abs(y) @ np.abs(v), abs=1e-12)


def test_a_point_so_far_away_that_the_floor_overflows_is_not_optimal(rng):
    """Relative to a floor that is proportional to the point, a gap of 1e300 would be 0."""
    problem = sb.Problem(sb.L1(0.5), rng.standard_normal((5, 8)), sb.Logistic(np.ones(5)))
    far = np.full(8, 1e300)
    assert sb.certify(problem, far, np.zeros(5)).relative_gap >= 1


@pytest.mark.parametrize("level", [0.0, 100.0, 1000.0])
def test_the_level_of_a_signal_hides_no_error_in_its_differences(level):
    """The differences do not depend on the level, and neither may the floor: 17 % too much was accepted."""
    rng = np.random.default_rng(1)
    signal = np.sin(np.linspace(0.0, 6.0, 2000)) + 1e-3 * rng.standard_normal(2000)
    losses, rows = [sb.Squared(signal), sb.L1(100.0)], [sb.Identity(), sb.Differences(2000, 3)]
    best = sb.solve(sb.Problem(sb.Zero(), rows, losses), tol=1e-8).objective
    moved = [sb.Squared(signal + level), sb.L1(100.0)]
    found = sb.solve(sb.Problem(sb.Zero(), rows, moved), tol=1e-4, max_passes=1000)
    allowed = 1e-4 if found.status is sb.Status.OPTIMAL else found.certificate.error
    assert found.objective <= best * (1 + 2 * allowed)
    assert found.relative_gap >= 0.5 * found.certificate.gap / found.objective
