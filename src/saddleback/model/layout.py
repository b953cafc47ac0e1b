"""The shapes of x and y, and one operator per block of x, from what the user gave for A.

A is a grid: one row of operators per loss, with one operator per penalty in each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from scipy import sparse

from ..common.arrays import Vector
from ..functions import Term
from ..operators import Above, Compressed, Identity, Operator, ScaledIdentity, Tasks, as_operator, watched

Shape = tuple[int, ...]


@dataclass
class Cell:
    """One block of A.

    Attributes
    ----------
    source, name : what the user gave, and its name in messages.
    operator : what was made of it before the shapes were known.
    fitted : the operator from flat x to flat y.
    """

    source: Any
    name: str
    operator: Operator | Identity
    fitted: Operator = field(init=False)


@dataclass(frozen=True)
class Layout:
    """The shapes of the variables and of the losses, the operators of all rows per block of x, and the cells of A."""

    x_shapes: list[Shape]
    y_shapes: list[Shape]
    operators: list[Operator]
    cells: list[Cell]

    def watches(self) -> list[Any]:
        """Return the watches on the matrices of the user that are read without a copy."""
        found = [watched(cell.source, cell.operator) for cell in self.cells if isinstance(cell.operator, Operator)]
        return [watch for watch in found if watch is not None]


def lay_out(
    grid: Sequence[Sequence[tuple[Any, str]]],
    penalties: Sequence[Term],
    losses: Sequence[Term],
    ys: Sequence[Vector | None],
) -> Layout:
    """Return the layout of a problem; raise if its parts do not fit, with the name of the part.

    Parameters
    ----------
    grid : sequence of sequences of (object, str)
        What the user gave for each block of A, and its name; None is a block of zeros.
    penalties, losses : sequence of Term
        One per column and one per row of the grid.
    ys : sequence of (array or None)
        A y per row for which A'y is computed in the reading that checks A; None for none.
    """
    rows = [_read(row, loss, y) for row, loss, y in zip(grid, losses, ys, strict=True)]
    names = [[name for _, name in row] for row in grid]
    _check_filled(rows, names)
    known = [loss.shape or _rows_of(row) for loss, row in zip(losses, rows, strict=True)]
    x_shapes = [
        _variable_shape(term, [(row[j], shape) for row, shape in zip(rows, known, strict=True)])
        for j, term in enumerate(penalties)
    ]
    y_shapes = [
        loss.shape or _image_shape(row, x_shapes, shape) for loss, row, shape in zip(losses, rows, known, strict=True)
    ]
    for row, y_shape in zip(rows, y_shapes, strict=True):
        for cell, x_shape in zip(row, x_shapes, strict=True):
            if cell is not None:
                cell.fitted = _fit(cell, y_shape, x_shape)
    heights = [prod(shape) for shape in y_shapes]
    cells = [cell for row in rows for cell in row if cell is not None]
    return Layout(x_shapes, y_shapes, _columns(rows, heights), cells)


def _read(row: Sequence[tuple[Any, str]], loss: Term, y: Vector | None) -> list[Cell | None]:
    """Return the operators of one row."""
    for source, name in row:
        if loss.shape is not None:
            _check_rows(source, name, loss.shape)
    return [
        None
        if source is None
        else Cell(source, name, source if isinstance(source, Identity) else as_operator(source, name, y))
        for source, name in row
    ]


def _check_filled(rows: Sequence[Sequence[Cell | None]], names: Sequence[Sequence[str]]) -> None:
    """Raise if a row or a column of the grid has zeros only."""
    for row, own in zip(rows, names, strict=True):
        if all(cell is None for cell in row):
            raise ValueError(f"{own[0]} is None, and so is its whole row: expected a matrix in each row of A")
    for j in range(len(rows[0])):
        if all(row[j] is None for row in rows):
            raise ValueError(
                f"{names[0][j]} is None, in every row: expected a matrix for each penalty in some row of A"
            )


def _rows_of(row: Sequence[Cell | None]) -> Shape | None:
    """Return the shape of A x as far as the operators of a row tell it."""
    known = [cell.operator for cell in row if cell is not None and isinstance(cell.operator, Operator)]
    return (known[0].shape[0],) if known else None


def _variable_shape(penalty: Term, column: Sequence[tuple[Cell | None, Shape | None]]) -> Shape:
    """Return the shape of a variable, from the operators above each other that act on it.

    An operator tells the number of entries. A matrix of targets, an identity or a matrix penalty tells the shape.
    """
    found = [
        (_acts_on(cell, y_shape), cell.name) for cell, y_shape in column if cell is not None and y_shape is not None
    ]
    if not found:
        raise ValueError("the shape of A x is not known: give the loss arrays, or a matrix among the blocks of A")
    shape, name = max(found, key=lambda each: (prod(each[0]), len(each[0])))
    for other, whose in found:
        if prod(other) != prod(shape) and other[0] != shape[0]:
            raise ValueError(
                f"{whose} acts on a variable of shape {other}, but {name} on one of shape {shape}: expected the same "
                "number of columns"
            )
    if penalty.shape is not None and len(shape) == 1 and prod(penalty.shape) == shape[0]:
        return penalty.shape
    return shape


def _acts_on(cell: Cell, y_shape: Shape) -> Shape:
    """Return the shape of the variable on which an operator acts, given the shape of its product."""
    if isinstance(cell.operator, Identity):
        return y_shape
    rows, columns = cell.operator.shape
    if len(y_shape) == 2 and rows == y_shape[0]:
        return (columns, y_shape[1])
    if rows == prod(y_shape):
        return (columns,)
    raise _other_rows(cell.name, rows, y_shape)


def _image_shape(row: Sequence[Cell | None], x_shapes: Sequence[Shape], known: Shape | None) -> Shape:
    """Return the shape of A x for a loss without data: one column per task if A acts on the columns of a matrix."""
    for cell, x_shape in zip(row, x_shapes, strict=True):
        if cell is None:
            continue
        if isinstance(cell.operator, Identity):
            return x_shape
        rows, columns = cell.operator.shape
        if columns != prod(x_shape) and len(x_shape) == 2:
            return (rows, x_shape[1])
    assert known is not None
    return known


def _fit(cell: Cell, y_shape: Shape, x_shape: Shape) -> Operator:
    """Return the operator from flat x to flat y."""
    if isinstance(cell.operator, Identity):
        return ScaledIdentity(prod(y_shape), cell.operator.scale)
    rows, columns = cell.operator.shape
    if columns == prod(x_shape) and rows == prod(y_shape):
        return cell.operator
    if len(y_shape) == 2 and rows == y_shape[0] and x_shape == (columns, y_shape[1]):
        return Tasks(cell.operator, y_shape[1])
    raise ValueError(
        f"{cell.name} has the shape {cell.operator.shape}, but acts on a variable of shape {x_shape} under a loss of "
        f"shape {y_shape}: expected {prod(x_shape)} columns and {prod(y_shape)} rows"
    )


def _columns(grid: Sequence[Sequence[Cell | None]], heights: Sequence[int]) -> list[Operator]:
    """Return one operator per block of x: the cells of that column, one above the other."""
    if len(grid) == 1:
        return [cell.fitted for cell in grid[0] if cell is not None]
    tasks = {cell.fitted.traits.tasks for row in grid for cell in row if cell is not None}
    return [
        Above([None if cell is None else _in_a_stack(cell.fitted, len(tasks) == 1) for cell in column], heights)
        for column in zip(*grid, strict=True)
    ]


def _in_a_stack(operator: Operator, same_tasks: bool) -> Operator:
    """Return an operator in the form in which it can stand above others.

    An identity is a sparse matrix there, so that a penalty may split its columns. So is a matrix that acts on several
    tasks if another one does not: otherwise rows could not be left out one by one.
    """
    spread = operator.traits.tasks > 1 and not same_tasks and operator.traits.splits
    if operator.traits.identity_scales is None and not spread:
        return operator
    return Compressed(sparse.csc_array(operator.entries(compressed=True)))


def _check_rows(source: Any, name: str, y_shape: Shape) -> None:
    """Raise if a sparse matrix does not fit the loss, before vectors are made of as many entries as it claims rows."""
    if sparse.issparse(source) and source.shape[0] not in (y_shape[0], prod(y_shape)):
        raise _other_rows(name, source.shape[0], y_shape)


def _other_rows(name: str, rows: int, y_shape: Shape) -> ValueError:
    return ValueError(f"{name} has {rows} rows, but the loss has data of shape {y_shape}: expected {y_shape[0]} rows")
