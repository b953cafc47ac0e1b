"""Tiled products and factors: the identities that define them, equal bits, and numpy as an oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

from saddleback import _native
from saddleback.machine import tiled_blas as blas
from saddleback.machine.blas_threads import libraries
from saddleback.machine.threads import limited

SIZES = st.one_of(st.integers(1, 40), st.sampled_from([199, 200, 201, 255, 257, 400, 513, 530]))


@pytest.fixture(params=[True, False], ids=["tiled", "plain"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both implementations: the tiles, and the numpy and scipy code that specifies them."""
    assert blas.tiled(), "scipy's BLAS cannot be called from the compiled core"
    monkeypatch.setattr(blas, "WORTH", 0)
    if not request.param:
        monkeypatch.setattr(blas, "tiled", lambda: False)


def laid_out(matrix: np.ndarray, how: str) -> np.ndarray:
    """Return the same matrix in another memory order, or as a part of a larger matrix."""
    if how == "rows":
        return np.ascontiguousarray(matrix)
    if how == "columns":
        return np.asfortranarray(matrix)
    larger = np.zeros((matrix.shape[0] + 3, matrix.shape[1] + 2), order="F" if how == "columns of more" else "C")
    larger[1:-2, 1:-1] = matrix
    return larger[1:-2, 1:-1].astype(matrix.dtype, copy=False)


LAYOUTS = st.sampled_from(["rows", "columns", "rows of more", "columns of more"])


def at_threads(work) -> set[bytes]:
    """Return the results of a computation with 1, 2 and 3 threads, as bytes."""
    found = set()
    for threads in (1, 2, 3):
        with limited(threads):
            found.add(np.ascontiguousarray(work()).tobytes())
    return found


@pytest.mark.usefixtures("path")
@examples(15)
@given(n=SIZES, seed=st.integers(0, 2**31))
def test_a_cholesky_factor_times_its_transpose_is_the_matrix(n, seed):
    X = np.random.default_rng(seed).standard_normal((n + 5, n))
    matrix = X.T @ X + np.eye(n)
    given = np.tril(matrix) + np.triu(np.full((n, n), np.nan), 1)  # entries above the diagonal are not read
    factor = np.tril(blas.cholesky(given))
    assert np.allclose(factor @ factor.T, matrix, rtol=0, atol=1e-13 * n * np.abs(matrix).max())
    assert np.all(np.diagonal(factor) > 0)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("n", [1, 150, 450])
@pytest.mark.parametrize("where", [0, -1])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(n, where, value):
    matrix = 2.0 * np.eye(n)
    matrix[where, where] = value
    before = matrix.copy()
    assert blas.cholesky(matrix) is None
    assert np.array_equal(matrix, before, equal_nan=True)


@pytest.mark.usefixtures("path")
@examples(15)
@given(m=SIZES, n=SIZES, layout=LAYOUTS, single=st.booleans(), seed=st.integers(0, 2**31))
def test_a_weighted_gram_matrix_is_added(m, n, layout, single, seed):
    rng = np.random.default_rng(seed)
    panel = laid_out(rng.standard_normal((m, n)), layout).astype(np.float32 if single else np.float64, order="K")
    weight = rng.random(m) * (rng.random(m) < 0.8)
    total = np.asfortranarray(rng.standard_normal((n, n)))
    expected = total + panel.T.astype(float) @ (weight[:, None] * panel)
    found = blas.add_gram(total.copy(order="F"), panel, weight)
    assert np.allclose(np.tril(found), np.tril(expected), rtol=0, atol=1e-12 * (m + 1))


@pytest.mark.usefixtures("path")
@examples(15)
@given(m=SIZES, k=SIZES, n=SIZES, left=LAYOUTS, right=LAYOUTS, single=st.booleans(), seed=st.integers(0, 2**31))
def test_products(m, k, n, left, right, single, seed):
    rng, kind = np.random.default_rng(seed), np.float32 if single else np.float64
    A = laid_out(rng.standard_normal((m, k)).astype(kind), left)
    B = laid_out(rng.standard_normal((k, n)).astype(kind), right)
    error = {"rtol": 0, "atol": (1e-5 if single else 1e-13) * k}
    expected, out = A.astype(float) @ B, np.empty((m, n), kind)
    assert np.allclose(blas.product(A, B), expected, **error)
    assert blas.product(A, B, out) is out
    assert np.allclose(out, expected, **error)
    square = blas.outer(A)
    assert square.dtype == kind
    assert np.allclose(square, A.astype(float) @ A.T, **error)
    assert np.array_equal(square, square.T)


@pytest.mark.parametrize("n", [90, 450, 700])
def test_the_same_bits_at_any_number_of_threads(n):
    rng = np.random.default_rng(0)
    for m in (50, 3000):
        for panel in (rng.standard_normal((m, n)), np.asfortranarray(rng.standard_normal((m, n)))):
            weight = rng.random(m)

            def gram(panel=panel, weight=weight):
                return blas.add_gram(np.zeros((n, n), order="F"), panel, weight)

            assert len(at_threads(gram)) == 1
    matrix = gram() + np.eye(n)
    assert len(at_threads(lambda: np.tril(blas.cholesky(matrix)))) == 1
    for kind in (np.float64, np.float32):
        A, B = rng.standard_normal((n, 600)).astype(kind), rng.standard_normal((600, 1100)).astype(kind)
        assert len(at_threads(lambda A=A, B=B: blas.product(A, B))) == 1
        assert len(at_threads(lambda A=A: blas.outer(A))) == 1


def test_arrays_of_wrong_shape_or_type_are_rejected():
    good = np.zeros((3, 3), order="F")
    with pytest.raises(ValueError, match="square"):
        _native.cholesky(np.zeros((2, 3), order="F"))
    with pytest.raises(ValueError, match="weight"):
        _native.add_gram(good, np.ones(2), good)
    with pytest.raises(ValueError, match="contiguous"):
        _native.add_gram(np.zeros((6, 6))[::2, ::2], np.ones(3), good)
    with pytest.raises(ValueError, match="fit"):
        _native.product(np.zeros((3, 2)), np.zeros((3, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="type"):
        _native.product(np.zeros((3, 3), np.float32), np.zeros((3, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="empty"):
        _native.product(np.zeros((3, 0)), np.zeros((0, 3)), np.zeros((3, 3)))


def test_the_blas_uses_one_thread_in_each_of_ours(monkeypatch):
    """This holds outside of a solve too."""
    seen, product = [], _native.product

    def noting(*args, **options):
        seen.append({library.num_threads for library in libraries()})
        return product(*args, **options)

    monkeypatch.setattr(_native, "product", noting)
    before = [library.num_threads for library in libraries()]
    A = np.ones((200, 200))
    assert np.array_equal(blas.product(A, A), 200.0 * A)
    assert seen == [{1}]
    assert [library.num_threads for library in libraries()] == before


def test_routines_with_another_signature_are_rejected():
    from scipy.linalg import cython_blas, cython_lapack

    routines = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    with pytest.raises(ValueError, match="signature"):
        _native.use_blas({**routines, "dgemm": routines["zgemm"]})
    with pytest.raises(KeyError):
        _native.use_blas({name: routine for name, routine in routines.items() if name != "dpotrf"})
    _native.use_blas(routines)
