"""Linear constraints on the coefficients of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .common.checks import bounds, finite


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """The constraint lower <= C w <= upper on the coefficients w of a linear model.

    Parameters
    ----------
    C : array-like, sparse matrix or dict
        One row per constraint with one column per coefficient; a vector is a single row. A dict is a single row too,
        with the coefficients of some columns by their names, such as ``{"age": 1.0, "income": -2.0}``.
    lower, upper : array-like, default -inf and inf
        One bound per row, or a single bound for all. Rows with equal bounds are equations.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> from saddleback.estimators import Lasso
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]])
    >>> budget = sb.LinearConstraint([[1.0, 1.0]], upper=2.0)
    >>> model = Lasso(alpha=0.01, constraints=budget, tol=1e-9).fit(X, X @ [2.0, 1.0])
    >>> round(float(model.coef_.sum()), 4)
    2.0
    """

    C: Any
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf

    def __post_init__(self) -> None:
        lower, upper = bounds(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        rows = 1 if isinstance(self.C, Mapping) else self._read()
        for name, bound in (("lower", lower), ("upper", upper)):
            if bound.size not in (1, rows) or bound.ndim > 1:
                raise ValueError(f"{name} has shape {bound.shape}, but C has {rows} rows: expected one bound per row")

    def _read(self) -> int:
        """Turn C into a matrix of finite numbers, and return its number of rows."""
        if sparse.issparse(self.C):
            finite("C", self.C.data)
            return int(self.C.shape[0])
        C = np.atleast_2d(finite("C", self.C))
        if C.ndim > 2:
            raise ValueError(f"C has shape {C.shape}: expected a matrix with one column per coefficient")
        object.__setattr__(self, "C", C)
        return int(C.shape[0])
