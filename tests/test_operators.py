"""Operators: adjointness, agreement with dense arithmetic, and unchanged data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import saddleback as sb
from saddleback.operators import Above, ScaledIdentity, Stacked, Tasks, as_operator
from saddleback.operators.merged import merged
from saddleback.operators.stacked import parts_of
from saddleback.places.native.kernels import matrices

A = np.random.default_rng(0).standard_normal((7, 5)) * (np.random.default_rng(1).random((7, 5)) < 0.7)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


OPERATORS = {
    "C order": lambda: as_operator(np.ascontiguousarray(A), "A"),
    "F order": lambda: as_operator(np.asfortranarray(A), "A"),
    "read-only": lambda: as_operator(read_only(A), "A"),
    "reversed": lambda: as_operator(A[::-1, ::-1][::-1, ::-1], "A"),
    "slice of columns": lambda: as_operator(np.asfortranarray(np.repeat(A, 2, axis=1))[:, ::2], "A"),
    "slice of rows": lambda: as_operator(np.ascontiguousarray(np.repeat(A, 2, axis=0))[::2], "A"),
    "slice of both": lambda: as_operator(np.repeat(np.repeat(A, 2, axis=0), 2, axis=1)[::2, ::2], "A"),
    "float32": lambda: as_operator(A.astype(np.float32), "A"),
    "csc": lambda: as_operator(sparse.csc_matrix(A), "A"),
    "csr": lambda: as_operator(sparse.csr_matrix(A), "A"),
    "csr array": lambda: as_operator(sparse.csr_array(A), "A"),
    "coo": lambda: as_operator(sparse.coo_matrix(A), "A"),
    "csc float32": lambda: as_operator(sparse.csc_matrix(A.astype(np.float32)), "A"),
    "linear operator": lambda: as_operator(aslinearoperator(A), "A"),
    "stacked": lambda: Stacked([as_operator(A[:, :2], "A"), as_operator(sparse.csr_matrix(A[:, 2:]), "A")]),
    "dense above sparse": lambda: Above([as_operator(A[:3], "A"), as_operator(sparse.csr_matrix(A[3:]), "A")], [3, 4]),
    "dense above dense": lambda: Above([as_operator(A[:3], "A"), as_operator(np.asfortranarray(A[3:]), "A")], [3, 4]),
    "sparse above sparse": lambda: Above(
        [as_operator(sparse.csc_matrix(part), "A") for part in (A[:6], A[6:])], [6, 1]
    ),
    "blocks": lambda: Stacked(
        [
            Above([as_operator(part[:2], "A"), as_operator(sparse.csc_matrix(part[2:]), "A")], [2, 5])
            for part in (A[:, :3], A[:, 3:])
        ]
    ),
    "one task": lambda: Tasks(as_operator(A, "A"), 1),
    "differences": lambda: sb.Differences(edges=EDGES, weights=WEIGHTS),
    "repeat": lambda: sb.Repeat(REPEATED),
}
EDGES = np.array([[0, 1], [1, 3], [4, 0], [2, 1], [3, 4], [0, 1], [2, 4]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.5, 3.0, 0.7, 1.0])
REPEATED = np.array([3, 0, 1, 1, 4, 2, 1])
OTHER_ENTRIES = {
    "differences": WEIGHTS[:, None] * (np.eye(5)[EDGES[:, 1]] - np.eye(5)[EDGES[:, 0]]),
    "repeat": np.eye(5)[REPEATED],
}


def entries_of(name):
    """Return the matrix that an operator of the table stands for."""
    return OTHER_ENTRIES.get(name, A)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("columnar", [False, True])
def test_products(name, columnar, rng):
    operator, A = OPERATORS[name](), entries_of(name)
    operator = operator.ordered("columns") if columnar else operator
    tolerance = 1e-6 if "float32" in name else 1e-13
    x, y = rng.standard_normal(5), rng.standard_normal(7)
    assert operator.shape == (7, 5)
    assert np.allclose(operator.matvec(x), A @ x, atol=tolerance)
    assert np.allclose(operator.rmatvec(y), A.T @ y, atol=tolerance)
    assert operator.matvec(x).dtype == operator.rmatvec(y).dtype == np.float64
    some = np.array([3, 0, 4])
    for columns in (some, slice(1, 4)):
        assert np.allclose(operator.matvec(x[columns], columns), A[:, columns] @ x[columns], atol=tolerance)
        assert np.allclose(operator.rmatvec(y, columns), A[:, columns].T @ y, atol=tolerance)
    assert np.allclose(operator.entries(some), A[:, some], atol=tolerance)
    assert operator.entries(compressed=True).format == "csc"
    assert np.allclose(operator.entries(compressed=True).toarray(), A, atol=tolerance)
    assert np.allclose(operator.entries(some, compressed=True).toarray(), A[:, some], atol=tolerance)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("rowwise", [False, True])
def test_rows(name, rowwise, rng):
    operator, A = OPERATORS[name](), entries_of(name)
    operator = operator.ordered("rows") if rowwise else operator
    tolerance = 1e-6 if "float32" in name else 1e-13
    x, y, some = rng.standard_normal(5), rng.standard_normal(7), np.array([6, 1, 3])
    assert np.allclose(operator.matvec(x, rows=some), A[some] @ x, atol=tolerance)
    assert np.allclose(operator.rmatvec(y[some], rows=some), A[some].T @ y[some], atol=tolerance)
    normal = operator.gram(None, side="rows")
    normal = normal.toarray() if sparse.issparse(normal) else normal
    assert np.allclose(np.tril(normal), np.tril(A @ A.T), atol=10 * tolerance)


def test_identities_side_by_side_stay_diagonal():
    identities = Stacked([ScaledIdentity(4, 1.0), ScaledIdentity(4, -2.0)])
    assert np.array_equal(identities.gram(None, side="rows"), np.full(4, 5.0))
    mixed = Stacked([ScaledIdentity(7, 2.0), as_operator(A, "A")]).gram(None, side="rows")
    assert np.allclose(mixed, A @ A.T + 4 * np.eye(7))


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "linear operator"])
def test_sums_and_restriction(name, rng):
    operator, A = OPERATORS[name](), entries_of(name)
    tolerance = 1e-6 if "float32" in name else 1e-13
    some, rows, y = np.array([3, 0, 4]), np.array([1, 5]), rng.random(7)
    for power in (1, 2):
        columns, row_sums = operator.sums(power)
        assert np.allclose(columns, (np.abs(A) ** power).sum(axis=0), atol=tolerance)
        assert np.allclose(row_sums, (np.abs(A) ** power).sum(axis=1), atol=tolerance)
    assert np.allclose(operator.sums(2, weights=(None, y))[0], (A * A).T @ y, atol=tolerance)
    c, r = rng.uniform(0.5, 2, 5), rng.uniform(0.5, 2, 7)
    scaled = np.abs(A) * c * r[:, None]
    for found, expected in zip(
        operator.sums(np.inf, weights=(c, r)), (scaled.max(axis=0), scaled.max(axis=1)), strict=True
    ):
        assert np.allclose(found, expected, atol=tolerance)
    for found, expected in zip(operator.sums(1, weights=(c, r)), (np.abs(A).T @ r, np.abs(A) @ c), strict=True):
        assert np.allclose(found, expected, atol=10 * tolerance)
    for power in (0, 1, 2):
        chosen = np.abs(A[:, some]) ** power if power else A[:, some] != 0
        for axis, found in enumerate(operator.sums(power, some)):
            assert np.allclose(found, chosen.sum(axis=axis), atol=tolerance)
    for power, weighted in ((1, np.abs(A)), (2, A * A)):
        assert np.allclose(operator.sums(power, weights=(c, None))[1], weighted @ c, atol=10 * tolerance)
    kept = operator.restrict(rows, np.sort(some))
    assert np.allclose(kept.entries(np.arange(3)), A[np.ix_(rows, np.sort(some))], atol=tolerance)


@pytest.mark.parametrize("name", OPERATORS)
def test_products_with_matrices_are_those_with_their_columns(name, rng):
    operator = OPERATORS[name]()
    tolerance = 1e-6 if "float32" in name else 1e-13
    X, Y = rng.standard_normal((operator.shape[1], 3)), rng.standard_normal((operator.shape[0], 3))
    for columns in (None, np.array([3, 0, 4]), np.empty(0, dtype=np.int64)):
        if columns is not None and not operator.traits.reads_columns:
            continue
        given = X if columns is None else X[columns]
        forward = [operator.matvec(column, columns) for column in np.ascontiguousarray(given.T)]
        back = [operator.rmatvec(column, columns) for column in np.ascontiguousarray(Y.T)]
        assert np.allclose(operator.matmat(given, columns), np.stack(forward, axis=1), atol=tolerance)
        assert np.allclose(operator.rmatmat(Y, columns), np.stack(back, axis=1), atol=tolerance)


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_matrix])
def test_any_rows_and_columns_of_a_matrix_variable(make):
    """Also some tasks of a row or column, without the others."""
    tasks = Tasks(as_operator(make(A), "A"), 3)
    whole, every = np.kron(A, np.eye(3)), (np.arange(21), np.arange(15))
    for rows in (np.array([0, 1, 2, 9, 10, 11]), np.array([4, 7, 8, 20]), every[0]):
        for columns in (np.array([3, 4, 5, 0, 1, 2]), np.array([1, 5, 3]), every[1]):
            part = tasks.restrict(rows, columns)
            assert part.shape == (rows.size, columns.size)
            assert np.array_equal(part.entries(), whole[np.ix_(rows, columns)])


@pytest.mark.parametrize("make", [np.asfortranarray, np.ascontiguousarray, sparse.csc_matrix, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scan_agrees_with_separate_readings(make, dtype, rng):
    """A scan gives the squares of columns and rows and A'y, for columns in incomplete groups of four; it finds NaN."""
    dense = (rng.standard_normal((33, 70)) * (rng.random((33, 70)) < 0.5)).astype(dtype)
    y = rng.standard_normal(33)
    plain, scanned = as_operator(make(dense), "A"), as_operator(make(dense), "A", y)
    for found, expected in zip(scanned.sums(2), plain.sums(2), strict=True):
        assert np.allclose(found, expected, rtol=1e-13)
    if scanned.first_adjoint is not None:
        assert np.allclose(scanned.first_adjoint[1], plain.rmatvec(y), atol=1e-12)
    assert (scanned.first_adjoint is None) == (make in (np.ascontiguousarray, sparse.csr_matrix))
    dense[4, 2] = np.nan
    with pytest.raises(ValueError, match="nan"):
        as_operator(make(dense), "A", y)


@pytest.mark.parametrize("name", ["F order", "float32", "csc", "csc float32", "differences", "repeat"])
@pytest.mark.parametrize("single", [False, True])
def test_packed_columns(name, single):
    some, A = np.array([3, 0, 4]), entries_of(name)
    packed = OPERATORS[name]().ordered("columns").pack(some, single)
    (stored,) = matrices(packed)
    assert stored.arrays[-1].dtype == (np.float32 if single or "float32" in name else np.float64)
    assert np.allclose(packed.entries(np.arange(3)), A[:, some], rtol=1e-6)
    with pytest.raises(ValueError, match="column"):
        OPERATORS[name]().ordered("columns").pack(np.array([5]), single)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in ("linear operator", "one task")])
@pytest.mark.parametrize("columnar", [False, True])
def test_gram_matrices(name, columnar, rng):
    """A_S' W A_S and A W A', in the lower triangle, with weights that may be 0."""
    operator, A = OPERATORS[name](), entries_of(name)
    operator = operator.ordered("columns") if columnar else operator
    tolerance = 1e-5 if "float32" in name else 1e-12
    row_weight, column_weight = (rng.uniform(0, 2, size) * (rng.random(size) < 0.7) for size in (7, 5))
    for some in (np.arange(5), np.array([3, 0, 4]), np.array([2]), np.arange(0)):
        own = A[:, some]
        found = operator.gram(row_weight, some)
        assert np.allclose(np.tril(found), np.tril(own.T @ (row_weight[:, None] * own)), atol=tolerance)
        assert np.allclose(np.tril(operator.gram(None, some)), np.tril(own.T @ own), atol=tolerance)
    assert np.allclose(
        np.tril(operator.gram(column_weight, side="rows")), np.tril((A * column_weight) @ A.T), atol=tolerance
    )
    other = sparse.csc_array(rng.standard_normal((5, 2)) * np.array([[1.0, 0.0]] * 5))
    assert np.allclose(operator.times(other), A @ other.toarray(), atol=tolerance)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_gram_matrices_of_many_rows_go_by_panels(is_sparse, rng, monkeypatch):
    """For any panels and threads, the sum is over all rows."""
    monkeypatch.setattr("saddleback.operators.gram.PANEL", 1000)
    rows, weight = rng.standard_normal((3000, 40)) * (rng.random((3000, 40)) < 0.5), rng.random(3000)
    operator = as_operator(sparse.csr_matrix(rows) if is_sparse else rows, "A").ordered("columns")
    assert np.allclose(np.tril(operator.gram(weight, np.arange(40))), np.tril(rows.T @ (weight[:, None] * rows)))


def test_tasks_are_a_kronecker_product(rng):
    operator = Tasks(as_operator(A, "A"), 3)
    kron = np.kron(A, np.eye(3))
    x, y, some = rng.standard_normal(15), rng.standard_normal(21), np.array([7, 2, 3])
    assert np.allclose(operator.matvec(x), kron @ x)
    assert np.allclose(operator.rmatvec(y), kron.T @ y)
    assert np.allclose(operator.matvec(x[some], some), kron[:, some] @ x[some])
    assert np.allclose(operator.rmatvec(y, some), kron[:, some].T @ y)
    assert np.allclose(operator.entries(some), kron[:, some])
    for rows in (operator, operator.ordered("rows")):
        assert np.allclose(rows.matvec(x, rows=some), kron[some] @ x)
        assert np.allclose(rows.rmatvec(y[some], rows=some), kron[some].T @ y[some])
    assert np.allclose(operator.gram(None, side="rows").toarray(), kron @ kron.T)
    assert np.allclose(operator.sums(1)[0], np.abs(kron).sum(axis=0))
    c, r = rng.uniform(0.5, 2, 15), rng.uniform(0.5, 2, 21)
    scaled = np.abs(kron) * c * r[:, None]
    assert np.allclose(operator.sums(np.inf, weights=(c, r))[0], scaled.max(axis=0))
    assert np.allclose(operator.sums(np.inf, weights=(c, r))[1], scaled.max(axis=1))
    assert np.allclose(operator.sums(1, weights=(c, r))[0], np.abs(kron).T @ r)
    assert np.allclose(operator.sums(1, weights=(c, r))[1], np.abs(kron) @ c)
    assert np.allclose(operator.sums(2, weights=(None, y))[0], (kron * kron).T @ y)
    assert np.allclose(operator.sums(1, some)[1], np.abs(kron[:, some]).sum(axis=1))


def test_identity():
    operator = ScaledIdentity(4, -2.0)
    x, some = np.arange(4.0), np.array([2, 0])
    assert np.allclose(operator.matvec(x), -2 * x)
    assert np.allclose(operator.rmatvec(x), -2 * x)
    assert np.allclose(operator.matvec(x[some], some), [0, 0, -4, 0])
    assert np.allclose(operator.matvec(x, rows=some), [-4, 0])
    assert np.allclose(operator.rmatvec(x[some], rows=some), [0, 0, -4, 0])
    assert np.allclose(operator.rmatvec(x, some), [-4, 0])
    assert np.allclose(operator.entries(some), -2 * np.eye(4)[:, some])


@pytest.mark.parametrize("make", [np.asfortranarray, sparse.csc_matrix])
def test_data_is_neither_copied_nor_changed(make):
    """The kernels read the memory of the user's array."""
    matrix = make(A)
    before = matrix.copy()
    problem = sb.Problem(sb.L1(0.1), matrix, sb.Squared(np.ones(7)))
    operator = problem.model.A.ordered("columns")
    assert np.shares_memory(
        matrices(operator)[0].arrays[-1],
        matrix if make is np.asfortranarray else matrix.data,
    )
    sb.solve(problem)
    assert abs(matrix - before).max() == 0


def test_unsorted_and_repeated_entries_are_summed_in_a_copy():
    matrix = sparse.csc_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(3, 1))
    operator = as_operator(matrix, "A")
    assert np.allclose(operator.entries(np.array([0])).ravel(), [2, 0, 5])
    assert matrix.nnz == 3


@pytest.mark.parametrize(
    ("bad", "error", "match"),
    [
        (np.array([[1.0, np.nan]]), ValueError, r"A has the value nan at \[0, 1\]"),
        (np.array([[1.0, np.inf]]), ValueError, "expected finite"),
        (sparse.csc_matrix(np.array([[1.0, np.nan]])), ValueError, "nan"),
        (np.zeros((0, 3)), ValueError, "A is empty"),
        (sparse.csc_matrix((3, 0)), ValueError, "A is empty"),
        (np.zeros((2, 2, 2)), ValueError, "3 dimensions"),
        (np.zeros((2, 2), dtype=complex), TypeError, "complex128"),
        (np.array([[1, "a"]], dtype=object), TypeError, "object"),
        (sparse.csc_matrix(np.eye(2) * 1j), TypeError, "complex"),
        (aslinearoperator(np.eye(2) * 1j), TypeError, "complex"),
    ],
)
def test_bad_matrices(bad, error, match):
    with pytest.raises(error, match=match):
        as_operator(bad, "A")


def test_finite_entries_whose_sum_overflows_are_accepted():
    as_operator(np.full((4, 1), 1e308), "A")


def test_unaligned_and_mixed_index_data(rng):
    packed = np.zeros((6, 4), dtype=np.dtype([("flag", "i1"), ("value", "f8")]))
    packed["value"] = rng.standard_normal((6, 4))
    assert np.allclose(as_operator(packed["value"], "A").matvec(np.ones(4)), packed["value"].sum(axis=1))
    matrix = sparse.csc_matrix(A)
    matrix.indices = matrix.indices.astype(np.int64)
    assert np.allclose(as_operator(matrix, "A").matvec(np.ones(5)), A.sum(axis=1))


@pytest.mark.parametrize("method", ["auto", "r2hpdhg", "gs-admm"])
@pytest.mark.parametrize("beside", [False, True])
def test_a_linear_operator_may_return_its_argument(method, beside, rng):
    """Callers change results in place, so that a result must not be shared with anything else."""
    b, matrix = rng.standard_normal(6), rng.standard_normal((6, 3))
    same = LinearOperator((6, 6), matvec=lambda x: x, rmatvec=lambda y: y, dtype=float)
    problem = sb.Problem(sb.L1(0.3), same, sb.Squared(b))
    if beside:
        problem = sb.Problem([sb.L1(0.3), sb.L1(0.2)], [same, matrix], sb.Squared(b))
    result = sb.solve(problem, method)
    assert result.status is sb.Status.OPTIMAL
    assert sb.certify(problem, result.x, result.y).error <= 1e-6


def test_columns_of_a_large_identity_are_few():
    identity = ScaledIdentity(100_000, -2.0)
    found = identity.entries(np.array([7, 3]))
    assert found.shape == (100_000, 2)
    assert np.array_equal(np.argwhere(found), [[3, 1], [7, 0]])
    assert found[7, 0] == -2.0


class Products:
    """The attributes that an operator needs."""

    shape = A.shape

    def matvec(self, x):
        return A @ x

    def rmatvec(self, y):
        return A.T @ y


def test_an_object_with_products_is_an_operator():
    operator = as_operator(Products(), "A")
    np.testing.assert_allclose(operator.matvec(np.ones(A.shape[1])), A.sum(axis=1))
    np.testing.assert_allclose(operator.rmatvec(np.ones(A.shape[0])), A.sum(axis=0))


class Forward:
    shape = A.shape

    def matvec(self, x):
        return A @ x


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Forward(), r"A is of type Forward and lacks rmatvec.*LinearOperator\(shape, matvec=.*, rmatvec=.*\)"),
        (np.cumsum, r"lacks matvec, rmatvec|lacks shape, matvec, rmatvec.*LinearOperator\(shape, matvec="),
        (lambda x: A @ x, r"type function and lacks shape, matvec, rmatvec.*LinearOperator\(shape, matvec="),
        (Products, "A is the class Products: pass an object of it"),
    ],
)
def test_operators_say_what_they_lack(source, words):
    with pytest.raises(TypeError, match=words):
        as_operator(source, "A")


def test_an_operator_without_an_adjoint_says_how_to_write_one():
    operator = as_operator(LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=float), "A")
    with pytest.raises(TypeError, match=r"A is a LinearOperator without rmatvec: expected .*rmatvec=lambda y"):
        operator.rmatvec(np.ones(A.shape[0]))


@pytest.mark.parametrize("shape", [None, (5,), (5.0, 7.0), (-5, 7), (0, 7)])
def test_operators_have_two_sizes(shape):
    operator = Products()
    operator.shape = shape
    with pytest.raises(ValueError, match="A has the shape"):
        as_operator(operator, "A")


@pytest.mark.parametrize("kinds", ["dense", "sparse", "both"])
def test_a_merged_operator_has_the_same_entries(kinds, rng):
    parts = [rng.standard_normal((5, n)) * (rng.random((5, n)) < 0.5) for n in (3, 1, 4)]
    made = {"dense": np.asarray, "sparse": sparse.csc_array}
    chosen = [made["sparse" if kinds == "sparse" or (kinds == "both" and i == 1) else "dense"] for i in range(3)]
    A = Stacked([as_operator(make(part), "A") for make, part in zip(chosen, parts, strict=True)])
    one = merged(A)
    assert len(parts_of(one)) == (3 if kinds == "both" else 1)
    assert np.array_equal(one.entries(), np.hstack(parts))
    assert merged(one) is one


def test_an_operator_that_is_too_large_is_not_merged(rng, monkeypatch):
    A = Stacked([as_operator(rng.standard_normal((5, 3)), "A") for _ in range(2)])
    monkeypatch.setattr("saddleback.operators.merged.LARGEST", 8.0 * 29)
    assert merged(A) is A
