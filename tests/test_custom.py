"""User-defined functions: Python objects and compiled callables in all places of a catalogue function."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from scipy import LowLevelCallable

import saddleback as sb


class MyL1:
    """alpha ||x||_1, given only by value and prox."""

    def __init__(self, alpha):
        self.alpha = alpha

    def value(self, x):
        return self.alpha * np.abs(x).sum()

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - self.alpha * step, 0)


class MySeparableL1(MyL1):
    separable = True


class MyKnownL1(MySeparableL1):
    def conjugate(self, y):
        return 0.0 if np.abs(y).max() <= self.alpha * (1 + 1e-12) else np.inf


class MySquared:
    def __init__(self, b):
        self.b = b

    def value(self, u):
        return 0.5 * np.sum((u - self.b) ** 2)

    def prox(self, v, step):
        return (v + step * self.b) / (1 + step)


PROX = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double, ctypes.c_void_p)
VALUE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)


@PROX
def l1_prox(v, step, data):
    alpha = ctypes.cast(data, ctypes.POINTER(ctypes.c_double))[0]
    return max(v - alpha * step, 0.0) + min(v + alpha * step, 0.0)


@VALUE
def l1_value(x, data):
    return ctypes.cast(data, ctypes.POINTER(ctypes.c_double))[0] * abs(x)


class CompiledL1:
    """The same function as compiled code, given by two addresses."""

    def __init__(self, alpha):
        data = ctypes.cast(ctypes.pointer(ctypes.c_double(alpha)), ctypes.c_void_p)
        self.prox = LowLevelCallable(l1_prox, data)
        self.value = LowLevelCallable(l1_value, data)


class CompiledHuber:
    """A loss given by a compiled prox and value that take no data: the Huber loss with delta = 1 and b = 0."""

    @staticmethod
    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    def raw_prox(v, step):
        return v / (1 + step) if abs(v) <= 1 + step else v - step * (1 if v > 0 else -1)

    @staticmethod
    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    def raw_value(u):
        return 0.5 * u * u if abs(u) <= 1 else abs(u) - 0.5

    def __init__(self):
        self.prox, self.value = LowLevelCallable(self.raw_prox), LowLevelCallable(self.raw_value)


@pytest.fixture
def data(rng):
    return rng.standard_normal((12, 8)), rng.standard_normal(12)


@pytest.mark.parametrize("make", [MyL1, MySeparableL1, MyKnownL1, CompiledL1])
def test_user_penalty(make, data, backend):
    A, b = data
    problem = sb.Problem(make(0.8), A, sb.Squared(b))
    if backend == "native" and make is not CompiledL1:
        with pytest.raises(ValueError, match="penalty is not one that the kernels know"):
            sb.solve(problem, backend=backend)
        return
    result = sb.solve(problem, tol=1e-7, max_passes=20_000, backend=backend)
    exact = sb.solve(sb.Problem(sb.L1(0.8), A, sb.Squared(b)), tol=1e-10)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(exact.certificate.primal_value, rel=1e-6)
    assert result.settings["n_blocks"] == (1 if make is MyL1 else 8)


def test_a_conjugate_gives_a_feasible_dual_point(data):
    A, b = data
    result = sb.solve(sb.Problem(MyKnownL1(0.8), A, sb.Squared(b)), tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.dual_infeasibility == 0
    assert np.abs(A.T @ result.y).max() <= 0.8 * (1 + 1e-9)


def test_user_loss(data):
    A, b = data
    result = sb.solve(sb.Problem(sb.L1(0.8), A, MySquared(b)), tol=1e-6, max_passes=20_000)
    exact = sb.solve(sb.Problem(sb.L1(0.8), A, sb.Squared(b)), tol=1e-10)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(exact.certificate.primal_value, rel=1e-5)


def test_compiled_loss(data, backend):
    A, _ = data
    result = sb.solve(
        sb.Problem(sb.L1(0.1) + sb.Linear(0.05 * np.ones(8)), A, CompiledHuber()),
        tol=1e-6,
        max_passes=20_000,
        backend=backend,
    )
    exact = sb.solve(sb.Problem(sb.L1(0.1) + sb.Linear(0.05 * np.ones(8)), A, sb.Huber(np.zeros(12), 1.0)), tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(exact.certificate.primal_value, abs=1e-6)


def test_user_function_among_blocks_and_with_a_linear_term(data):
    A, b = data
    c = np.linspace(-0.3, 0.3, 8)
    own = sb.solve(
        sb.Problem([MyL1(0.8) + sb.Linear(c), sb.Zero()], [A, np.ones(12)], sb.Squared(b)), max_passes=20_000
    )
    exact = sb.solve(sb.Problem([sb.L1(0.8) + sb.Linear(c), sb.Zero()], [A, np.ones(12)], sb.Squared(b)), tol=1e-9)
    assert own.status is sb.Status.OPTIMAL
    assert own.certificate.primal_value == pytest.approx(exact.certificate.primal_value, rel=1e-5)


def test_compiled_and_python_iterates_agree(data):
    A, b = data
    ours, theirs = (
        sb.solve(sb.Problem(make(0.8), A, sb.Squared(b)), max_passes=40, tol=0, backend="numpy", blocks_per_iteration=2)
        for make in (CompiledL1, MySeparableL1)
    )
    assert np.allclose(ours.x, theirs.x, atol=1e-12)


def test_prox_of_the_wrong_shape_is_named(data):
    A, b = data

    class Bad(MyL1):
        def prox(self, v, step):
            return v[:-1]

    with pytest.raises(ValueError, match="returned shape"):
        sb.solve(sb.Problem(Bad(1.0), A, sb.Squared(b)))


def test_compiled_signature_is_checked():
    wrong = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x)

    class Bad(MyL1):
        prox = LowLevelCallable(wrong)

    with pytest.raises(ValueError, match="double \\(double, double"):
        sb.Problem(Bad(1.0), np.eye(2), sb.Squared(np.ones(2)))


class MyLinear:
    """<d, u> with its exact conjugate, whose domain is the single point d and does not contain 0."""

    def __init__(self, d):
        self.d = d

    def value(self, u):
        return float(self.d @ u)

    def prox(self, v, step):
        return v - step * self.d

    def conjugate(self, y):
        return 0.0 if np.allclose(y, self.d) else np.inf


def test_a_dual_domain_without_zero_is_not_scaled(data):
    """The problem is unbounded, so that no bound may be certified."""
    A, b = data
    result = sb.solve(sb.Problem(sb.L1(0.1), A, MyLinear(b)), max_passes=200)
    assert result.status is not sb.Status.OPTIMAL


@pytest.mark.parametrize(("c", "zero"), [(-1.0, True), (-0.5, False), (-2.0, False)])
def test_a_linear_term_moves_a_dual_domain_without_zero(c, zero):
    """<d, x> + <c, x> has the conjugate 0 at d + c, and infinity elsewhere."""
    problem = sb.Problem(sb.Linear(c) + MyLinear(np.ones(3)), np.eye(3), sb.Squared(np.ones(3)))
    assert problem.model.f_star.domain.has_zero() is zero


class MyAbsolute:
    def __init__(self, b):
        self.b = b

    def value(self, u):
        return np.abs(u - self.b).sum()

    def prox(self, v, step):
        r = v - self.b
        return self.b + np.sign(r) * np.maximum(np.abs(r) - step, 0)


@pytest.mark.parametrize("penalty", [sb.GroupL2(0.5, 2), sb.NonNegative(), sb.L1(0.5)])
@pytest.mark.parametrize("make", [MyAbsolute, MySquared])
def test_certify_reproduces_the_certificate_of_user_losses(penalty, make, data):
    A, b = data
    problem = sb.Problem(penalty, A, make(b))
    result = sb.solve(problem, tol=1e-5, max_passes=5000)
    assert sb.certify(problem, result.x, result.y) == result.certificate


def test_a_prox_that_is_not_finite_is_named_as_the_cause(data):
    A, b = data

    class Bad(MyL1):
        def prox(self, v, step):
            return np.full_like(v, np.nan)

    with pytest.raises(sb.ProbeError, match=r"prox of Bad returned .*nan.*expected finite numbers"):
        sb.Problem(Bad(1.0), A, sb.Squared(b))


@pytest.mark.parametrize(("returned", "said"), [(lambda x: np.abs(x), "an array of shape"), (lambda x: None, "None")])
def test_a_value_that_is_not_a_number_is_named(returned, said):
    class NoSum:
        separable = True

        def value(self, x):
            return returned(x)

        def prox(self, v, step):
            return np.sign(v) * np.maximum(np.abs(v) - step, 0.0)

    with pytest.raises(sb.ProbeError, match=f"value of NoSum returned {said}.*expected one number"):
        sb.Problem(NoSum(), np.eye(3), sb.Squared(np.ones(3)))
