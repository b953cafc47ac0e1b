"""Several losses: min f(x) + g_1(A_1 x) + ... + g_R(A_R x)."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, PENALTIES, SIZE
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import saddleback as sb
from saddleback.functions.piecewise import ConjugatePiecewise, PiecewiseQuadratic
from saddleback.functions.row_sum import RowSum, one_above_the_other
from saddleback.operators import Above, as_operator


def data(rng, m=40, n=12):
    A = rng.standard_normal((m, n))
    x = np.where(rng.random(n) < 0.4, rng.standard_normal(n), 0.0)
    return A, A @ x + 0.1 * rng.standard_normal(m)


def differences(n):
    return sparse.csr_matrix(np.diff(np.eye(n), axis=0))


KINDS = {
    "dense": lambda D: D.toarray(),
    "row-major sparse": sparse.csr_matrix,
    "column-major sparse": sparse.csc_matrix,
    "linear operator": aslinearoperator,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_agree_with_one_matrix_of_all_rows(kind, rng):
    """Absolute losses of two matrices are one absolute loss of the matrix of all rows."""
    A, b = data(rng)
    D = differences(12)
    targets, weights = np.concatenate([b, np.zeros(11)]), np.repeat([1.0, 0.7], [40, 11])
    one = sb.solve(sb.Problem(sb.L1(0.5), np.vstack([A, D.toarray()]), sb.Absolute(targets, weights)), tol=1e-9)
    rows = [A, KINDS[kind](D)]
    tol = 1e-5 if kind == "linear operator" else 1e-9
    several = sb.solve(sb.Problem(sb.L1(0.5), rows, [sb.Absolute(b), sb.Absolute(np.zeros(11), scale=0.7)]), tol=tol)
    assert several.status is sb.Status.OPTIMAL
    assert np.isclose(several.objective, one.objective, rtol=2 * tol)
    assert [part.shape for part in several.y] == [(40,), (11,)]


def test_a_penalty_in_the_place_of_a_loss(rng):
    """L1(alpha) under D is the absolute loss with targets 0, and a box is an interval."""
    A, b = data(rng)
    D = differences(12)
    pairs = [
        (sb.L1(0.7), sb.Absolute(np.zeros(11), scale=0.7)),
        (sb.Box(-0.3, 0.2), sb.Interval(-0.3, 0.2)),
        (sb.NonNegative(), sb.Interval(0.0, np.inf)),
        (sb.SquaredL2(3.0), sb.Squared(np.zeros(11), scale=3.0)),
    ]
    for penalty, loss in pairs:
        values = [
            sb.solve(sb.Problem(sb.L1(0.5), [A, D], [sb.Squared(b), term]), tol=1e-9).objective
            for term in (penalty, loss)
        ]
        assert np.isclose(*values, rtol=1e-8)


@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_as_a_loss_is_the_same_function(name, rng):
    """The form for kernels keeps value, conjugate and prox."""
    function = PENALTIES[name].bind((SIZE,))
    loss = one_above_the_other([function], [SIZE])
    for _ in range(20):
        v, step = rng.standard_normal(SIZE), rng.uniform(0.2, 2.0)
        p = function.prox(v, step)
        assert np.allclose(loss.prox(v, step), p, atol=1e-12)
        assert np.isclose(loss.value(p), function.value(p))
        y = (v - p) / step
        assert np.isclose(loss.conjugate().value(y), function.conjugate().value(y), atol=1e-9)
    if isinstance(function, PiecewiseQuadratic):
        assert isinstance(loss, ConjugatePiecewise) or loss is function


@pytest.mark.parametrize("first", ["Squared weighted", "Logistic", "Poisson", "Norm2"])
@pytest.mark.parametrize("second", ["Absolute", "Logistic", "Interval", "Poisson", "Norm2 weighted"])
def test_a_sum_over_rows_acts_on_each_part(first, second, rng):
    parts = [LOSSES[first].bind((SIZE,)), LOSSES[second].bind((SIZE,))]
    whole = one_above_the_other(parts, [SIZE, SIZE])
    v = rng.standard_normal(2 * SIZE)
    halves = v[:SIZE], v[SIZE:]
    assert np.isclose(whole.finite_value(v), sum(part.finite_value(h) for part, h in zip(parts, halves, strict=True)))
    expected = np.concatenate([part.prox(h, 0.7) for part, h in zip(parts, halves, strict=True)])
    assert np.allclose(whole.prox(v, 0.7), expected, atol=1e-12)
    if isinstance(whole, RowSum):
        keep = np.array([1, 4, 7, 10])
        own = [parts[0].restrict(np.array([1, 4])), parts[1].restrict(np.array([1, 4]))]
        inside = np.concatenate([own[0].prox(v[[1, 4]], 1.0), own[1].prox(v[[7, 10]], 1.0)])
        assert np.allclose(whole.restrict(keep).prox(v[keep], 1.0), inside)
        heavier = whole.with_row_weights(np.full(2 * SIZE, 2.0))
        assert np.isclose(heavier.finite_value(v), 2.0 * whole.finite_value(v))
        assert whole.row_signature().shape[0] == whole.row_weights().size == 2 * SIZE


@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute])
def test_blocks_of_zeros(loss, rng):
    """None is a block of zeros: with [[A, B], [C, None]] the second loss does not see the second block."""
    A, b = data(rng)
    B, C = rng.standard_normal((40, 3)), rng.standard_normal((5, 12))
    losses = [loss(b), sb.Interval(-0.5, 0.5)]
    grid = sb.Problem([sb.L1(0.3), sb.Zero()], [[A, B], [C, None]], losses)
    flat = sb.Problem([sb.L1(0.3), sb.Zero()], [[A, B], [sparse.csc_matrix(C), np.zeros((5, 3))]], losses)
    first, second = sb.solve(grid, tol=1e-8), sb.solve(flat, tol=1e-8)
    assert first.status is second.status is sb.Status.OPTIMAL
    assert np.isclose(first.objective, second.objective, rtol=1e-7)
    assert np.all(np.abs(C @ first.x[0]) <= 0.5 + 1e-6)
    assert sb.certify(grid, first.x, first.y).error <= 1e-8


def test_constraints_beside_a_loss_of_another_kind(rng):
    """A logistic regression whose coefficients sum to 0 is one in differences of columns."""
    A = rng.standard_normal((60, 5))
    z = np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(60))
    rows, losses = [A, np.ones((1, 5))], [sb.Logistic(z), sb.Equality([0.0])]
    found = sb.solve(sb.Problem(sb.SquaredL2(0.1), rows, losses), tol=1e-7)
    basis = np.linalg.svd(np.ones((1, 5)))[2][1:].T
    same = sb.solve(sb.Problem(sb.SquaredL2(0.1), A @ basis, sb.Logistic(z)), tol=1e-9)
    assert found.status is sb.Status.OPTIMAL
    assert np.isclose(found.objective, same.objective, rtol=1e-6)
    assert abs(found.x.sum()) <= 1e-6


def test_group_norms_of_rows(rng):
    """A group norm of D x: the certificate holds, and no random point is better."""
    A, b = data(rng)
    D = np.vstack([differences(12).toarray()[:10], differences(12).toarray()[1:11]])
    problem = sb.Problem(sb.Zero(), [A, D], [sb.Squared(b), sb.GroupL2(2.0, [[i, i + 10] for i in range(10)])])
    found = sb.solve(problem, tol=1e-6)
    assert found.status is sb.Status.OPTIMAL
    for scale in (1e-1, 1e-2, 1e-3):
        others = [problem.value(found.x + scale * rng.standard_normal(12)) for _ in range(50)]
        assert min(others) >= found.objective * (1 - 1e-6)


def test_several_terms_agree_with_cvxpy(rng):
    pytest.importorskip("cvxpy")
    A, b = data(rng)
    B = rng.standard_normal((40, 3))
    rows = [[A, B], [differences(12), None], [None, np.ones((1, 3))]]
    losses = [sb.Pinball(b, 0.3), sb.L1(0.4), sb.Equality([1.0])]
    problem = sb.Problem([sb.L1(0.2), sb.SquaredL2(0.5)], rows, losses)
    found = sb.solve(problem, tol=1e-9)
    assert np.isclose(found.objective, problem.to_cvxpy().solve(solver="CLARABEL"), rtol=1e-7)
    assert np.isclose(sum(share.value for share in found.terms.values()), found.objective)
    assert np.isclose(sum(share.gap for share in found.terms.values()), found.certificate.gap, atol=1e-7)


def test_terms_of_a_problem_without_a_solution_state_their_violations(rng):
    A, ones = rng.standard_normal((10, 4)), np.ones((1, 4))
    losses = [sb.Squared(rng.standard_normal(10)), sb.Equality([1.0]), sb.Equality([2.0])]
    result = sb.solve(sb.Problem(sb.L1(1.0), [A, ones, ones], losses))
    assert result.status is sb.Status.INFEASIBLE
    total, size = float(np.sum(result.x)), float(np.sum(np.abs(result.x)))
    missed = {"loss[1]": abs(total - 1.0) / (1.0 + size), "loss[2]": abs(total - 2.0) / (2.0 + size)}
    expected = {"penalty": 0.0, "loss[0]": 0.0} | missed
    assert {name: share.violation for name, share in result.terms.items()} == pytest.approx(expected)


def test_contradicting_constraints_are_proved(rng):
    A, b = data(rng)
    rows = [A, np.ones((1, 12)), np.ones((1, 12))]
    found = sb.solve(sb.Problem(sb.L1(0.1), rows, [sb.Squared(b), sb.Equality([1.0]), sb.Interval(2.0, 3.0)]))
    assert found.status is sb.Status.INFEASIBLE
    assert [part.shape for part in found.ray] == [(40,), (1,), (1,)]
    assert not np.any(found.ray[0])
    assert "rows 0 of loss[1], 0 of loss[2] cannot hold together" in found.message


def test_starts_paths_and_copies(rng):
    A, b = data(rng)
    rows, losses = [A, differences(12)], [sb.Absolute(b), sb.L1(0.5)]
    problem = sb.Problem(sb.L1(0.5), rows, losses)
    result = sb.solve(problem, tol=1e-8)
    again = sb.solve(problem, x0=result.x, y0=result.y, tol=1e-7)
    assert again.passes < result.passes
    assert "L1" in repr(problem)
    along = sb.path(sb.L1(1.0), rows, losses, n_alphas=4, eps=0.1, tol=1e-7)
    assert all(each.status is sb.Status.OPTIMAL for each in along)
    assert not np.any(along[0].x)
    largest = sb.alpha_max(sb.L1(1.0), rows, losses)
    assert np.isclose(along[0].settings["alpha"], largest)
    wide = sb.alpha_max(sb.L1(1.0), rows, losses, unpenalised=np.ones(40))
    null = sb.Problem([sb.L1(wide), sb.Zero()], [[A, np.ones((40, 1))], [differences(12), None]], losses)
    assert np.allclose(sb.solve(null, tol=1e-9).x[0], 0.0, atol=1e-6)


def test_several_tasks(rng):
    """A matrix variable: a loss with a matrix of targets, and a penalty of the differences of its rows."""
    A, _ = data(rng)
    Y = rng.standard_normal((40, 3))
    D = differences(12)
    problem = sb.Problem(sb.L1(0.1), [A, D], [sb.Squared(Y), sb.L1(0.7)])
    found = sb.solve(problem, tol=1e-8)
    assert found.x.shape == (12, 3)
    assert [part.shape for part in found.y] == [(40, 3), (11, 3)]
    columns = [sb.solve(sb.Problem(sb.L1(0.1), [A, D], [sb.Squared(y), sb.L1(0.7)]), tol=1e-8) for y in Y.T]
    assert np.isclose(found.objective, sum(column.objective for column in columns), rtol=1e-7)
    flat = sb.Problem(sb.L1(0.1), [A, np.ones((1, 36))], [sb.Squared(Y), sb.Equality([1.0])])
    assert np.isclose(sb.solve(flat, tol=1e-8).x.sum(), 1.0, atol=1e-6)


def test_an_identity_among_the_rows(rng):
    b = np.cumsum(rng.standard_normal((6, 5)), axis=0)
    D = sparse.kron(differences(6), sparse.identity(5))
    problem = sb.Problem(sb.Zero(), [sb.Identity(), D], [sb.Squared(b), sb.L1(0.5)])
    found = sb.solve(problem, tol=1e-8)
    assert found.x.shape == (6, 5)
    columns = [
        sb.solve(sb.Problem(sb.Zero(), [sb.Identity(), differences(6)], [sb.Squared(c), sb.L1(0.5)]), tol=1e-9)
        for c in b.T
    ]
    assert np.allclose(found.x, np.column_stack([column.x for column in columns]), atol=1e-3)


def test_kernels_read_rows_like_one_matrix(rng):
    """The compiled kernel of matrices one above the other takes the steps of the one of a single matrix."""
    A, b = data(rng, 30, 20)
    D = differences(20).tocsc()
    losses = [sb.Absolute(b), sb.L1(0.5)]
    one = sb.Problem(
        sb.L1(0.3),
        np.vstack([A, D.toarray()]),
        sb.Absolute(np.append(b, np.zeros(19)), np.repeat([1.0, 0.5], [30, 19])),
    )
    options = {"method": "sp-bcd", "working_set": False, "finish": False, "max_passes": 20, "tol": 0.0}
    first = sb.solve(sb.Problem(sb.L1(0.3), [A, D], losses), **options)
    second = sb.solve(one, **options)
    assert first.settings["backend"] == "native"
    assert np.allclose(first.x, second.x, atol=1e-9)
    assert np.allclose(np.concatenate(first.y), second.y, atol=1e-9)


def test_nothing_is_copied_to_stack(rng):
    A, D = np.asfortranarray(rng.standard_normal((300, 200))), differences(200).tocsc()
    above = Above([as_operator(A, "A"), as_operator(D, "D")], [300, 199])
    ordered = above.ordered("columns")
    assert ordered.rows[0].array is A
    assert ordered.rows[1].matrix.data is D.data


BAD = {
    "loss is a list and A is ndarray": lambda A, b: sb.Problem(sb.L1(1.0), A, [sb.Squared(b)]),
    "loss has 2 terms and A has 1 rows": lambda A, b: sb.Problem(sb.L1(1.0), [A], [sb.Squared(b), sb.L1(1.0)]),
    r"A\[1\] acts on a variable of shape \(3,\), but A\[0\] on one of shape \(12,\)": lambda A, b: sb.Problem(
        sb.L1(1.0), [A, np.ones((2, 3))], [sb.Squared(b), sb.L1(1.0)]
    ),
    r"A\[1\] has 2 rows, but the loss has data of shape \(5,\)": lambda A, b: sb.Problem(
        sb.L1(1.0), [A, np.ones((2, 12))], [sb.Squared(b), sb.Equality(np.zeros(5))]
    ),
    r"A\[0\]\[1\] is None, in every row": lambda A, b: sb.Problem(
        [sb.L1(1.0), sb.Zero()], [[A, None], [A, None]], [sb.Squared(b), sb.Squared(b)]
    ),
    r"A\[1\]\[0\] is None, and so is its whole row": lambda A, b: sb.Problem(
        [sb.L1(1.0), sb.Zero()], [[A, A], [None, None]], [sb.Squared(b), sb.Squared(b)]
    ),
    r"penalty is a list and A\[1\] is ndarray": lambda A, b: sb.Problem(
        [sb.L1(1.0), sb.Zero()], [[A, A], A], [sb.Squared(b), sb.Squared(b)]
    ),
    r"penalty has 2 blocks and A\[0\] has 1": lambda A, b: sb.Problem(
        [sb.L1(1.0), sb.Zero()], [[A], [A]], [sb.Squared(b), sb.Squared(b)]
    ),
    r"loss\[1\] is 'l1'": lambda A, b: sb.Problem(sb.L1(1.0), [A, A], [sb.Squared(b), "l1"]),
}


@pytest.mark.parametrize("message", BAD)
def test_messages_name_the_term(message, rng):
    with pytest.raises((TypeError, ValueError), match=message):
        BAD[message](*data(rng))


def test_points_in_the_wrong_form(rng):
    A, b = data(rng)
    problem = sb.Problem(sb.L1(1.0), [A, A], [sb.Squared(b), sb.Absolute(b)])
    with pytest.raises(TypeError, match="y0 is ndarray: expected a list with an array for each loss"):
        sb.solve(problem, y0=np.zeros(80))
    with pytest.raises(ValueError, match=r"y0\[1\] has shape \(3,\): expected \(40,\)"):
        sb.solve(problem, y0=[np.zeros(40), np.zeros(3)])


@pytest.mark.parametrize("method", ["sp-bcd", "descent", "multipliers"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_on_a_device(method, is_sparse, rng):
    pytest.importorskip("torch")
    A, b = data(rng)
    second = sb.Huber(np.zeros(11), 0.1)
    rows = [[sparse.csc_matrix(A * (np.abs(A) > 1.5)) if is_sparse else A, np.ones((40, 1))], [differences(12), None]]
    problem = sb.Problem([sb.L1(0.5), sb.Zero()], rows, [sb.Squared(b), second])
    there, here = sb.solve(problem, device="cpu", method=method, tol=1e-7), sb.solve(problem, tol=1e-7)
    assert there.settings["backend"] == "torch"
    assert np.isclose(there.objective, here.objective, rtol=1e-6)


def test_rows_in_files_and_checkpoints(tmp_path, rng):
    A, b = data(rng)
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    losses = [sb.Absolute(b), sb.L1(0.5)]
    here = sb.Problem(sb.L1(0.5), [A, differences(12)], losses)
    streamed = sb.Problem(sb.L1(0.5), [sb.Streamed(tmp_path / "A.npy", memory=7000), differences(12)], losses)
    expected = sb.solve(here, tol=1e-8)
    assert np.isclose(sb.solve(streamed, tol=1e-3).objective, expected.objective, rtol=2e-3)
    options = {"tol": 1e-9, "method": "sp-bcd", "working_set": False, "finish": False}
    whole = sb.solve(here, **options)
    sb.solve(here, max_passes=10, checkpoint=tmp_path / "run", **options)
    resumed = sb.solve(here, resume=tmp_path / "run", **options)
    assert np.array_equal(resumed.x, whole.x)


def test_a_picture_shows_the_value_of_each_term(rng):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    A, b = data(rng)
    result = sb.solve(sb.Problem(sb.L1(0.5), [A, differences(12)], [sb.Absolute(b), sb.L1(0.5)]))
    bars = result.plot()[2].patches
    assert [bar.get_width() for bar in bars] == [share.value for share in result.terms.values()]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(result.objective)
    assert len(result.plot(pyplot.subplots(1, 2)[1])) == 2
    pyplot.close("all")


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_a_constraint_in_small_units_beside_a_loss_is_not_ignored(target, rng):
    """The solution without a constraint violates it by little in its units: no certificate accepts that."""
    A, b = data(rng)
    free = sb.solve(sb.Problem(sb.L1(0.5), A, sb.Squared(b)), tol=1e-12)
    row, losses = 1e-6 * np.ones((1, 12)), [sb.Squared(b), sb.Equality([1e-6 * target])]
    found = sb.certify(sb.Problem(sb.L1(0.5), [A, row], losses), free.x, [free.y, np.zeros(1)])
    assert found.relative_gap <= 1e-12
    assert found.error > 0.01
