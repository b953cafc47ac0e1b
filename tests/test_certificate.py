"""The certificate: weak duality at any pair of points, and feasibility of the dual point that it returns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE
from oracle import random_case
from scipy.optimize import linprog

import saddleback as sb


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["L1", "ElasticNet", "GroupL2", "SparseGroup", "Nuclear", "Box", "Zero"])
def test_weak_duality_at_random_points(penalty, loss, rng):
    """For any y, the dual value is below every feasible objective."""
    A = rng.standard_normal((SIZE, SIZE))
    problem = sb.Problem(PENALTIES[penalty], A, LOSSES[loss])
    model = problem.model
    best = sb.solve(problem, tol=1e-7, max_passes=20_000)
    if best.status is sb.Status.INFEASIBLE:
        pytest.skip("every dual value is a bound of an infeasible problem")
    for _ in range(10):
        x, y = rng.standard_normal(SIZE), rng.standard_normal(SIZE)
        shaped = x.reshape(2, 3) if penalty == "Nuclear" else x
        certificate = sb.certify(problem, shaped, problem.shape_y(y))
        if certificate.dual_infeasibility > 0:
            continue
        other = model.f.domain.project(0.1 * rng.standard_normal(SIZE))
        if loss in ("Equality", "Interval", "Interval mixed"):
            other = best.x.ravel()  # unlike a random point, this one is feasible up to the tolerance
        bound = model.f.finite_value(other) + model.g.finite_value(A @ other)
        assert certificate.dual_value <= bound + 1e-5 * (1 + abs(bound))


def test_definitions(rng):
    """P, the gap and the relative gap, computed by hand."""
    A, b, lam = rng.standard_normal((5, 4)), rng.standard_normal(5), 0.4
    problem = sb.Problem(sb.L1(lam), A, sb.Squared(b))
    x, y = rng.standard_normal(4), A @ np.zeros(4) - b
    certificate = sb.certify(problem, x, y)
    P = 0.5 * np.sum((A @ x - b) ** 2) + lam * np.abs(x).sum()
    limit = min(1.0, lam / np.abs(A.T @ y).max())
    t = min(1.0, limit)  # the best multiple of -b is -b itself
    D = -0.5 * t**2 * (y @ y) - t * (b @ y)
    assert certificate.primal_value == pytest.approx(P)
    assert certificate.dual_value == pytest.approx(D)
    assert certificate.gap == pytest.approx(P - D)
    assert certificate.relative_gap == pytest.approx((P - D) / max(P, D))


@pytest.mark.parametrize("penalty", [sb.L1(0.5) + sb.Linear(1.0), sb.Box(-1, 1) + sb.Linear(1.0), sb.NonNegative()])
@pytest.mark.parametrize("b", [-2.0, -0.2, 0.2, 0.5, 3.0])
def test_no_dual_value_exceeds_the_optimum(penalty, b):
    """This holds on a grid of dual points, after the repair that makes them feasible."""
    problem = sb.Problem(penalty, [[1.0]], sb.Squared([b]))
    grid = np.linspace(-4, 4, 4001)
    optimum = min(penalty.value([x]) + 0.5 * (x - b) ** 2 for x in grid)
    for y in np.linspace(-4, 4, 81):
        certificate = sb.certify(problem, [0.0], [y])
        if certificate.dual_infeasibility == 0:
            assert certificate.dual_value <= optimum + 1e-9


def test_infeasibilities(rng):
    """The largest violations of rows and columns, relative to their own terms, for points of a linear program."""
    A, b, c = rng.standard_normal((3, 5)), rng.standard_normal(3), -9 - rng.random(5)
    problem = sb.Problem(sb.Linear(c) + sb.NonNegative(), A, sb.Equality(b))
    x, y = np.abs(rng.standard_normal(5)), rng.standard_normal(3)  # no y near this one is feasible
    certificate = sb.certify(problem, x, y)
    rows, columns = np.abs(b) + np.abs(A) @ x, np.abs(c) + np.abs(A).T @ np.abs(y)
    missed = np.maximum(-(c + A.T @ y), 0)
    assert certificate.primal_value == pytest.approx(c @ x)
    assert certificate.primal_infeasibility == pytest.approx(np.max(np.abs(A @ x - b) / rows))
    assert certificate.dual_infeasibility == pytest.approx(np.max(missed / columns))
    assert certificate.dual_value == pytest.approx(-b @ y)
    assert not certificate.proved
    assert not certificate.attained


@pytest.mark.parametrize("loss", ["Squared", "Absolute", "Pinball", "Huber", "Hinge", "Logistic", "EpsilonInsensitive"])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_unpenalised_columns_are_projected(loss, columns, rng):
    """At a solution the dual point satisfies A_0'y = 0 up to rounding, and is in the domain of g*."""
    A, A0 = rng.standard_normal((30, 5)), np.column_stack([np.ones(30), rng.standard_normal((30, columns - 1))])
    b = np.where(rng.standard_normal(30) > 0, 1.0, -1.0)
    make = {"Pinball": lambda b: sb.Pinball(b, 0.3), "EpsilonInsensitive": lambda b: sb.EpsilonInsensitive(b, 0.3)}
    g = make.get(loss, getattr(sb, loss))(b)
    problem = sb.Problem([sb.L1(0.5), sb.Zero()], [A, A0], g)
    result = sb.solve(problem, tol=1e-7, max_passes=1e5)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.dual_infeasibility == 0
    assert np.all(np.abs(A0.T @ result.y) <= 1e-11 * (np.abs(A0).T @ np.abs(result.y)))
    assert problem.model.g_star.value(result.y) < np.inf


def test_float32_points_are_certified_in_float64(rng):
    A, b = rng.standard_normal((5, 4)).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    x, y = rng.standard_normal(4).astype(np.float32), rng.standard_normal(5).astype(np.float32)
    single = sb.certify(sb.Problem(sb.L1(0.4), A, sb.Squared(b)), x, y)
    double = sb.certify(sb.Problem(sb.L1(0.4), A.astype(float), sb.Squared(b)), x, y)
    assert single.primal_value == pytest.approx(double.primal_value, rel=1e-14)
    assert single.dual_value == pytest.approx(double.dual_value, rel=1e-13)


def test_certify_accepts_points_of_another_library():
    """The certificate of CVXPY's point agrees with the accuracy that CVXPY reports."""
    case = random_case("GroupL2", "Squared", 3)
    optimum = case.optimum()
    x = case.oracle.variables()
    result = sb.solve(case.problem, tol=1e-9)
    theirs = [v.value for v in x] if case.problem.is_list else x[0].value
    certificate = sb.certify(case.problem, theirs, result.y)
    assert certificate.relative_gap <= 1e-6
    assert certificate.primal_value == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("box too small", lambda A: sb.Problem(sb.Box(0, 0.1), A, sb.Equality(np.full(4, 10.0)))),
        ("contradicting rows", lambda A: sb.Problem(sb.L1(1.0), np.vstack([A, A[:1]]), sb.Equality([1, 1, 1, 1, 5.0]))),
        ("signs", lambda A: sb.Problem(sb.NonNegative(), -np.abs(A), sb.Interval(1.0, np.inf))),
        ("empty row", lambda A: sb.Problem(sb.L1(1.0), A * [[1], [0], [1], [1]], sb.Equality(np.ones(4)))),
        (
            "with an intercept",
            lambda A: sb.Problem([sb.Box(0, 0.1), sb.Zero()], [A, np.ones(4)], sb.Equality([10.0, -10, 10, -10])),
        ),
    ],
)
def test_infeasible(name, problem, rng):
    result = sb.solve(problem(rng.standard_normal((4, 6))), max_passes=100_000)
    assert result.status is sb.Status.INFEASIBLE, name
    assert "dual direction" in result.message


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("free direction", lambda A: sb.Problem(sb.Linear(np.ones(6)), A, sb.Absolute(np.ones(4)))),
        ("squared loss", lambda A: sb.Problem(sb.Linear(np.ones(6)), A, sb.Squared(np.ones(4)))),
        ("signs", lambda A: sb.Problem(sb.Linear(-np.ones(6)) + sb.NonNegative(), np.abs(A), sb.Interval(0, np.inf))),
        ("weak l1", lambda A: sb.Problem(sb.Linear(2 * np.ones(6)) + sb.L1(1.0), A, sb.Interval(-1, 1))),
        ("empty column", lambda A: sb.Problem(sb.Linear(np.ones(6)), A * [1, 1, 0, 1, 1, 1], sb.Hinge(np.ones(4)))),
    ],
)
def test_unbounded(name, problem, rng):
    result = sb.solve(problem(rng.standard_normal((4, 6))), max_passes=100_000)
    assert result.status is sb.Status.UNBOUNDED, name
    assert "primal direction" in result.message


def test_empty_rows_do_not_put_a_floor_under_the_gap(rng):
    """The dual variable of a row of zeros is a subgradient of the loss at 0."""
    A = rng.standard_normal((12, 5))
    A[3:6] = 0.0
    for loss in (
        sb.Hinge(np.ones(12)),
        sb.Pinball(np.linspace(-1, 1, 12), 0.2),
        sb.Logistic(np.ones(12)),
        sb.Squared(np.linspace(-1, 1, 12)),
    ):
        result = sb.solve(sb.Problem(sb.L1(0.5), A, loss), tol=1e-9, max_passes=1e5)
        assert result.status is sb.Status.OPTIMAL


def test_empty_columns_take_the_minimiser_of_their_penalty(rng):
    A = rng.standard_normal((8, 4))
    A[:, 1] = 0.0
    problem = sb.Problem(sb.L1(0.5) + sb.Box([-1, 0.7, -1, -1], np.inf), A, sb.Squared(rng.standard_normal(8)))
    result = sb.solve(problem, tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert result.x[1] == 0.7


def test_a_linear_term_may_leave_a_nuclear_norm_without_a_bound(rng):
    """With ||C|| > alpha, f*(0) is not 0, and no y may be scaled towards 0. The first optimum is -12.8."""
    C, alpha = np.random.default_rng(0).standard_normal((8, 6)), 0.5
    left, values, right = np.linalg.svd(-C, full_matrices=False)
    X = left * np.maximum(values - alpha, 0.0) @ right
    problem = sb.Problem([sb.Nuclear(alpha, C.shape) + sb.Linear(C)], [sb.Identity()], sb.Squared(0 * C))
    best = -0.5 * float(np.sum(X * X))
    assert sb.certify(problem, [0 * C], X).dual_value == pytest.approx(best)
    assert sb.certify(problem, [X], X).relative_gap < 1e-12
    assert sb.solve(problem, y0=X).objective == pytest.approx(best)
    B = np.abs(C)
    for loss in (sb.Interval(B, np.inf), sb.Squared(B)):
        unbounded = sb.Problem([sb.Nuclear(0.1, C.shape) + sb.Linear(5 * B), sb.L1(1.0)], [sb.Identity()] * 2, loss)
        assert sb.solve(unbounded, max_passes=1000).status is sb.Status.UNBOUNDED


@pytest.mark.parametrize("matrices", ["dense", "identities"])
@pytest.mark.parametrize("sign", [sb.NonNegative(), sb.Zero()])
def test_no_multiple_of_y_proves_a_bound_next_to_a_linear_term(sign, matrices, rng):
    """With c < 0 the first block excludes y = 0, so that no y may be scaled for the second block."""
    blocks = [sb.Identity(3)] * 2 if matrices == "identities" else [np.eye(3), np.eye(3)]
    unbounded = sb.Problem([sign + sb.Linear(-1.0), sb.GroupL2(0.1, 3)], blocks, sb.Absolute(np.zeros(3), scale=2.0))
    point = [np.zeros(3), np.zeros(3)]
    for y in (np.ones(3), rng.uniform(1, 2, 3)):
        assert sb.certify(unbounded, point, y).dual_infeasibility > 0.1
    assert sb.solve(unbounded, max_passes=1000).status is sb.Status.UNBOUNDED
    solvable = sb.Problem([sign + sb.Linear(-1.0), sb.GroupL2(2.0, 3)], blocks, sb.Absolute(np.zeros(3), scale=2.0))
    assert sb.solve(solvable, tol=1e-9).objective == 0


def test_a_linear_term_beside_another_block_against_highs():
    """Half of these problems are unbounded. A group of one column is an L1 norm, so that HiGHS can solve them all."""
    answers = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows, *columns = rng.integers(1, 5, 3).tolist()
        A, B = (rng.standard_normal((rows, n)) for n in columns)
        c, w, scale = rng.standard_normal(A.shape[1]), rng.choice([0.1, 0.5, 2.0]), rng.choice([0.5, 1.0, 3.0])
        b, lower = rng.standard_normal(rows), rng.choice([0.0, -np.inf])
        u, one = np.hstack([A, B, -B]), np.eye(rows)
        program = linprog(
            np.concatenate([c, np.full(2 * B.shape[1], w), np.full(rows, scale)]),
            A_ub=np.block([[u, -one], [-u, -one]]),
            b_ub=np.concatenate([b, -b]),
            bounds=[(lower, None)] * A.shape[1] + [(0, None)] * (2 * B.shape[1] + rows),
        )
        terms = [sb.Linear(c) + sb.Box(lower, np.inf), sb.GroupL2(w, 1)]
        problem = sb.Problem(terms, [A, B], sb.Absolute(b, scale=scale))
        result = sb.solve(problem, tol=1e-6, max_passes=2000, method="sp-bcd")
        answers[program.status, result.status] += 1
        optimum = program.fun if program.status == 0 else -np.inf
        for y in (result.y, *(result.y + 0.1 * rng.standard_normal((5, rows)))):
            certificate = sb.certify(problem, result.x, y)
            assert certificate.dual_infeasibility > 0 or certificate.dual_value <= optimum + 1e-9
    assert answers[0, sb.Status.UNBOUNDED] == answers[3, sb.Status.OPTIMAL] == 0
    assert min(answers[0, sb.Status.OPTIMAL], answers[3, sb.Status.UNBOUNDED]) >= 10


JUDGED = {
    "hinge": lambda b: sb.Hinge(np.where(b > 0, 1.0, -1.0)),
    "absolute": sb.Absolute,
    "quantile": lambda b: sb.Pinball(b, 0.3),
    "squared": sb.Squared,
    "logistic": lambda b: sb.Logistic(np.where(b > 0, 1.0, -1.0)),
}


@pytest.mark.parametrize("loss", JUDGED)
def test_certify_finds_a_dual_point(loss, rng):
    """Without y, the gap of x is its distance from the optimum, at a solution (up to 1e-6) and at a distant point."""
    A, b = rng.standard_normal((60, 15)), rng.standard_normal(60)
    problem = sb.Problem(sb.L1(1.5), A, JUDGED[loss](b))
    exact = sb.solve(problem, tol=1e-10)
    near = exact.x + 1e-7 * rng.standard_normal(15)
    assert sb.certify(problem, near).error <= 2e-6
    far = exact.x + 0.1 * rng.standard_normal(15)
    certificate = sb.certify(problem, far)
    assert certificate.primal_value == pytest.approx(problem.value(far), rel=1e-14)
    assert certificate.gap == pytest.approx(problem.value(far) - exact.objective, rel=1e-4)


def test_certify_finds_the_dual_point_of_a_linear_program(rng):
    c, G = rng.uniform(0.1, 1.0, 12), rng.uniform(0.0, 1.0, (20, 12))
    found = linprog(c, A_ub=-G, b_ub=-np.ones(20), bounds=(0, None))
    problem = sb.Problem(sb.Linear(c) + sb.NonNegative(), G, sb.Interval(np.ones(20), np.full(20, np.inf)))
    assert sb.certify(problem, found.x).error <= 1e-6
    assert problem.value(found.x) == pytest.approx(found.fun)
    assert problem.value(0.9 * found.x) == np.inf


def test_value_allows_for_the_rounding_of_a_product(rng):
    A = rng.standard_normal((5, 9))
    x = 1e6 * rng.standard_normal(9)
    x -= A.T @ np.linalg.solve(A @ A.T, A @ x)
    assert np.abs(A @ x).max() > 1e-11
    problem = sb.Problem(sb.SquaredL2(1.0), A, sb.Equality(np.zeros(5)))
    assert problem.value(x) == pytest.approx(0.5 * x @ x)
    assert problem.value(x + 1e-3) == np.inf


def test_value_of_blocks_and_matrices(rng):
    B = rng.standard_normal((4, 3))
    problem = sb.Problem([sb.L1(0.5), sb.Nuclear(2.0, B.shape)], [sb.Identity()] * 2, sb.Squared(B))
    sparse, low_rank = rng.standard_normal((2, 4, 3))
    expected = 0.5 * np.sum((sparse + low_rank - B) ** 2) + 0.5 * np.abs(sparse).sum()
    expected += 2.0 * np.linalg.svd(low_rank, compute_uv=False).sum()
    assert problem.value([sparse, low_rank]) == pytest.approx(expected)


def test_a_block_of_one_entry_may_be_a_number(rng):
    A, b = rng.standard_normal((20, 3)), rng.standard_normal(20)
    problem = sb.Problem([sb.L1(1.0), sb.Zero()], [A, np.ones(20)], sb.Squared(b))
    coefficients, intercept = sb.solve(problem).x
    number, array = [coefficients, float(intercept[0])], [coefficients, intercept]
    assert problem.value(number) == problem.value(array)
    assert sb.certify(problem, number) == sb.certify(problem, array)
    starts = [sb.solve(problem, "pdhg", x0=x, max_passes=5).x for x in (number, array)]
    assert all(np.array_equal(*blocks) for blocks in zip(*starts, strict=True))
    alone = sb.Problem(sb.L1(1.0), np.ones(20), sb.Squared(b))
    assert alone.value(0.5) == alone.value([0.5])
    with pytest.raises(ValueError, match=r"x\[0\] has shape \(\): expected \(3,\)"):
        problem.value([0.0, 0.0])


@pytest.mark.parametrize("seed", [69, 108])
def test_the_returned_y_is_the_point_behind_the_dual_value(seed):
    """A free column allows only y = 0. y is moved there, and the moved point has to be returned."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 4)), int(rng.integers(2, 8))
    A, weights = rng.standard_normal((rows, columns)), np.ones(columns)
    weights[0] = 0.0
    b = A @ rng.standard_normal(columns) * 10.0 ** rng.integers(-8, 3)
    problem = sb.Problem(sb.L1(10.0 ** rng.integers(-3, 8), weights=weights), A, sb.Equality(b))
    result = sb.solve(problem, tol=1e-3, max_passes=200)
    assert result.certificate.dual_infeasibility == 0
    assert np.abs(A[:, 0] @ result.y) < 1e-12 * np.abs(A).max()
    assert sb.certify(problem, result.x, result.y) == result.certificate


@pytest.mark.parametrize("term", [sb.TotalVariation1D(1.0), sb.Isotonic()], ids=["variation", "isotonic"])
@pytest.mark.parametrize("columns", [[0, 2], [2, 0], [0, 1], [1, 0]])
def test_the_slopes_of_scattered_columns_have_the_sum_that_their_penalty_needs(term, columns):
    """The optimum is at most 0.5: a y whose slopes do not add to 0 over the columns of the term proves nothing."""
    rest = [j for j in range(4) if j not in columns]
    problem = sb.Problem(sb.ByColumns([(term, columns), (sb.L1(1.0), rest)]), np.eye(4), sb.Squared(np.full(4, 10.0)))
    optimum = sb.solve(problem, tol=1e-10)
    assert optimum.certificate.proved
    for j in range(4):
        y = np.zeros(4)
        y[j] = -10.0
        certificate = sb.certify(problem, np.zeros(4), y)
        assert certificate.dual_value <= optimum.objective + 1e-9


def test_slopes_whose_sum_is_not_0_are_not_scaled(rng):
    """0.1, 0.2, 0.3 and -0.6 add to less than 2^-54, and no multiple of a slope with this sum has it."""
    term = sb.TotalVariation1D(0.5) + sb.Linear([0.1, 0.2, 0.3, -0.6])
    problem = sb.Problem(term, rng.normal(size=(9, 4)), sb.Squared(np.ones(9)))
    result = sb.solve(problem, tol=1e-9)
    assert result.status is sb.Status.OPTIMAL
    assert not sb.certify(problem, result.x, 2.0 * result.y).proved


@pytest.mark.parametrize("tol", [1e-6, 1e-8])
@pytest.mark.parametrize(
    ("loss", "A", "attains"),
    [
        (sb.Squared, np.eye(40), True),
        (lambda b: sb.Logistic(np.where(b > 0, 1.0, -1.0)), np.eye(40), False),
        (sb.Absolute, np.cumsum(np.random.default_rng(7).normal(size=(40, 20)), axis=1), True),
    ],
    ids=["squared", "logistic", "absolute"],
)
def test_cumulated_slopes_reach_the_cone_of_an_isotonic_fit(loss, A, attains, tol):
    """An isotonic logistic fit has entries that go to infinity, and its optimum no point."""
    b = np.random.default_rng(0).standard_normal(40)
    result = sb.solve(sb.Problem(sb.Isotonic(), A, loss(b)), tol=tol)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.proved or not attains


def test_columns_of_rows_at_a_bound_are_balanced_if_their_products_are_exact():
    """The loss of the first two rows falls towards 0 along their own columns, which have no penalty."""
    z = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)
    free = sb.ByColumns([(sb.Zero(), [0, 1]), (sb.TotalVariation1D(1.0), list(range(2, 20)))])
    result = sb.solve(sb.Problem(free, np.eye(20), sb.Logistic(z)), tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.proved
