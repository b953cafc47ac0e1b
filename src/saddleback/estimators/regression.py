"""Linear regression with every loss and penalty, and the models with common names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.utils import check_array

import saddleback as sb

from ..common.arrays import Vector
from ..engine.clock import Clock
from ..places.torch import on_host
from ..tall.dask_rows import in_blocks, is_dask, mean_of
from ..tall.rows import Rows
from .certified import seed_of
from .design import Design
from .documentation import FITTED, documented, entries
from .fit import Target
from .linear import LinearModel
from .objective import REGRESSION, Objective, PenaltyName
from .path import coefficients
from .samples import check_weight
from .table import Table, checked
from .tall_fit import surveyed


class LinearRegressor(RegressorMixin, LinearModel):
    """Base of the regressors."""

    losses = REGRESSION

    several_outputs = False
    """Whether y may have several columns."""

    joint = False
    """Whether several columns of y are fitted together, with a common penalty; one by one otherwise."""

    def _check_data(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Table, Any, Vector | None]:
        self._objective().check(self.losses)
        table, y = checked(self, X, y, self.least_samples, y_numeric=True, multi_output=self.several_outputs)
        y = np.asarray(y, dtype=np.float64)
        self._one_column = y.ndim == 2 and y.shape[1] == 1 and not self.joint
        y = y[:, 0] if self._one_column else y
        weight = check_weight(sample_weight, table)
        if y.size:
            self._objective().check_targets("y", float(y.min()))
            counted = y if weight is None else y[weight > 0]
            self._check_has_minimum(bool(np.all(np.any(counted, axis=0))))
        return table, y, weight

    def _check_has_minimum(self, some: bool) -> None:
        """Raise if no targets of samples that count are above 0, so that a log link has no best intercept."""
        objective = self._objective()
        if objective.log_link and self.fit_intercept and not some:
            raise ValueError(
                f"y is 0 for all samples with a positive weight: loss={objective.loss!r} has no minimum, since the "
                "intercept would be minus infinity; expected a target above 0, or fit_intercept=False"
            )

    def _targets(self, y: Any, weight: Vector | None, design: Design) -> list[Target]:
        columns = [y] if y.ndim == 1 or self.joint else y.T
        moves = self._objective().of_residuals  # counts minus their mean are not counts
        shifts = [design.shift(column, weight) if moves else np.zeros(column.shape[1:]) for column in columns]
        return [Target(column - shift, shift) for column, shift in zip(columns, shifts, strict=True)]

    def _columns(self, y: Any) -> list[Vector]:
        return [y]

    def _row_targets(self, rows: Rows) -> tuple[list[Rows], float]:
        if self.joint:
            raise ValueError(f"{type(self).__name__} fits several targets: rows in chunks have one target")
        self._one_column = False
        survey = surveyed(rows, self._objective(), self.fit_intercept, seed_of(self.random_state), labelled=False)
        if not survey.weight > 0:
            raise ValueError("the weights are zero everywhere: expected at least one positive weight")
        self._objective().check_targets("y", survey.smallest)
        return [rows], survey.weight

    def _store(self, results: list[sb.Result], dtype: Any) -> None:
        coefs, intercepts = zip(*(coefficients(result) for result in results), strict=True)
        single = len(results) == 1
        self.coef_ = (coefs[0].T if single else np.stack(coefs)).astype(dtype)
        intercept = (intercepts[0] if single else np.stack(intercepts)).astype(dtype)
        self.intercept_ = intercept.reshape(1) if self._one_column and self.fit_intercept else intercept[()]
        self._judgement(results)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        objective = self._objective()
        tags.target_tags.positive_only = objective.loss in self.losses and objective.positive_targets
        return tags

    def predict(self, X: Any) -> Any:
        """Return the predictions for samples: with a log link, the means exp(x'w + b)."""
        return self._means(self._scores(X))  # lazy if X is

    def _means(self, scores: Any) -> Any:
        """Return the predictions for values of the linear predictor."""
        return np.exp(scores) if self._objective().log_link else scores

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2 of the predictions; with a log link, D^2, the share of the deviance that is explained.

        The deviance is that of the loss: of Poisson counts, or of gamma or Tweedie targets.
        """
        if is_dask(X) and not self._objective().log_link:
            return self._score_in_blocks(X, in_blocks(y), sample_weight)
        return self._explained(y, self.predict(X), sample_weight)

    def _explained(self, y: Any, predicted: Any, sample_weight: ArrayLike | None) -> float:
        """Return the share of the variance, or of the deviance, that predictions explain."""
        objective = self._objective()
        if objective.log_link:
            power = objective.variance_power
            return float(d2_tweedie_score(y, predicted, sample_weight=sample_weight, power=power))
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _score_in_blocks(self, X: Any, y: Any, sample_weight: Any) -> float:
        """Return R^2 for data of Dask, by two passes over them."""
        mean = mean_of(y, sample_weight)
        left, spread = (mean_of((y - other) ** 2, sample_weight) for other in (self.predict(X), mean))
        return 1.0 - left / spread


class WithOffset(LinearRegressor):
    """Base of the regressors without cross-validation: ``fit``, ``predict`` and ``score`` take an offset."""

    _with_offset = False
    """Whether the model was fitted with one."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in ``SparseClassifier.fit``: samples by features, the targets, and a weight per sample.
        offset : array-like, optional
            A known part of the linear predictor x'w + b + offset, one value per sample: for losses with a log link,
            such as "poisson", the logarithm of the exposure. ``predict`` adds the one that it is given, and ``score``
            asks for one.

        Returns
        -------
        self : object
            The fitted model.
        """
        self._with_offset = offset is not None
        if offset is None:
            return super().fit(X, y, sample_weight)
        clock = self._clock()
        table, y, weight = self._check_data(X, y, sample_weight)
        return self._fit_table(clock, table, *self._without_offset(table, y, weight, offset))

    def _fit_rows(self, rows: Rows, clock: Clock) -> Any:
        self._with_offset = False
        return super()._fit_rows(rows, clock)

    def predict(self, X: Any, offset: ArrayLike | None = None) -> Any:
        """Return the predictions x'w + b + offset for samples, with an offset of 0 by default.

        With a log link they are the means exp(x'w + b + offset).
        """
        scores = self._scores(X)  # lazy if X is
        return self._means(scores if offset is None else scores + self._checked_offset(offset, scores))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None) -> float:
        """Return R^2 of the predictions; with a log link, D^2, the share of the deviance that is explained.

        The deviance is that of the loss: of Poisson counts, or of gamma or Tweedie targets. A model that was fitted
        with an offset needs that of the samples here.
        """
        if offset is None:
            if self._with_offset:
                raise ValueError(
                    "offset is missing: the model was fitted with one, without which its predictions are those of "
                    "another exposure; expected one value per sample, as in fit"
                )
            return super().score(X, y, sample_weight)
        return self._explained(y, self.predict(X, offset), sample_weight)

    def _without_offset(
        self, table: Table, y: Any, weight: Vector | None, offset: ArrayLike
    ) -> tuple[Any, Vector | None, float | None]:
        known = self._checked_offset(offset, y)
        objective = self._objective()
        if objective.of_residuals:
            return y - known, weight, None
        if not objective.log_link:
            raise ValueError(f"offset was given, and loss={objective.loss!r} has none: add it to X, as a column")
        # up to a constant, l(u + o, y) = exp((2 - p) o) l(u, y exp(-o)) with the power p of the variance
        total = float(y.size if weight is None else weight.sum())
        factor = np.exp((2.0 - objective.variance_power) * known)
        scaled = factor if weight is None else weight * factor
        return y * np.exp(-known), scaled, total

    @staticmethod
    def _checked_offset(offset: ArrayLike, beside: Any) -> Vector:
        """Return an offset with one value per sample, to be added to targets or predictions."""
        known: Vector = check_array(on_host(offset), ensure_2d=False, dtype=np.float64, input_name="offset")
        if known.shape != beside.shape[:1]:
            raise ValueError(
                f"offset has shape {known.shape}: expected one value for each of the {beside.shape[0]} samples"
            )
        return known.reshape(-1, *(1,) * (beside.ndim - 1))


@documented(FITTED)
class SparseRegressor(WithOffset):
    r"""Linear regression with any loss under any penalty.

    Minimises :math:`\frac{1}{\sum_i s_i} \sum_i s_i\, \ell(x_i'w + b, y_i) + \text{penalty}(w)`, with r = y - x'w - b:

    =============================  ================================================================================
    loss                           l
    =============================  ================================================================================
    "squared"                      r^2 / 2
    "absolute"                     abs(r)
    "quantile"                     quantile r for r >= 0, (quantile - 1) r otherwise
    "huber"                        r^2 / 2 up to delta, then delta (abs(r) - delta / 2)
    "epsilon_insensitive"          max(0, abs(r) - epsilon)
    "squared_epsilon_insensitive"  max(0, abs(r) - epsilon)^2 / 2
    "smoothed_quantile"            that of "quantile", with a parabola of width delta in place of its kink
    "expectile"                    expectile r^2 / 2 for r >= 0, (1 - expectile) r^2 / 2 otherwise
    "sqrt"                         the square root of the mean of r^2, in place of the mean
    "poisson"                      exp(u) - y u with u = x'w + b, for counts y; ``predict`` gives the means exp(u)
    "gamma"                        y exp(-u) + u, for y > 0; ``predict`` gives the means exp(u)
    "tweedie"                      y exp((1 - p) u) / (p - 1) + exp((2 - p) u) / (2 - p), for y >= 0 and a ``power`` p
                                   strictly between 1 and 2; ``predict`` gives the means exp(u)
    "kullback_leibler"             u - y log(u) with u = x'w + b >= 0, for counts y with the mean u
    =============================  ================================================================================

    =========================  ===================================================================================
    penalty                    on w
    =========================  ===================================================================================
    "l1"                       alpha sum_j weights_j abs(w_j)
    "elasticnet"               alpha sum_j weights_j (l1_ratio abs(w_j) + (1 - l1_ratio) / 2 w_j^2)
    "group"                    alpha sum_g weights_g norm2(w_g)
    "sparse_group"             alpha (l1_ratio norm1(w) + (1 - l1_ratio) sum_g weights_g norm2(w_g))
    "group_elasticnet"         alpha sum_g weights_g (l1_ratio norm2(w_g) + (1 - l1_ratio) / 2 norm2(w_g)^2)
    "mcp", "scad", "log_sum"   not convex: less shrinkage of large coefficients (``sb.MCP``, ``sb.SCAD``, ``sb.LogSum``)
    "adaptive"                 weights from a first fit with "l1" or "group" (``sb.Adaptive``)
    None                       none
    =========================  ===================================================================================

    A dict gives different columns different penalties, all with the same alpha:
    ``penalty={"l1": ["age", "income"], "group": {"region": ["north", "south"]}, None: ["sex"]}``.

    Penalties that are not convex are solved by ``sb.reweighted``: ``certificate_`` is that of the last convex problem,
    and it is not proved that the coefficients are a global minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 6))
    >>> y = 2 + X[:, :2].sum(axis=1) + rng.standard_t(1, size=100)
    >>> model = SparseRegressor(loss="absolute", penalty="group", alpha=0.3, groups=2).fit(X, y)
    >>> np.flatnonzero(model.coef_).tolist()
    [0, 1]
    """

    passes_parameter = "max_passes"

    def __init__(
        self,
        loss: str = "squared",
        penalty: PenaltyName = "l1",
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        gamma: float | None = None,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
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
        max_passes: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        comm: Any = None,
        device: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.gamma = gamma
        self.groups = groups
        self.weights = weights
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
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.comm = comm
        self.device = device

    def _objective(self) -> Objective:
        return Objective(
            self.loss,
            self.penalty,
            self.alpha,
            l1_ratio=self.l1_ratio,
            gamma=self.gamma,
            groups=self.groups,
            weights=self.weights,
            quantile=self.quantile,
            expectile=self.expectile,
            delta=self.delta,
            epsilon=self.epsilon,
            power=self.power,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(FITTED)
class Lasso(MultiOutputMixin, WithOffset):
    r"""The Lasso: :math:`\frac{1}{2n} \|y - Xw - b\|^2 + \alpha \|w\|_1`.

    The objective is that of scikit-learn; ``tol`` is a certified relative gap and ``max_iter`` counts passes. Several
    columns of y are fitted one by one: ``coef_`` then has one row per column. If y is a matrix with a single column,
    ``intercept_`` has shape (1,), as in scikit-learn.
    """

    several_outputs = True

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        comm: Any = None,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.comm = comm
        self.device = device

    @property
    def sparse_coef_(self) -> Any:
        """The coefficients as a sparse matrix, with one row per target."""
        return sparse.csr_array(np.atleast_2d(self.coef_))

    def _objective(self) -> Objective:
        return Objective(alpha=self.alpha, positive=self.positive, lower=self.lower, upper=self.upper)


@documented(FITTED)
class ElasticNet(Lasso):
    r"""The elastic net.

    Minimises :math:`\frac{1}{2n} \|y - Xw - b\|^2 + \alpha (\rho \|w\|_1 + \frac{1 - \rho}{2} \|w\|^2)`, with rho the
    ``l1_ratio``. Several columns of y are fitted one by one, as in ``Lasso``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        comm: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            alpha,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            warm_start=warm_start,
            positive=positive,
            lower=lower,
            upper=upper,
            constraints=constraints,
            random_state=random_state,
            verbose=verbose,
            n_jobs=n_jobs,
            comm=comm,
            device=device,
        )
        self.l1_ratio = l1_ratio

    def _objective(self) -> Objective:
        return Objective(
            penalty="elasticnet",
            alpha=self.alpha,
            l1_ratio=self.l1_ratio,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(FITTED)
class GroupLasso(Lasso):
    r"""The group Lasso: :math:`\frac{1}{2n} \|y - Xw - b\|^2 + \alpha \sum_g \omega_g \|w_g\|`.

    omega are the ``weights``. Several columns of y are fitted one by one, as in ``Lasso``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        comm: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            alpha,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            warm_start=warm_start,
            positive=positive,
            lower=lower,
            upper=upper,
            constraints=constraints,
            random_state=random_state,
            verbose=verbose,
            n_jobs=n_jobs,
            comm=comm,
            device=device,
        )
        self.groups = groups
        self.weights = weights

    def _objective(self) -> Objective:
        return Objective(
            penalty="group",
            alpha=self.alpha,
            groups=self.groups,
            weights=self.weights,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(FITTED)
class SparseGroupLasso(GroupLasso):
    r"""The sparse group Lasso.

    Minimises :math:`\frac{1}{2n} \|y - Xw - b\|^2 + \alpha (\rho \|w\|_1 + (1 - \rho) \sum_g \omega_g \|w_g\|)`, with
    rho the ``l1_ratio`` and omega the ``weights``. Several columns of y are fitted one by one, as in ``Lasso``.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        groups: Any = None,
        l1_ratio: float = 0.5,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        comm: Any = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            alpha,
            groups=groups,
            weights=weights,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            warm_start=warm_start,
            positive=positive,
            lower=lower,
            upper=upper,
            constraints=constraints,
            random_state=random_state,
            verbose=verbose,
            n_jobs=n_jobs,
            comm=comm,
            device=device,
        )
        self.l1_ratio = l1_ratio

    def _objective(self) -> Objective:
        return Objective(
            penalty="sparse_group",
            alpha=self.alpha,
            groups=self.groups,
            l1_ratio=self.l1_ratio,
            weights=self.weights,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(FITTED)
class QuantileRegressor(WithOffset):
    r"""Quantile regression: :math:`\frac{1}{n} \sum_i \rho_q(y_i - x_i'w - b) + \alpha \|w\|_1`.

    :math:`\rho_q(r)` is q r for r >= 0 and (q - 1) r otherwise, with q the ``quantile``. The objective is that of
    scikit-learn, whose default of 1 for ``alpha`` is kept: pass ``alpha=0`` for the plain quantile regression of R's
    quantreg or of statsmodels, and ``tol=1e-9`` for its vertex to nine digits or more of the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import QuantileRegressor
    >>> X = np.arange(10.0)[:, None]
    >>> y = 2 * X[:, 0] + [0, 1, 0, 1, 0, 9, 0, 1, 0, 1]
    >>> model = QuantileRegressor(quantile=0.5, alpha=0, tol=1e-9).fit(X, y)
    >>> bool(model.certificate_.relative_gap <= 1e-9)
    True
    """

    def __init__(
        self,
        *,
        quantile: float = 0.5,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        tol: float = 1e-6,
        warm_start: bool = False,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        constraints: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        comm: Any = None,
        device: Any = None,
    ) -> None:
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.constraints = constraints
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.comm = comm
        self.device = device

    def _objective(self) -> Objective:
        return Objective(
            "quantile",
            alpha=self.alpha,
            quantile=self.quantile,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


OF_TASKS = FITTED | entries("""
coef_ : array of shape (n_tasks, n_features)
    Coefficients: one row per task. Zeros are exact.
intercept_ : array of shape (n_tasks,)
    Intercepts.
certificate_ : Certificate
    How far the objective is from its minimum at most: ``relative_gap``, ``gap``, ``primal_value``, ``dual_value``.
""")
"""Attributes of a model of several tasks."""


class SeveralTasks(MultiOutputMixin, LinearRegressor):
    """Base of the models with one column of y per task, which are fitted together."""

    several_outputs = True
    joint = True

    def _check_data(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Table, Any, Vector | None]:
        table, Y, weight = super()._check_data(X, y, sample_weight)
        if Y.ndim == 1:
            single = type(self).__name__.replace("MultiTask", "")
            raise ValueError(f"y has shape {Y.shape}: expected one column per task; for a single task use {single}")
        return table, Y, weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags


@documented(OF_TASKS)
class MultiTaskLasso(SeveralTasks, Lasso):
    r"""The multi-task Lasso: :math:`\frac{1}{2n} \|Y - XW - 1b'\|_F^2 + \alpha \sum_j \|W_{j\cdot}\|`.

    A feature is used by all tasks or by none.
    """

    def _objective(self) -> Objective:
        return Objective(penalty="group", alpha=self.alpha, positive=self.positive, lower=self.lower, upper=self.upper)
