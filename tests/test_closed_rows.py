"""Certificates of losses of several classes: the values of y of a row add to 0 exactly, also where columns are free."""

import numpy as np
import pytest

import saddleback as sb


def problem(loss, seed, free, scale=1.0):
    rng = np.random.default_rng(seed)
    rows, columns, classes = rng.integers(10, 60), rng.integers(2, 12), int(rng.integers(2, 6))
    A, labels = rng.standard_normal((rows, columns)), rng.integers(0, classes, rows)
    labels[:classes] = np.arange(classes)
    weight = rng.random(rows) * (rng.random(rows) < 0.9)
    penalties, matrices = [sb.L1(0.3 * scale)], [A]
    if free:
        penalties, matrices = [*penalties, sb.Zero()], [A, np.ones((rows, 1))]
    return sb.Problem(penalties, matrices, loss(labels, classes, sample_weight=weight, scale=scale))


@pytest.mark.parametrize("loss", [sb.Multinomial, sb.MulticlassHinge])
@pytest.mark.parametrize("free", [False, True])
def test_losses_of_several_classes_are_proved(loss, free):
    for seed in range(12):
        result = sb.solve(problem(loss, seed, free), tol=1e-8)
        assert result.status is sb.Status.OPTIMAL
        assert result.certificate.proved
        assert result.certificate.attained
        assert result.certificate.dual_value <= result.certificate.primal_value


@pytest.mark.parametrize("loss", [sb.Multinomial, sb.MulticlassHinge])
@pytest.mark.parametrize("passes", [1, 7, 40])
def test_the_bound_holds_wherever_a_run_stops(loss, passes):
    for seed in range(6):
        best = sb.solve(problem(loss, seed, True), tol=1e-10)
        result = sb.solve(problem(loss, seed, True), tol=1e-10, max_passes=passes)
        certificate = result.certificate
        if certificate.proved:
            assert certificate.dual_value <= best.certificate.primal_value
        assert certificate.primal_value >= best.certificate.dual_value


@pytest.mark.parametrize("power", [-40, 40])
def test_the_unit_of_the_loss_does_not_matter(power):
    """The balance finds the same free columns to depend on each other in any unit."""
    for seed in range(6):
        one = sb.solve(problem(sb.MulticlassHinge, seed, True), tol=1e-8)
        other = sb.solve(problem(sb.MulticlassHinge, seed, True, 2.0**power), tol=1e-8)
        assert other.status is one.status is sb.Status.OPTIMAL
        assert other.certificate.proved
        assert other.objective == pytest.approx(2.0**power * one.objective, rel=1e-6)
