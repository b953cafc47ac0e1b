"""Sparse factors agree with dense algebra, their size is predicted, and a step of the interior point uses them."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from scipy import sparse
from scipy.linalg import solveh_banded

import saddleback as sb
from saddleback import _native
from saddleback.machine import sparse_factors
from saddleback.machine.blas_threads import single_threaded
from saddleback.machine.sparse_factors import Banded, Supernodal, minimum_degree, normal_matrix
from saddleback.methods.interior import structure, structure_of
from saddleback.methods.interior.barrier import Stiffness
from saddleback.methods.interior.structure import find_structure
from saddleback.methods.interior.system import Sparse, factored
from saddleback.methods.interior_point import matrix_bytes
from saddleback.operators import as_operator

seeds = st.integers(0, 10_000)


def differences(n, order):
    matrix = sparse.identity(n, format="csr")
    for _ in range(order):
        m = matrix.shape[0]
        matrix = sparse.diags([-np.ones(m - 1), np.ones(m - 1)], [0, 1], shape=(m - 1, m)) @ matrix
    return sparse.csr_matrix(matrix)


def grid(side):
    line, one = differences(side, 1), sparse.identity(side)
    return sparse.csr_matrix(sparse.vstack([sparse.kron(line, one), sparse.kron(one, line)]))


def random_sparse(rng, m, n, density):
    return sparse.csr_matrix(sparse.random(m, n, density, random_state=rng.integers(2**31)))


def dense_normal(T, weight, diagonal):
    return T.T.toarray() @ (weight[:, None] * T.toarray()) + np.diag(diagonal)


# --- factors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", _native.BAND_WIDTHS)
@examples(10)
@given(seed=seeds, n=st.integers(1, 60))
def test_a_band_is_solved_like_a_dense_matrix(width, seed, n):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, 2 * n)
    dense = np.zeros((2 * n, n))
    for row, at in zip(dense, first, strict=True):
        row[at : at + width + 1] = rng.standard_normal(min(width + 1, n - at))
    T = sparse.csr_matrix(dense)
    normal = Banded(T, None, width)
    weight, diagonal, right = rng.uniform(0, 5, 2 * n), rng.uniform(0.5, 2, n), rng.standard_normal(n)
    found = normal.factored(weight, diagonal)(right)
    np.testing.assert_allclose(dense_normal(T, weight, diagonal) @ found, right, atol=1e-10)


@examples(20)
@given(seed=seeds, n=st.integers(5, 40), order=st.integers(1, 3), spread=st.integers(0, 9))
def test_a_band_keeps_its_digits_when_weights_differ_widely(seed, n, order, spread):
    """Against elimination in rational numbers: doubles alone lose all digits if the weights differ by 1e16.

    Some digits may be missing, which iterative refinement with exact residuals finds. The condition number is up to
    64 * 10 ** (3 * spread) for third differences; twice the digits of a double are lost at 1e32.
    """
    rng = np.random.default_rng(seed)
    T = differences(n, order)
    weight, diagonal = 10.0 ** rng.uniform(0, 2 * spread, T.shape[0]), 10.0 ** rng.uniform(-spread, 0, n)
    right = rng.standard_normal(n)
    exact = [[Fraction(0)] * n for _ in range(n)]
    dense = T.toarray().astype(int)
    for row, w in zip(dense, weight, strict=True):
        for i in np.flatnonzero(row):
            for j in np.flatnonzero(row):
                exact[i][j] += Fraction(w) * int(row[i]) * int(row[j])
    for i in range(n):
        exact[i][i] += Fraction(diagonal[i])
    expected = exact_solution(exact, [Fraction(value) for value in right])
    solve = Banded(T, None, order).factored(weight, diagonal)
    found = solve(right)
    for _ in range(12):
        products = [sum(a * Fraction(x) for a, x in zip(row, found, strict=True)) for row in exact]
        found = found + solve(np.array([float(Fraction(b) - u) for b, u in zip(right, products, strict=True)]))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("width", [1, 2, 3, 16])
@pytest.mark.parametrize("n", [4095, 4096, 4097, 9000])
@pytest.mark.parametrize("form", ["gram", "precise_gram"])
def test_a_long_band_is_eliminated_from_both_ends(width, n, form, rng):
    """Rows in any order, of any length up to the width, against LAPACK."""
    first, lengths = rng.integers(0, n - width, 2 * n), rng.integers(1, width + 2, 2 * n)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - first, lengths)
    T = sparse.csr_array((rng.standard_normal(indices.size), indices, indptr), shape=(2 * n, n))
    weight, diagonal, right = rng.uniform(0, 5, 2 * n), rng.uniform(0.5, 2, n), rng.standard_normal(n)
    normal = sparse.dia_array(T.T @ sparse.diags_array(weight) @ T + sparse.diags_array(diagonal))
    lower = np.zeros((width + 1, n))
    for offset, entries in zip(normal.offsets, normal.data, strict=True):
        if offset <= 0:
            lower[-offset] = entries
    results, some = [], rng.permutation(n)[: n // 2]
    for threads in (1, 2):
        before = _native.set_threads(threads)
        try:
            rows = _native.BandRows(T.indptr.astype(np.int64), T.indices.astype(np.int64), T.data, n, width)
            matrix = getattr(rows, form)(weight, diagonal)
            np.testing.assert_allclose(matrix.diagonal(), normal.diagonal(), rtol=1e-13)
            matrix.set_diagonal(some, matrix.diagonal()[some])
            assert 0.0 < matrix.factor() <= 1.0
            results.append(matrix.solve(right))
        finally:
            _native.set_threads(before)
    np.testing.assert_allclose(results[0], solveh_banded(lower, right, lower=True), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(*results)


def test_an_empty_column_leaves_the_digits_of_the_others(rng):
    """Only its own entry of the diagonal is replaced: all others keep twice the digits of a double."""
    n = 60
    T = sparse.csr_array(sparse.hstack([differences(n, 3), sparse.csr_array((n - 3, 1))]))
    weight, right = 10.0 ** rng.uniform(6, 14, n - 3), rng.standard_normal(n)
    diagonal = 10.0 ** rng.uniform(-6, 0, n)
    alone = Banded(differences(n, 3), None, 3).factored(weight, diagonal)(right)
    beside = Banded(T, None, 3).factored(weight, np.append(diagonal, 0.0))(np.append(right, 0.0))
    np.testing.assert_array_equal(beside[:-1], alone)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory in use is read from /proc")
def test_a_band_that_does_not_fit_into_memory_is_an_error():
    code = """
import numpy as np, resource
from saddleback import _native
n = 2_000_000
rows = _native.BandRows(np.array([0, 1]), np.array([0]), np.ones(1), n, 16)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, resource.RLIM_INFINITY))
try:
    rows.precise_gram(np.ones(1), np.ones(n))
except MemoryError:
    print("refused")
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "refused", found.stderr


def exact_solution(matrix, right):
    """Return the solution of a positive definite system by elimination in rational numbers."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, own in enumerate(rows):
        for j, other in enumerate(rows):
            if j != i and other[i]:
                factor = other[i] / own[i]
                rows[j] = [a - factor * b for a, b in zip(other, own, strict=True)]
    return [float(row[-1] / row[i]) for i, row in enumerate(rows)]


@examples(40)
@given(seed=seeds, n=st.integers(1, 80), density=st.sampled_from([0.0, 0.01, 0.05, 0.2]))
def test_supernodes_are_solved_like_a_dense_matrix(seed, n, density):
    rng = np.random.default_rng(seed)
    T = random_sparse(rng, 2 * n, n, density)
    normal = supernodal(T)
    weight, diagonal, right = rng.uniform(0, 5, 2 * n), rng.uniform(0.5, 2, n), rng.standard_normal(n)
    matrix = dense_normal(T, weight, diagonal)
    np.testing.assert_allclose(matrix @ normal.factored(weight, diagonal)(right), right, atol=1e-10)
    # the fill of a factor in the same order, found by dense elimination of a matrix without cancellation
    own = np.abs(matrix)[np.ix_(normal.order, normal.order)] + 1e3 * n * np.eye(n)
    assert np.count_nonzero(np.abs(np.linalg.cholesky(own)) > 1e-250) <= normal.pattern.entries


def supernodal(T):
    """Return the normal matrix by supernodes, also where a band would be used."""
    pattern = sparse.csc_array(abs(T).T @ abs(T))
    order = minimum_degree(pattern)
    order = order[sparse_factors._pattern(pattern, order)[0].postorder()]
    own, lower = sparse_factors._pattern(pattern, order)
    assert own.analyse(10**9)
    return Supernodal(T, order, own, lower)


def test_superlu_takes_the_place_of_supernodes_without_a_blas(monkeypatch, rng):
    T = grid(20)
    normal = normal_matrix(T, 1e9)
    assert isinstance(normal, Supernodal)
    weight, diagonal, right = rng.uniform(0, 5, T.shape[0]), rng.uniform(0.5, 2, 400), rng.standard_normal(400)
    expected = normal.factored(weight, diagonal)(right)
    monkeypatch.setattr(sparse_factors, "tiled", lambda: False)
    np.testing.assert_allclose(normal.factored(weight, diagonal)(right), expected, rtol=1e-9)
    assert normal.factored(weight, -100 * np.ones(400)) is None


@pytest.mark.parametrize("T", [differences(40, 2), grid(20)])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(T):
    normal = normal_matrix(T, 1e9)
    weight, n = np.ones(T.shape[0]), T.shape[1]
    assert normal.factored(weight, np.ones(n)) is not None
    assert normal.factored(weight, -100.0 * np.ones(n)) is None
    assert normal.factored(np.full(T.shape[0], np.nan), np.ones(n)) is None


@pytest.mark.parametrize("side", [60, 120])
def test_an_order_of_minimum_degree_keeps_the_fill_of_a_grid_small(side):
    """In the order of the pixels L has side^3 entries; nested dissection attains a multiple of side^2 log(side)."""
    normal = normal_matrix(grid(side), 1e9)
    assert isinstance(normal, Supernodal)
    assert normal.pattern.entries < 8 * side**2 * np.log2(side)


def test_a_scattered_chain_becomes_a_band_again(rng):
    T = differences(500, 2)[:, rng.permutation(500)]
    normal = normal_matrix(T, 1e9)
    assert isinstance(normal, Banded)
    assert normal.width <= 6
    weight, diagonal, right = rng.uniform(0, 5, 498), rng.uniform(0.5, 2, 500), rng.standard_normal(500)
    found = normal.factored(weight, diagonal)(right)
    np.testing.assert_allclose(dense_normal(T, weight, diagonal) @ found, right, atol=1e-9)


def test_a_factor_with_too_many_entries_is_not_analysed():
    assert normal_matrix(grid(40), 5000) is None


def test_bad_arguments_of_the_native_factors_are_rejected():
    indptr, indices, data, ones = np.array([0, 2]), np.array([0, 1]), np.ones(2), np.ones(1)
    pattern = _native.SparsePattern(np.array([0, 2, 3]), np.array([0, 1, 1]))
    rows = _native.BandRows(indptr, indices, data, 2, 1)
    twice = rows.precise_gram(ones, np.ones(2))
    twice.factor()
    for call in (
        lambda: _native.BandRows(indptr, indices, data, 2, 5),
        lambda: _native.BandRows(np.zeros(0, np.int64), indices, data, 2, 1),
        lambda: _native.BandRows(indptr, np.array([0, 3]), data, 4, 2),
        lambda: _native.BandRows(indptr, np.array([1, 0]), data, 4, 2),
        lambda: rows.gram(np.ones(2), np.ones(2)),
        lambda: rows.gram(ones, np.ones(3)),
        lambda: rows.gram(ones, np.ones(2)).set_diagonal(np.array([0, 1]), np.ones(3)),
        lambda: rows.gram(ones, np.ones(2)).set_diagonal(np.array([2]), ones),
        lambda: rows.gram(ones, np.ones(2)).solve(np.ones(2)),
        lambda: twice.factor(),
        lambda: twice.solve(np.ones(3)),
        lambda: _native.SparsePattern(np.array([0, 1, 2]), np.array([0, 0])),
        lambda: _native.SparsePattern(np.array([0, 2, 3]), np.array([0, 2, 1])),
        lambda: _native.SparsePattern(np.array([0, 3]), np.array([0])),
        lambda: _native.SparsePattern(np.zeros(0, np.int64), np.zeros(0, np.int64)),
        lambda: pattern.entries,
        lambda: pattern.factor(np.ones(3)),
        lambda: pattern.gram(indptr, indices, data, ones, np.ones(3)),
        lambda: _native.SparsePattern(np.array([0, 1, 2]), np.array([0, 1])).gram(
            indptr, indices, data, ones, np.ones(2)
        ),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


# --- the system of a step ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["chain", "grid", "random"])
@examples(15)
@given(
    seed=seeds,
    loose=st.integers(0, 3),
    hard=st.integers(0, 3),
    fixed=st.booleans(),
    dense=st.sampled_from(["", "row", "column"]),
    side=st.sampled_from(["rows", "columns"]),
)
def test_sparse_and_dense_systems_give_the_same_direction(kind, seed, loose, hard, fixed, dense, side):
    """With free variables or equality constraints, fixed coordinates, and a dense row or column beside a sparse A."""
    rng = np.random.default_rng(seed)
    A = {
        "chain": lambda: differences(60, 2),
        "grid": lambda: grid(8),
        "random": lambda: random_sparse(rng, 70, 60, 0.03),
    }[kind]()
    if dense == "row":
        A = sparse.vstack([A, rng.standard_normal((1, A.shape[1]))])
    if dense == "column":
        A = sparse.hstack([A, rng.standard_normal((A.shape[0], 1))])
    m, n = A.shape
    f, g = 10.0 ** rng.uniform(-3, 3, n), 10.0 ** rng.uniform(-3, 3, m)
    free, equal = rng.permutation(n)[:loose], rng.permutation(m)[: 0 if loose else hard]
    f[free], g[equal] = 0.0, 0.0
    if fixed:
        f[rng.choice(np.flatnonzero(f))] = g[rng.choice(np.flatnonzero(g))] = np.inf
    columns, rows = np.flatnonzero(np.isfinite(f)), np.flatnonzero(np.isfinite(g))
    own = A.toarray()[np.ix_(rows, columns)]
    whole = np.block([[np.diag(f[columns]), own.T], [-own, np.diag(g[rows])]])
    r, s = rng.standard_normal(n), rng.standard_normal(m)
    with single_threaded():  # threads of the BLAS take longer than such small matrices
        if np.linalg.cond(whole) > 1e9:
            return
        expected = np.linalg.solve(whole, np.concatenate([r[columns], s[rows]]))
    operator = as_operator(sparse.csc_matrix(A), "A").ordered("columns")
    found_structure = _any_structure(operator, free, equal, side)
    system = factored(operator, Stiffness(f, None), Stiffness(g, None), found_structure)
    assert isinstance(system, Sparse)
    system.accurate = 1e-13
    found = system.refined(r, s)
    np.testing.assert_allclose(np.concatenate([found.dx[columns], found.dy[rows]]), expected, rtol=1e-6, atol=1e-7)
    assert not np.any(found.dx[~np.isfinite(f)])
    assert not np.any(found.dy[~np.isfinite(g)])
    np.testing.assert_allclose(found.u, A @ found.dx, atol=1e-9)
    np.testing.assert_allclose(found.z, A.T @ found.dy, atol=1e-9)


def _any_structure(operator, free, equal, side):
    """Return a structure also for a problem so small that a dense matrix is faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "gram_multiplications", lambda *_: np.inf)
        patch.setattr(structure, "DENSE", 5.0)
        patch.setattr(structure, "PAIRS", np.inf)
        patch.setattr(sparse_factors, "FULL", np.inf)
        found = find_structure(operator, np.sort(free), np.sort(equal), side)
    assert found is not None
    return found


def test_the_variable_that_stays_is_the_one_whose_kinks_absorb_rounding():
    assert structure_of(smoothing(1000, 2, 1.0, "squared").model).side == "rows"
    assert structure_of(smoothing(1000, 2, 1.0, "absolute").model).side == "columns"


def test_dense_rows_and_columns_become_the_border(rng):
    chain = differences(3000, 1)
    for A, side, at in (
        (sparse.vstack([chain, np.ones((1, 3000))]), "columns", 2999),
        (sparse.hstack([chain, np.ones((2999, 1))]), "rows", 3000),
    ):
        found = find_structure(as_operator(sparse.csc_matrix(A), "A"), np.zeros(0, int), np.zeros(0, int), "rows")
        assert found.side == side
        assert found.border.tolist() == [at]
        assert isinstance(found.normal, Banded)


def scattered(m, n, per_row):
    """Return a sparse matrix with entries at random places."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(m), per_row), rng.integers(0, n, m * per_row)
    return sparse.csc_matrix((np.ones(m * per_row), (rows, columns)), shape=(m, n))


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.random.default_rng(0).standard_normal((50, 40)),
        lambda: scattered(4000, 3000, 15),
        lambda: scattered(30_000, 30_000, 6),
        lambda: sparse.vstack([differences(3000, 1), np.ones((300, 3000))]),
    ],
    ids=["dense", "filled", "large and filled", "many dense rows"],
)
def test_a_matrix_whose_factor_would_be_full_has_no_structure(make):
    A = make()
    problem = sb.Problem(sb.L1(0.1), A, sb.Absolute(np.zeros(A.shape[0])))
    assert structure_of(problem.model) is None


def test_the_memory_of_a_step_grows_with_the_fill():
    def needed(A):
        return matrix_bytes(sb.Problem(sb.SquaredL2(1.0), A, sb.Absolute(np.ones(A.shape[0]))).model)

    assert needed(differences(200_000, 3)) < 160 * 200_000
    assert needed(grid(100)) < 16 * 60 * 100**2
    assert needed(sparse.vstack([differences(20_000, 2), np.ones((2, 20_000))])) < 400 * 20_000


# --- problems ---------------------------------------------------------------------------------------------------------


def smoothing(n, order, alpha, loss="squared", seed=0):
    """Return min loss(x - b) + alpha ||D x||_1 with the loss as a penalty."""
    rng = np.random.default_rng(seed)
    b = np.cumsum(rng.standard_normal(n) * (rng.random(n) < 0.02)) + 0.3 * rng.standard_normal(n)
    D = differences(n, order)
    if loss == "squared":
        penalty, shift = sb.SquaredL2(1.0) + sb.Linear(-b), np.zeros(D.shape[0])
    else:  # in terms of x - b
        penalty, shift = sb.L1(1.0), -(D @ b)
    return sb.Problem(penalty, D, sb.Absolute(shift, scale=alpha))


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_chain_is_solved_in_few_steps_and_little_memory(order, loss):
    n = 20_000
    problem = smoothing(n, order, 5.0**order, loss)
    result = sb.solve(problem, tol=1e-6)
    assert result.status is sb.Status.OPTIMAL
    assert result.method == "finish"
    assert result.settings["finish_steps"] <= 60
    assert result.passes <= 60 * 25
    assert matrix_bytes(problem.model) <= 160 * n


def test_third_differences_under_an_absolute_loss_reach_a_small_tolerance():
    """With the other variable eliminated, rounding in the loss of D x ends the interior point at 2e-8."""
    result = sb.solve(smoothing(20_000, 3, 500.0, "absolute"), tol=1e-8, method="finish")
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["finish_steps"] <= 60


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_sparse_and_dense_factors_lead_to_the_same_solution(loss, monkeypatch):
    problem = smoothing(400, 2, 3.0, loss)
    assert structure_of(problem.model) is not None
    sparse_result = sb.solve(problem, method="finish", tol=1e-9)
    dense_problem = smoothing(400, 2, 3.0, loss)
    monkeypatch.setattr(structure, "SPARSE", 0.0)
    assert structure_of(dense_problem.model) is None
    dense_result = sb.solve(dense_problem, method="finish", tol=1e-9)
    assert sparse_result.objective == pytest.approx(dense_result.objective, rel=1e-8)
    if loss == "squared":
        np.testing.assert_allclose(sparse_result.x, dense_result.x, atol=1e-4)


@pytest.mark.parametrize("storage", [sparse.csr_matrix, sparse.csc_matrix])
def test_a_run_with_sparse_factors_resumes_with_the_same_bits(storage, tmp_path):
    problem = smoothing(2000, 2, 10.0)
    problem = sb.Problem(problem.penalty, storage(problem.A), problem.loss)
    whole = sb.solve(problem, tol=1e-8)
    sb.solve(problem, tol=1e-8, max_passes=30, checkpoint=tmp_path / "run")
    resumed = sb.solve(problem, tol=1e-8, resume=tmp_path / "run")
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.settings["finish_steps"] == whole.settings["finish_steps"]


def test_total_variation_on_a_grid_is_certified():
    rng = np.random.default_rng(0)
    side = 40
    b = (np.add.outer(np.arange(side), np.arange(side)) > side).astype(float).ravel() + 0.2 * rng.standard_normal(
        side**2
    )
    D = grid(side)
    problem = sb.Problem(sb.SquaredL2(1.0) + sb.Linear(-b), D, sb.Absolute(np.zeros(D.shape[0]), scale=0.3))
    assert isinstance(structure_of(problem.model).normal, Supernodal)
    result = sb.solve(problem, method="finish", tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert result.settings["finish_steps"] <= 40


def test_linear_constraints_beside_a_chain_are_its_border():
    """Fused differences and a sum that is given: one dense row with D_g = 0."""
    rng = np.random.default_rng(1)
    n = 3000
    b = rng.standard_normal(n)
    A = sparse.vstack([differences(n, 1), np.ones((1, n))])
    loss = sb.Interval(np.r_[np.full(n - 1, -0.1), 1.0], np.r_[np.full(n - 1, 0.1), 1.0])
    problem = sb.Problem(sb.SquaredL2(1.0) + sb.Linear(-b), A, loss)
    assert structure_of(problem.model).border.tolist() == [n - 1]
    result = sb.solve(problem, method="finish", tol=1e-8)
    assert result.status is sb.Status.OPTIMAL
    assert np.sum(result.x) == pytest.approx(1.0, abs=1e-6)
