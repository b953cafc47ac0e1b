r"""Sparse structure of A, with which a step of the interior point costs a few passes.

Eliminating one of the two variables leaves :math:`D_f + A' D_g^{-1} A` or :math:`D_g + A D_f^{-1} A'`. If A is sparse,
so is one of them, and a factor of it with little fill takes time and memory that grow with the fill. A few dense rows
or columns of A would fill it, and those with D = 0 cannot be eliminated. They stay in the system as its border.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...common.arrays import Indices, Vector
from ...functions.normal_form import LogisticEntropy
from ...functions.traits import zero_slack
from ...machine.sparse_factors import Normal, normal_matrix
from ...model.model import Model
from ...operators import Operator
from ...operators.contract import Side
from ...places.newton import ADVANTAGE, gram_multiplications

SPARSE = 0.1
"""Largest share of the entries of A that may be stored."""

PAIRS = 16.0
"""Largest number of products per stored entry that forming the matrix may take."""

ALIKE = 1.5
"""Factor by which the products of the two matrices may differ for the more accurate one to be taken."""

DENSE = 10.0
"""A row is dense if it has more entries than this times the square root of the size of the matrix, as in the orderings
of Amestoy, Davis and Duff (1996)."""

MOST_BORDER = 20
"""Largest size of the border: each row of it costs a solution per matrix."""

MEMORY = 8e9
"""Most bytes of a factor whose pattern is analysed."""

KEY = "structure"
"""The key in ``Model.of_data`` under which the structure is kept."""


@dataclass(frozen=True)
class Structure:
    """How the linear system of a step is solved with a sparse factor.

    Attributes
    ----------
    side : which variable stays: the columns of A are those of dx, its rows those of dy.
    inner, border : the coordinates of the other variable that are eliminated, and those that are not.
    outside : the rows of T that belong to the border, for T = A if dx stays and T = -A' if dy stays.
    normal : the matrix that is factored.
    """

    side: Side
    inner: Indices
    border: Indices
    outside: Vector
    normal: Normal

    @property
    def bytes(self) -> float:
        """The memory that a step takes."""
        return self.normal.bytes + 16.0 * self.outside.size

    def passes(self, A: Operator) -> float:
        """Return the passes over A that take as long as a factorisation."""
        normal = self.normal
        work = normal.visits + self.border.size * normal.solve_visits + normal.multiplications / ADVANTAGE
        return work / (2.0 * float(max(A.traits.stored, 1)))

    def solve_passes(self, A: Operator) -> float:
        """Return the passes over A that take as long as a solution with the factor, without its products with A."""
        return self.normal.solve_visits / (2.0 * float(max(A.traits.stored, 1)))


def structure_of(model: Model) -> Structure | None:
    """Return the structure of the system of a problem, found once; None if dense matrices are faster."""
    loose = model.unpenalised
    kept: tuple[Indices, Structure | None] | None = model.of_data.get(KEY)
    if kept is None or not np.array_equal(kept[0], loose):
        # rounding errors remain in the equations of the variable that stays, where kinks absorb them
        side: Side = "rows" if zero_slack(model.f, np.zeros(model.A.shape[1])) is None else "columns"
        found = find_structure(model.A, loose, hard_rows(model), side) if _has_sparse_entries(model) else None
        model.of_data[KEY] = kept = loose, found
    return kept[1]


def hard_rows(model: Model) -> Indices:
    """Return the rows with an equality constraint, where D_g = 0."""
    loss = model.loss_form
    assert loss is not None
    left, right, quadratic, lower, upper = loss.parameters
    equal = (left == right) & (quadratic == 0) & np.isinf(lower) & np.isinf(upper)
    return np.flatnonzero(equal & ~loss.made_of(LogisticEntropy))


def _has_sparse_entries(model: Model) -> bool:
    """Return whether A is sparse and in memory, and the penalty without groups, whose D is not diagonal."""
    traits, (m, n) = model.A.traits, model.A.shape
    assert model.penalty_form is not None
    return bool(
        traits.entries_known
        and traits.reads_columns
        and traits.device is None
        and traits.holders is None
        and traits.panels is None
        and traits.tasks == 1
        and traits.stored <= SPARSE * m * n
        and not np.any(model.penalty_form.group_weight)
    )


def find_structure(A: Operator, loose: Indices, hard: Indices, preferred: Side) -> Structure | None:
    """Return the structure that forms the matrix with the fewest products; None if dense matrices are faster.

    Parameters
    ----------
    A : Operator
    loose : array of int
        Columns with D_f = 0.
    hard : array of int
        Rows with D_g = 0.
    preferred : str
        The side if both matrices take about the same number of products.
    """
    sides = sorted(_sides(A, loose, hard), key=lambda found: found[0])
    if not sides or sides[0][0] > PAIRS * A.traits.stored:
        return None
    alike = [found for found in sides if found[0] <= ALIKE * sides[0][0]]
    _, side, border = next((found for found in alike if found[1] == preferred), sides[0])
    entries = A.entries(compressed=True)
    T = sparse.csr_array(entries) if side == "columns" else sparse.csr_array(-entries.T)
    inner = np.setdiff1d(np.arange(T.shape[0]), border, assume_unique=True)
    size = float(T.shape[1])
    normal = normal_matrix(T if not border.size else T[inner], min(MEMORY / 8.0, size * (size + 1.0) / 2.0))
    if normal is None:
        return None
    found = Structure(side, inner, border, np.asarray(T[border].toarray()), normal)
    full = gram_multiplications(float(A.traits.stored), *sorted(A.shape))
    cheaper = found.passes(A) * 2.0 * A.traits.stored * ADVANTAGE < full
    return found if cheaper else None


def _sides(A: Operator, loose: Indices, hard: Indices) -> Iterator[tuple[float, Side, Indices]]:
    """Yield the variables that may stay, each with the products that form its matrix, and its border."""
    of_columns, of_rows = A.sums(0)
    sides: list[tuple[Side, Any, Indices, int]] = [("rows", of_columns, loose, A.shape[0])]
    sides.append(("columns", of_rows, hard, A.shape[1]))
    for side, counts, stiffless, size in sides:
        border = np.union1d(stiffless, np.flatnonzero(counts > DENSE * np.sqrt(size))).astype(np.int64)
        if border.size <= MOST_BORDER:
            inside = np.delete(counts, border)
            yield float(inside @ (inside + 1.0)) / 2.0, side, border
