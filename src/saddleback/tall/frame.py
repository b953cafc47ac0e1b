"""The columns of a tall problem: those of its rows, centred, and one of ones for an intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..common.arrays import Vector
from .rows import Chunk

Room = NDArray[np.float64]
"""Memory that is used again and again: new memory has to be cleared by the operating system each time."""


ABSENT = 1e-100
"""Standard deviation of a column that is constant in the sample. Rows in which it has another value are few, and alone
determine its coefficient: with their huge leverage they are kept in any case."""


@dataclass(frozen=True)
class Frame:
    """The columns of x: those of the rows, less a centre, and a column of ones if there is an intercept.

    ``spread`` is the standard deviation of each column, 1 for the ones.
    """

    centre: Vector
    spread: Vector
    intercept: bool

    @property
    def size(self) -> int:
        """Length of x."""
        return self.centre.size + self.intercept

    def design(self, X: Any, room: Room | None = None) -> Any:
        """Return the rows in these columns, as float64; in the given memory, if there is any."""
        if sparse.issparse(X):
            ones = [np.ones((X.shape[0], 1))] if self.intercept else []
            return sparse.hstack([X.astype(np.float64), *ones], format="csr")
        columns_first = X.strides[0] <= X.strides[1]
        shape = (X.shape[0], self.size)
        flat = np.empty(shape[0] * shape[1]) if room is None else room[: shape[0] * shape[1]]
        rows = flat.reshape(shape[::-1]).T if columns_first else flat.reshape(shape)
        np.subtract(X, self.centre, out=rows[:, : self.centre.size])
        rows[:, self.centre.size :] = 1.0
        return rows

    def matrices(self, X: Any) -> list[Any]:
        """Return the rows as the matrices of a problem: the columns of the coefficients, and that of the intercept."""
        columns = X.astype(np.float64).tocsc() if sparse.issparse(X) else np.asfortranarray(X - self.centre)
        return [columns, np.ones(X.shape[0])] if self.intercept else [columns]

    def split(self, x: Vector) -> Any:
        """Return x as a list: the coefficients, and the intercept if there is one."""
        return [x[: self.centre.size], x[self.centre.size :]][: 1 + self.intercept]

    def to_given(self, x: Vector) -> Any:
        """Return x for columns that are not centred: a list with an intercept, and otherwise the coefficients."""
        if not self.intercept:
            return x
        coef, intercept = self.split(x)
        return [coef, intercept - self.centre @ coef]

    def from_given(self, x: Any) -> Vector:
        """Return the inverse of ``to_given``."""
        if not self.intercept:
            return self._checked(np.array(x, dtype=np.float64).reshape(-1))
        coef, intercept = (np.asarray(part, dtype=np.float64).reshape(-1) for part in x)
        return np.append(self._checked(coef), intercept + self.centre @ coef)

    def _checked(self, coef: Vector) -> Vector:
        if coef.shape != self.centre.shape:
            raise ValueError(f"x0 has {coef.size} coefficients: expected one per column, {self.centre.size}")
        return coef

    def leverage(self, design: Any, room: Room | None = None) -> Vector:
        """Return the length of each row relative to that of a typical row."""
        lengths: Vector = np.sqrt(self.squares(design, room) @ self.square_factors)
        return lengths

    @staticmethod
    def squares(design: Any, room: Room | None = None) -> Any:
        """Return the squares of all entries."""
        if sparse.issparse(design):
            return design.power(2)
        return np.multiply(design, design, out=None if room is None else _like(design, room))

    @property
    def square_factors(self) -> Vector:
        """The factors of the squares of a row in the square of its leverage."""
        return np.asarray(self.spread**-2.0 / self.size)


def _like(design: NDArray[np.float64], room: Room) -> NDArray[np.float64]:
    """Return memory of the shape and order of an array."""
    flat = room[: design.size]
    return flat.reshape(design.shape) if design.flags.c_contiguous else flat.reshape(design.shape[::-1]).T


def weighted_gram(design: Any, weight: Vector, room: Room | None = None) -> NDArray[np.float64]:
    """Return A'DA for rows A and weights D, which are at least 0; with the given memory, if there is any."""
    root = np.sqrt(weight)
    if sparse.issparse(design):
        scaled = sparse.diags_array(root) @ design
        return np.asarray((scaled.T @ scaled).toarray())
    scaled = np.multiply(root[:, None], design, out=None if room is None else _like(design, room))
    return np.asarray(scaled.T @ scaled)


def frame_of(sample: Chunk, intercept: bool) -> Frame:
    """Return the columns of x, centred by the weighted means of a sample if there is an intercept and X is dense."""
    X, weight = sample.X, sample.weight
    share = np.full(len(sample), 1.0 / len(sample)) if weight is None or not np.any(weight) else weight / weight.sum()
    if isinstance(X, np.ndarray):
        mean = share @ X.astype(np.float64) if X.dtype == np.float32 else share @ X
        mean = np.where(np.all(X[:1] == X, axis=0), X[0], mean)  # exactly, so that nothing is left of a constant column
        spread = np.sqrt(np.maximum(share @ (X - mean) ** 2, 0.0))
    else:
        mean, spread = np.zeros(X.shape[1]), np.sqrt(X.power(2).T @ share)
    spread = np.where(spread > 0, spread, ABSENT)
    centre = mean if intercept and isinstance(X, np.ndarray) else np.zeros(X.shape[1])
    return Frame(centre, np.append(spread, [1.0] * intercept), intercept)
