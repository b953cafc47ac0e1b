"""A problem whose loss is a sum over rows that are read in chunks."""

from __future__ import annotations

from typing import Any

from ..common.checks import number
from ..functions import Loss, Term, as_term
from ..places.mpi.communicator import Communicator
from .evaluation import MakeLoss, has_no_kinks
from .rows import Rows
from .spread import Joined, spread
from .survey import Sample

LEAST_SAMPLE = 10_000
"""Smallest sample. A problem with up to twice as many rows is solved in memory."""

LEAST_PER_COLUMN = 20
"""Smallest number of rows in a sample, per column."""

MORE_IF_SMOOTH = 2.5
"""Factor of the size of a sample if the loss is smooth. The bound after a Newton step is weak if the sample is a small
share of all rows, and the error of the step falls with the square of the size."""

SHARE_OF_MEMORY = 0.4
"""Share of the memory that rows in memory may take, with all that their solution needs."""

COPIES, VECTORS = 3, 40
"""What a row in memory takes: copies of its entries, and further numbers."""


class TallProblem:
    r"""min over (w, b) of f(w) + the sum of the losses of all rows at X w + b, with far more rows than columns.

    .. math::

        \min_{w, b}\; f(w) + \sum_i g_i(x_i'w + b)

    The rows are read a few times, chunk by chunk, and need not fit into memory. ``solve`` returns w, or [w, b] with an
    intercept; ``result.y`` is None, because it would have one number per row.

    Parameters
    ----------
    penalty : penalty
        f, a function of the coefficients w.
    rows : Rows
        X, with a target and perhaps a weight per row.
    loss : callable
        ``loss(target, sample_weight=weight)`` returns the loss of some rows from their targets and weights, which may
        be None: a class such as ``sb.Absolute``, or ``functools.partial(sb.Pinball, quantile=0.9)``. It has to be a sum
        over rows, and a function that can be pickled if rows lie with other processes.
    intercept : bool, default True
        Whether b is a variable; otherwise it is 0.
    memory : float, default 1e9
        Bytes that a solve may take, beside the chunks that are being read. With more memory a sample is larger, and
        fewer readings may be needed.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> X = np.random.default_rng(0).standard_normal((50_000, 3))
    >>> rows = sb.ArrayRows(X, X[:, 0] + 1.0)
    >>> problem = sb.TallProblem(sb.L1(100.0), rows, sb.Absolute)
    >>> coef, intercept = sb.solve(problem).x
    >>> bool(abs(coef[0] - 1.0) < 1e-3), bool(abs(intercept[0] - 1.0) < 1e-3)
    (True, True)
    """

    def __init__(self, penalty: Any, rows: Rows, loss: MakeLoss, intercept: bool = True, memory: float = 1e9) -> None:
        if isinstance(penalty, Loss):
            raise TypeError(
                f"penalty is {type(penalty).__name__}, a loss: the order is TallProblem(penalty, rows, loss)"
            )
        if not isinstance(rows, Rows):
            raise TypeError(f"rows is {type(rows).__name__}: expected Rows, such as ArrayRows or RowFiles")
        if not callable(loss):
            raise TypeError(
                f"loss is {type(loss).__name__}: expected a function of targets and weights, such as Absolute"
            )
        if not rows.n_rows or not rows.n_columns:
            raise ValueError(f"rows has {rows.n_rows} rows and {rows.n_columns} columns: expected at least one of each")
        if not number("memory", memory) > 0:
            raise ValueError(f"memory={memory}: expected a positive number of bytes")
        self.penalty: Term = as_term(penalty, "penalty")
        self.smooth = has_no_kinks(loss)
        self.rows, self.loss, self.intercept, self.memory = rows, loss, bool(intercept), memory

    def of_all(self, team: Communicator) -> TallProblem:
        """Return the problem with the rows of all processes, if each has its own rows."""
        return TallProblem(self.penalty, Joined(self.rows, team), self.loss, self.intercept, self.memory)

    def spread(self, team: Communicator) -> TallProblem:
        """Return the problem with its rows divided among processes, which all have the same rows."""
        return TallProblem(self.penalty, spread(self.rows, team), self.loss, self.intercept, self.memory)

    @property
    def size(self) -> int:
        """Number of variables."""
        return self.rows.n_columns + self.intercept

    @property
    def rows_in_memory(self) -> int:
        """Number of rows whose problem can be solved in memory."""
        return int(SHARE_OF_MEMORY * self.memory / (8 * (COPIES * self.size + VECTORS)))

    def sample(self, seed: int) -> Sample:
        r"""Return the rule for a sample: :math:`m^{2/3} n^{1/3}` of m rows, with n columns, or all if m is small.

        A sample of k rows determines u = Ax up to about sqrt(n / k) of the noise, so that about this share of the m
        rows is close to a kink. It should be k / m.
        """
        m = self.rows.n_rows
        few = (MORE_IF_SMOOTH if self.smooth else 1.0) * m ** (2 / 3) * self.size ** (1 / 3)
        wanted = max(LEAST_SAMPLE, LEAST_PER_COLUMN * self.size, int(few))
        if 2 * wanted >= m and m <= self.rows_in_memory:
            return Sample(1.0, seed)
        return Sample(min(wanted, self.rows_in_memory) / m, seed)

    def __repr__(self) -> str:
        return f"TallProblem({self.penalty!r}, {self.rows.n_rows} x {self.rows.n_columns}, {self.loss!r})"
