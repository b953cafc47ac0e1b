"""Linear regression with coefficients that are equal to their neighbours'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

import saddleback as sb

from ..common.checks import scalar
from .documentation import FITTED, documented, entries
from .objective import Objective
from .regression import LinearRegressor


@dataclass(frozen=True)
class FusedObjective(Objective):
    """An objective with a penalty on the differences of coefficients, along a line or the edges of a graph."""

    fused_alpha: float = 1.0
    edges: Any = None

    @property
    def penalised(self) -> bool:
        """Whether there is a penalty."""
        return super().penalised or self.fused_alpha > 0

    @property
    def penalty_text(self) -> str:
        """The penalty with its strength, for a summary."""
        return f"{super().penalty_text}, fused_alpha={self.fused_alpha:.6g}"

    def further_terms(self, shape: tuple[int, ...]) -> list[tuple[Any, Any]]:
        """Return the parts of the penalty that need a matrix: also the norm of the differences."""
        terms = super().further_terms(shape)
        if self.edges is not None or shape[0] > 1:
            terms.append((sb.Differences(shape[0], edges=self.edges), sb.L1(self.fused_alpha)))
        return terms


@documented(
    FITTED,
    entries("""
alpha : float
    Strength of the L1 penalty, at least 0.
fused_alpha : float
    Strength of the penalty on differences, at least 0.
edges : array-like of shape (n_edges, 2)
    Pairs of features whose coefficients are compared. None is each feature with the next one.
"""),
)
class FusedLasso(LinearRegressor):
    r"""The fused Lasso: regression with coefficients that are 0, and equal to those of their neighbours.

    Minimises :math:`\frac{1}{\sum_i s_i} \sum_i s_i\, \ell(x_i'w + b, y_i) + \alpha_1 \|w\|_1 + \alpha_2 \sum_{(j, k)}
    |w_j - w_k|`, with alpha_1 the ``alpha`` and alpha_2 the ``fused_alpha``, over the pairs of neighbours (Tibshirani,
    Saunders, Rosset, Zhu and Knight, 2005). Neighbours are columns of X next to each other, or those that ``edges``
    joins. The losses are those of ``SparseRegressor``.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import FusedLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 9))
    >>> y = X[:, 3:6].sum(axis=1) + 0.1 * rng.standard_normal(60)
    >>> model = FusedLasso(alpha=0.05, fused_alpha=0.1).fit(X, y)
    >>> np.abs(model.coef_).round(2).tolist()
    [0.0, 0.0, 0.0, 0.86, 0.86, 0.86, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        alpha: float = 0.1,
        fused_alpha: float = 0.1,
        *,
        loss: str = "squared",
        edges: ArrayLike | None = None,
        quantile: float = 0.5,
        expectile: float = 0.5,
        delta: float = 1.0,
        epsilon: float = 0.1,
        power: float = 1.5,
        fit_intercept: bool = True,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        warm_start: bool = False,
        tol: float = 1e-6,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fused_alpha = fused_alpha
        self.loss = loss
        self.edges = edges
        self.quantile = quantile
        self.expectile = expectile
        self.delta = delta
        self.epsilon = epsilon
        self.power = power
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def _objective(self) -> Objective:
        return FusedObjective(
            self.loss,
            "l1",
            self.alpha,
            quantile=self.quantile,
            expectile=self.expectile,
            delta=self.delta,
            epsilon=self.epsilon,
            power=self.power,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
            fused_alpha=scalar("fused_alpha", self.fused_alpha),
            edges=self.edges,
        )
