r"""An ellipsoid that contains the undecided columns of every optimum, by the curvature of the loss.

With c_i the least curvature of each row, q_j that of the penalty, e and p the points at which the excesses are 0, and G
the gap,

.. math:: \sum_i c_i ((A x^*)_i - e_i)^2 + \sum_j q_j (x_j^* - p_j)^2 \le 2 G,

also over some of the rows. Let S be the columns whose intervals are longer than 0, :math:`H = A_S'C A_S + Q`, and x a
point with :math:`r = A_S'C(e - Ax) + Q(p - x_S)`. Then
:math:`|x_j^* - x_j - (H^{-1} r)_j| \le \sqrt{2 G (H^{-1})_{jj}}`.

H is known up to rounding, by the inequality of Cauchy and Schwarz, and a symmetric X is verified to be nearly its
inverse: with :math:`E = I - H X` and :math:`\alpha = \|E\|_\infty < 1`, the eigenvalues of H X are at least
:math:`1 - \alpha`, so that :math:`(H^{-1})_{jj} \le X_{jj} / (1 - \alpha)`, and :math:`H^{-1} r = X (I - E)^{-1} r`
differs from X r by at most :math:`\tfrac{\alpha}{1 - \alpha} \|r\|_\infty |X| \mathbf 1`. Columns are scaled by powers
of two, so that the result does not depend on their units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ..common.arrays import Indices, Vector
from ..common.rounded import SHORT, TINY, UNIT, Rounded
from ..functions.traits import curvature_between, enclosure
from ..linear_programs.program import at_hand
from ..model.model import Model
from ..operators import Operator
from .certificate import Gap

WORK, LEAST_WORK = 8.0, 1e8
"""Most products for the matrix of the ellipsoid, the former per entry of A: fast ones, less than a pass."""

FACTORED, LEAST_FACTORED = 20.0, 1e9
"""Most work for its factorisation, the number of its columns to the third power, the former per entry of A."""

SPARSE = 10
"""A matrix is treated as sparse if less than one in ten of its entries is not 0."""

CURVED = 2.0**-48
"""Relative rounding of curvatures; far less than the last factor of the widths."""

SMALL, LARGE = 2.0**-900, 2.0**900
"""Squares of columns beyond these may have terms that underflow, or overflow."""

ROUNDINGS = 16
"""Roundings of a few operations."""

LOOSE = 1.0 + 2.0**-40
"""Factor of bounds, for the rounding of sums that are not negative."""


class Ellipsoid(NamedTuple):
    """The columns of an ellipsoid, its centre with a bound on rounding, and the half-widths that the gap leaves."""

    columns: Indices
    centre: Vector
    rounding: Vector
    width: Vector


def ellipsoid(model: Model, gap: Gap, curved: Vector, lower: Vector, upper: Vector) -> Ellipsoid | None:
    """Return the ellipsoid, given the least curvature of each row and the ends of the columns; None if there is none.

    Columns that determine each other have none, and one that takes too much work is not tried.
    """
    left = np.flatnonzero(lower < upper)
    if not left.size or not at_hand(model.A):
        return None
    curved = np.where(np.isfinite(curved), curved, 0.0)
    bent = curvature_between(model.f, lower, upper)[0][left]
    rows, is_sparse = _chosen_rows(model.A, curved, left.size)
    if rows is None:
        return None
    every = rows.size == model.A.shape[0]
    block = model.A.entries(left, is_sparse) if every else model.A.restrict(rows, left).entries(compressed=is_sparse)
    weight = curved[rows]
    H = _squares(block, weight)
    H[np.diag_indices(left.size)] += bent
    inverse = _inverse(H, rows.size)
    if inverse is None:
        return None
    X, unit, alpha, lengths = inverse

    base = np.clip(gap.x, lower, upper)
    ends = enclosure(model.g, *Rounded.around(gap.y, gap.radius).ends(), 0.0)
    away, near = _away([end[rows] for end in ends], model.A.matvec_rounded(base).part(rows))
    size, off = (float(np.sqrt(np.sum(weight * each * each))) for each in (away, near))
    pull = block.T @ (weight * away) * unit
    error = lengths * ((rows.size + ROUNDINGS) * UNIT * size + off + SHORT)
    if np.any(bent):
        ends = enclosure(model.f, *gap.slope.ends(), 0.0)
        away, near = _away([np.where(bent > 0, end[left], 0.0) for end in ends], Rounded.around(base[left]))
        pull += bent * away * unit
        error += bent * (near + ROUNDINGS * UNIT * np.abs(away)) * unit + ROUNDINGS * UNIT * np.abs(pull)

    step, share = X @ pull, alpha / (1 - alpha)
    rounding = np.abs(X) @ (error + share * np.max(np.abs(pull) + error))
    rounding += (left.size + ROUNDINGS) * UNIT * (np.abs(X) @ np.abs(pull))
    rounding = unit * rounding * LOOSE + ROUNDINGS * UNIT * (np.abs(base[left]) + np.abs(unit * step))
    width = unit * np.sqrt(2.0 * gap.certificate.gap * np.diag(X) / (1 - alpha)) * LOOSE
    return Ellipsoid(left, base[left] + unit * step, rounding, width) if np.all(np.isfinite(step)) else None


def _away(ends: Sequence[Vector], at: Rounded) -> tuple[Vector, Vector]:
    """Return how far the middle of intervals is from a vector, and a bound on this distance within the intervals."""
    low, high = ends
    middle = 0.5 * low + 0.5 * high
    step = middle - at.high
    half = np.maximum(middle - low, high - middle) + ROUNDINGS * UNIT * (np.abs(step) + np.abs(at.low))
    return step - at.low, (half + at.error) * LOOSE + TINY


class _Inverse(NamedTuple):
    """A symmetric matrix X that is nearly the inverse of D H D, the powers of two D, and the norm of I - (D H D) X.

    ``lengths`` are the square roots of the diagonal of D H D.
    """

    X: Vector
    unit: Vector
    alpha: float
    lengths: Vector


def _inverse(H: Vector, rows: int) -> _Inverse | None:
    """Return a verified inverse of a matrix that is a sum over rows; None if it is not clearly positive definite."""
    size, diagonal = len(H), np.diag(H)
    if not np.all((diagonal > SMALL) & (diagonal < LARGE)):
        return None
    unit = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))
    H = H * unit[:, None] * unit
    try:
        factor = linalg.cholesky(H, lower=True)
    except linalg.LinAlgError:
        return None
    half = np.tril(linalg.lapack.dpotri(factor, lower=1)[0])
    X = half + np.tril(half, -1).T
    lengths, sums = np.sqrt(np.diag(H)) * LOOSE, np.sum(np.abs(X), axis=1)
    spread = np.sum(np.abs(np.eye(size) - H @ X), axis=1)
    spread += (size + ROUNDINGS) * UNIT * (np.abs(H) @ sums + 1.0)
    spread += (rows + ROUNDINGS) * UNIT * lengths * float(lengths @ sums)
    alpha = float(np.max(spread)) * LOOSE
    return _Inverse(X, unit, alpha, lengths) if alpha < 0.5 else None


def _squares(block: Any, weight: Vector) -> Vector:
    """Return B' diag(weight) B; as the square of one matrix if it is dense, which takes half the work."""
    if sparse.issparse(block):
        squares: Vector = (block.T @ sparse.diags_array(weight) @ block).toarray()
        return squares
    one_value = weight.size > 0 and bool(np.all(weight == weight[0]))
    scaled = block if one_value else block * np.sqrt(weight)[:, None]
    of_block: Vector = scaled.T @ scaled
    return weight[0] * of_block if one_value else of_block


def _chosen_rows(A: Operator, curved: Vector, width: int) -> tuple[Indices | None, bool]:
    """Return rows with curvature, as many as there is work for, and whether they are sparse; None if it is too much."""
    rows, stored = np.flatnonzero(curved > 0), A.traits.stored
    is_sparse = SPARSE * stored < A.shape[0] * A.shape[1]
    if width**3 > max(FACTORED * stored, LEAST_FACTORED):
        return None, is_sparse
    allowed = rows.size if is_sparse else int(max(WORK * stored, LEAST_WORK) / width**2)
    if rows.size > allowed:
        rows = rows[np.linspace(0, rows.size - 1, allowed).astype(np.int64)]
    return rows, is_sparse
