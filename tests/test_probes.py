"""User code cannot fool the certificate: what breaks an identity is an error, and what is right never is."""

from __future__ import annotations

import numpy as np
import pytest
from own_functions import CONJUGATE_MISTAKES, PROX_MISTAKES, WrongConjugate, WrongProx, losses, penalties
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleback as sb


@pytest.fixture
def data(rng):
    return rng.standard_normal((40, 20)), rng.standard_normal(40)


class OneNorm:
    separable = True

    def value(self, x):
        return np.abs(x).sum()

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step, 0)


class TwiceTheStep(OneNorm):
    def prox(self, v, step):
        return super().prox(v, 2 * step)


class NoStep(OneNorm):
    def prox(self, v, step):
        return super().prox(v, 1.0)


class NoConjugate(OneNorm):
    def conjugate(self, y):
        return 0.0


class InPlace(OneNorm):
    def prox(self, v, step):
        v *= 0.5
        return v


class NoConstraint:
    """A projection whose value forgets the constraint."""

    def value(self, x):
        return 0.0

    def prox(self, v, step):
        return np.clip(v, -1.0, 1.0)


class NotTheProjection:
    """Onto the simplex, but not to its nearest point."""

    def value(self, x):
        return 0.0 if abs(x.sum() - 1) < 1e-9 and x.min() > -1e-9 else np.inf

    def prox(self, v, step):
        positive = np.maximum(v, 1e-3)
        return positive / positive.sum()


class NotConvex:
    def value(self, x):
        return np.sqrt(np.abs(x)).sum()

    def prox(self, v, step):
        return np.where(np.abs(v) > step, v, 0.0)


WRONG = [TwiceTheStep, NoStep, NoConjugate, InPlace, NoConstraint, NotTheProjection, NotConvex]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_wrong_functions_are_errors_that_name_the_identity(wrong, data):
    A, b = data
    with pytest.raises(sb.ProbeError, match=f"of {wrong.__name__} (do not belong together|changed the v)"):
        sb.Problem(wrong(), A, sb.Squared(b))


@pytest.mark.parametrize("rmatvec", [lambda A, y: 0.5 * A.T @ y, lambda A, y: (A.T @ y)[::-1], lambda A, y: -A.T @ y,
                                     lambda A, y: np.zeros(A.shape[1]), lambda A, y: np.roll(A.T @ y, 1)])  # fmt: skip
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_wrong_adjoints_are_errors(rmatvec, loss, data):
    A, b = data
    operator = LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: rmatvec(A, y), dtype=float)
    with pytest.raises(sb.ProbeError, match="rmatvec of A is not the adjoint of matvec: <A x, y> = "):
        sb.solve(sb.Problem(sb.L1(0.1), operator, loss(b)))


def test_one_wrong_entry_of_an_adjoint_is_found(data):
    A, b = data
    other = A.copy()
    other[17, 3] += 1e-3
    operator = LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: other.T @ y, dtype=float)
    with pytest.raises(sb.ProbeError, match="not the adjoint"):
        sb.solve(sb.Problem(sb.L1(0.1), operator, sb.Squared(b)))


@pytest.mark.parametrize("matvec", [lambda A, x: A @ x + 1, lambda A, x: A @ np.abs(x), lambda A, x: A @ x**2])
def test_operators_that_are_not_linear_are_errors(matvec, data):
    A, b = data
    operator = LinearOperator(A.shape, matvec=lambda x: matvec(A, x), rmatvec=lambda y: A.T @ y, dtype=float)
    with pytest.raises(sb.ProbeError, match="not the adjoint"):
        sb.solve(sb.Problem(sb.L1(0.1), operator, sb.Squared(b)))


def test_an_operator_that_changes_its_input_is_an_error(data):
    A, b = data

    def matvec(x):
        u = A @ x
        x[:] = 0
        return u

    operator = LinearOperator(A.shape, matvec=matvec, rmatvec=lambda y: A.T @ y, dtype=float)
    with pytest.raises(sb.ProbeError, match="changed the vector"):
        sb.solve(sb.Problem(sb.L1(0.1), operator, sb.Squared(b)))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_right_operators_pass(scale, dtype, data):
    A, b = data
    operator = aslinearoperator((scale * A).astype(dtype))
    result = sb.solve(sb.Problem(sb.L1(0.1 * scale), operator, sb.Squared(b)), tol=1e-4, max_passes=500)
    assert scale != 1 or result.status is sb.Status.OPTIMAL


def mutants(seed, count):
    """Yield problems in which one function is a mutant, each with the right problem."""
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        m, n = (int(size) for size in rng.integers(4, 25, 2))
        A = rng.standard_normal((m, n))
        f, g = (every[rng.integers(len(every))] for every in (penalties(rng, n), losses(rng, m)))
        of_penalty = rng.random() < 0.5
        (term, separable), size = (f, n) if of_penalty else (g, m)
        make, mistakes = ((WrongProx, PROX_MISTAKES), (WrongConjugate, CONJUGATE_MISTAKES))[int(rng.integers(2))]
        wrong = make(rng, rng.choice(mistakes), term, size, separable=separable and rng.random() < 0.6)
        yield (wrong, A, g[0]) if of_penalty else (f[0], A, wrong), (f[0], A, g[0])


def check_mutants(seed, count):
    """Return how many mutants were refused, after making sure that no other ends in a false answer."""
    refused = 0
    for given, right in mutants(seed, count):
        try:
            result = sb.solve(sb.Problem(*given), tol=1e-6, max_passes=1000)
        except sb.ProbeError:
            refused += 1
            continue
        exact = sb.solve(sb.Problem(*right), tol=1e-9, max_passes=20_000)
        if exact.status is not sb.Status.OPTIMAL:
            assert result.status is not sb.Status.OPTIMAL, given
            continue
        optimum, found = exact.certificate.primal_value, result.certificate
        room = 1e-5 * max(abs(optimum), abs(found.dual_value), 1e-3)
        if result.status is sb.Status.OPTIMAL:
            assert abs(found.primal_value - optimum) <= room, given
        if result.status is sb.Status.OPTIMAL or found.dual_infeasibility == found.primal_infeasibility == 0:
            assert found.dual_value <= optimum + room, given
    return refused


def test_mutants_never_end_in_a_false_answer():
    assert check_mutants(1, 30) >= 15  # some mistakes, such as the sign of an even conjugate, are none


@pytest.mark.slow
def test_many_mutants_never_end_in_a_false_answer():
    assert check_mutants(2, 400) >= 200


def test_a_conjugate_that_is_wrong_where_random_points_do_not_see_it_is_found_at_the_end(data):
    """It is right for subgradients of moderate size, and wrong at those that the problem needs."""
    A, b = data

    class Late(OneNorm):
        calls = 0

        def conjugate(self, y):
            self.calls += 1
            return 0.0 if self.calls > 500 or np.abs(y).max() <= 1 + 1e-12 else np.inf

    problem = sb.Problem(own := Late(), A, sb.Squared(b))
    own.calls = 1000
    with pytest.raises(sb.ProbeError, match="conjugate and value of Late"):
        sb.solve(problem)
