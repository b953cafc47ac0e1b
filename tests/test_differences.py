"""Differences and repeated entries: identities of the operators, and problems on them."""

from __future__ import annotations

from functools import reduce
from itertools import product

import numpy as np
import pytest
from optional import optional

import saddleback as sb
from saddleback.operators import Compressed
from saddleback.steps.strengths import uniform_strengths

cp = optional("cvxpy")

GRIDS = [(7,), (2,), (4, 3), (1, 5), (3, 1, 4), (3, 4, 2)]


def dense(shape, order):
    """Return the differences along each axis as Kronecker products with identities."""
    blocks = [
        reduce(np.kron, [np.diff(np.eye(size), order, axis=0) if axis == own else np.eye(size)
                         for own, size in enumerate(shape)])
        for axis in range(len(shape))
        if shape[axis] > order
    ]  # fmt: skip
    return np.vstack(blocks)


@pytest.mark.parametrize(("shape", "order"), [(s, k) for s, k in product(GRIDS, (1, 2, 3)) if max(s) > k])
def test_grids(shape, order, rng):
    D, expected = sb.Differences(shape=shape, order=order), dense(shape, order)
    x, y = rng.standard_normal(expected.shape[1]), rng.standard_normal(expected.shape[0])
    assert D.shape == expected.shape
    assert np.array_equal(D.tosparse().toarray(), expected)
    assert D.tosparse().format == "csc"
    assert D.traits.stored == D.tosparse().nnz == np.count_nonzero(expected)
    assert np.allclose(D.matvec(x), expected @ x, atol=1e-13)
    assert np.allclose(D.rmatvec(y), expected.T @ y, atol=1e-13)
    assert np.isclose(D.matvec(x) @ y, x @ D.rmatvec(y))
    for power in (0, 1, 2):
        entries = (expected != 0) if power == 0 else np.abs(expected) ** power
        for axis, found in enumerate(D.sums(power)):
            assert np.allclose(found, entries.sum(axis=axis))
    norm = np.linalg.norm(expected, 2)
    assert D.traits.norm == pytest.approx(norm, rel=1e-12) if order == 1 else D.traits.norm >= norm - 1e-12


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_polynomials_of_lower_degree_have_no_differences(order):
    t = np.arange(12.0)
    D = sb.Differences(12, order)
    for degree in range(order):
        assert np.allclose(D.matvec(t**degree), 0, atol=1e-9)
    assert np.allclose(D.matvec(t**order), np.prod(np.arange(1, order + 1)))


def test_a_line_is_a_grid_with_one_axis():
    assert np.array_equal(sb.Differences(6).tosparse().toarray(), sb.Differences(shape=6).tosparse().toarray())


def test_a_grid_is_a_graph(rng):
    points = np.arange(12).reshape(3, 4)
    down, across = ((points[1:], points[:-1]), (points[:, 1:], points[:, :-1]))
    edges = np.vstack([np.column_stack([start.ravel(), end.ravel()]) for end, start in (down, across)])
    grid, graph = sb.Differences(shape=(3, 4)), sb.Differences(edges=edges, n=12)
    x, y = rng.standard_normal(12), rng.standard_normal(17)
    assert np.array_equal(graph.tosparse().toarray(), grid.tosparse().toarray())
    assert np.allclose(graph.matvec(x), grid.matvec(x))
    assert np.allclose(graph.rmatvec(y), grid.rmatvec(y))
    assert np.array_equal(graph.groups.order, grid.groups.order)
    assert graph.traits.norm >= grid.traits.norm


def test_weights_are_factors_of_the_differences(rng):
    edges, weights = np.array([[0, 1], [3, 1], [2, 3]]), np.array([2.0, 0.0, 0.5])
    D = sb.Differences(edges=edges, weights=weights)
    x = rng.standard_normal(4)
    assert np.allclose(D.matvec(x), weights * (x[edges[:, 1]] - x[edges[:, 0]]))
    assert D.traits.norm >= np.linalg.norm(D.tosparse().toarray(), 2)
    assert np.array_equal(D.sums(0)[1], [2, 0, 2])


@pytest.mark.parametrize("order", [1, 2])
def test_groups_are_the_gradients(order, rng):
    """The sum of group norms is the isotropic total variation, with one-sided differences at the border."""
    D, X = sb.Differences(shape=(5, 4), order=order), rng.standard_normal((5, 4))
    gradients = np.zeros((2, 5, 4))
    gradients[0, : 5 - order], gradients[1, :, : 4 - order] = np.diff(X, order, axis=0), np.diff(X, order, axis=1)
    penalty = sb.GroupL2(0.7, D.groups)
    assert penalty.value(D.matvec(X.ravel())) == pytest.approx(0.7 * np.sum(np.linalg.norm(gradients, axis=0)))
    assert sb.GroupL2(0.7, D.groups, np.full(len(D.groups), 2.0)).value(np.ones(D.shape[0])) == pytest.approx(
        1.4 * np.sum(np.sqrt(D.groups.sizes))
    )
    with pytest.raises(ValueError, match=f"groups is a partition of {D.shape[0]} entries: expected 3"):
        penalty.value(np.ones(3))


def test_repeated_entries(rng):
    columns = [3, 0, 1, 1, 3, 3]
    R = sb.Repeat(columns, n=5)
    expected = np.eye(5)[columns]
    x, y = rng.standard_normal(5), rng.standard_normal(6)
    assert np.array_equal(R.tosparse().toarray(), expected)
    assert np.array_equal(R.matvec(x), x[columns])
    assert np.allclose(R.rmatvec(y), expected.T @ y)
    assert R.traits.norm == pytest.approx(np.linalg.norm(expected, 2))
    assert sb.Repeat(columns).shape == (6, 4)
    for power in (0, 1, 2):
        for axis, found in enumerate(R.sums(power)):
            assert np.array_equal(found, expected.sum(axis=axis))


BAD = {
    "nothing": (lambda: sb.Differences(), "neither given"),
    "n and shape": (lambda: sb.Differences(3, shape=(3,)), "both given"),
    "n": (lambda: sb.Differences(0), "n=0: expected an integer of at least 1"),
    "n of another type": (lambda: sb.Differences(2.5), "n=2.5: expected an integer"),
    "order": (lambda: sb.Differences(5, order=0), "order=0: expected an integer of at least 1"),
    "too few points": (lambda: sb.Differences(3, order=3), "at least 4 points"),
    "shape": (lambda: sb.Differences(shape=(3, 0)), r"shape=\(3, 0\) is not that of a grid"),
    "shape of another type": (lambda: sb.Differences(shape=(3, 2.5)), "not that of a grid"),
    "weights": (lambda: sb.Differences(3, weights=[1, 2]), "expected edges too"),
    "edges and shape": (lambda: sb.Differences(edges=[[0, 1]], shape=(2,)), "both given"),
    "edges and order": (lambda: sb.Differences(edges=[[0, 1]], order=2), "order=2 with edges"),
    "edges": (lambda: sb.Differences(edges=[[0, 1, 2]]), r"edges has shape \(1, 3\): expected a matrix with 2"),
    "edge beyond": (lambda: sb.Differences(edges=[[0, 4]], n=4), "edges has indices from 0 to 4: expected .* 0 to 3"),
    "negative edge": (lambda: sb.Differences(edges=[[0, -1]]), "edges has indices from -1"),
    "loop": (lambda: sb.Differences(edges=[[0, 1], [1, 1]]), r"edges has the loop \[1, 1\] at index 1"),
    "weights per edge": (lambda: sb.Differences(edges=[[0, 1]], weights=[1, 2]), r"weights has shape \(2,\)"),
    "negative weight": (lambda: sb.Differences(edges=[[0, 1]], weights=[-1]), "weights has the value -1"),
    "columns": (lambda: sb.Repeat([[0, 1]]), r"columns has shape \(1, 2\): expected a vector"),
    "empty columns": (lambda: sb.Repeat([]), "columns is empty"),
    "column beyond": (lambda: sb.Repeat([0, 5], n=5), "columns has indices from 0 to 5: expected .* 0 to 4"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(TypeError, match="columns has dtype float64: expected integers"):
        sb.Repeat([0.5, 1.0])


def test_a_known_norm_needs_no_products(monkeypatch):
    """The steps of PDHG follow from the norm of the operator, or of operators side by side."""
    D = sb.Differences(50)
    model = sb.Problem(sb.L1(1.0), D, sb.Squared(np.ones(49))).model
    monkeypatch.setattr("saddleback.steps.strengths.operator_norm", None)
    strengths = uniform_strengths(model)
    assert strengths.passes == 0
    assert strengths.primal[0] == pytest.approx(np.linalg.norm(D.tosparse().toarray(), 2), rel=1e-2)


@pytest.mark.parametrize("D", [sb.Differences(9), sb.Differences(9, 2), sb.Repeat([0, 1, 2, 2, 1, 8, 3])], ids=repr)
@pytest.mark.parametrize("loss", [sb.Squared, sb.Absolute, sb.Huber])
def test_problems_agree_with_the_sparse_matrix(D, loss, rng):
    b = rng.standard_normal(D.shape[0])
    problems = [sb.Problem(sb.L1(0.1), A, loss(b)) for A in (D, D.tosparse())]
    first, second = (sb.solve(problem, tol=1e-9) for problem in problems)
    assert first.status == second.status == sb.Status.OPTIMAL
    assert first.certificate.primal_value == pytest.approx(second.certificate.primal_value, rel=1e-8)


def test_kernels_are_compiled():
    """Methods that read columns get the sparse form, which the compiled kernels know."""
    D = sb.Differences(30)
    assert isinstance(D.ordered("columns"), Compressed)
    result = sb.solve(sb.Problem(sb.L1(0.1), D, sb.Absolute(np.ones(29))), method="sp-bcd")
    assert result.settings["backend"] == "native"


def test_on_a_device(rng):
    pytest.importorskip("torch")
    D, b = sb.Differences(shape=(4, 5)), rng.standard_normal(31)
    problem = sb.Problem(sb.SquaredL2(0.1), D, sb.Squared(b))
    here, there = (sb.solve(problem, device=device, tol=1e-10) for device in (None, "cpu"))
    assert there.settings["backend"] == "torch"
    assert np.allclose(here.x, there.x, atol=1e-5)


def test_in_a_checkpoint(tmp_path, rng):
    """A run that is resumed gives the same result, and another operator is refused."""
    D, b = sb.Differences(40), np.cumsum(rng.standard_normal(39))
    options = {"method": "sp-bcd", "tol": 1e-9}
    problem = sb.Problem(sb.L1(0.1), D, sb.Absolute(b))
    whole = sb.solve(problem, **options)
    sb.solve(problem, **options, max_passes=20, checkpoint=tmp_path / "run")
    resumed = sb.solve(problem, **options, resume=tmp_path / "run")
    assert np.array_equal(whole.x, resumed.x)
    with pytest.raises(ValueError, match="the entries of A"):
        sb.solve(sb.Problem(sb.L1(0.1), -D.tosparse(), sb.Absolute(b)), **options, resume=tmp_path / "run")


def test_isotropic_total_variation(rng):
    X = np.kron([[0.0, 1.0], [2.0, -1.0]], np.ones((3, 4))) + 0.2 * rng.standard_normal((6, 8))
    D = sb.Differences(shape=X.shape)
    losses = [sb.Squared(X.ravel()), sb.GroupL2(0.3, D.groups)]
    problem = sb.Problem(sb.Zero(), [sb.Identity(), D], losses)
    result = sb.solve(problem, tol=1e-7)
    Z = cp.Variable(X.shape)
    down = cp.vstack([cp.diff(Z, axis=0), np.zeros((1, 8))])
    across = cp.hstack([cp.diff(Z, axis=1), np.zeros((6, 1))])
    lengths = cp.norm(cp.vstack([cp.vec(down, order="C"), cp.vec(across, order="C")]), 2, axis=0)
    optimum = cp.Problem(cp.Minimize(cp.sum_squares(Z - X) / 2 + 0.3 * cp.sum(lengths))).solve(solver="CLARABEL")
    assert result.status == sb.Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert problem.to_cvxpy().solve(solver="CLARABEL") == pytest.approx(optimum, rel=1e-6)


def test_overlapping_groups(rng):
    groups = [[0, 1, 2, 3], [2, 3, 4], [4, 5, 0]]
    A, b = rng.standard_normal((12, 6)), rng.standard_normal(12)
    repeat = sb.Repeat(np.concatenate(groups))
    group_norms = sb.GroupL2(0.8, [len(group) for group in groups])
    result = sb.solve(sb.Problem(sb.Zero(), [A, repeat], [sb.Absolute(b), group_norms]), tol=1e-7)
    x = cp.Variable(6)
    norms = sum(np.sqrt(len(group)) * cp.norm(x[group], 2) for group in groups)
    optimum = cp.Problem(cp.Minimize(cp.norm1(A @ x - b) + 0.8 * norms)).solve(solver="CLARABEL")
    assert result.status == sb.Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-6)
