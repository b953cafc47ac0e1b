"""alpha_max: closed forms, the defining linear program, and CVXPY just below and just above it."""

from __future__ import annotations

import numpy as np
import pytest
from optional import optional
from scipy import sparse
from scipy.optimize import brentq, linprog

import saddleback as sb

cp = optional("cvxpy")

M, N = 30, 8
GROUPS = [[0, 3], [1, 2, 5], [4, 6, 7]]
WEIGHTS = np.linspace(0.5, 2.0, N)

as_accurate_as_can_be = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")


def data(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N))
    b = A[:, 0] - A[:, 1] + rng.standard_normal(M)
    return A, b, np.where(b > 0.4, 1.0, -1.0)


def losses(b, z):
    return {
        "Squared": sb.Squared(b),
        "Absolute": sb.Absolute(b, sample_weight=np.linspace(0, 2, M)),
        "Absolute, zero targets": sb.Absolute(np.where(np.arange(M) % 5, b, 0.0)),
        "Pinball": sb.Pinball(b, 0.3),
        "Pinball, integer targets": sb.Pinball(np.round(b), 0.3, scale=1 / M),
        "Huber": sb.Huber(b, 0.3),
        "EpsilonInsensitive": sb.EpsilonInsensitive(b, 0.2),
        "EpsilonInsensitive, integer targets": sb.EpsilonInsensitive(np.round(b), 0.5),
        "Hinge": sb.Hinge(z, scale=1 / M),
        "SquaredHinge": sb.SquaredHinge(z),
        "Logistic": sb.Logistic(z, sample_weight=np.linspace(0.5, 2, M)),
        "Norm2": sb.Norm2(b),
    }


PENALTIES = {
    "L1": sb.L1(7.0),
    "L1 weighted": sb.L1(7.0, WEIGHTS),
    "ElasticNet": sb.ElasticNet(1.0, 0.4),
    "GroupL2": sb.GroupL2(1.0, GROUPS, [1.0, 2.0, 0.5]),
    "SparseGroup": sb.SparseGroup(1.0, GROUPS, 0.3),
    "L1 + NonNegative": sb.L1(1.0) + sb.NonNegative(),
    "GroupL2 + NonNegative": sb.GroupL2(1.0, GROUPS) + sb.NonNegative(),
    "Nuclear": sb.Nuclear(1.0, (2, 4)),
}


QUICK = ("L1 weighted", "SparseGroup")


@as_accurate_as_can_be
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize(
    "penalty", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PENALTIES]
)
@pytest.mark.parametrize("loss", losses(*data()[1:]))
def test_x_is_zero_above_alpha_max_and_not_below(loss, penalty, intercept):
    """CVXPY: x = 0 is optimal just above alpha_max, and not optimal just below it."""
    A, b, z = data()
    g = losses(b, z)[loss]
    f = PENALTIES[penalty]
    alpha = sb.alpha_max(f, A, g, unpenalised=np.ones((M, 1)) if intercept else None)
    assert alpha > 0
    problem = sb.Problem([f, sb.Zero()], [A, np.ones(M)], g) if intercept else sb.Problem([f], [A], g)

    def optimum(value, at_zero=False):
        pytest.importorskip("cvxpy")
        program = problem.with_alpha(value).to_cvxpy()
        program = cp.Problem(program.objective, [*program.constraints, *[program.var_dict["x[0]"] == 0] * at_zero])
        return program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)

    at_zero = optimum(1.0, at_zero=True)
    assert optimum(1.001 * alpha) == pytest.approx(at_zero, rel=2e-8)
    assert optimum(0.97 * alpha) < at_zero * (1 - 1e-6)


def intervals(loss, u):
    """Return the subdifferential of a piecewise linear loss at u, by its definition."""
    name = type(loss).__name__
    w = loss.scale * (np.ones(M) if loss.sample_weight is None else loss.sample_weight)
    near, eps = 1e-9, getattr(loss, "epsilon", 0.0)
    if name == "Hinge":
        slack = 1 - loss.labels * u
        low = np.where(slack > near, -1.0, np.where(slack < -near, 0.0, -1.0))
        high = np.where(slack > near, -1.0, 0.0)
        ends = np.sort(np.stack([loss.labels * low, loss.labels * high]) * w, axis=0)
        return ends[0], ends[1]
    down, up = {"Absolute": (-1, 1), "EpsilonInsensitive": (-1, 1), "Pinball": (-0.3, 0.7)}[name]
    r = u - loss.b
    flat = 0.0 if eps else np.nan
    low = np.where(r > eps + near, up, np.where(r > -eps + near, flat, down))
    high = np.where(r < -eps - near, down, np.where(r < eps - near, flat, up))
    return w * low, w * high


@pytest.mark.parametrize(
    "loss",
    [
        "Absolute",
        "Absolute, zero targets",
        "Pinball",
        "Pinball, integer targets",
        "EpsilonInsensitive",
        "EpsilonInsensitive, integer targets",
        "Hinge",
    ],
)
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("seed", range(3))
def test_the_defining_linear_program(loss, intercept, seed):
    """min t over y in the subdifferential with 1'y = 0 and |A_j'y| <= t w_j, to 1e-9."""
    A, b, z = data(seed)
    g = losses(b, z)[loss]
    u = np.zeros(M)
    if intercept:  # some best intercept is at a kink: try all kinks
        kinks = (
            g.labels
            if loss == "Hinge"
            else np.concatenate([g.b - getattr(g, "epsilon", 0), g.b + getattr(g, "epsilon", 0)])
        )
        u = np.full(M, min(kinks, key=lambda value: g.value(np.full(M, value))))
    low, high = intervals(g, u)
    found = linprog(
        np.append(np.zeros(M), 1.0),
        A_ub=np.vstack([np.column_stack([sign * A.T, -WEIGHTS]) for sign in (1, -1)]),
        b_ub=np.zeros(2 * N),
        A_eq=np.append(np.ones(M), 0.0)[None] if intercept else None,
        b_eq=[0.0] if intercept else None,
        bounds=[*zip(low, high, strict=True), (0, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    alpha = sb.alpha_max(sb.L1(1.0, WEIGHTS), A, g, unpenalised=np.ones(M) if intercept else None)
    assert alpha == pytest.approx(found.fun, rel=1e-9)


@as_accurate_as_can_be
@pytest.mark.parametrize("loss", ["Pinball, integer targets", "Hinge"])
@pytest.mark.parametrize("penalty", ["GroupL2", "SparseGroup", "Nuclear"])
def test_curved_penalties_at_kinks_of_the_loss(loss, penalty):
    """The convex program over the dual set, by CVXPY to 1e-8."""
    A, b, z = data()
    g = losses(b, z)[loss]
    kinks = g.labels if loss == "Hinge" else g.b
    low, high = intervals(g, np.full(M, min(kinks, key=lambda value: g.value(np.full(M, value)))))
    assert np.sum(low < high) > 5
    y, t, s = cp.Variable(M), cp.Variable(), cp.Variable(N)
    q = A.T @ y
    conditions = {
        "GroupL2": lambda: [cp.norm(q[g]) <= t * w for g, w in zip(GROUPS, [1.0, 2.0, 0.5], strict=True)],
        "SparseGroup": lambda: (
            [cp.norm(q[g] - s[g]) <= t * 0.7 * np.sqrt(len(g)) for g in GROUPS] + [cp.abs(s) <= 0.3 * t]
        ),
        "Nuclear": lambda: [cp.sigma_max(cp.reshape(q, (2, 4), order="C")) <= t],
    }[penalty]()
    program = cp.Problem(cp.Minimize(t), [*conditions, cp.sum(y) == 0, y >= low, y <= high])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert sb.alpha_max(PENALTIES[penalty], A, g, np.ones(M)) == pytest.approx(program.value, rel=1e-8)


def soft(z, t):
    return np.sign(z) * np.maximum(np.abs(z) - t, 0.0)


def test_closed_forms():
    A, b, z = data()
    centred = b - b.mean()
    p = np.mean(z > 0)
    assert sb.alpha_max(sb.L1(1.0), A, sb.Squared(b)) == pytest.approx(np.abs(A.T @ b).max(), rel=1e-14)
    assert sb.alpha_max(sb.L1(1.0), A, sb.Squared(b), np.ones(M)) == pytest.approx(
        np.abs(A.T @ centred).max(), rel=1e-13
    )
    assert sb.alpha_max(sb.ElasticNet(1.0, 0.25), A, sb.Squared(b)) == pytest.approx(
        4 * np.abs(A.T @ b).max(), rel=1e-14
    )
    odds = np.where(z > 0, p - 1, p)
    assert sb.alpha_max(sb.L1(1.0), A, sb.Logistic(z), np.ones(M)) == pytest.approx(np.abs(A.T @ odds).max(), rel=1e-12)
    norm = np.abs(A.T @ centred).max() / np.linalg.norm(centred)
    assert sb.alpha_max(sb.L1(1.0), A, sb.Norm2(b), np.ones(M)) == pytest.approx(norm, rel=1e-12)
    groups = max(np.linalg.norm(A[:, g].T @ b) / np.sqrt(len(g)) for g in GROUPS)
    assert sb.alpha_max(sb.GroupL2(1.0, GROUPS), A, sb.Squared(b)) == pytest.approx(groups, rel=1e-14)
    assert sb.alpha_max(sb.Nuclear(1.0, (2, 4)), A, sb.Squared(b)) == pytest.approx(
        np.linalg.norm((A.T @ b).reshape(2, 4), 2), rel=1e-14
    )
    nonnegative = sb.alpha_max(sb.L1(1.0) + sb.NonNegative(), A, sb.Squared(b))
    assert nonnegative == pytest.approx((A.T @ b).max(), rel=1e-14)
    assert sb.alpha_max(sb.L1(1.0) + sb.Box(-1.0, 0.0), A, sb.Squared(b)) == pytest.approx((-A.T @ b).max(), rel=1e-14)
    c = np.linspace(-1, 1, N)
    tilted = sb.alpha_max(sb.L1(1.0) + sb.Linear(c), A, sb.Squared(b))
    assert tilted == pytest.approx(np.abs(A.T @ b - c).max(), rel=1e-14)


@pytest.mark.parametrize("l1_ratio", [0.01, 0.5, 0.99, 1.0])
def test_sparse_group_is_the_root_of_its_equation(l1_ratio):
    A, b, _ = data()
    roots = []
    for g in GROUPS:
        z, w = A[:, g].T @ b, np.sqrt(len(g))
        equation = lambda a, z=z, w=w: np.linalg.norm(soft(z, a * l1_ratio)) - a * (1 - l1_ratio) * w  # noqa: E731
        top = np.abs(z).max() / l1_ratio
        roots.append(top if l1_ratio == 1 else brentq(equation, 0, top, xtol=1e-14, rtol=1e-14))
    assert sb.alpha_max(sb.SparseGroup(1.0, GROUPS, l1_ratio), A, sb.Squared(b)) == pytest.approx(max(roots), rel=1e-12)


@pytest.mark.parametrize("loss", ["Squared", "Pinball, integer targets", "Hinge", "Logistic", "Huber"])
def test_all_ways_to_leave_a_column_unpenalised_agree(loss):
    """A column without a penalty: an additional one, a part of a list, of weight 0, or given by index or mask."""
    A, b, z = data()
    g = losses(b, z)[loss]
    wide = np.column_stack([A[:, :3], np.ones(M), A[:, 3:]])
    weights = np.where(np.arange(N + 1) == 3, 0.0, 1.0)
    values = [
        sb.alpha_max(sb.L1(1.0), A, g, unpenalised=np.ones((M, 1))),
        sb.alpha_max(sb.L1(1.0), A, g, unpenalised=sparse.csc_matrix(np.ones((M, 1)))),
        sb.alpha_max([sb.L1(3.0), sb.Zero()], [A, np.ones(M)], g),
        sb.alpha_max([sb.L1(3.0)], [A], g, unpenalised=np.ones(M)),
        sb.alpha_max(sb.L1(1.0, weights), wide, g),
        sb.alpha_max(sb.L1(1.0), wide, g, unpenalised=[3]),
        sb.alpha_max(sb.L1(1.0), wide, g, unpenalised=weights == 0),
        sb.alpha_max(sb.L1(1.0), sparse.csc_matrix(wide), g, unpenalised=[3]),
        sb.alpha_max(sb.L1(1.0), sparse.csr_matrix(wide), g, unpenalised=[3]),
        sb.alpha_max(sb.L1(1.0), sparse.linalg.aslinearoperator(A), g, unpenalised=np.ones(M)),
    ]
    assert values == pytest.approx([values[0]] * len(values), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute, sb.Pinball, sb.Norm2])
def test_alpha_max_scales_with_the_units(loss, unit):
    A, b, _ = data()
    target = np.round(2 * b)
    one = sb.alpha_max(sb.GroupL2(1.0, GROUPS), A, loss(target), np.ones(M))
    other = sb.alpha_max(sb.GroupL2(1.0, GROUPS), unit * A, loss(target), 1e3 * np.ones(M))
    rescaled = sb.alpha_max(sb.GroupL2(1.0, GROUPS), A, loss(unit * target, scale=1 / unit), np.ones(M))
    degree = 2 if loss is sb.Squared else 1
    assert other == pytest.approx(unit * one, rel=1e-8)
    assert rescaled == pytest.approx(one * unit ** (degree - 1) / unit, rel=1e-8)


def test_many_tasks():
    A, b, _ = data()
    B = np.column_stack([b, np.round(b[::-1]), A[:, 0]])
    rows = max(np.linalg.norm(A[:, j] @ (B - B.mean(axis=0))) for j in range(N))
    assert sb.alpha_max(sb.GroupL2(1.0, 1), A, sb.Squared(B), np.ones(M)) == pytest.approx(rows, rel=1e-12)
    alone = max(sb.alpha_max(sb.L1(1.0), A, sb.Absolute(column), np.ones(M)) for column in B.T)
    assert sb.alpha_max(sb.L1(1.0), A, sb.Absolute(B), np.ones(M)) == pytest.approx(alone, rel=1e-9)
    assert sb.alpha_max(sb.L1(1.0), A, sb.Squared(B), [2]) == pytest.approx(
        np.abs(A.T @ (B - np.outer(A[:, 2], A[:, 2] @ B) / (A[:, 2] @ A[:, 2]))).max(), rel=1e-12
    )


def test_unpenalised_columns_with_bounds():
    """An intercept that must not be negative, although the best one would be."""
    A, b, z = data()
    for g in (sb.Squared(b - 5), sb.Absolute(b - 5), sb.Logistic(-np.ones(M)), sb.Hinge(z)):
        for bounds in (sb.NonNegative(), sb.Box(0.0, 0.25)):
            alpha = sb.alpha_max([sb.L1(1.0), bounds], [A, np.ones(M)], g)
            for factor, zero in ((1.001, True), (0.98, False)):
                result = sb.solve(
                    sb.Problem([sb.L1(factor * alpha), bounds], [A, np.ones(M)], g), tol=1e-10, max_passes=50_000
                )
                assert result.status is sb.Status.OPTIMAL
                assert (np.abs(result.x[0]).max() < 1e-6) == zero


def test_a_perfect_fit_needs_no_penalty():
    A, _, _ = data()
    constant = np.full(M, 3.0)
    for g in (
        sb.Squared(constant),
        sb.Absolute(constant),
        sb.Norm2(constant),
        sb.Equality(constant),
        sb.Hinge(np.ones(M)),
    ):
        assert sb.alpha_max(sb.L1(1.0), A, g, unpenalised=np.ones(M)) == 0.0
    assert sb.alpha_max(sb.GroupL2(1.0, GROUPS), A, sb.Interval(-1.0, np.arange(float(M)))) == 0.0


def test_a_linear_term_under_constraints():
    """The minimum over y of max_j |A_j'y + c_j|: the dual of basis pursuit with costs."""
    A, c = data()[0][:4], np.linspace(-1, 2, N)
    x = cp.Variable(4)
    program = cp.Problem(cp.Minimize(cp.norm_inf(A.T @ x + c)))
    program.solve(solver=cp.CLARABEL)
    found = sb.alpha_max(sb.L1(1.0) + sb.Linear(c), A, sb.Equality(np.zeros(4)))
    assert found == pytest.approx(program.value, rel=1e-7)


def test_rows_at_a_kink_may_balance_every_column():
    A, b, _ = data()
    g = sb.Absolute(np.where(np.arange(M) % 3, 0.0, b))  # 20 rows at 0, for 8 columns
    assert sb.alpha_max(sb.GroupL2(1.0, GROUPS), A, g) == sb.alpha_max(sb.L1(1.0), A, g) == 0.0


def test_errors_say_what_is_wrong():
    A, b, _ = data()
    g = sb.Squared(b)
    with pytest.raises(ValueError, match="no kink at 0"):
        sb.alpha_max(sb.SquaredL2(1.0), A, g)
    with pytest.raises(ValueError, match="no kink at 0"):
        sb.alpha_max(sb.ElasticNet(1.0, 0.0), A, g)
    with pytest.raises(ValueError, match="no kink at 0"):
        sb.alpha_max([sb.L1(1.0), sb.SquaredL2(1.0)], [A, A], g)
    with pytest.raises(ValueError, match="no alpha"):
        sb.alpha_max(sb.NonNegative(), A, g)
    with pytest.raises(ValueError, match="exclude x = 0"):
        sb.alpha_max(sb.L1(1.0) + sb.Box(0.5, 1.0), A, g)
    with pytest.raises(ValueError, match="do not hold with x = 0"):
        sb.alpha_max(sb.L1(1.0), A, sb.Equality(b))
    with pytest.raises(ValueError, match="do not hold with x = 0"):
        sb.alpha_max(sb.L1(1.0), A, sb.Interval(b, b + 0.1), unpenalised=np.ones(M))
    with pytest.raises(ValueError, match="no minimum"):
        sb.alpha_max(sb.L1(1.0), A, sb.Logistic(np.ones(M)), unpenalised=np.ones(M))
    with pytest.raises(ValueError, match="no minimum"):
        sb.alpha_max([sb.L1(1.0), sb.Linear(-100.0)], [A, np.ones(M)], sb.Absolute(b))
    with pytest.raises(TypeError, match="Norm2 at residual 0"):
        sb.alpha_max(sb.L1(1.0) + sb.Linear(1.0), A, sb.Norm2(np.zeros(M)))
    with pytest.raises(ValueError, match="unpenalised has 3 rows"):
        sb.alpha_max(sb.L1(1.0), A, g, unpenalised=np.ones((3, 1)))
    with pytest.raises(ValueError, match="as floats"):
        sb.alpha_max(sb.L1(1.0), A, g, unpenalised=np.ones(M, dtype=int))
    with pytest.raises(ValueError, match="booleans"):
        sb.alpha_max(sb.L1(1.0), A, g, unpenalised=np.ones(3, dtype=bool))
    with pytest.raises(TypeError, match="A is a list"):
        sb.alpha_max([sb.L1(1.0)], [A], g, unpenalised=[0])
    with pytest.raises(TypeError, match="expected a matrix"):
        sb.alpha_max(sb.L1(1.0), A, g, unpenalised="intercept")


@pytest.mark.parametrize("mean", [0.3, 15.0, 1e4])
def test_counts_of_any_size(mean):
    """The best constant for counts is the logarithm of their mean."""
    rng = np.random.default_rng(0)
    A, counts = rng.standard_normal((50, 3)), rng.poisson(mean, 50).astype(float)
    found = sb.alpha_max(sb.L1(1.0), A, sb.Poisson(counts), np.ones(50))
    assert found == pytest.approx(np.abs(A.T @ (counts - counts.mean())).max(), rel=1e-8)


def test_kinks_are_convex_with_their_slopes():
    """alpha(z') >= alpha(z) + <slope, z' - z> for every penalty and part; at alpha itself the slack is 0."""
    rng = np.random.default_rng(1)
    for f in PENALTIES.values():
        unit, rest = f.with_alpha(1.0).bind((N,)), f.with_alpha(0.0).bind((N,))
        for _ in range(30):
            z, other = rng.standard_normal((2, N))
            kinks = unit.kinks(z, rest)
            beyond = unit.kinks(other, rest).alpha
            for j, alpha in enumerate(kinks.alpha):
                own = kinks.part == j
                assert beyond[j] >= alpha + kinks.slope[own] @ (other - z)[own] - 1e-12
            top = kinks.alpha.max()
            for factor, holds in ((1 + 1e-9, True), (1 - 1e-9, top == 0)):
                slack = f.with_alpha(factor * top).bind((N,)).zero_slack(z) if top else None
                if slack is not None:  # a nuclear norm has no kinks per part
                    assert (slack.min() >= 0) == holds
