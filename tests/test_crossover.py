"""Crossover: solutions with at most as many nonzeros as a vertex has, within the tolerance."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from catalogue import PENALTIES, SIZE
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import saddleback as sb
from saddleback.crossover import Crossing, Solution, Work, basis, crossings
from saddleback.crossover.basis import Inverse, LostBasis, independent
from saddleback.crossover.crossing import _most_columns
from saddleback.crossover.face import face_of, part_of
from saddleback.crossover.linear_pieces import pieces_of_loss, pieces_of_penalty
from saddleback.crossover.rounding import balanced, proximal_step, without_dust
from saddleback.operators.above import Above
from saddleback.operators.dense import Dense
from saddleback.operators.sparse import Compressed
from saddleback.operators.stacked import Stacked

AMPLE = Work(1e6, 0)


def cross(model, x, y, room, work=AMPLE):
    """Return the first point of a crossover that starts from a given point."""
    return next(crossings(model, Solution(x, model.A.matvec(x), y, -model.A.rmatvec(y)), room, work))


def labels(b):
    return np.where(b >= np.median(b), 1.0, -1.0)


LOSSES = {
    "hinge": lambda b: sb.Hinge(labels(b)),
    "absolute": sb.Absolute,
    "pinball": lambda b: sb.Pinball(b, 0.3),
}


# --- linear algebra ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.floats(0.1, 1.0))
def test_the_chosen_basis_has_the_rank_of_the_block(seed, rows, columns, rank, density):
    rng = np.random.default_rng(seed)
    block = rng.integers(-3, 4, (rows, rank)) @ rng.integers(-3, 4, (rank, columns)) * 1.0
    block *= rng.random((rows, columns)) < density
    chosen, basis = independent(block, rng.uniform(1e-5, 1.0, columns))
    assert chosen.size == basis.size == np.linalg.matrix_rank(block)
    assert np.linalg.matrix_rank(block[np.ix_(chosen, basis)]) == basis.size


def test_columns_of_large_weight_are_chosen(rng):
    block, weight = rng.standard_normal((5, 30)), np.full(30, 1e-4)
    weight[[3, 7, 11, 13, 17]] = 1.0
    assert sorted(independent(block, weight)[1]) == [3, 7, 11, 13, 17]


def test_the_inverse_follows_exchanges_and_borders(rng, monkeypatch):
    monkeypatch.setattr(basis, "ROOM", 1)  # the second border needs more memory
    matrix = rng.standard_normal((4, 4))
    inverse = Inverse(matrix)
    for size in (4, 5, 6):
        place, column = int(rng.integers(size)), rng.standard_normal(size)
        matrix[:, place] = column
        inverse.exchange(place, column)
        np.testing.assert_allclose(inverse.of @ matrix, np.eye(size), atol=1e-9)
        if size < 6:
            row, right, corner = rng.standard_normal(size), rng.standard_normal(size), 1.5
            matrix = np.block([[matrix, right[:, None]], [row[None, :], np.array([[corner]])]])
            inverse.border(row, right, corner)
            np.testing.assert_allclose(inverse.of @ matrix, np.eye(size + 1), atol=1e-9)


def test_a_singular_exchange_is_rejected():
    inverse = Inverse(np.eye(3))
    with pytest.raises(LostBasis):
        inverse.exchange(0, np.array([0.0, 1.0, 1.0]))
    with pytest.raises(LostBasis):
        inverse.border(np.ones(3), np.ones(3), 3.0)


# --- pieces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss",
    [
        sb.Absolute,
        lambda b: sb.Pinball(b, 0.2),
        lambda b: sb.Hinge(np.sign(b)),
        lambda b: sb.SquaredHinge(np.sign(b)),
        lambda b: sb.Huber(b, 0.4),
        lambda b: sb.EpsilonInsensitive(b, 0.3),
        lambda b: sb.Logistic(np.sign(b)),
        sb.Squared,
    ],
)
def test_a_loss_is_linear_inside_its_pieces(loss, rng):
    """Curved rows are those in which the loss is not linear."""
    b, u = rng.standard_normal(40), rng.standard_normal(40)
    model = sb.Problem(sb.L1(1.0), np.eye(40), loss(b)).model
    pieces = pieces_of_loss(model.loss_form, model.g.subgradient(u), u)
    for i in range(40):
        low, high = max(pieces.low[i], u[i] - 1.0), min(pieces.high[i], u[i] + 1.0)
        ends = u[i] + 0.9 * (np.array([low, high]) - u[i])
        at = [model.g.value(np.where(np.arange(40) == i, value, u)) for value in (*ends, ends.mean())]
        linear = abs(at[2] - 0.5 * (at[0] + at[1])) < 1e-12
        assert linear != pieces.curved[i]
        if linear:
            assert at[1] - at[0] == pytest.approx(pieces.slope[i] * (ends[1] - ends[0]), abs=1e-10)


def test_the_kinks_of_a_penalty_are_its_bounds_and_0():
    model = sb.Problem(
        [sb.L1(2.0), sb.Box(-1.0, 3.0), sb.NonNegative(), sb.ElasticNet(1.0, 0.5), sb.GroupL2(1.0, 2), sb.Zero()],
        [np.ones((1, 2))] * 6,
        sb.Absolute(np.ones(1)),
    ).model
    x = np.array([0.5, -0.5, 3.0, 1.0, 0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    pieces = pieces_of_penalty(model.penalty_form, x)
    inf = np.inf
    assert pieces.curved.tolist() == [False] * 6 + [True] * 4 + [False] * 2
    straight = ~pieces.curved
    assert pieces.low[straight].tolist() == [0.0, -inf, 3.0, -1.0, 0.0, 0.0, -inf, -inf]
    assert pieces.high[straight].tolist() == [inf, 0.0, 3.0, 3.0, 0.0, inf, inf, inf]
    assert pieces.slope[:2].tolist() == [2.0, -2.0]


# --- the walk ---------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 30), st.booleans())
def test_any_feasible_point_goes_to_a_vertex_of_the_feasible_set(seed, m, n, integers):
    """If the objective is 0, all feasible points are solutions."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, (m, n)) * 1.0 if integers else rng.standard_normal((m, n))
    x = rng.uniform(0.1, 0.9, n)
    model = sb.Problem(sb.Box(0.0, 1.0), A, sb.Equality(A @ x)).model
    found = cross(model, x, np.zeros(m), 0.0)
    vertex = x if found.x is None else found.x
    assert found.at_vertex
    assert np.all((vertex >= 0) & (vertex <= 1))
    np.testing.assert_allclose(A @ vertex, A @ x, atol=1e-8)
    between = (vertex > 0) & (vertex < 1)
    assert np.linalg.matrix_rank(A[:, between]) == np.count_nonzero(between)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(LOSSES)))
def test_the_objective_grows_by_at_most_the_allowed_amount(seed, kind):
    """This also holds far from a solution: there the objective falls."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((8, 20)), rng.standard_normal(20)
    model = sb.Problem(sb.L1(0.7), A, LOSSES[kind](rng.standard_normal(8))).model
    found = cross(model, x, np.zeros(8), 0.0)
    assert found.at_vertex
    assert np.count_nonzero(found.x) <= 8
    before, after = (model.f.value(at) + model.g.value(A @ at) for at in (x, found.x))
    assert after <= before + 1e-9


def test_a_crossover_that_costs_too_much_is_skipped(rng):
    A, x = rng.standard_normal((600, 1500)), rng.standard_normal(1500)
    model = sb.Problem(sb.L1(1.0), A, sb.Equality(A @ x)).model
    found = cross(model, x, np.zeros(600), 1.0, Work(0.0, 0))
    assert found.x is None
    assert found.said.startswith("no crossover: 600 rows and 1500 columns take more than 25%")


def test_the_lasso_gets_no_crossover(rng):
    """With a curved loss, a solution with fewer nonzeros than rows is unique unless columns are dependent."""
    A = rng.standard_normal((30, 60))
    problem = sb.Problem(sb.L1(3.0), A, sb.Squared(A[:, 0]))
    result = sb.solve(problem, tol=1e-8)
    assert 0 < np.count_nonzero(result.x) < 30
    assert cross(problem.model, result.x, result.y, 1.0) == Crossing()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(PENALTIES)))
def test_a_face_has_at_most_the_columns_that_are_counted(seed, name):
    """The count is an upper bound, so that a crossover may rely on it without computing the face."""
    rng = np.random.default_rng(seed)
    model = sb.Problem(sb.L1(1.0), rng.standard_normal((4, SIZE)), sb.Squared(rng.standard_normal(4))).model
    model = replace(model, f=PENALTIES[name].bind((SIZE,)))
    x = model.f.domain.project(rng.standard_normal(SIZE) * (rng.random(SIZE) < rng.random()))
    u, y = model.A.matvec(x), rng.standard_normal(4)
    face = face_of(model, x, u, y)
    assert face is None or face.x.size <= _most_columns(model, Solution(x, u, y, -model.A.rmatvec(y))) <= SIZE


# --- rounding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("staying", [30, 5], ids=["more columns than rows", "fewer"])
def test_the_other_columns_balance_those_that_become_zero(staying, rng):
    """If there are too few columns, the balance is a least squares solution."""
    A, x = rng.standard_normal((8, 40)), rng.standard_normal(40)
    model = sb.Problem(sb.GroupL2(1.0, 2), A, sb.Absolute(np.ones(8))).model
    K, N, R = np.arange(staying), np.arange(36, 40), np.arange(1, 8)
    moved = balanced(model, x, N, K, R)
    assert np.array_equal(moved[staying:36], x[staying:36])
    assert not moved[N].any()
    gradient = (A[R][:, K] * x[K]).T @ (A @ (moved - x))[R]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


def test_a_proximal_step_from_a_solution_stays_there(rng):
    A = rng.standard_normal((20, 12))
    problem = sb.Problem([sb.GroupL2(2.0, 3), sb.Zero()], [A, np.ones((20, 1))], sb.Squared(A[:, 0] + 1.0))
    result = sb.solve(problem, tol=1e-14)
    x, z = np.concatenate(result.x), -problem.model.A.rmatvec(result.y)
    np.testing.assert_allclose(proximal_step(problem.model, x, z, 0.1), x, atol=1e-6)


# --- solves -----------------------------------------------------------------------------------------------------------


def vertex_of_highs(kind, A, b, alpha):
    """Return the vertex x at which the simplex method of HiGHS ends, and the optimum."""
    m, n = A.shape
    if kind == "hinge":
        signed = labels(b)[:, None] * A
        cost = np.r_[np.full(2 * n, alpha), np.ones(m)]
        program = {"A_ub": np.hstack([-signed, signed, -np.eye(m)]), "b_ub": -np.ones(m)}
    else:
        below, above = (1.0, 1.0) if kind == "absolute" else (0.7, 0.3)  # slopes of the loss for u > b and for u < b
        cost = np.r_[np.full(2 * n, alpha), np.full(m, above), np.full(m, below)]
        program = {"A_eq": np.hstack([A, -A, np.eye(m), -np.eye(m)]), "b_eq": b}
    found = linprog(cost, method="highs-ds", **program)
    return found.x[:n] - found.x[n : 2 * n], found.fun


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("share", [0.3, 0.05])
@pytest.mark.parametrize("tol", [1e-5, 1e-8])
def test_as_many_nonzeros_as_the_vertex_of_the_simplex_method(kind, share, tol, rng):
    A = rng.standard_normal((40, 150))
    b = A[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(40)
    alpha = share * sb.alpha_max(sb.L1(1.0), A, LOSSES[kind](b))
    result = sb.solve(sb.Problem(sb.L1(alpha), A, LOSSES[kind](b)), tol=tol, method="finish")
    vertex, optimum = vertex_of_highs(kind, A, b, alpha)
    assert result.status is sb.Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=2 * tol)
    assert np.count_nonzero(result.x) <= 1.1 * np.count_nonzero(np.abs(vertex) > 1e-9)


def test_equal_columns_do_not_share_their_weight(rng):
    """The solutions form a face of high dimension, and an interior point ends in the middle of it."""
    A = np.tile(rng.standard_normal((60, 30)), 4)
    problem = sb.Problem(sb.L1(4.0), A, sb.Absolute(A[:, :5].sum(axis=1) + rng.standard_normal(60)))
    result = sb.solve(problem, tol=1e-6, method="finish")
    used = np.count_nonzero(result.x.reshape(4, 30), axis=0)
    assert used.max() == 1
    assert result.status is sb.Status.OPTIMAL
    assert sb.certify(problem, result.x, result.y).error <= 1e-6
    assert any(note.startswith(f"crossover: {used.sum()} of ") for note in result.history.notes)


@pytest.mark.parametrize("seed", range(4))
def test_a_linear_program_ends_at_a_vertex(seed):
    """An interior point ends next to a vertex, or in the middle of a face of solutions."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 4, (15, 40)) * (rng.random((15, 40)) < 0.4)
    cost, rhs = rng.integers(1, 4, 40) * 1.0, A @ rng.random(40)
    problem = sb.Problem([sb.Linear(cost) + sb.NonNegative()], [A], sb.Interval(rhs, np.inf))
    result = sb.solve(problem, tol=1e-6, method="finish")
    assert result.status is sb.Status.OPTIMAL
    assert result.is_vertex
    optimum = linprog(cost, A_ub=-A, b_ub=-rhs, method="highs-ds").fun
    assert result.objective == pytest.approx(optimum, rel=2e-6, abs=1e-6)


def test_the_last_step_of_a_crossover_is_exact(rng):
    """Rows held by a kink of the loss are exactly at the kink, unless that makes the certificate worse."""
    A = rng.standard_normal((30, 100))
    b = A[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(30)
    result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Absolute(b)), tol=1e-4, method="finish")
    fitted = np.abs(A @ result.x - b) <= 1e-12 * np.abs(b).max()
    assert np.count_nonzero(fitted) == np.count_nonzero(result.x)


@pytest.mark.parametrize("tol", [1e-5, 1e-8])
def test_groups_next_to_0_become_0(tol, rng):
    """An interior point leaves many groups close to 0, and together they change the objective beyond the tolerance."""
    A = rng.standard_normal((100, 700))
    loss = sb.Absolute(A[:, :20] @ rng.standard_normal(20) + rng.standard_normal(100))
    alpha = 0.01 * sb.alpha_max(sb.GroupL2(1.0, 5), A, loss)
    problem = sb.Problem(sb.GroupL2(alpha, 5), A, loss)
    result = sb.solve(problem, tol=tol, method="finish")
    groups = np.count_nonzero(result.x.reshape(-1, 5).any(axis=1))
    assert result.status is sb.Status.OPTIMAL
    assert groups < 60
    assert f"crossover: {700 - 5 * groups} of 700 columns went to 0, balanced by the others" in result.history.notes


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(sorted(LOSSES)),
    intercept=st.booleans(),
    integers=st.booleans(),
    options=st.sampled_from([{}, {"method": "finish"}, {"finish": False}]),
    digits=st.integers(3, 8),
)
def test_at_most_as_many_nonzeros_as_rows(seed, kind, intercept, integers, options, digits):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(4, 30), rng.integers(4, 90)
    A = rng.integers(-1, 2, (m, n)) * 1.0 if integers else rng.standard_normal((m, n))
    loss = LOSSES[kind](A[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(m))
    alpha = 10 ** rng.uniform(-2, 0)
    problem = sb.Problem(sb.L1(alpha), A, loss)
    if intercept:
        problem = sb.Problem([sb.L1(alpha), sb.Zero()], [A, np.ones((m, 1))], loss)
    result = sb.solve(problem, tol=10.0**-digits, **options)
    x = np.concatenate(result.x) if intercept else result.x
    assert result.status is sb.Status.OPTIMAL
    assert np.count_nonzero(x) <= m + intercept
    assert sb.certify(problem, result.x, result.y).error <= 10.0**-digits


def test_sparse_and_dense_answers_have_the_same_support(rng):
    A = scipy.sparse.random(60, 400, density=0.05, random_state=rng, format="csc")
    b = np.asarray(A[:, :10].sum(axis=1)).ravel() + 0.1 * rng.standard_normal(60)
    found = [
        sb.solve(sb.Problem(sb.L1(0.3), each, sb.Absolute(b)), tol=1e-6, method="finish").x for each in (A, A.toarray())
    ]
    assert np.array_equal(found[0] != 0, found[1] != 0)
    assert np.count_nonzero(found[0]) <= 60


def test_columns_without_a_penalty_that_are_dependent_stay(rng):
    """No kink can hold them, and nothing determines which of the two should be 0."""
    A = rng.standard_normal((30, 80))
    both = np.ones((30, 2))
    problem = sb.Problem([sb.L1(1.0), sb.Zero()], [A, both], sb.Absolute(5.0 + rng.standard_normal(30)))
    result = sb.solve(problem, tol=1e-6, method="finish")
    assert result.status is sb.Status.OPTIMAL
    assert np.count_nonzero(result.x[0]) <= 30
    assert np.all(result.x[1] != 0)


def test_a_run_that_has_not_reached_its_tolerance_gets_no_crossover(rng):
    A = np.tile(rng.standard_normal((40, 20)), 3)
    problem = sb.Problem(sb.L1(1.0), A, sb.Absolute(rng.standard_normal(40)))
    result = sb.solve(problem, tol=1e-9, method="sp-bcd", finish=False, max_passes=30)
    assert result.status is sb.Status.MAX_PASSES
    assert not any("crossover" in note for note in result.history.notes)


def test_many_equal_columns_in_one_row_take_little_memory():
    """The memory of the crossover grows with the number of held rows, and not with the number of all rows."""
    n = 60_000
    A = scipy.sparse.csc_array((np.ones(n), np.zeros(n, dtype=np.int64), np.arange(n + 1)), shape=(n, n))
    b = np.where(np.arange(n) == 0, 10.0, 1.0)
    result = sb.solve(sb.Problem(sb.L1(0.5), A, sb.Absolute(b)), x0=np.full(n, 10.0 / n))
    assert result.status is sb.Status.OPTIMAL
    assert np.count_nonzero(result.x) == 1


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_that_are_next_to_nothing_go_to_0(seed):
    """Binary data have degenerate vertices, at which a Newton step leaves coefficients of 1e-7."""
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (3000, 40)).astype(float)
    labels = np.where(A[:, :6].sum(axis=1) + rng.standard_normal(3000) > 3.0, 1.0, -1.0)
    alpha = 0.01 * sb.alpha_max(sb.L1(1.0), A, sb.Hinge(labels))
    result = sb.solve(sb.Problem(sb.L1(alpha), A, sb.Hinge(labels)))
    assert result.status is sb.Status.OPTIMAL
    parts = np.abs(result.x) * np.linalg.norm(A, axis=0)
    assert np.all((parts == 0) | (parts > 1e-6 * parts.max()))


def test_dust_is_measured_by_its_part_of_the_product():
    """A small coefficient of a large column is not dust, and neither is one without a kink at 0 or in a large group."""
    A, b = np.diag([1.0, 1e8, 1.0, 1.0]), np.ones(4)
    x = np.array([1.0, 1e-7, 1e-7, 0.0])
    assert np.array_equal(without_dust(sb.Problem(sb.L1(1.0), A, sb.Absolute(b)).model, x), [1.0, 1e-7, 0.0, 0.0])
    assert without_dust(sb.Problem(sb.SquaredL2(1.0), A, sb.Absolute(b)).model, x) is x
    groups = sb.Problem(sb.GroupL2(1.0, groups=[2, 2]), np.eye(4), sb.Absolute(b)).model
    assert np.array_equal(without_dust(groups, np.array([1.0, 1e-7, 1e-7, 1e-8])), [1.0, 1e-7, 0.0, 0.0])


def test_steps_with_sparse_factors_do_not_pay_for_dense_elimination(rng):
    """A signal of n points takes some 25 steps of O(n) work, and a crossover would take O(n^3)."""
    n = 3000
    y = np.cumsum(rng.random(n) < 0.003) + 0.3 * rng.standard_normal(n)
    problem = sb.Problem(sb.Zero(), [sb.Identity(), sb.Differences(n)], [sb.Absolute(y), sb.L1(10.0)])
    result = sb.solve(problem)
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["finish_steps"] > 0
    assert not any(note.startswith("crossover") for note in result.history.notes)


def test_a_part_of_blocks_is_read_in_any_order_of_rows_and_columns():
    rng = np.random.default_rng(5)
    dense, other = rng.standard_normal((6, 4)), rng.standard_normal((3, 4))
    thin = scipy.sparse.csc_array(scipy.sparse.random(6, 5, 0.5, rng=rng))
    A = Stacked([Above([Dense(dense), Dense(other)], [6, 3]), Above([Compressed(thin), None], [6, 3])])
    whole = np.block([[dense, thin.toarray()], [other, np.zeros((3, 5))]])
    rows, columns = rng.permutation(9)[:6], rng.permutation(9)[:7]
    assert np.array_equal(part_of(A, rows, columns), whole[np.ix_(rows, columns)])
    assert part_of(A, rows, columns[:0]).shape == (6, 0)
    assert part_of(A, rows[:0], columns).shape == (0, 7)
