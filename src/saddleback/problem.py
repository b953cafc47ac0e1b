"""The problem: min_x f(x) + g(Ax), validated once and never changed.

Whatever the user wrote, one matrix or a list of blocks, vectors or matrices, the rest of the library sees one function
``f`` of a flat x, one operator ``A`` and one function ``g`` of a flat u = Ax, with the saddle-point form
min_x max_y f(x) + <y, Ax> - g*(y).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from math import frexp, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from .common.arrays import Vector, map_constants, squeeze_constant
from .common.cached import twin
from .common.checks import unmasked
from .functions import Convex, Loss, Term, as_term
from .functions.calculus import BlockSum
from .functions.contract import ROUNDING
from .functions.penalties import Penalty
from .functions.points import BlockPoint, Point
from .functions.probes import probe_all
from .functions.traits import is_smooth
from .interop import require_cvxpy
from .model.model import DESCENT_KERNEL, Model
from .model.ranges import check_range
from .operators import Identity, Operator, ScaledIdentity, Stacked, Tasks, as_operator, watched
from .operators.deferred_points import forward
from .operators.linear_operator import linear_operators
from .places.torch import device_of, on_host

if TYPE_CHECKING:
    from .places.torch.device import Device

Shape = tuple[int, ...]


class Problem:
    """min_x f(x) + g(Ax).

    With lists of penalties and matrices, x is a list too, each part in its own shape. A part with a matrix is split
    further into the blocks of its penalty (columns or groups); an identity or a linear operator is one block. If b of
    the loss is an m x q matrix and A is m x n, then x is an n x q matrix.

    Parameters
    ----------
    penalty : penalty, object or list
        f, from the catalogue or any object with ``value(x)`` and ``prox(v, step)``; or a list of these.
    A : array-like, sparse matrix, Streamed, Zarr array, LinearOperator, Identity or list
        The matrix, or a list with one matrix per penalty. It is neither copied nor changed. You may change it between
        solves, but not during one; a sparse matrix is then checked again.
    loss : loss or object
        g, from the catalogue or any object with ``value(u)`` and ``prox(v, step)``.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> A, b = np.eye(3), np.array([3.0, -0.5, 1.0])
    >>> problem = sb.Problem(sb.L1(1.0), A, sb.Squared(b))
    >>> bool(np.allclose(sb.solve(problem, tol=1e-12).x, [2.0, 0.0, 0.0], atol=1e-5))
    True
    """

    column_names: tuple[str, ...] = ()
    row_names: tuple[str, ...] = ()
    """Names of the variables and of the rows of A, for messages; empty unless the problem comes from a file."""

    def __init__(self, penalty: Any, A: Any, loss: Any) -> None:
        self.penalty = penalty
        self.A = A
        self.loss = loss
        self.is_list = isinstance(penalty, (list, tuple))
        self.terms, sources = _parts(penalty, A)
        loss_term = _loss(loss)
        y = None if all(isinstance(source, Identity) for source, _ in sources) else _gradient_at_zero(loss_term)
        if loss_term.shape is not None:
            for source, name in sources:
                _check_rows(source, name, loss_term.shape)
        operators = [s if isinstance(s, Identity) else as_operator(s, name, y) for s, name in sources]
        watches = (watched(s, op) for (s, _), op in zip(sources, operators, strict=True) if isinstance(op, Operator))
        self.watches = [watch for watch in watches if watch is not None]
        self.y_shape: Shape = _loss_shape(loss_term, operators)
        fitted = [_fit(op, name, self.y_shape) for op, (_, name) in zip(operators, sources, strict=True)]
        self.x_shapes: list[Shape] = [
            _variable_shape(term, shape) for term, (_, shape) in zip(self.terms, fitted, strict=True)
        ]
        self.operators = [op for op, _ in fitted]
        self.tensors = device_of(*(source for source, _ in sources)) or loss_term.device
        f, linear_norm = _penalties(self.terms, self.operators, self.x_shapes)
        g = loss_term.bind(self.y_shape)
        check_range(self.operators, [name for _, name in sources], g, y)
        self.model = Model(f, _side_by_side(self.operators), g, linear_norm)
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
        other.operators = [operator.ordered("columns") for operator in self.operators]
        other.model = replace(self.model, A=_side_by_side(other.operators))
        other.model.of_data[DESCENT_KERNEL] = None  # this copy is private, so that a kernel may be kept with it
        other.watches = []  # it lives as long as one call, which has checked A at its beginning
        return other

    def placed(self, device: Device) -> Problem:
        """Return the problem with A on a device, so that many solves need to send it there once."""
        other = copy(self)
        other.operators = [device.operator(operator) for operator in self.operators]
        other.model = self.model.placed(_side_by_side(other.operators), device)
        return other

    def with_alpha(self, alpha: float) -> Problem:
        """Return the problem with another alpha in every penalty that has one; A and the loss are shared."""
        other = twin(self)
        other.terms = [term.with_alpha(alpha) for term in self.terms]
        other.penalty = other.terms if self.is_list else other.terms[0]
        f, linear_norm = _penalties(other.terms, self.operators, self.x_shapes)
        other.model = self.model.with_alpha(f, linear_norm)
        return other

    def __repr__(self) -> str:
        rows, columns = self.model.A.shape
        penalty = self.terms if self.is_list else self.terms[0]
        return f"Problem({penalty!r}, {rows} x {columns}, {_loss(self.loss)!r}; {self.n_blocks} blocks)"

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

    def flatten_x(self, x: Any, name: str = "x", largest: float = np.inf) -> Point:
        """Return a copy of x, which has the shape of the problem, as flat float64 vectors; raise if it is too large."""
        if self.is_list and not isinstance(x, (list, tuple)):
            raise TypeError(f"{name} is {type(x).__name__}: expected a list with an array for each block")
        blocks = list(x) if self.is_list else [x]
        if len(blocks) != len(self.x_shapes):
            shapes = ", ".join(map(str, self.x_shapes))
            raise ValueError(f"{name} has {len(blocks)} blocks: expected {len(self.x_shapes)}, of shapes {shapes}")
        names = [f"{name}[{j}]" for j in range(len(blocks))] if self.is_list else [name]
        return BlockPoint([_flat(*part, largest) for part in zip(blocks, self.x_shapes, names, strict=True)])

    def flatten_y(self, y: Any, name: str = "y", largest: float = np.inf) -> Vector:
        """Return y, in the shape of the data of the loss, as a flat float64 vector; raise if it is too large."""
        return _flat(y, self.y_shape, name, largest)

    def shape_x(self, x: Point) -> Any:
        """Return a flat x in the shape of the problem: an array, or a list of arrays for a list of blocks."""
        if not self.is_list:
            return self._handed_back(x.vector().reshape(self.x_shapes[0]))
        ends = accumulate((prod(shape) for shape in self.x_shapes), initial=0)
        flat = (x.segment(slice(*own)) for own in pairwise(ends))
        return [self._handed_back(own.reshape(shape)) for own, shape in zip(flat, self.x_shapes, strict=True)]

    def shape_y(self, y: Vector) -> Any:
        """Return a flat y in the shape of the loss's data."""
        return self._handed_back(y.reshape(self.y_shape))

    def _handed_back(self, values: Vector) -> Any:
        """Return values as tensors if the user's data were tensors, and otherwise as numpy arrays."""
        return np.asarray(values) if self.tensors is None else self.tensors.tensor(values)


def _parts(penalty: Any, A: Any) -> tuple[list[Term], list[tuple[Any, str]]]:
    """Return the penalties as terms, and what was given for A with a name for each piece."""
    if isinstance(penalty, (list, tuple)) and not isinstance(A, (list, tuple)):
        raise TypeError(f"penalty is a list and A is {type(A).__name__}: expected two lists, with one entry per block")
    if not isinstance(penalty, (list, tuple)):
        return [_penalty(penalty, "penalty")], [(A, "A")]
    if len(penalty) != len(A) or not len(A):
        raise ValueError(f"penalty has {len(penalty)} blocks and A has {len(A)}: expected the same number, at least 1")
    terms = [_penalty(term, f"penalty[{j}]") for j, term in enumerate(penalty)]
    return terms, [(source, f"A[{j}]") for j, source in enumerate(A)]


def _penalty(source: Any, name: str) -> Term:
    if isinstance(source, Loss):
        raise TypeError(f"{name} is {type(source).__name__}, a loss: the order is Problem(penalty, A, loss)")
    return as_term(source, name)


def _loss(source: Any) -> Term:
    if isinstance(source, Penalty):
        raise TypeError(
            f"loss is {type(source).__name__}, a penalty: the order is Problem(penalty, A, loss); "
            "for bounds on A x use Interval"
        )
    return as_term(source, "loss")


def _gradient_at_zero(loss: Term) -> Vector | None:
    """Return where a solve of a problem with a smooth loss begins."""
    if loss.shape is None:
        return None
    g = loss.bind(loss.shape)
    return g.subgradient(np.zeros(int(np.prod(loss.shape)))) if is_smooth(g) else None


def _loss_shape(loss: Term, operators: Sequence[Operator | Identity]) -> Shape:
    if loss.shape is not None:
        return loss.shape
    known = [op for op in operators if isinstance(op, Operator)]
    if not known:
        raise ValueError("the shape of A x is not known: give the loss arrays, or a matrix among the blocks of A")
    return (known[0].shape[0],)


def _fit(operator: Operator | Identity, name: str, y_shape: Shape) -> tuple[Operator, Shape]:
    """Return the operator onto flat y, and the shape of the variable that it acts on."""
    size = int(np.prod(y_shape))
    if isinstance(operator, Identity):
        return ScaledIdentity(size, operator.scale), y_shape
    rows, columns = operator.shape
    if len(y_shape) == 2 and rows == y_shape[0]:
        return (operator if y_shape[1] == 1 else Tasks(operator, y_shape[1])), (columns, y_shape[1])
    if rows == size:
        return operator, (columns,)
    raise _other_rows(name, rows, y_shape)


def _check_rows(source: Any, name: str, y_shape: Shape) -> None:
    """Raise if a sparse matrix does not fit the loss, before vectors are made of as many entries as it claims rows."""
    if sparse.issparse(source) and source.shape[0] not in (y_shape[0], int(np.prod(y_shape))):
        raise _other_rows(name, source.shape[0], y_shape)


def _other_rows(name: str, rows: int, y_shape: Shape) -> ValueError:
    return ValueError(f"{name} has {rows} rows, but the loss has data of shape {y_shape}: expected {y_shape[0]} rows")


def _variable_shape(term: Term, shape: Shape) -> Shape:
    """Return the shape in which the user sees the variable: a matrix penalty gives a flat one its shape."""
    return term.shape if term.shape is not None and np.prod(term.shape) == shape[0] and len(shape) == 1 else shape


def _side_by_side(operators: Sequence[Operator]) -> Operator:
    return operators[0] if len(operators) == 1 else Stacked(operators)


def _penalties(terms: Sequence[Term], operators: Sequence[Operator], shapes: Sequence[Shape]) -> tuple[Convex, float]:
    """Return the penalties as one function of flat x, and the norm of their linear terms."""
    functions = [term.bind(shape) for term, shape in zip(terms, shapes, strict=True)]
    linear_norm = _norm([term.linear(shape) for term, shape in zip(terms, shapes, strict=True)])
    split = [operator.traits.splits for operator in operators]
    if len(functions) == 1 and all(split):
        return functions[0], linear_norm
    sizes = [operator.shape[1] for operator in operators]
    return BlockSum(functions, sizes, split), linear_norm


def _norm(vectors: Sequence[Vector]) -> float:
    """Return the length of the vectors together, also if the squares of their entries overflow or underflow.

    Not by the BLAS, whose threads would still be spinning, on the cores that it needs, when a solve begins.
    """
    largest = max(float(np.max(np.abs(squeeze_constant(vector)))) for vector in vectors)
    if largest == 0:
        return 0.0
    unit = 2.0 ** frexp(largest)[1]  # a power of 2 rounds nothing
    squares = (np.sum(map_constants(lambda entry: np.square(entry / unit), vector)) for vector in vectors)
    return unit * float(np.sqrt(sum(squares)))


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
