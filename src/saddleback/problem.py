"""The problem: min_x f(x) + g_1(A_1 x) + ... + g_R(A_R x), validated once and never changed.

Whatever the user wrote, one matrix or a grid of them, vectors or matrices, the rest of the library sees one function
``f`` of a flat x, one operator ``A`` and one function ``g`` of a flat u = Ax, with the saddle-point form
min_x max_y f(x) + <y, Ax> - g*(y).
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from math import frexp, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .common.arrays import Vector, map_constants, squeeze_constant
from .common.cached import twin
from .common.cards import card
from .common.checks import unmasked
from .functions import Convex, Loss, Term, as_term
from .functions.calculus import BlockSum
from .functions.contract import ROUNDING
from .functions.points import BlockPoint, Point
from .functions.probes import probe_all
from .functions.row_sum import one_above_the_other
from .functions.traits import is_smooth
from .interop import require_cvxpy
from .model.layout import Shape, lay_out
from .model.model import DESCENT_KERNEL, Model
from .model.ranges import check_range
from .operators import Identity, Stacked
from .operators.deferred_points import forward
from .operators.linear_operator import linear_operators
from .places.torch import device_of, on_host

if TYPE_CHECKING:
    from .places.torch.device import Device


class Problem:
    """min_x f(x) + g(Ax), or with several terms f(x) + g_1(A_1 x) + ... + g_R(A_R x).

    With lists of penalties and matrices, x is a list too, each part in its own shape. A part with a matrix is split
    further into the blocks of its penalty (columns or groups); an identity or a linear operator is one block. If b of
    the loss is an m x q matrix and A is m x n, then x is an n x q matrix.

    With a list of losses, A is a list with one matrix per loss, and y is a list with one array per loss. If there are
    lists of penalties and of losses, A is a list of rows, ``[[A_11, A_12], [A_21, None]]``: one row per loss, with one
    matrix per penalty. None is a block of zeros.

    Parameters
    ----------
    penalty : penalty, object or list
        f, from the catalogue or any object with ``value(x)`` and ``prox(v, step)``; or a list of these.
    A : array-like, sparse matrix, Streamed, Zarr array, LinearOperator, Identity or list
        The matrix, a list with one matrix per penalty or per loss, or a list of rows. It is neither copied nor changed.
        You may change it between solves, but not during one; a sparse matrix is then checked again.
    loss : loss, penalty, object or list
        g, from the catalogue or any object with ``value(u)`` and ``prox(v, step)``; or a list of these. A penalty may
        stand here too: ``L1(alpha)`` under a matrix D is the penalty alpha ||D x||_1.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> A, b = np.eye(3), np.array([3.0, -0.5, 1.0])
    >>> problem = sb.Problem(sb.L1(1.0), A, sb.Squared(b))
    >>> bool(np.allclose(sb.solve(problem, tol=1e-12).x, [2.0, 0.0, 0.0], atol=1e-5))
    True

    The same data with the constraint that the entries of x sum to 1:

    >>> rows, losses = [A, np.ones((1, 3))], [sb.Squared(b), sb.Equality([1.0])]
    >>> result = sb.solve(sb.Problem(sb.L1(1.0), rows, losses), tol=1e-9)
    >>> bool(np.allclose(result.x, [1.25, -0.25, 0.0], atol=1e-4)), len(result.y)
    (True, 2)
    """

    column_names: tuple[str, ...] = ()
    row_names: tuple[str, ...] = ()
    """Names of the variables and of the rows of A, for messages; empty unless the problem comes from a file."""

    def __init__(self, penalty: Any, A: Any, loss: Any) -> None:
        self.penalty = penalty
        self.A = A
        self.loss = loss
        self.is_list = isinstance(penalty, (list, tuple))
        self.has_rows = isinstance(loss, (list, tuple))
        self.terms, self.losses, grid = _parts(penalty, A, loss)
        ys = [_gradient_at_zero(term, row) for term, row in zip(self.losses, grid, strict=True)]
        layout = lay_out(grid, self.terms, self.losses, ys)
        self.watches, self.cells = layout.watches(), layout.cells
        self.x_shapes, self.y_shapes = layout.x_shapes, layout.y_shapes
        self.splits = [operator.traits.splits for operator in layout.operators]
        of_losses = (term.device for term in self.losses if term.device is not None)
        self.tensors = device_of(*(cell.source for cell in layout.cells)) or next(of_losses, None)
        f, linear_norm = self._penalties()
        bound = [term.bind(shape) for term, shape in zip(self.losses, self.y_shapes, strict=True)]
        g = one_above_the_other(bound, [prod(shape) for shape in self.y_shapes])
        check_range(layout, g, [y for y in ys if y is not None])
        operators = layout.operators
        self.model = Model(f, operators[0] if len(operators) == 1 else Stacked(operators), g, linear_norm)
        probe_all(self.model.f, self.model.g)

    def refreshed(self) -> Problem:
        """Return the problem for the present A: itself, unless a sparse A or the file of a memory map has changed.

        Linear operators forget their earlier products, since their data may have changed.

        A sparse A is used without a copy. If an index was changed later, it could be out of range, so that every call
        that reads A calls this method first.
        """
        if not any(watch.changed() for watch in self.watches):
            for operator in linear_operators(self.model.A):
                operator.forget()
            return self
        try:
            fresh = Problem(self.penalty, self.A, self.loss)
        except (TypeError, ValueError, MemoryError) as error:
            error.args = (f"{error} (A was changed after the Problem was made)",)
            raise
        fresh.column_names, fresh.row_names = self.column_names, self.row_names
        return fresh

    def columnar(self) -> Problem:
        """Return the problem with the columns of A contiguous in memory, so that many solves need one copy at most."""
        other = copy(self)
        other.model = replace(self.model, A=self.model.A.ordered("columns"))
        other.model.of_data[DESCENT_KERNEL] = None  # this copy is private, so that a kernel may be kept with it
        other.watches = []  # it lives as long as one call, which has checked A at its beginning
        return other

    def placed(self, device: Device) -> Problem:
        """Return the problem with A on a device, so that many solves need to send it there once."""
        other = copy(self)
        other.model = self.model.placed(device.operator(self.model.A), device)
        return other

    def with_alpha(self, alpha: float) -> Problem:
        """Return the problem with another alpha in every penalty that has one; A and the losses are shared.

        A penalty in the place of a loss keeps its alpha.
        """
        return self.with_terms([term.with_alpha(alpha) for term in self.terms])

    def with_terms(self, terms: list[Term]) -> Problem:
        """Return the problem with penalties that have the same blocks and the same value at 0, one per block of x."""
        other = twin(self)
        other.terms = terms
        other.penalty = other.terms if self.is_list else other.terms[0]
        f, linear_norm = other._penalties()
        other.model = self.model.with_penalty(f, linear_norm)
        return other

    def __repr__(self) -> str:
        rows, columns = self.model.A.shape
        penalty = self.terms if self.is_list else self.terms[0]
        loss = self.losses if self.has_rows else self.losses[0]
        return f"Problem({penalty!r}, {rows} x {columns}, {loss!r}; {self.n_blocks} blocks)"

    def _repr_html_(self) -> str:
        rows, columns = self.model.A.shape
        facts = {"minimise over x": "f(x) + g(Ax)"}
        facts |= {f"f[{j}]" if self.is_list else "f": repr(term) for j, term in enumerate(self.terms)}
        facts |= {"A": f"{rows} x {columns}"}
        facts |= {f"g[{r}]" if self.has_rows else "g": repr(term) for r, term in enumerate(self.losses)}
        return card("Problem", facts | {"blocks": str(self.n_blocks)})

    @property
    def n_blocks(self) -> int:
        """J, the number of blocks that a method may draw."""
        return len(self.model.blocks)

    def value(self, x: Any) -> float:
        """Return the objective f(x) + g(Ax) at x, which has the shape of the problem; infinite if x is infeasible.

        A block with one entry may be a number, as in ``problem.value([coefficients, intercept])``.

        A point is feasible if it violates no constraint by more than rounding. A solution may violate constraints up to
        the tolerance; ``certify`` returns its objective and its violation separately.

        Examples
        --------
        >>> import numpy as np, saddleback as sb
        >>> problem = sb.Problem(sb.NonNegative(), np.eye(2), sb.Squared([1.0, 2.0]))
        >>> problem.value([0.0, 0.0]), problem.value([-1.0, 0.0])
        (2.5, inf)
        """
        model, point = self.refreshed().model, self.flatten_x(x)
        u = forward(model.A, point)
        inside = model.g.domain.project(u)
        if inside is not u:
            rounding = ROUNDING * model.row_lengths * float(np.linalg.norm(point.vector()))
            u = np.where(np.abs(u - inside) <= rounding, inside, u)
        return float(model.f.value(point.vector()) + model.g.value(u))

    def to_cvxpy(self) -> Any:
        """Return the problem as a ``cvxpy.Problem``, for another solver or as a check of this one.

        The variables have the shapes of the blocks of x, and the names "x", or "x[0]", "x[1]", ... for a list of
        blocks: ``to_cvxpy().var_dict["x"]``. The matrix of a small ``LinearOperator`` is computed from its products.

        Returns
        -------
        cvxpy.Problem
            A minimisation with the same values.

        Raises
        ------
        TypeError
            If a penalty or loss is not of the catalogue.
        ValueError
            If a ``LinearOperator`` is too large for its matrix to be computed.

        Examples
        --------
        >>> import numpy as np, saddleback as sb
        >>> program = sb.Problem(sb.L1(1.0), np.eye(3), sb.Squared([3.0, -0.5, 1.0])).to_cvxpy()
        >>> round(float(program.solve(solver="CLARABEL")), 6)
        3.125
        """
        require_cvxpy("to_cvxpy")
        from .interop.writing import write

        return write(self.refreshed())

    def with_loss(self, loss: Any) -> Problem:
        """Return the problem with another loss on the same rows; A and the penalty are shared."""
        losses = (
            [as_term(own, f"loss[{r}]") for r, own in enumerate(loss)] if self.has_rows else [as_term(loss, "loss")]
        )
        if len(losses) != len(self.losses):
            raise ValueError(f"loss has {len(losses)} terms: expected one for each of the {len(self.losses)} before")
        other = twin(self)
        other.loss, other.losses = loss, losses
        bound = [term.bind(shape) for term, shape in zip(losses, self.y_shapes, strict=True)]
        g = one_above_the_other(bound, [prod(shape) for shape in self.y_shapes])
        other.model = self.model.with_loss(g)
        return other

    def flatten_x(self, x: Any, name: str = "x", largest: float = np.inf) -> Point:
        """Return a copy of x, which has the shape of the problem, as flat float64 vectors; raise if it is too large."""
        return BlockPoint(_flattened(x, self.x_shapes if self.is_list else self.x_shapes[0], name, "block", largest))

    def flatten_y(self, y: Any, name: str = "y", largest: float = np.inf) -> Vector:
        """Return y, in the shape of the data of the loss, as a flat float64 vector; raise if it is too large."""
        parts = _flattened(y, self.y_shapes if self.has_rows else self.y_shapes[0], name, "loss", largest)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def shape_x(self, x: Point) -> Any:
        """Return a flat x in the shape of the problem: an array, or a list of arrays for a list of blocks."""
        if not self.is_list:
            return self._handed_back(x.vector().reshape(self.x_shapes[0]))
        ends = accumulate((prod(shape) for shape in self.x_shapes), initial=0)
        flat = (x.segment(slice(*own)) for own in pairwise(ends))
        return [self._handed_back(own.reshape(shape)) for own, shape in zip(flat, self.x_shapes, strict=True)]

    def shape_y(self, y: Vector) -> Any:
        """Return a flat y in the shape of the loss's data: an array, or a list of arrays for a list of losses."""
        if not self.has_rows:
            return self._handed_back(y.reshape(self.y_shapes[0]))
        return [self._handed_back(y[own].reshape(shape)) for own, shape in zip(self.rows, self.y_shapes, strict=True)]

    def row_name(self, row: int) -> str:
        """Return the name of a row in messages: its number, with several losses inside of its loss."""
        if self.row_names:
            return self.row_names[row]
        return _inside(row, self.y_shapes, "loss") if self.has_rows else str(row)

    def column_name(self, column: int) -> str:
        """Return the name of a variable in messages: its number, in a list of blocks inside of its block."""
        if self.column_names:
            return self.column_names[column]
        return _inside(column, self.x_shapes, "x") if self.is_list else str(column)

    @property
    def rows(self) -> list[slice]:
        """The rows of each loss in flat y."""
        return [slice(*own) for own in pairwise(accumulate((prod(shape) for shape in self.y_shapes), initial=0))]

    def _penalties(self) -> tuple[Convex, float]:
        """Return the penalties as one function of flat x, and the norm of their linear terms."""
        functions = [term.bind(shape) for term, shape in zip(self.terms, self.x_shapes, strict=True)]
        linear_norm = _norm([term.linear(shape) for term, shape in zip(self.terms, self.x_shapes, strict=True)])
        if len(functions) == 1 and all(self.splits):
            return functions[0], linear_norm
        return BlockSum(functions, [prod(shape) for shape in self.x_shapes], self.splits), linear_norm

    def _handed_back(self, values: Vector) -> Any:
        """Return values as tensors if the user's data were tensors, and otherwise as numpy arrays."""
        return np.asarray(values) if self.tensors is None else self.tensors.tensor(values)


Grid = list[list[tuple[Any, str]]]


def _parts(penalty: Any, A: Any, loss: Any) -> tuple[list[Term], list[Term], Grid]:
    """Return the penalties and the losses as terms, and what was given for A: one row per loss, with names."""
    is_list, has_rows = (isinstance(each, (list, tuple)) for each in (penalty, loss))
    if has_rows:
        if not isinstance(A, (list, tuple)):
            raise TypeError(f"loss is a list and A is {type(A).__name__}: expected two lists, with one entry per loss")
        if len(loss) != len(A) or not len(A):
            raise ValueError(
                f"loss has {len(loss)} terms and A has {len(A)} rows: expected the same number, at least 1"
            )
    rows = [(row, f"A[{r}]", f"loss[{r}]") for r, row in enumerate(A)] if has_rows else [(A, "A", "loss")]
    losses = [as_term(term, name) for term, (_, _, name) in zip(loss if has_rows else [loss], rows, strict=True)]
    if not is_list:
        return [_penalty(penalty, "penalty")], losses, [[(row, name)] for row, name, _ in rows]
    terms = [_penalty(term, f"penalty[{j}]") for j, term in enumerate(penalty)]
    return terms, losses, [_blocks(row, name, len(terms)) for row, name, _ in rows]


def _blocks(row: Any, name: str, count: int) -> list[tuple[Any, str]]:
    """Return the blocks of one row of A, one per penalty, with their names."""
    if not isinstance(row, (list, tuple)):
        raise TypeError(
            f"penalty is a list and {name} is {type(row).__name__}: expected two lists, with one entry per block"
        )
    if len(row) != count or not count:
        raise ValueError(f"penalty has {count} blocks and {name} has {len(row)}: expected the same number, at least 1")
    return [(source, f"{name}[{j}]") for j, source in enumerate(row)]


def _penalty(source: Any, name: str) -> Term:
    if isinstance(source, Loss):
        raise TypeError(f"{name} is {type(source).__name__}, a loss: the order is Problem(penalty, A, loss)")
    return as_term(source, name)


def _gradient_at_zero(loss: Term, row: list[tuple[Any, str]]) -> Vector | None:
    """Return where a solve of a problem with a smooth loss begins; None if it is not needed to read the matrices."""
    if loss.shape is None or all(isinstance(source, Identity) for source, _ in row):
        return None
    g = loss.bind(loss.shape)
    return g.subgradient(np.zeros(prod(loss.shape))) if is_smooth(g) else None


def _norm(vectors: list[Vector]) -> float:
    """Return the length of the vectors together, also if the squares of their entries overflow or underflow.

    Not by the BLAS, whose threads would still be spinning, on the cores that it needs, when a solve begins.
    """
    largest = max(float(np.max(np.abs(squeeze_constant(vector)))) for vector in vectors)
    if largest == 0:
        return 0.0
    unit = 2.0 ** frexp(largest)[1]  # a power of 2 rounds nothing
    squares = (np.sum(map_constants(lambda entry: np.square(entry / unit), vector)) for vector in vectors)
    return unit * float(np.sqrt(sum(squares)))


def _flattened(value: Any, shape: Shape | list[Shape], name: str, kind: str, largest: float) -> list[Vector]:
    """Return an array, or a list of arrays if ``shape`` is a list, as flat vectors."""
    if not isinstance(shape, list):
        return [_flat(value, shape, name, largest)]
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} is {type(value).__name__}: expected a list with an array for each {kind}")
    if len(value) != len(shape):
        shapes = ", ".join(map(str, shape))
        plural = {"block": "blocks", "loss": "losses"}[kind]
        raise ValueError(f"{name} has {len(value)} {plural}: expected {len(shape)}, of shapes {shapes}")
    return [_flat(part, own, f"{name}[{j}]", largest) for j, (part, own) in enumerate(zip(value, shape, strict=True))]


def _inside(index: int, shapes: list[Shape], name: str) -> str:
    """Return a flat index as one of a part: "3 of loss[1]"."""
    for part, shape in enumerate(shapes):
        if index < prod(shape):
            return f"{index} of {name}[{part}]"
        index -= prod(shape)
    raise IndexError(index)


def _flat(value: Any, shape: Shape, name: str, largest: float) -> Vector:
    unmasked(name, value)
    try:
        array = np.asarray(on_host(value))
    except ValueError:
        raise ValueError(f"{name} is a {type(value).__name__} that makes no array: expected shape {shape}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} has dtype {array.dtype}: expected real numbers")
    if array.shape != shape and not (array.ndim == 0 and prod(shape) == 1):  # a number for a block of one
        raise ValueError(f"{name} has shape {array.shape}: expected {shape}")
    flat = array.astype(np.float64).ravel()
    size = max(float(flat.max()), -float(flat.min()))
    if not size < np.inf:
        raise ValueError(f"{name} has entries that are NaN or infinite: expected finite numbers")
    if size > largest:
        raise ValueError(f"{name} has entries up to {size:.0e} in size: expected at most {largest:.0e}; scale it down")
    return flat
