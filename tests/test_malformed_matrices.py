"""Sparse matrices with invalid arrays: each gives an error that names A, or the right result, without bad reads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.operators import as_operator

M, N = 7, 5


def _matrix(layout: str) -> sparse.sparray:
    rng = np.random.default_rng(3)
    dense = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.6)
    return sparse.coo_array(dense).asformat(layout)


def _put(part: str, at: int, value: int):
    def corrupt(A):
        getattr(A, part)[at] = value

    return corrupt


def _replace(part: str, change):
    def corrupt(A):
        setattr(A, part, change(getattr(A, part)))

    return corrupt


def _remove(part: str):
    return lambda A: delattr(A, part)


IN_PLACE = {
    "indptr inside is huge": _put("indptr", 2, 10**7),
    "indptr inside is negative": _put("indptr", 2, -3),
    "indptr falls": _put("indptr", 3, 1),
    "indptr begins late": _put("indptr", 0, 1),
    "indptr begins negative": _put("indptr", 0, -1),
    "indptr ends late": _put("indptr", -1, 1000),
    "an index is negative": _put("indices", 1, -1),
    "an index is one too large": _put("indices", 1, M),
    "an index is huge": _put("indices", 1, 2**31 - 1),
    "a value is nan": _put("data", 0, np.nan),
    "a value is inf": _put("data", 0, np.inf),
}
"""Corruptions that keep the arrays, so that they can also happen after the Problem was made."""

REPLACED = {
    "indptr is empty": _replace("indptr", lambda a: a[:0]),
    "indptr is short": _replace("indptr", lambda a: a[:-1]),
    "indptr is long": _replace("indptr", lambda a: np.append(a, a[-1])),
    "indptr is 2-D": _replace("indptr", lambda a: a[None]),
    "indptr is 0-D": _replace("indptr", lambda a: np.array(0)),
    "indptr is float": _replace("indptr", lambda a: a + 0.5),
    "indptr is object": _replace("indptr", lambda a: a.astype(object)),
    "indptr is text": _replace("indptr", lambda a: a.astype(str)),
    "indptr is None": _replace("indptr", lambda a: None),
    "indptr is ragged": _replace("indptr", lambda a: [[0], [1, 2]]),
    "indptr is missing": _remove("indptr"),
    "indptr is unsigned and huge": _replace("indptr", lambda a: np.full(a.size, 2**64 - 1, dtype=np.uint64)),
    "indices are float": _replace("indices", lambda a: a.astype(float)),
    "indices are bool": _replace("indices", lambda a: a > 0),
    "indices are object": _replace("indices", lambda a: a.astype(object)),
    "indices are None": _replace("indices", lambda a: None),
    "indices are 2-D": _replace("indices", lambda a: a[:, None]),
    "indices are short": _replace("indices", lambda a: a[:-1]),
    "indices are long": _replace("indices", lambda a: np.append(a, 0)),
    "indices are missing": _remove("indices"),
    "indices are unsigned and huge": _replace("indices", lambda a: np.full(a.size, 2**63, dtype=np.uint64)),
    "data is short": _replace("data", lambda a: a[:-1]),
    "data is long": _replace("data", lambda a: np.append(a, 1.0)),
    "data is 2-D": _replace("data", lambda a: a[None]),
    "data is complex": _replace("data", lambda a: a + 1j),
    "data is object": _replace("data", lambda a: a.astype(object)),
    "data is text": _replace("data", lambda a: a.astype(str)),
    "data is None": _replace("data", lambda a: None),
    "data is masked": _replace("data", lambda a: np.ma.masked_array(a, a > 0)),
    "the shape has more rows": _replace("_shape", lambda s: (s[0] + 1, s[1])),
    "the shape is transposed": _replace("_shape", lambda s: s[::-1]),
    "the shape has huge rows": _replace("_shape", lambda s: (2**40, s[1])),
    "the shape has huge columns": _replace("_shape", lambda s: (s[0], 2**40)),
    "the shape is small": _replace("_shape", lambda s: (1, 1)),
    "the shape is negative": _replace("_shape", lambda s: (-s[0], s[1])),
    "the shape is zero": _replace("_shape", lambda s: (0, s[1])),
    "the shape is 1-D": _replace("_shape", lambda s: (s[0],)),
    "the shape is fractional": _replace("_shape", lambda s: (s[0] + 0.5, s[1])),
}

CORRUPTIONS = IN_PLACE | REPLACED
NAMED = r"^A\b"
REFUSALS = (ValueError, TypeError, MemoryError)


def _reversed(A):
    """Reverse the entries of each column, and claim that they are in order."""
    for a, b in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist(), strict=True):
        A.indices[a:b], A.data[a:b] = A.indices[a:b][::-1].copy(), A.data[a:b][::-1].copy()
    A.has_sorted_indices = A.has_canonical_format = True


def _split(A):
    """Store every entry as two halves, and claim that there are no duplicates."""
    A.data, A.indices, A.indptr = np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr
    A.has_canonical_format = True


def _roomy(A):
    A.data, A.indices = np.append(A.data, [np.nan] * 3), np.append(A.indices, [10**6] * 3)


HARMLESS = {
    "entries out of order": _reversed,
    "duplicates": _split,
    "room for more": _roomy,
    "lists": lambda A: [setattr(A, part, getattr(A, part).tolist()) for part in ("indptr", "indices", "data")],
    "mixed integers": _replace("indptr", lambda a: a.astype(np.int64)),
    "small integers": _replace("indices", lambda a: a.astype(np.int8)),
    "unsigned integers": _replace("indices", lambda a: a.astype(np.uint64)),
    "every other entry": _replace("data", lambda a: np.repeat(a, 2)[::2]),
    "other byte order": _replace("data", lambda a: a.astype(">f8")),
    "nothing masked": _replace("data", lambda a: np.ma.masked_array(a, False)),
    "long double": _replace("data", lambda a: a.astype(np.longdouble)),
}


def _losses():
    b = np.linspace(-1.0, 2.0, M)
    return [sb.Squared(b), sb.Absolute(b)]


@pytest.mark.parametrize("loss", _losses(), ids=["squared", "absolute"])
@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_a_malformed_matrix_is_rejected_by_name(corrupt, layout, loss):
    A = _matrix(layout)
    corrupt(A)
    with pytest.raises(REFUSALS, match=NAMED):
        sb.Problem(sb.L1(0.1), A, loss)


@pytest.mark.parametrize("use", [sb.solve, lambda p: sb.certify(p, np.zeros(N), np.zeros(M))], ids=["solve", "certify"])
@pytest.mark.parametrize("loss", _losses(), ids=["squared", "absolute"])
@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_a_matrix_that_is_damaged_later_is_rejected_by_name(corrupt, layout, loss, use):
    A = _matrix(layout)
    problem = sb.Problem(sb.L1(0.1), A, loss)
    corrupt(A)
    with pytest.raises(REFUSALS, match=r"^A.*changed after the Problem was made"):
        use(problem)


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_unusual_storage_is_the_same_matrix(change, layout):
    A = _matrix(layout)
    expected = A.toarray()
    change(A)
    operator = as_operator(A, "A")
    x, y = np.arange(1.0, N + 1), np.arange(1.0, M + 1)
    np.testing.assert_allclose(operator.matvec(x), expected @ x)
    np.testing.assert_allclose(operator.rmatvec(y), expected.T @ y)
    np.testing.assert_allclose(operator.ordered("columns").entries(np.arange(N)), expected)


OTHER_FORMATS = {
    "coo row": ("coo", lambda A: A.coords[0].__setitem__(0, M)),
    "coo column": ("coo", lambda A: A.coords[1].__setitem__(0, 10**8)),
    "coo negative": ("coo", lambda A: A.coords[1].__setitem__(0, -1)),
    "coo float": ("coo", _replace("coords", lambda c: (c[0], c[1] + 0.5))),
    "coo short": ("coo", _replace("coords", lambda c: (c[0][:-1], c[1]))),
    "coo one array": ("coo", _replace("coords", lambda c: c[:1])),
    "coo data": ("coo", _replace("data", lambda a: a[:-1])),
    "coo no data": ("coo", _replace("data", lambda a: None)),
    "bsr indptr": ("bsr", _put("indptr", 1, 10**7)),
    "bsr indptr falls": ("bsr", _put("indptr", 1, -5)),
    "bsr column": ("bsr", _put("indices", 0, 10**8)),
    "bsr blocks": ("bsr", _replace("data", lambda a: np.zeros((len(a), 3, 3)))),
    "bsr empty blocks": ("bsr", _replace("data", lambda a: np.zeros((len(a), 0, 1)))),
    "bsr flat data": ("bsr", _replace("data", np.ravel)),
    "lil column": ("lil", lambda A: A.rows[0].append(10**8) or A.data[0].append(1.0)),
    "lil negative": ("lil", lambda A: A.rows[0].append(-1) or A.data[0].append(1.0)),
    "lil lengths": ("lil", lambda A: A.rows[0].append(0)),
    "lil text": ("lil", lambda A: A.rows[0].append(0) or A.data[0].append("a")),
    "lil None": ("lil", lambda A: A.rows.__setitem__(0, None)),
    "lil rows": ("lil", _replace("rows", lambda a: a[:-1])),
    "dok row": ("dok", lambda A: A._dict.__setitem__((M, 0), 1.0)),
    "dok negative": ("dok", lambda A: A._dict.__setitem__((0, -1), 1.0)),
    "dok text": ("dok", lambda A: A._dict.__setitem__((0, 0), "a")),
    "dok triple": ("dok", lambda A: [A._dict.clear(), A._dict.__setitem__((0, 0, 0), 1.0)]),
    "dia offsets": ("dia", _replace("offsets", lambda a: a[:-1])),
    "dia equal offsets": ("dia", _replace("offsets", lambda a: np.zeros_like(a))),
    "dia float offsets": ("dia", _replace("offsets", lambda a: a + 0.5)),
    "dia data": ("dia", _replace("data", lambda a: a[0])),
    "dia complex": ("dia", _replace("data", lambda a: a + 1j)),
}


@pytest.mark.parametrize(("layout", "corrupt"), OTHER_FORMATS.values(), ids=OTHER_FORMATS)
def test_other_malformed_formats_are_rejected_by_name(layout, corrupt):
    A = _matrix(layout)
    corrupt(A)
    with pytest.raises(REFUSALS, match=NAMED):
        sb.Problem(sb.L1(0.1), A, sb.Squared(np.ones(M)))


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("layout", ["coo", "bsr", "lil", "dok", "dia", "csc", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_every_format_gives_the_same_entries(kind, layout, dtype):
    dense = (_matrix("csc").toarray() * 3).astype(dtype)
    A = kind(dense).asformat(layout)
    np.testing.assert_array_equal(as_operator(A, "A").ordered("columns").entries(np.arange(N)), dense.astype(float))


@pytest.mark.parametrize("layout", ["coo", "bsr", "lil", "dok", "dia", "csc", "csr"])
def test_a_matrix_without_entries_is_zero(layout):
    A = sparse.coo_array((M, N)).asformat(layout)
    assert not as_operator(A, "A").matvec(np.ones(N)).any()


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_a_matrix_that_is_changed_later_is_solved_with_its_new_entries(layout):
    A, b = _matrix(layout), np.linspace(-1.0, 2.0, M)
    problem = sb.Problem(sb.L1(0.05), A, sb.Absolute(b))
    sb.solve(problem)  # cached facts about A must not survive a change of A
    A.data *= -2
    changed = sb.solve(problem, tol=1e-10)
    expected = sb.solve(sb.Problem(sb.L1(0.05), A.copy(), sb.Absolute(b)), tol=1e-10)
    np.testing.assert_array_equal(changed.x, expected.x)
    assert sb.certify(problem, changed.x, changed.y).gap == pytest.approx(changed.certificate.gap, abs=1e-12)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_entries_that_are_added_later_count(layout):
    A, b = _matrix(layout), np.linspace(-1.0, 2.0, M)
    problem = sb.Problem(sb.L1(0.05), A, sb.Squared(b))
    empty = tuple(np.argwhere(A.toarray() == 0)[0].tolist())
    A[empty] = 5.0
    A.eliminate_zeros()
    expected = sb.solve(sb.Problem(sb.L1(0.05), A.toarray(), sb.Squared(b)), tol=1e-10)
    np.testing.assert_allclose(sb.solve(problem, tol=1e-10).x, expected.x, atol=1e-8)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_rows_that_are_added_later_are_rejected():
    A = _matrix("csc")
    problem = sb.Problem(sb.L1(0.1), A, sb.Absolute(np.ones(M)))
    A.resize((2_000_000, N))
    A[1_999_999, 0] = 7.0
    with pytest.raises(ValueError, match=r"A has 2000000 rows.*changed after"):
        sb.solve(problem)


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_a_valid_matrix_is_not_copied(layout):
    A = _matrix(layout)
    for part in (A.data, A.indices, A.indptr):
        part.flags.writeable = False
    matrix = as_operator(A, "A").matrix
    assert matrix.data is A.data
    assert matrix.indices is A.indices
    assert matrix.indptr is A.indptr
