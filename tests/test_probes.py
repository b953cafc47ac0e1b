"""Probes of user code: a violated identity is an error, and correct code never is."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import FUNCTIONS, SIZE
from own_functions import (
    CONJUGATE_MISTAKES,
    PROX_MISTAKES,
    Own,
    WrongConjugate,
    WrongProx,
    losses,
    penalties,
    wrong_adjoints,
)
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleback as sb
from saddleback.certificates import probes as probing
from saddleback.functions import as_term
from saddleback.functions.probes import probe, probe_at


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


class NoConstraint:
    """A projection whose value ignores the constraint."""

    def value(self, x):
        return 0.0

    def prox(self, v, step):
        return np.clip(v, -1.0, 1.0)


class NotTheProjection:
    """A map onto the simplex, but not to the nearest point."""

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


WRONG = [TwiceTheStep, NoStep, NoConjugate, NoConstraint, NotTheProjection, NotConvex]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_wrong_functions_are_errors_that_name_the_identity(wrong, data):
    A, b = data
    with pytest.raises(sb.ProbeError, match=f"of {wrong.__name__} do not belong together"):
        sb.Problem(wrong(), A, sb.Squared(b))


@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
@pytest.mark.parametrize("shape", [(40, 20), (12, 12), (5, 30), (3, 1)])
def test_wrong_adjoints_are_errors(shape, loss, rng):
    A, b = rng.standard_normal(shape), rng.standard_normal(shape[0])
    for name, adjoint in wrong_adjoints(rng, A).items():
        operator = LinearOperator(shape, matvec=lambda x: A @ x, rmatvec=adjoint, dtype=float)
        with pytest.raises(sb.ProbeError, match="rmatvec of A is not the adjoint of matvec: <A x, y> = "):
            print(name, sb.solve(sb.Problem(sb.L1(0.1), operator, loss(b))))


@pytest.mark.parametrize("matvec", [lambda A, x: A @ x + 1, lambda A, x: A @ np.abs(x), lambda A, x: A @ x**2])
def test_operators_that_are_not_linear_are_errors(matvec, data):
    A, b = data
    operator = LinearOperator(A.shape, matvec=lambda x: matvec(A, x), rmatvec=lambda y: A.T @ y, dtype=float)
    with pytest.raises(sb.ProbeError, match="not the adjoint"):
        sb.solve(sb.Problem(sb.L1(0.1), operator, sb.Squared(b)))


@pytest.mark.parametrize("rest", [1.0, 0.7])
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_operators_that_compute_in_float32_and_return_float64_are_accepted(loss, rest, rng):
    A, b = rng.standard_normal((300, 200)), rng.standard_normal(300)
    single = A.astype(np.float32)

    def made(factor):
        return LinearOperator(
            A.shape,
            matvec=lambda x: rest * (single @ x.astype(np.float32)).astype(float),
            rmatvec=lambda y: factor * rest * (single.T @ y.astype(np.float32)).astype(float),
            dtype=float,
        )

    result = sb.solve(sb.Problem(sb.L1(1.0), made(1.0), loss(b)), tol=1e-4)
    assert result.status is sb.Status.OPTIMAL
    exact = sb.solve(sb.Problem(sb.L1(1.0), rest * A, loss(b)), tol=1e-6)
    assert result.objective == pytest.approx(exact.objective, rel=2e-4)
    sb.check(made(1.0))
    for factor in (0.999, 1 - 1e-5):
        with pytest.raises(sb.ProbeError, match=r"not the adjoint.*use float32 or float64"):
            sb.solve(sb.Problem(sb.L1(1.0), made(factor), loss(b)), tol=1e-4)


def test_operators_in_float64_are_still_tested_to_ten_digits(data):
    A, b = data
    operator = LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: (1 - 1e-8) * (A.T @ y), dtype=float)
    with pytest.raises(sb.ProbeError, match="not the adjoint"):
        sb.solve(sb.Problem(sb.L1(0.1), operator, sb.Squared(b)))


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_data_of_an_operator_may_change_between_solves(outputs, rng):
    A, b = rng.standard_normal((30, 20)), rng.standard_normal((30, outputs))
    operator = LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: A.T @ y, dtype=float)
    problem = sb.Problem([sb.L1(0.1), sb.L1(0.2)], [operator, rng.standard_normal((30, 3))], sb.Squared(b))
    sb.solve(problem)
    A *= 2
    result = sb.solve(problem)
    assert result.status is sb.Status.OPTIMAL
    A *= 0.5
    assert sb.certify(problem, result.x, result.y).error > 1e-3


def test_certify_tests_a_loss_at_the_dual_point_of_its_bound(rng, monkeypatch):
    """That point is y after it was scaled once."""

    class Loss:
        separable = True

        def value(self, u):
            return 0.5 * float((u - 1) @ (u - 1))

        def prox(self, v, step):
            return (v + step) / (1 + step)

        def conjugate(self, y):
            return 0.5 * float(y @ y) + float(np.sum(y))

    tested = []
    monkeypatch.setattr(probing, "probe_at", lambda f, x, y, rows: tested.append(y.copy()))
    A, y = rng.standard_normal((20, 10)), -rng.uniform(0.5, 1.5, 20)
    sb.certify(sb.Problem(sb.L1(1.0), A, Loss()), np.zeros(10), y)
    scale = 1.0 / np.abs(A.T @ y).max()
    assert np.allclose(tested[-1], scale * y)


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
def test_correct_operators_pass(scale, dtype, data):
    A, b = data
    operator = aslinearoperator((scale * A).astype(dtype))
    result = sb.solve(sb.Problem(sb.L1(0.1 * scale), operator, sb.Squared(b)), tol=1e-4, max_passes=500)
    assert scale != 1 or result.status is sb.Status.OPTIMAL


def mutants(seed, count):
    """Yield problems in which one function has a mistake, each with the correct problem."""
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
    """Return the number of rejected mutants, and assert that no other mutant ends in a false result."""
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


def test_mutants_never_end_in_a_false_result():
    assert check_mutants(1, 20) >= 10  # some changes, such as the sign in an even conjugate, are no mistakes


@pytest.mark.slow
def test_many_mutants_never_end_in_a_false_result():
    assert check_mutants(2, 400) >= 200


def test_a_conjugate_that_passes_random_probes_is_detected_at_the_solution(data):
    """It is correct for subgradients of moderate size, and wrong for those at the solution."""
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


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_check_rejects_wrong_functions(wrong):
    with pytest.raises(sb.ProbeError, match=f"of {wrong.__name__} do not belong together"):
        sb.check(wrong(), 7)


def test_check_lists_its_tests(data):
    A, b = data
    report = sb.check(sb.Problem(OneNorm(), aslinearoperator(A), sb.Huber(b, 1.0)))
    assert {subject for subject, _ in report.tests} == {"penalty", "A", "loss"}
    assert all(tested.times > 0 and tested.worst < 1e-14 for tested in report.tests.values())
    for line in ("penalty: all identities hold", "adjoint: <A x, y> = <x, A'y>", "worst relative violation"):
        assert line in repr(report)


# the prox of MulticlassHinge loses digits at the longest steps, and its value is a difference of larger numbers
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("MulticlassHinge")])
def test_check_accepts_the_catalogue(name):
    report = sb.check(FUNCTIONS[name], SIZE)
    assert all(tested.worst < 1e-9 for tested in report.tests.values())


def test_check_names_the_identity_of_an_operator(data):
    A, _ = data
    shifted = LinearOperator(A.shape, matvec=lambda x: A @ x + 1, rmatvec=lambda y: A.T @ y, dtype=float)
    with pytest.raises(sb.ProbeError, match="A fails 'linear: matvec"):
        sb.check(shifted)
    random = LinearOperator(
        A.shape, matvec=lambda x: A @ x * np.random.default_rng().random(), rmatvec=lambda y: A.T @ y, dtype=float
    )
    with pytest.raises(sb.ProbeError, match="A fails 'repeated: two calls of matvec agree'"):
        sb.check(random)
    with pytest.raises(TypeError, match="shape is missing"):
        sb.check(OneNorm())


class NotSeparable:
    separable = True

    def value(self, x):
        return 0.5 * np.sum(x) ** 2

    def prox(self, v, step):
        step = np.broadcast_to(step, v.shape)
        return v - step * v.sum() / (1 + step.sum())


def test_separable_has_to_be_true(data):
    A, b = data
    with pytest.raises(sb.ProbeError, match="is not a sum over coordinates"):
        sb.Problem(NotSeparable(), A, sb.Squared(b))


def random_right(rng):
    """Return a catalogue term of any scale as a user-defined object, its bound function and its size."""
    n = int(rng.integers(1, 51))
    strength, unit = 10 ** rng.uniform(-8, 8, 2)
    b, weights, labels = unit * rng.standard_normal(n), rng.uniform(0, 2, n), rng.choice([-1.0, 1.0], n)
    sizes = np.diff([0, *np.sort(rng.integers(1, n + 1, 3)), n])
    sizes = [int(size) for size in sizes if size]
    terms = [
        (sb.Zero(), True),
        (sb.L1(strength, weights), True),
        (sb.SquaredL2(strength), True),
        (sb.ElasticNet(strength, rng.random()), True),
        (sb.GroupL2(strength, sizes), False),
        (sb.SparseGroup(strength, sizes, rng.random()), False),
        (sb.GroupL2(strength, sizes) + sb.NonNegative(), False),
        (sb.Nuclear(strength, (1, n)), False),
        (sb.Box(np.where(weights < 0.5, -np.inf, b), b + unit * weights), True),
        (sb.NonNegative(), True),
        (sb.Linear(b), True),
        (sb.Linear(b) + sb.Box(-strength, 2 * strength), True),
        (sb.Squared(b, weights, strength), True),
        (sb.Absolute(b, weights, strength), True),
        (sb.Pinball(b, rng.random(), weights, strength), True),
        (sb.Huber(b, unit * 10 ** rng.uniform(-3, 1), weights, strength), True),
        (sb.EpsilonInsensitive(b, unit * rng.random(), weights, strength), True),
        (sb.Hinge(labels, weights, strength), True),
        (sb.SquaredHinge(labels, weights, strength), True),
        (sb.Logistic(labels, weights, strength), True),
        (sb.Norm2(b, scale=strength), False),
        (sb.Equality(b), True),
        (sb.Interval(b - unit * weights, b + unit), True),
    ]
    term, separable = terms[rng.integers(len(terms))]
    own = Own(term, n, separable=separable and rng.random() < 0.6, conjugate=rng.random() < 0.5)
    return own, n


def check_right(seed, count):
    """Probe correct functions at random points, at their subgradients, and at arbitrary pairs of points."""
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        own, n = random_right(rng)
        function = as_term(own, "own").bind((n,))
        x_unit, z_unit = 10 ** rng.uniform(-8, 8, 2)
        x, z = x_unit * rng.standard_normal(n), z_unit * rng.standard_normal(n)
        if rng.random() < 0.7:
            v, step = x + x_unit / z_unit * z, x_unit / z_unit
            x = own.function.prox(v, step)
            z = (v - x) / step
        try:
            probe(function)
            probe_at(function, x, z, 100)
        except sb.ProbeError as error:
            raise AssertionError(f"{own!r}, seed {[seed, i]}") from error


def test_correct_functions_pass():
    check_right(3, 60)


@pytest.mark.slow
def test_many_correct_functions_pass():
    check_right(4, 10_000)


def test_float32_functions_pass(rng):
    for term in (sb.L1(0.5), sb.SquaredL2(3.0), sb.Huber(rng.standard_normal(20), 1.0), sb.NonNegative()):
        function = as_term(Own(term, 20, separable=True, conjugate=True, dtype=np.float32), "own").bind((20,))
        probe(function)
        x = rng.standard_normal(20)
        probe_at(function, x, rng.standard_normal(20), 10)
