r"""Singular values of large matrices: the ones above a threshold, their sum, and the largest.

A full decomposition costs the same however much of it is needed. A nuclear norm needs less: the pairs whose singular
values exceed a threshold t, the sum of the singular values of a matrix of low rank, or a bound on the largest. There
are three ways to compute the first, and ``singular_pairs`` chooses.

Gram
    The eigenvalues above t^2 of the smaller of ZZ' and Z'Z: accurate up to rounding unless t is tiny compared with the
    largest singular value.
Subspace
    Block iteration :math:`U \leftarrow \mathrm{orth}(ZZ'U)` from the basis of the last call, with Ritz values. The
    basis grows until some Ritz values are below t. It may miss a direction that is orthogonal to the basis. Therefore
    random columns are added in every call, and the rest of the matrix is bounded: by its Frobenius norm if that is
    below t, and otherwise, every few calls, by a Cholesky decomposition of :math:`t^2 I - (ZZ' - U\Theta^2U')`.
Full
    The decomposition of LAPACK, if the other two would not be accurate.

Halko, Martinsson and Tropp, *Finding structure with randomness* (2011).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import iadd
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, eigsh

from ..common.chunks import double
from ..common.rebuildable import stored
from ..common.rounded import UNIT
from ..machine.tiled_blas import cholesky, outer, product

Matrix = NDArray[Any]

GRAM_SIDE = 100
"""Largest smaller side for which the decomposition of the Gram matrix is as fast as any other way."""

WHOLE_SIDE = 400
"""Largest side for which all eigenvalues of a Gram matrix are computed, instead of those above a bound with scipy."""

WORTH = 0.5
"""Columns of a basis times its iterations, relative to the smaller side, up to which the iteration costs less than the
Gram matrix and its eigenvalues."""

SPARE, FRESH = 8, 4
"""Columns of a basis in addition to those of the singular values that are kept, and random columns added per call."""

RESIDUAL = 1e-6
"""Residual of a Ritz pair, relative to the threshold, below which it has converged. The certificate changes by the
square of the residual."""

RESOLVED = 1e-5
"""Threshold, relative to the largest singular value, below which a Gram matrix is not accurate enough."""

CHECK_EVERY = 12
"""Calls after which the part outside of the basis is bounded by a Cholesky decomposition."""

LONGEST_REST = 16
"""Largest number of calls without another attempt after the basis has failed repeatedly."""

PROVED = 1e-10
"""Relative excess of a bound on the largest singular value."""

SMALL = 1e-100
"""Entries whose squares, like those of their inverses, neither underflow nor overflow."""

PANEL = 1 << 20
"""Entries per panel, for products that are not needed as a whole."""

LEAST = 2.0**-1000
"""More than underflow takes from the norm of the rest of a matrix."""

NEGLIGIBLE = 1e-12
"""Part of a matrix, relative to its norm, that is only rounding."""


@stored
class Pairs(NamedTuple):
    """Singular values with their vectors: ``left`` has orthonormal columns, ``right`` has orthonormal rows."""

    left: Matrix
    values: Matrix
    right: Matrix

    def above(self, threshold: float) -> Pairs:
        """Return the pairs whose value exceeds a threshold."""
        kept = ~(self.values <= threshold)  # NaN stays
        return Pairs(self.left[:, kept], self.values[kept], self.right[kept])

    def shrunk(self, threshold: float) -> Pairs:
        """Return the pairs above a threshold with their values lowered by it."""
        kept = self.above(threshold)
        return kept._replace(values=kept.values - kept.values.dtype.type(threshold))

    def matrix(self, out: Matrix | None = None) -> Matrix:
        """Return the matrix with these singular pairs; written to ``out`` if it is given."""
        whole: Matrix = product(self.left * self.values, self.right, out)
        return whole

    def transposed(self) -> Pairs:
        """Return the pairs of the transpose."""
        return Pairs(self.right.T, self.values, self.left.T)


@stored
@dataclass
class Memory:
    """The singular vectors of the last call, for one run and one thread.

    Attributes
    ----------
    basis : orthonormal columns on the smaller side; None at first, when the Gram matrix is used.
    unchecked : calls since the part outside of the basis was last bounded.
    failures : how often in a row the basis has failed.
    resting : calls until the basis is tried again.
    """

    basis: Matrix | None = None
    unchecked: int = 0
    failures: int = 0
    resting: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))


def singular_pairs(matrix: Matrix, threshold: float, memory: Memory | None = None) -> Pairs:
    """Return the singular values above a threshold, the largest first, with their vectors.

    Parameters
    ----------
    matrix : m x n.
    threshold : at least 0.
    memory : memory of the last call on a similar matrix; without it there is no subspace iteration.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return singular_pairs(matrix.T, threshold, memory).transposed()
    scale = float(np.linalg.norm(matrix))
    if not np.isfinite(scale):
        return _unknown(matrix)
    found = None
    if memory is not None and memory.basis is not None and matrix.shape[0] > GRAM_SIDE:
        found = _by_memory(matrix, threshold, memory.basis, memory)
    if found is None:
        found = _by_gram(matrix, threshold, scale)
        if memory is not None:
            memory.basis, memory.unchecked = found.left, 0
    return found


def _by_memory(matrix: Matrix, threshold: float, basis: Matrix, memory: Memory) -> Pairs | None:
    """Return the pairs by iteration on the last basis; after each failure the basis is unused for longer."""
    if memory.resting > 0:
        memory.resting -= 1
        return None
    found = _by_subspace(matrix, threshold, basis, memory)
    memory.failures = 0 if found is not None else memory.failures + 1
    memory.resting = min(2**memory.failures, LONGEST_REST) if found is None else 0
    return found


def threshold_singular_values(matrix: Matrix, threshold: float, memory: Memory | None = None) -> Pairs:
    r"""Return :math:`\arg\min_X t\|X\|_* + \tfrac12\|X - Z\|_F^2`: every singular value lowered by t, at most to 0.

    Cai, Candes and Shen, *A singular value thresholding algorithm for matrix completion* (2010), theorem 2.1.
    """
    return singular_pairs(matrix, threshold, memory).shrunk(threshold)


def nuclear_norm(matrix: Matrix, memory: Memory | None = None) -> float:
    """Return an upper bound on the sum of the singular values; the part outside of a basis counts with its bound."""
    if matrix.shape[0] > matrix.shape[1]:
        return nuclear_norm(matrix.T, memory)
    if not np.any(matrix):
        return 0.0  # the norm would copy an array of stride 0
    scale = float(np.linalg.norm(matrix))
    if scale == 0 or not np.isfinite(scale):
        return scale
    found = _compressed(matrix, memory, scale)
    if found is None:
        return float(np.linalg.svd(matrix, compute_uv=False).sum())
    triangle = np.linalg.qr(found.inner.T, mode="r")
    return float(np.linalg.svd(triangle, compute_uv=False).sum()) + float(np.sqrt(matrix.shape[0])) * found.rest


def low_rank_pairs(matrix: Matrix) -> Pairs:
    """Return the singular values that rounding does not explain, the largest first, with their vectors."""
    if matrix.shape[0] > matrix.shape[1]:
        return low_rank_pairs(matrix.T).transposed()
    if not np.any(matrix):
        return Pairs(matrix[:, :0], matrix[0, :0], matrix[:0])
    found = _compressed(matrix, None, float(np.linalg.norm(matrix)))
    if found is None:
        pairs = Pairs(*np.linalg.svd(matrix, full_matrices=False))
    else:
        left, values, right = np.linalg.svd(found.inner, full_matrices=False)
        pairs = Pairs(product(found.basis, left), values, right)
    return pairs.above(float(pairs.values[0]) * max(matrix.shape) * float(np.finfo(matrix.dtype).eps))


def spectral_norm(matrix: Matrix) -> float:
    r"""Return a close upper bound on the largest singular value.

    A Lanczos iteration estimates it from below; the Cholesky decomposition of :math:`c^2 I - ZZ'` then proves a
    slightly larger bound c.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return spectral_norm(matrix.T)
    largest = float(max(matrix.max(), -matrix.min()))
    if largest == 0 or not np.isfinite(largest):
        return largest
    unit = 1.0 if SMALL < largest < 1.0 / SMALL else largest
    gram = _gram(matrix if unit == 1.0 else matrix / unit)
    side = gram.shape[0]
    rounding = 1.0 + 4.0 * side * np.finfo(np.float64).eps
    if side > GRAM_SIDE and isinstance(gram, np.ndarray):  # on a device all eigenvalues are faster
        start = np.random.default_rng(0).standard_normal(side)
        try:
            value = float(eigsh(gram, k=1, which="LA", v0=start, tol=0.1 * PROVED, return_eigenvectors=False)[0])
            if _below(gram, (1.0 + PROVED) * value):
                return unit * float(np.sqrt((1.0 + PROVED) * rounding * value))
        except ArpackError:
            pass  # Lanczos has not converged: the largest eigenvalues are too close together
    return unit * float(np.sqrt(rounding * np.linalg.eigvalsh(gram)[-1]))


class _Compressed(NamedTuple):
    """A matrix of low rank as basis @ inner, and the norm of the rest."""

    basis: Matrix
    inner: Matrix
    rest: float


def _compressed(matrix: Matrix, memory: Memory | None, total: float) -> _Compressed | None:
    """Return a nonzero matrix of norm ``total`` in a basis for its columns; None if it is not of low rank.

    The basis is that of the memory, or of the Gram matrix.
    """
    basis = None if memory is None else memory.basis
    if basis is None or basis.shape[0] != matrix.shape[0]:
        basis = _by_gram(matrix, 2.0 * RESOLVED * total, total).left
    for _ in range(2):  # the second round corrects a basis of a similar matrix
        inner = product(basis.T, matrix)
        rests = [float(np.linalg.norm(matrix[:, own] - product(basis, inner[:, own]))) for own in _wide(matrix)]
        rest = float(np.linalg.norm(rests))
        if rest <= NEGLIGIBLE * total:
            return _Compressed(basis, inner, rest)
        basis = np.linalg.qr(product(matrix, inner.T))[0]
    return None


def _wide(matrix: Matrix) -> Iterator[slice]:
    """Yield slices of the columns of a matrix, panel by panel; a single slice on a device."""
    width = max(1, PANEL // matrix.shape[0]) if isinstance(matrix, np.ndarray) else matrix.shape[1]
    return (slice(a, a + width) for a in range(0, matrix.shape[1], width))


def _gram(matrix: Matrix) -> Matrix:
    """Return ZZ' in float64, without a copy of a Z in float32."""
    if matrix.dtype == np.float64:
        whole: Matrix = outer(matrix)
        return whole
    panels = (double(matrix[:, own]) for own in _wide(matrix))
    gram: Matrix = reduce(iadd, map(outer, panels))
    return gram


def _unknown(matrix: Matrix) -> Pairs:
    """Return NaN for a matrix whose norm is not finite, as in a run that diverges: LAPACK would raise an error."""
    return Pairs(np.nan * matrix[:, :1], np.nan * matrix[0, :1], np.nan * matrix[:1])


def _by_gram(matrix: Matrix, threshold: float, scale: float) -> Pairs:
    """Return the pairs above a threshold of a matrix of norm ``scale``, by its Gram matrix or in full.

    The matrix has at most as many rows as columns.
    """
    if threshold > RESOLVED * scale:
        gram = outer(matrix)
        values, left = _eigenpairs_above(gram, float(np.square(threshold)))
        values, left = np.sqrt(values[::-1]), left[:, ::-1]
        return Pairs(left, values, product((left / values).T, matrix))
    return Pairs(*np.linalg.svd(matrix, full_matrices=False)).above(threshold)


def _eigenpairs_above(gram: Matrix, bound: float) -> tuple[Matrix, Matrix]:
    """Return the eigenvalues of a symmetric matrix above a bound, and their vectors; the matrix is overwritten.

    Only scipy can compute some of the eigenvalues: not on a device, and only with another BLAS than that of numpy.
    """
    if isinstance(gram, np.ndarray) and gram.shape[0] > WHOLE_SIDE:
        found: tuple[Matrix, Matrix] = eigh(gram, subset_by_value=(bound, np.inf), overwrite_a=True, check_finite=False)
        return found
    values, vectors = np.linalg.eigh(gram)
    kept = values > bound
    return values[kept], vectors[:, kept]


def _by_subspace(matrix: Matrix, threshold: float, basis: Matrix, memory: Memory) -> Pairs | None:
    """Return the pairs above a threshold by iteration on a basis, or None if the Gram matrix is cheaper."""
    budget = WORTH * matrix.shape[0]
    basis = _widened(basis, FRESH, memory)
    while (budget := budget - basis.shape[1]) >= 0:
        right = product(matrix.T, basis)
        squares, turn = np.linalg.eigh(outer(right.T))
        values = np.sqrt(np.maximum(squares[::-1], np.finfo(squares.dtype).tiny))
        if threshold <= RESOLVED * values[0]:
            return None
        left, right = basis @ turn[:, ::-1], (right @ turn[:, ::-1]) / values
        image = product(matrix, right)
        kept = int(np.count_nonzero(values > threshold))
        residual = float(np.linalg.norm(image[:, :kept] - left[:, :kept] * values[:kept]))
        if kept < values.size and residual <= RESIDUAL * threshold:
            memory.basis = left[:, : kept + SPARE]
            pairs = Pairs(left[:, :kept], values[:kept], right[:, :kept].T)
            return pairs if _complete(matrix, pairs, threshold, memory) else None
        basis = np.linalg.qr(image)[0]
        if kept == values.size:
            basis = _widened(basis, kept + SPARE, memory)
    return None


def _complete(matrix: Matrix, pairs: Pairs, threshold: float, memory: Memory) -> bool:
    """Return whether the checks that are due find no further singular value above the threshold."""
    rest = float(np.linalg.norm(matrix)) ** 2 - float(pairs.values @ pairs.values)
    if rest <= threshold**2:
        return True
    memory.unchecked += 1
    if memory.unchecked < CHECK_EVERY:
        return True
    memory.unchecked = 0
    weighted = pairs.left * pairs.values
    return _below(outer(matrix) - outer(weighted), (1.0 + RESIDUAL) * threshold**2)


def _below(gram: Matrix, bound: float) -> bool:
    """Return whether the largest eigenvalue of a symmetric matrix, which is overwritten, is below a bound."""
    gram *= -1.0
    gram[np.diag_indices_from(gram)] += bound
    if isinstance(gram, np.ndarray):
        return cholesky(gram) is not None
    try:
        np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return False
    return True


def _widened(basis: Matrix, columns: int, memory: Memory) -> Matrix:
    """Return a basis with ``columns`` additional random columns."""
    more = memory.random.standard_normal((basis.shape[0], columns)).astype(basis.dtype)
    return np.linalg.qr(np.hstack([basis, more]))[0]


class NormBounds(NamedTuple):
    """Bounds on the norms of a matrix: the largest singular value, and the sum of all with a bound on its error."""

    least: float
    most: float
    total: float
    error: float


def enclosed_norms(matrix: Matrix) -> NormBounds | None:
    r"""Return bounds on the norms of a matrix that hold whatever LAPACK returns; None if it returns nothing.

    Let :math:`Z = U S V + R`, with the computed factors and the rest R. If :math:`\|U'U - I\|_F \le d_U`, the singular
    values of U are between :math:`1 - d_U` and :math:`1 + d_U`, and likewise for V. Those of U S V are therefore those
    of S up to factors :math:`(1 \pm d_U)(1 \pm d_V)`, and R adds at most its Frobenius norm to the largest, and
    :math:`\sqrt{k}` times it to the sum of k (Rump, *Verified bounds for singular values*, 2011).
    """
    try:
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        return None
    side, longest = values.size, max(matrix.shape)
    total = float(np.sum(values)) * (1 + 2 * side * UNIT)
    rounding = (longest + side + 8) * UNIT * (1 + 2.0**-8)
    off = sum(float(np.linalg.norm(each - np.eye(side))) for each in (left.T @ left, right @ right.T))
    off = (off + rounding * side) * (1 + 2.0**-20)
    if not off < 2.0**-10:
        return None
    scale = float(values[0]) or 1.0
    rest = float(np.linalg.norm((matrix - (left * values) @ right) / scale)) * (1 + rounding * matrix.size) * scale
    rest = (rest + rounding * total) * (1 + 2.0**-20) + LEAST * (total > 0)
    return NormBounds(
        least=max(float(values[0]) * (1 - off) - rest, 0.0),
        most=(float(values[0]) * (1 + off) + rest) * (1 + 4 * UNIT),
        total=total,
        error=(total * (off + 4 * side * UNIT) + np.sqrt(side) * rest) * (1 + 4 * UNIT),
    )
