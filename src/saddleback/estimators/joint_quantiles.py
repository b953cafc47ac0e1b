r"""Several quantiles at once, which do not cross.

.. math::

    \min_{W, b}\; \sum_k \frac{1}{\sum_i s_i} \sum_i s_i\, \rho_{q_k}(y_i - x_i'w_k - b_k) + \alpha \sum_k \|w_k\|_1
    \quad\text{with}\quad x_i'(w_{k+1} - w_k) + b_{k+1} - b_k \ge 0

Each quantile is a block of variables with its own loss, and each pair of neighbours is a further term.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

import saddleback as sb

from ..common.arrays import Vector
from ..common.pictures import plain
from .certified import Certified
from .design import Design
from .displays import given_axes
from .documentation import FITTED, documented, entries
from .samples import Samples, check_weight, distinct
from .table import checked, checked_samples

OWN = entries("""
quantiles : array-like
    The quantiles to predict, increasing and strictly between 0 and 1.
non_crossing : bool
    Whether a higher quantile must be at least as large as a lower one in every sample of ``fit``. Without it, the
    quantiles are fitted as if alone.
alpha : float
    Strength of the L1 penalty of each quantile; 0 is none.
""")

ATTRIBUTES = FITTED | entries("""
coef_ : array of shape (n_quantiles, n_features)
    Coefficients, one row per quantile.
intercept_ : array of shape (n_quantiles,)
    Intercepts.
certificate_ : Certificate
    How far the objective is from its minimum at most: ``relative_gap``, ``gap``, ``primal_value``, ``dual_value``.
""")
for of_linear_models in ("constraint_multipliers_", "selected_"):
    ATTRIBUTES.pop(of_linear_models)

MARGIN = 8.0
"""Distance between neighbouring quantiles, in units of rounding, that is kept in every sample of ``fit``."""


@documented(ATTRIBUTES, OWN)
class JointQuantileRegressor(Certified):
    r"""Several quantiles at once, which do not cross.

    Minimises :math:`\sum_k \frac{1}{n} \sum_i \rho_{q_k}(y_i - x_i'w_k - b_k) + \alpha \sum_k \|w_k\|_1`, with
    :math:`\rho_q(r)` = q r for r >= 0 and (q - 1) r otherwise, such that :math:`x_i'w_{k+1} + b_{k+1} \ge x_i'w_k +
    b_k` in every sample of ``fit``. In new samples far from these, quantiles may cross.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import JointQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 3))
    >>> y = X[:, 0] + rng.standard_normal(100)
    >>> model = JointQuantileRegressor([0.4, 0.5, 0.6]).fit(X, y)
    >>> bool(np.all(np.diff(model.predict(X), axis=1) >= 0))
    True
    """

    def __init__(
        self,
        quantiles: ArrayLike = (0.1, 0.5, 0.9),
        *,
        non_crossing: bool = True,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.quantiles = quantiles
        self.non_crossing = non_crossing
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> JointQuantileRegressor:
        """Fit all quantiles.

        Parameters
        ----------
        X : array-like or sparse matrix
            Samples by features.
        y : array-like
            The targets.
        sample_weight : array-like, optional
            One value per sample, at least 0. The loss is divided by their sum.

        Returns
        -------
        self : object
            The fitted model.
        """
        quantiles = self._checked_quantiles()
        table, y = checked(self, X, y, 1, y_numeric=True)
        if not table.in_memory:
            raise TypeError("X is in a file: JointQuantileRegressor needs it in memory, as an array or a sparse matrix")
        samples = distinct(table, np.asarray(y, dtype=np.float64), check_weight(sample_weight, table))
        design = Design(samples.X, samples.weight, self.fit_intercept)
        shift, A = design.shift(samples.y, samples.weight), _with_ones(design)
        problem = self._problem(A, samples, shift, quantiles)
        result = sb.solve(problem, **self._options(self._clock()))
        self._warn([result])
        if self.non_crossing and self.fit_intercept:
            result = _apart(problem, A, result)
        W = np.stack(result.x)
        if self.fit_intercept:
            W[:, -1] += shift - W[:, :-1] @ design.centre
        self._judgement([replace(result, x=list(W), y=[samples.to_given(part) for part in result.y])])
        self.coef_ = W[:, : design.n_features].astype(table.dtype) + 0.0
        self.intercept_ = (W[:, -1] if self.fit_intercept else np.zeros(quantiles.size)).astype(table.dtype)
        self._stop_if_interrupted([result])
        return self

    def _checked_quantiles(self) -> Vector:
        quantiles = np.atleast_1d(np.asarray(self.quantiles, dtype=np.float64))
        inside = quantiles.ndim == 1 and quantiles.size and np.all((quantiles > 0) & (quantiles < 1))
        if not inside or np.any(np.diff(quantiles) <= 0):
            raise ValueError(
                f"quantiles={self.quantiles!r}: expected increasing numbers strictly between 0 and 1, such as "
                "[0.1, 0.5, 0.9]"
            )
        return quantiles

    def _problem(self, A: Any, samples: Samples, shift: Vector, quantiles: Vector) -> sb.Problem:
        """Return the problem with one block per quantile: one loss for each, and one for each pair of neighbours."""
        count, (n, width) = quantiles.size, A.shape
        weight = samples.weight
        scale = 1.0 / float(n if weight is None else weight.sum())
        rows = [[A if j == k else None for j in range(count)] for k in range(count)]
        losses: list[Any] = [sb.Pinball(samples.y - shift, q, sample_weight=weight, scale=scale) for q in quantiles]
        if self.non_crossing and count > 1:
            minus = -A
            for k in range(count - 1):
                rows.append([minus if j == k else A if j == k + 1 else None for j in range(count)])
                losses.append(sb.Interval(np.zeros(n), np.full(n, np.inf)))
        penalised = np.ones(width)
        penalised[width - self.fit_intercept :] = 0.0
        penalty = sb.L1(self.alpha, weights=penalised) if self.alpha else sb.Zero()
        return sb.Problem([penalty] * count, rows, losses)

    def predict(self, X: Any) -> Any:
        """Return the quantiles for samples, one column per quantile."""
        check_is_fitted(self)
        return checked_samples(self, X) @ self.coef_.T + self.intercept_

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the mean pinball loss over samples and quantiles: larger is better."""
        quantiles, r = self._checked_quantiles(), np.asarray(y, dtype=np.float64)[:, None] - self.predict(X)
        losses = np.maximum(quantiles * r, (quantiles - 1.0) * r).mean(axis=1)
        return -float(np.average(losses, weights=None if sample_weight is None else np.asarray(sample_weight)))

    def plot(self, X: Any, y: Any = None, feature: int = 0, ax: Any = None) -> Any:
        """Draw the predicted quantiles against a feature, with one line per quantile.

        Lines are smooth if the other columns of X are functions of this feature, as powers or splines of it are.

        Parameters
        ----------
        X : array-like
            Samples by features.
        y : array-like, optional
            Their targets, drawn as points.
        feature : int, default 0
            Index of the feature on the horizontal axis.
        ax : matplotlib axis, optional
            Where to draw; a new one by default.

        Returns
        -------
        matplotlib axis
            The axis.
        """
        quantiles, predicted = self._checked_quantiles(), self.predict(X)
        axis = given_axes(ax, 1, "for the quantiles")[0]
        values = np.asarray(X[:, [feature]].todense() if sparse.issparse(X) else np.asarray(X)[:, feature]).ravel()
        order = np.argsort(values)
        if y is not None:
            axis.plot(values, y, ".", color="0.6", markersize=5)
        for k in range(quantiles.size)[::-1]:
            colour = f"C{min(k, quantiles.size - 1 - k) % 10}"  # quantiles at the same distance from the median
            axis.plot(values[order], predicted[order, k], color=colour, linewidth=1, label=f"{quantiles[k]:g}")
        names = getattr(self, "feature_names_in_", None)
        axis.set(xlabel=f"feature {feature}" if names is None else plain(names[feature]), ylabel="quantiles")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return axis

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _with_ones(design: Design) -> Any:
    """Return the columns of a design, with one of ones at the end if there is an intercept."""
    if not design.intercept:
        return design.matrix
    ones = np.ones((design.n_rows, 1))
    if sparse.issparse(design.matrix):
        return sparse.hstack([design.matrix, ones], format="csc")
    return np.asfortranarray(np.hstack([design.matrix, ones]))


def _apart(problem: sb.Problem, A: Any, result: sb.Result) -> sb.Result:
    """Return the result with intercepts moved, by about as much as rounding, such that no quantiles cross."""
    x = [block.copy() for block in result.x]
    fitted = np.stack([A @ block for block in x])
    least = MARGIN * np.finfo(np.float64).eps * float(np.max(np.abs(fitted), initial=1.0))
    lift = 0.0
    for k in range(1, len(x)):
        lift += max(0.0, least - float(np.min(fitted[k] - fitted[k - 1])))
        x[k][-1] += lift
    return replace(result, x=x, certificate=sb.certify(problem, x, result.y)) if lift else result
