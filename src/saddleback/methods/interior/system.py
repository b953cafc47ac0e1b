r"""The linear system of the interior-point method.

.. math::

    \begin{pmatrix} D_f & A' \\ -A & D_g \end{pmatrix} \begin{pmatrix} dx \\ dy \end{pmatrix} =
    \begin{pmatrix} r \\ s \end{pmatrix}

Eliminating dy leaves the n x n matrix :math:`D_f + A' D_g^{-1} A`, which needs D_g > 0 in all but a few rows.
Eliminating dx leaves the m x m matrix :math:`D_g + A D_f^{-1} A'`, which needs D_f > 0 in all but a few columns. The
smaller one is factored. Equality constraints have D_g = 0 and free variables have D_f = 0; if a problem has many of
both, the whole matrix is factored. If A has sparse structure (``structure.py``), the matrix is sparse, and so is its
factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from ...common.arrays import Indices, Vector, length
from ...machine.factors import factor, solved
from ...machine.sparse_factors import Solve
from ...machine.tiled_blas import product
from ...operators import Operator
from ...places.newton import placed
from .barrier import Inverse, Stiffness
from .structure import Structure

SHIFTS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
"""Relative shifts of the diagonal that are tried one after the other if a matrix is singular up to rounding."""

REGULARISATION = 1e-11
"""Shift of the diagonal of the whole matrix, whose entries are at most 1."""

EQUILIBRATIONS = 4
REFINEMENTS = 3

SMALL = 2000
"""Largest size at which the whole matrix is factored although an elimination is possible."""

MOST_LOOSE = 20
"""Largest number of columns with D_f = 0 for which dx is eliminated: each of them costs a solution per matrix."""

MOST_RIGID = 100
"""Largest number of rows with D_g = 0 for which dy is eliminated."""

FIXED = 1e150
"""Diagonal of a sparse matrix where a coordinate is fixed: so large that nothing moves it, and its square is finite."""

CORRECTIONS = 3
"""Largest number of Gondzio's corrections: a dense factorisation costs as much as many of them."""

RATIOS = (10.0, 30.0, 50.0)
"""Costs of a factorisation relative to a solution from which one, two and three corrections pay (Gondzio 1996)."""

PRODUCTS = 3.0
"""Passes that a solution takes beside the factor: its products with A, and its vectors."""


class SingularSystem(ArithmeticError):
    """The matrix has no factorisation, or the solution is not finite."""


class Direction(NamedTuple):
    """A solution (dx, dy) with A dx and A'dy."""

    dx: Vector
    dy: Vector
    u: Vector
    z: Vector


class System(ABC):
    """A factored system.

    ``passes`` counts the products with A and A' so far, ``corrections`` is the largest number of corrections of a
    direction for which the factor should be used again, and ``accurate`` is the relative residual at which a direction
    needs no refinement.
    """

    corrections: int = CORRECTIONS
    accurate: float = 1e-13

    def __init__(self, A: Operator, f: Stiffness, g: Stiffness) -> None:
        self.A, self.f, self.g = A, f, g
        self.passes = 0.0

    @abstractmethod
    def solve(self, r: Vector, s: Vector) -> Direction:
        """Return a solution without iterative refinement."""

    def refined(self, r: Vector, s: Vector) -> Direction:
        """Return a solution after iterative refinement, which ends when the residual is small or stops falling."""
        r, s = _without(r, self.f), _without(s, self.g)
        found, best = self.solve(r, s), np.inf
        for _ in range(REFINEMENTS):
            r_left = _without(r - self.f.product(found.dx) - found.z, self.f)
            s_left = _without(s + found.u - self.g.product(found.dy), self.g)
            error = max(_relative(r_left, r), _relative(s_left, s))
            if not np.isfinite(error):
                raise SingularSystem
            if error < self.accurate or error >= 0.5 * best:
                break
            best = error
            found = Direction(*(old + new for old, new in zip(found, self.solve(r_left, s_left), strict=True)))
        return found

    def _products(self, dx: Vector, dy: Vector, u: Vector | None = None, z: Vector | None = None) -> Direction:
        """Return the direction, and compute the products that are not given."""
        self.passes += 0.5 * (u is None) + 0.5 * (z is None)
        return Direction(dx, dy, self.A.matvec(dx) if u is None else u, self.A.rmatvec(dy) if z is None else z)


def _relative(left: Vector, whole: Vector) -> float:
    size = length(whole)
    return length(left) / size if size != 0 else 0.0  # the other half of the system decides


def _without(v: Vector, stiffness: Stiffness) -> Vector:
    return v if stiffness.finite is None else np.where(stiffness.finite, v, 0.0)


def _cholesky(matrix: Any) -> Any:
    """Return the Cholesky factor of a matrix, given its lower triangle, which is overwritten."""
    if matrix.size == 0:
        return matrix
    diagonal = np.diagonal(matrix).copy()
    diagonal[diagonal == 0] = 1.0  # the whole row is 0, so that any value will do
    at = np.arange(diagonal.size)
    for shift in SHIFTS:
        matrix[at, at] = diagonal * (1.0 + shift)
        found = factor(matrix)
        if found is not None:
            return found
    raise SingularSystem


def _with_weights(side: Stiffness, soft: Indices, squares: Callable[[], Vector]) -> Inverse:
    """Return the inverse of D, with the largest weight of the others where D = 0.

    ``squares`` returns the sums of squares of the rows or columns of A, by which weights are compared.
    """
    inverse = side.inverse()
    if soft.size:
        lengths = np.maximum(squares(), 1e-300)
        largest = float(np.max((inverse.diagonal * lengths)[side.diagonal > 0], initial=0.0)) or 1.0
        inverse.diagonal[soft] = largest / lengths[soft]
    return inverse


class Dense(System):
    """A system whose matrix is a dense array."""

    @staticmethod
    @abstractmethod
    def size(shape: tuple[int, int]) -> int:
        """Return the size of the matrix for an m x n matrix A."""


class ByColumns(Dense):
    r"""The n x n system after elimination of dy.

    In some rows E, those of equality constraints, D_g may be 0: they have the equation -A_E dx = s_E. As in ``ByRows``,
    they get a weight in the matrix like all others, and the equation determines dy_E through a small system.
    """

    def __init__(self, A: Operator, f: Stiffness, g: Stiffness) -> None:
        super().__init__(A, f, g)
        self.free = np.flatnonzero(np.isfinite(f.diagonal))
        self.rigid = np.flatnonzero(g.diagonal == 0)
        self.give = _with_weights(g, self.rigid, lambda: A.sums(2)[1])
        matrix = A.gram(placed(A, self.give.diagonal), self.free)
        f.add_to(matrix)
        self.factor = _cholesky(matrix)
        if self.rigid.size:
            units = np.zeros((self.rigid.size, A.shape[0]))
            units[np.arange(self.rigid.size), self.rigid] = 1.0
            self.equations = np.stack([A.rmatvec(unit) for unit in units])
            self.images = np.stack([self._solved(row) for row in self.equations], axis=1)
            self.complement = self.equations @ self.images

    def _solved(self, right: Vector) -> Vector:
        dx = np.zeros(right.size)
        dx[self.free] = solved(self.factor, right[self.free])
        return dx

    @staticmethod
    def size(shape: tuple[int, int]) -> int:
        return shape[1]

    def solve(self, r: Vector, s: Vector) -> Direction:
        dx = self._solved(r - self.A.rmatvec(self.give.product(s)))
        if self.rigid.size:
            bound, *_ = np.linalg.lstsq(self.complement, s[self.rigid] + self.equations @ dx, rcond=None)
            dx = dx - self.images @ bound
        u = self.A.matvec(dx)
        self.passes += 1.0
        dy = self.give.product(s + u)
        if self.rigid.size:
            dy[self.rigid] = bound
        return self._products(dx, dy, u)


class ByRows(Dense):
    r"""The m x m system after elimination of dx.

    In some columns U, those of free variables, D_f may be 0: they have the equation A_U' dy = r_U. Any multiple of
    :math:`A_U` times it can be added to the rows. So these columns get a weight in the matrix like all others, and the
    equation determines dx_U through a small system (a Schur complement).
    """

    def __init__(self, A: Operator, f: Stiffness, g: Stiffness) -> None:
        super().__init__(A, f, g)
        self.free = np.flatnonzero(np.isfinite(g.diagonal))
        self.loose = np.flatnonzero(f.diagonal == 0)
        self.give = _with_weights(f, self.loose, lambda: A.sums(2)[0])
        matrix = A.gram(placed(A, self.give.diagonal), side="rows")
        if self.give.norm is not None:
            along = A.times(self.give.directions())
            matrix += product(along * self.give.scale, along.T)
        if self.free.size < matrix.shape[0]:
            matrix = matrix[np.ix_(self.free, self.free)]
        g.add_to(matrix)
        self.factor = _cholesky(matrix)
        if self.loose.size:
            columns = A.entries(self.loose)
            self.images = np.stack([self._solved(column) for column in columns.T], axis=1)
            self.complement = columns.T @ self.images

    def _solved(self, right: Vector) -> Vector:
        dy = np.zeros(right.size)
        dy[self.free] = solved(self.factor, right[self.free])
        return dy

    @staticmethod
    def size(shape: tuple[int, int]) -> int:
        return shape[0]

    def solve(self, r: Vector, s: Vector) -> Direction:
        dy = self._solved(s + self.A.matvec(self.give.product(r)))
        z = self.A.rmatvec(dy)
        self.passes += 1.0
        if self.loose.size == 0:
            return self._products(self.give.product(r - z), dy, z=z)
        free, *_ = np.linalg.lstsq(self.complement, (r - z)[self.loose], rcond=None)
        dy = dy + self.images @ free
        z = self.A.rmatvec(dy)
        self.passes += 0.5
        dx = self.give.product(r - z)
        dx[self.loose] = free
        return self._products(dx, dy, z=z)


class Whole(Dense):
    """The whole (n + m) x (n + m) system, made symmetric by negating the second row, with an indefinite factorisation.

    The matrix is first scaled to entries of at most 1, so that the shift of its diagonal is relative in every row.
    """

    def __init__(self, A: Operator, f: Stiffness, g: Stiffness) -> None:
        super().__init__(A, f, g)
        columns, rows = (np.flatnonzero(np.isfinite(side.diagonal)) for side in (f, g))
        self.columns, self.rows = columns, rows
        k = columns.size
        matrix = np.zeros((k + rows.size, k + rows.size), order="F")
        f.add_to(matrix[:k, :k])
        g.add_to(lower := np.zeros((rows.size, rows.size)))
        matrix[k:, k:] = -lower
        matrix[k:, :k] = A.entries(columns)[rows]
        matrix[:k, k:] = matrix[k:, :k].T
        self.scale = np.ones(matrix.shape[0])
        for _ in range(EQUILIBRATIONS):
            largest = np.sqrt(np.abs(matrix).max(axis=0))
            factor = 1.0 / np.where(largest > 0, largest, 1.0)
            matrix *= factor
            matrix *= factor[:, None]
            self.scale *= factor
        at = np.arange(matrix.shape[0])
        matrix[at, at] += np.where(at < k, REGULARISATION, -REGULARISATION)
        work = int(lapack.dsytrf_lwork(matrix.shape[0], lower=1)[0])  # with less, LAPACK runs unblocked code
        self.factors, self.pivots, failed = lapack.dsytrf(matrix, lower=1, lwork=work, overwrite_a=1)
        if failed:
            raise SingularSystem

    @staticmethod
    def size(shape: tuple[int, int]) -> int:
        return sum(shape)

    def solve(self, r: Vector, s: Vector) -> Direction:
        right = self.scale * np.concatenate([r[self.columns], -s[self.rows]])
        found = self.scale * lapack.dsytrs(self.factors, self.pivots, right, lower=1)[0].ravel()
        dx, dy = np.zeros_like(r), np.zeros_like(s)
        dx[self.columns], dy[self.rows] = found[: self.columns.size], found[self.columns.size :]
        return self._products(dx, dy)


class Sparse(System):
    r"""The system after elimination of one variable, with a sparse factor.

    With v the variable that stays and w the other one, both eliminations are the same: for (v, w) = (dx, dy) and T = A,
    or (v, w) = (dy, dx) and T = -A',

    .. math::

        \begin{pmatrix} D_v & T' \ -T & D_w \end{pmatrix} \begin{pmatrix} v \ w \end{pmatrix} =
        \begin{pmatrix} p \ q \end{pmatrix}, \qquad N = D_v + T_I' D_I^{-1} T_I.

    The border B holds the coordinates of w that are neither eliminated nor fixed. A small system determines them (a
    Schur complement): :math:`(D_B + T_B N^{-1} T_B')\, w_B = q_B + T_B N^{-1} (p - T_I' D_I^{-1} q_I)`.
    """

    accurate = 1e-8  # a step costs little more than a refinement

    def __init__(self, A: Operator, f: Stiffness, g: Stiffness, structure: Structure) -> None:
        super().__init__(A, f, g)
        self.structure = structure
        self.by_columns = structure.side == "columns"
        self.stays, other = (f, g) if self.by_columns else (g, f)
        moves = np.isfinite(other.diagonal[structure.border])
        self.border, self.outside = structure.border[moves], structure.outside[moves]
        with np.errstate(divide="ignore"):
            self.give = 1.0 / other.diagonal
        self.give[self.border] = 0.0
        weight = self.give if not structure.border.size else self.give[structure.inner]
        diagonal, finite = self.stays.diagonal, self.stays.finite
        self.factor = self._factored(weight, diagonal if finite is None else np.where(finite, diagonal, FIXED))
        ratio = structure.passes(A) / (PRODUCTS + structure.solve_passes(A))
        self.corrections = int(np.searchsorted(RATIOS, ratio))
        if self.border.size:
            self.images = np.stack([self._solved(row) for row in self.outside], axis=1)
            self.complement = self.outside @ self.images + np.diag(other.diagonal[self.border])

    def _factored(self, weight: Vector, diagonal: Vector) -> Solve:
        for shift in SHIFTS:
            found = self.structure.normal.factored(weight, diagonal, shift)
            if found is not None:
                return found
        raise SingularSystem

    def _solved(self, right: Vector) -> Vector:
        return _without(self.factor(right), self.stays)

    def solve(self, r: Vector, s: Vector) -> Direction:
        p, q = (r, s) if self.by_columns else (s, r)
        return self._direction(*self._eliminated(p, q))

    def refined(self, r: Vector, s: Vector) -> Direction:
        if self.border.size:
            return super().refined(r, s)
        p, q = (_without(r, self.f), _without(s, self.g))[:: 1 if self.by_columns else -1]
        found, best = self._eliminated(p, q), np.inf
        for _ in range(REFINEMENTS):
            v, _, _, back = found
            left = self.stays.product(v)  # the equations of w hold up to rounding, since w is computed from them
            left += back
            np.subtract(p, left, out=left)
            error = _relative(left := _without(left, self.stays), p)
            if not np.isfinite(error):
                raise SingularSystem
            if error < self.accurate or error >= 0.5 * best:
                break
            best = error
            for old, new in zip(found, self._eliminated(left, None), strict=True):
                old += new
        return self._direction(*found)

    def _eliminated(self, p: Vector, q: Vector | None) -> tuple[Vector, Vector, Vector, Vector]:
        """Return v, w, T v and T'w for a right side; without a q it is 0."""
        v = self._solved(p if q is None else p - self._back(self.give * q))
        if self.border.size:
            assert q is not None
            found, *_ = np.linalg.lstsq(self.complement, q[self.border] + self.outside @ v, rcond=None)
            v = v - self.images @ found
        image = self._there(v)
        w = image * self.give if q is None else image + q
        if q is not None:
            w *= self.give
        if self.border.size:
            w[self.border] = found
        return v, w, image, self._back(w)

    def _direction(self, v: Vector, w: Vector, image: Vector, back: Vector) -> Direction:
        return Direction(v, w, image, back) if self.by_columns else Direction(w, v, -back, -image)

    def _there(self, v: Vector) -> Vector:
        """Return T v."""
        self.passes += 0.5
        return self.A.matvec(v) if self.by_columns else -self.A.rmatvec(v)

    def _back(self, w: Vector) -> Vector:
        """Return T'w."""
        self.passes += 0.5
        return self.A.rmatvec(w) if self.by_columns else -self.A.matvec(w)


def form_for(shape: tuple[int, int], rigid: int, loose: int) -> type[Dense]:
    """Return the class of the smallest dense system, given in how many rows D_g = 0 and in how many columns D_f = 0.

    Equality constraints may be linearly dependent. The whole matrix then keeps more digits than an elimination, and is
    preferred while it is small.
    """
    m, n = shape
    by_rows = loose == 0 or (rigid == 0 and loose <= MOST_LOOSE)
    if rigid and (n + m <= SMALL or (rigid > MOST_RIGID and not by_rows)):
        return Whole
    return ByColumns if rigid <= MOST_RIGID and (n <= m or not by_rows) else ByRows


def factored(A: Operator, f: Stiffness, g: Stiffness, structure: Structure | None = None) -> System:
    """Return the system with a sparse factor if A has structure, and otherwise the smallest dense system, factored."""
    if structure is not None:
        return Sparse(A, f, g, structure)
    return form_for(A.shape, *(int(np.count_nonzero(side.diagonal == 0)) for side in (g, f)))(A, f, g)
