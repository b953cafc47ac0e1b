r"""Finite differences on lines, grids and graphs.

On a line, the difference of order k that starts at the point i is

.. math::

    (D_k x)_i = \sum_{j=0}^k (-1)^{k-j} \binom kj\, x_{i+j}, \qquad D_k = D_1 \cdots D_1,

which is 0 for every i if x is a polynomial of a degree below k. :math:`D_1'D_1` is the Laplacian of a path of n points,
whose largest eigenvalue is :math:`4 \cos^2(\pi / 2n)`. On a grid the Laplacians of the axes commute, so that their
largest eigenvalues add up. The Laplacian of a graph has no eigenvalue above the largest sum of the degrees of two
neighbours (Anderson and Morley, 1985).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import cos, pi, prod, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..common.arrays import Blocks, Indices, Vector, constant, summed_by
from ..common.cached import cached_property
from ..common.checks import indices, integer, nonnegative, shown
from .implicit import Implicit
from .traits import Traits


class Differences(Implicit):
    r"""Finite differences of the entries of x, which are the values at the points of a line, a grid or a graph.

    ``Differences(n)`` has the n - 1 rows x[i + 1] - x[i], ``Differences(n, 2)`` the n - 2 rows
    x[i + 2] - 2 x[i + 1] + x[i], and so on. On a grid, the rows of the differences along the first axis come first,
    then those along the second, ...; there are none across a border. Products need no matrix.

    Parameters
    ----------
    n : int, optional
        Number of points on the line or in the graph. For a graph, the largest index in ``edges`` plus 1 by default.
    order : int, default 1
        Order of the differences; polynomials of lower degree have differences of 0. On a graph it is 1.
    shape : int or tuple of int, optional
        Number of points along each axis of a grid, in place of ``n``. x holds the values in row-major order.
    edges : array-like of int, optional
        One row (i, j) per edge of a graph, for the difference x[j] - x[i].
    weights : array-like, optional
        A factor per edge, at least 0, by which its difference is multiplied; all 1 by default.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> sb.Differences(4).matvec(np.array([1.0, 3.0, 2.0, 2.0]))
    array([ 2., -1.,  0.])
    >>> sb.Differences(shape=(2, 3)).shape  # 3 differences along the first axis and 4 along the second
    (7, 6)
    """

    def __init__(
        self,
        n: int | None = None,
        order: int = 1,
        *,
        shape: int | Sequence[int] | None = None,
        edges: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        integer("order", order)
        if edges is not None:
            self._geometry: _Geometry = _graph(n, order, shape, edges, weights)
        elif weights is not None:
            raise ValueError("weights are factors of the edges of a graph: expected edges too")
        else:
            self._geometry = _Grid(_sizes(n, shape), int(order))
        self.shape = (self._geometry.rows, self._geometry.points)
        stored = self.shape[0] * self._geometry.coefficients.shape[-1]
        self.traits = Traits(stored, norm=self._geometry.norm())

    def __repr__(self) -> str:
        return f"Differences({self._geometry!r})"

    def _product(self, x: Vector) -> Vector:
        return self._geometry.product(np.asarray(x, dtype=np.float64))

    def _adjoint(self, y: Vector) -> Vector:
        return self._geometry.adjoint(np.asarray(y, dtype=np.float64))

    def _sums_of_powers(self, power: float) -> tuple[Vector, Vector]:
        return self._geometry.sums(power)

    @cached_property
    def groups(self) -> Blocks:
        """The rows in groups, one per point from which differences start.

        ``GroupL2(alpha, D.groups)``, as a term on D x, is the isotropic total variation: alpha times the sum of the
        lengths of the gradients. Without other weights, each of these groups has the weight 1.
        """
        start = self._geometry.points_of_rows()[:, 0]
        sizes = np.bincount(start)
        return Blocks(np.argsort(start, kind="stable"), np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))

    def tosparse(self) -> Any:
        """Return the matrix as a CSC array of float64.

        Returns
        -------
        scipy.sparse.csc_array
            The matrix, with ``order + 1`` entries per row.
        """
        points = self._geometry.points_of_rows()
        values = np.broadcast_to(self._geometry.coefficients, points.shape)
        ends = np.arange(0, points.size + 1, points.shape[1])
        return sparse.csr_array((values.ravel(), points.ravel(), ends), shape=self.shape).tocsc()


class _Geometry(Protocol):
    """Where the points lie.

    ``coefficients`` are the entries of each row, or of all rows if they are equal.
    """

    rows: int
    points: int
    coefficients: Vector

    def product(self, x: Vector) -> Vector: ...

    def adjoint(self, y: Vector) -> Vector: ...

    def sums(self, power: float) -> tuple[Vector, Vector]: ...

    def norm(self) -> float:
        """Return a bound on the largest singular value."""

    def points_of_rows(self) -> Indices:
        """Return the points whose values each row takes, one row each."""


class _Grid:
    """The differences of an order along each axis of a grid; a line has one axis."""

    def __init__(self, shape: tuple[int, ...], order: int) -> None:
        if max(shape) <= order:
            raise ValueError(
                f"order={shown(order)} on a grid of shape {shape}: expected an axis with at least {shown(order + 1)} "
                "points, which one difference takes"
            )
        self.shape = shape
        self.order = order
        self.points = prod(shape)
        self.coefficients = np.diff(np.eye(order + 1), order, axis=0).ravel()
        self.axes = [axis for axis, size in enumerate(shape) if size > order]
        ends = np.cumsum([0, *(prod(self._reduced(axis)) for axis in self.axes)]).tolist()
        self.rows = ends[-1]
        self.stretches = [slice(a, b) for a, b in pairwise(ends)]

    def __repr__(self) -> str:
        return f"shape={self.shape}, order={self.order}"

    def _reduced(self, axis: int) -> tuple[int, ...]:
        """Return the shape of the differences along an axis."""
        return tuple(size - self.order * (axis == own) for own, size in enumerate(self.shape))

    def product(self, x: Vector) -> Vector:
        result = np.empty(self.rows)
        for axis, own in zip(self.axes, self.stretches, strict=True):
            block = x.reshape(self.shape)
            for further in reversed(range(self.order)):
                out = None if further else result[own].reshape(self._reduced(axis))
                block = np.subtract(*_neighbours(block, axis), out=out)
        return result

    def adjoint(self, y: Vector) -> Vector:
        result = None
        for axis, own in zip(self.axes, self.stretches, strict=True):
            block = y[own].reshape(self._reduced(axis))
            for _ in range(self.order - 1):
                block = _backward(block, axis)
            if result is None:
                result = _backward(block, axis)
            else:
                ahead, behind = _neighbours(result, axis)
                ahead += block
                behind -= block
        assert result is not None
        return result.ravel()

    def sums(self, power: float) -> tuple[Vector, Vector]:
        entries = np.abs(self.coefficients) ** power
        of_columns = np.zeros(self.shape)
        for axis in self.axes:
            along = np.convolve(np.ones(self.shape[axis] - self.order), entries)
            of_columns += along.reshape([-1 if axis == each else 1 for each in range(len(self.shape))])
        return of_columns.ravel(), constant(float(entries.sum()), self.rows)

    def norm(self) -> float:
        lengths = (prod(2 * cos(pi / (2 * (self.shape[axis] - k))) for k in range(self.order)) for axis in self.axes)
        return sqrt(sum(length**2 for length in lengths))

    def points_of_rows(self) -> Indices:
        points = np.arange(self.points).reshape(self.shape)
        found = np.empty((self.rows, self.order + 1), dtype=np.int64)
        for axis, own in zip(self.axes, self.stretches, strict=True):
            start = points[tuple(slice(size) for size in self._reduced(axis))]
            stride = prod(self.shape[axis + 1 :])
            found[own] = start.reshape(-1, 1) + stride * np.arange(self.order + 1)
        return found


class _Graph:
    """The differences along the edges of a graph, times their weights."""

    def __init__(self, edges: Indices, points: int, weights: Vector) -> None:
        self.edges = edges
        self.rows, self.points = len(edges), points
        self.weights = weights
        self.coefficients = np.column_stack([-weights, weights])

    def __repr__(self) -> str:
        return f"{self.rows} edges, n={self.points}"

    def product(self, x: Vector) -> Vector:
        start, end = self.edges.T
        return np.asarray((x[end] - x[start]) * self.weights)

    def adjoint(self, y: Vector) -> Vector:
        start, end = self.edges.T
        flow = y * self.weights
        return summed_by(end, flow, self.points) - summed_by(start, flow, self.points)

    def sums(self, power: float) -> tuple[Vector, Vector]:
        entries = self.weights**power if power else (self.weights > 0).astype(np.float64)
        return summed_by(self.edges.ravel(), np.repeat(entries, 2), self.points), 2.0 * entries

    def norm(self) -> float:
        degrees = self.sums(2)[0]
        return sqrt(float(degrees[self.edges].sum(axis=1).max()))

    def points_of_rows(self) -> Indices:
        return self.edges


def _neighbours(block: Vector, axis: int) -> tuple[Vector, Vector]:
    """Return views of all points that have another one behind them along an axis, and of those."""
    before = (slice(None),) * axis
    return block[(*before, slice(1, None))], block[(*before, slice(None, -1))]


def _backward(block: Vector, axis: int) -> Vector:
    """Return the adjoint of first differences along an axis: the differences of values with a 0 at either end."""
    result = np.empty([size + (axis == each) for each, size in enumerate(block.shape)])
    ahead, behind = _neighbours(block, axis)
    along = np.moveaxis(result, axis, 0)
    np.subtract(np.moveaxis(behind, axis, 0), np.moveaxis(ahead, axis, 0), out=along[1:-1])
    along[0], along[-1] = -block.take(0, axis), block.take(-1, axis)
    return result


def _sizes(n: Any, shape: Any) -> tuple[int, ...]:
    """Return the sizes of a grid from the arguments of the user."""
    if (n is None) == (shape is None):
        found = "neither" if n is None else "both"
        raise ValueError(f"n and shape: {found} given; expected n for a line, shape for a grid, or edges for a graph")
    if shape is None:
        if integer("n", n) > np.iinfo(np.int64).max:
            raise ValueError(f"n={shown(n)}: expected an integer of at most {np.iinfo(np.int64).max}")
        return (int(n),)
    return grid_shape(shape)


def grid_shape(shape: Any) -> tuple[int, ...]:
    """Return the sizes of a grid along its axes, or raise if they are no positive integers."""
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.ndim != 1 or not sizes.size or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        raise ValueError(f"shape={shown(shape)} is not that of a grid: expected positive integers, one per axis")
    return tuple(sizes.tolist())


def _graph(n: Any, order: Any, shape: Any, edges: ArrayLike, weights: ArrayLike | None) -> _Graph:
    """Return a graph from the arguments of the user."""
    if shape is not None:
        raise ValueError("shape and edges are both given: expected one of them")
    if order != 1:
        raise ValueError(f"order={order} with edges: expected 1, the only order on a graph")
    pairs, points = indices("edges", edges, (None, 2), n)
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        raise ValueError(f"edges has the loop {pairs[loops[0]].tolist()} at index {loops[0]}: expected two points")
    factors = np.ones(len(pairs)) if weights is None else nonnegative("weights", weights)
    if factors.shape != (len(pairs),):
        raise ValueError(f"weights has shape {factors.shape}: expected one value for each of {len(pairs)} edges")
    return _Graph(pairs, points, factors)
