"""Linear classification with every loss and penalty; with several classes, one problem per class or for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

import saddleback as sb

from ..common.arrays import Vector
from ..engine.clock import Clock
from ..tall.dask_rows import in_blocks, is_dask, mean_of, predicted
from ..tall.retargeted import Retargeted
from ..tall.rows import Rows
from .certified import seed_of
from .design import Design
from .documentation import OF_CLASSIFIERS, documented
from .fit import Fit, Target
from .linear import LinearModel
from .objective import CLASSIFICATION, Objective, PenaltyName
from .path import coefficients, split
from .samples import check_weight
from .table import Table, checked
from .tall_fit import OneAgainstTheRest, TallFit, surveyed


def _has_probabilities(model: Any) -> bool:
    if not model._objective().probabilities:
        raise AttributeError(
            "predict_proba is there for loss='logistic' and 'multinomial' alone: other losses know no probabilities"
        )
    return True


def _is_endless(objective: Objective) -> bool:
    """Return whether the objective has no minimum if the classes are separable."""
    return objective.probabilities and not objective.penalised


SEPARABLE = (
    "the classes are separable, so without a penalty the loss falls to 0 as the coefficients grow, and no "
    "finite coefficients are the best. Those of this model separate the classes, but their size means nothing. Add a "
    "penalty: penalty='l1' with a positive alpha"
)


SEPARABLE_ROWS, SEPARABLE_PER_COLUMN = 1000, 20
"""Size of the sample that shows that classes are not separable: a number of samples, and a number per feature."""

POSITIVE = 0.5
"""Relative gap at which it is known that the minimum is positive."""


def _separates(scores: Vector, targets: Vector) -> bool:
    """Return whether the scores of all samples have the sign of their target, or are largest for their class."""
    if targets.ndim == 1:
        return bool(np.all(targets * scores > 0))
    own = np.max(np.where(targets > 0, scores, -np.inf), axis=1)
    return bool(np.all(own > np.max(np.where(targets > 0, -np.inf, scores), axis=1)))


class LinearClassifier(ClassifierMixin, LinearModel):
    """Base of the classifiers."""

    class_weight: Any = None
    losses = CLASSIFICATION

    def _can_be_tall(self, table: Table, y: Any, clock: Clock) -> bool:
        possible = super()._can_be_tall(table, y, clock)
        return possible and (not _is_endless(self._objective()) or self._has_a_minimum(table, y, clock))

    def _has_a_minimum(self, table: Table, y: Any, clock: Clock) -> bool:
        """Return whether a loss with probabilities, without a penalty, has a minimum, as a sample shows.

        If its classes are not separable, then those of all samples are not. A gap below the objective proves it, since
        the bound is then positive.
        """
        size = min(SEPARABLE_ROWS + SEPARABLE_PER_COLUMN * table.shape[1], y.size)
        rows = np.sort(np.random.default_rng(seed_of(self.random_state)).choice(y.size, size, replace=False))
        if np.unique(y[rows]).size < self.classes_.size:
            return False
        trial = self._unfitted(tol=POSITIVE)
        trial.classes_ = self.classes_
        ready = trial._prepare(table.rows(rows), y[rows], None)
        return all(result.status.solved for result in trial._solve(ready, clock))

    def _check_data(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Table, Any, Vector | None]:
        self._objective().check(self.losses)
        table, y = checked(self, X, y, self.least_samples)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = check_weight(sample_weight, table)
        if self.class_weight is not None:
            weight = self._class_weights(y, codes, weight)[codes] * (1.0 if weight is None else weight)
        if np.unique(codes if weight is None else codes[weight > 0]).size < 2:
            raise ValueError(
                f"y has one class with a positive weight, of {self.classes_}: expected two classes or more"
            )
        return table, codes, weight

    def _class_weights(self, y: Any, codes: Any, weight: Vector | None) -> Vector:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            counts = np.bincount(codes, weight, minlength=self.classes_.size).astype(np.float64)
            counted = counts > 0
            balanced: Vector = np.divide(counts.sum() / counted.sum(), counts, out=np.zeros_like(counts), where=counted)
            return balanced
        given: Vector = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        return given

    def _targets(self, y: Any, weight: Vector | None, design: Design) -> list[Target]:
        if self._objective().joint:
            return [Target(np.eye(self.classes_.size)[y], np.zeros(()))]
        return [Target(signs, np.zeros(())) for signs in self._columns(y)]

    def _columns(self, y: Any) -> list[Vector]:
        return [np.where(y == code, 1.0, -1.0) for code in self._positive()]

    def _positive(self) -> Sequence[int]:
        """Return the class that is positive in each problem."""
        return [1] if self.classes_.size == 2 else range(self.classes_.size)

    def _row_targets(self, rows: Rows) -> tuple[list[Rows], float]:
        counts = surveyed(rows, self._objective(), self.fit_intercept, seed_of(self.random_state), labelled=True).labels
        self.classes_ = np.array(sorted(counts))
        check_classification_targets(self.classes_)
        weights = np.array([counts[label] for label in self.classes_.tolist()])
        factors = np.ones(weights.size)
        if self.class_weight is not None:
            factors = self._class_weights(self.classes_, np.arange(weights.size), weights)
        counted = self.classes_[weights * factors > 0]
        if counted.size < 2:
            raise ValueError(
                f"the target has one class, {counted}: expected two classes or more with a positive weight"
            )
        by_class = tuple(zip(self.classes_.tolist(), factors.tolist(), strict=True)) if np.any(factors != 1) else ()
        targets = [OneAgainstTheRest(self.classes_.tolist()[code], by_class) for code in self._positive()]
        return [Retargeted(rows, change) for change in targets], float(weights @ factors)

    def _panels(self, ready: Fit) -> list[str]:
        several = self.classes_.size > 2 or ready.objective.joint
        return [f"class {name}" for name in self.classes_] if several else []

    def _solve_one(self, ready: Any, target: Any, start: sb.Result | None, options: dict[str, Any]) -> sb.Result:
        """Return the result of one problem.

        A loss with probabilities, without a penalty, has no minimum if some w separates the classes: along t w it falls
        towards 0 as t grows, but is positive everywhere. The solve ends at the first such w.
        """
        if not _is_endless(ready.objective) or isinstance(ready, TallFit):
            return super()._solve_one(ready, target, start, options)

        def separates(x: Any) -> bool:
            coef, intercept = split(x)
            return _separates(ready.samples.X @ coef + intercept, target.values)

        def watch(info: Any) -> bool:
            return separates(ready.design.to_given(info.x, target.shift))

        if ready.samples.X.in_memory:  # a product would read a whole file
            options = options | {"callback": watch}
        result = super()._solve_one(ready, target, start, options)
        return replace(result, status=sb.Status.DIVERGED, message=SEPARABLE) if separates(result.x) else result

    def _store(self, results: list[sb.Result], dtype: Any) -> None:
        pairs = [coefficients(result) for result in results]
        coefs, intercepts = (np.array(side) for side in zip(*pairs, strict=True))
        if self._objective().joint:
            coefs, intercepts = coefs[0].T, np.broadcast_to(intercepts[0], self.classes_.shape)
            if self.classes_.size == 2:
                coefs, intercepts = np.diff(coefs, axis=0), np.diff(intercepts)
        self.coef_ = coefs.astype(dtype)
        self.intercept_ = intercepts.astype(dtype)
        self._judgement(results)

    def decision_function(self, X: Any) -> Any:
        """Return x'w + b for two classes, positive for the second class; one column per class for more."""
        if is_dask(X):
            return predicted(X, self.decision_function, outputs=None if self.classes_.size == 2 else self.classes_.size)
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """Return the class of every sample."""
        if is_dask(X):
            return predicted(X, self.predict, self.classes_.dtype)
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the samples whose class is predicted correctly."""
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))
        right = self.predict(X) == in_blocks(y)
        return mean_of(right, sample_weight)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class.

        It is 1 / (1 + exp(-(x'w + b))), divided by the sum of all classes if there are more than two. For
        loss="multinomial" it is exp(x'w_k + b_k), divided by the sum of all classes.
        """
        if is_dask(X):
            return predicted(X, self.predict_proba, outputs=self.classes_.size)
        scores = self.decision_function(X)
        if self._objective().joint and scores.ndim == 2:
            return softmax(scores, axis=1)
        chances = expit(scores)
        if chances.ndim == 1:
            return np.column_stack([1.0 - chances, chances])
        total = chances.sum(axis=1, keepdims=True)
        return np.divide(chances, total, out=np.full_like(chances, 1.0 / chances.shape[1]), where=total > 0)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of ``predict_proba``."""
        return np.log(self.predict_proba(X))


@documented(OF_CLASSIFIERS)
class SparseClassifier(LinearClassifier):
    r"""Linear classification with any loss under any penalty.

    Minimises :math:`\frac{1}{\sum_i s_i} \sum_i s_i\, \ell(z_i (x_i'w + b)) + \text{penalty}(w)`, with labels z of -1
    and +1. More than two classes are fitted one against the rest, or with the last two losses all together.

    =======================  ===================================================================================
    loss                     l(u)
    =======================  ===================================================================================
    "hinge"                  max(0, 1 - u)
    "squared_hinge"          max(0, 1 - u)^2 / 2
    "huberised_hinge"        that of "hinge", with a parabola of width delta in place of its kink
    "logistic"               log(1 + exp(-u)); with ``predict_proba``
    "multinomial"            log(sum_k exp(u_k)) - u_z for the class z; with ``predict_proba``
    "multiclass_hinge"       max_k (1[k != z] + u_k) - u_z for the class z (Crammer and Singer)
    =======================  ===================================================================================

    The last two have one linear predictor :math:`u_k = x'w_k + b_k` per class, which are fitted in one problem. Their
    intercepts have the mean 0. With two classes, ``coef_`` and ``intercept_`` are those of the second class minus
    those of the first.

    The penalties are those of ``SparseRegressor``. With the last two losses a group has the coefficients of its
    features for all classes, so that by default a feature is used for all classes or for none.
    """

    passes_parameter = "max_passes"

    def __init__(
        self,
        loss: str = "hinge",
        penalty: PenaltyName = "l1",
        alpha: float = 0.01,
        *,
        l1_ratio: float = 0.5,
        gamma: float | None = None,
        groups: Any = None,
        weights: ArrayLike | Mapping[Any, float] | None = None,
        delta: float = 1.0,
        class_weight: Any = None,
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
        self.delta = delta
        self.class_weight = class_weight
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
            delta=self.delta,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )


@documented(OF_CLASSIFIERS)
class SparseSVC(LinearClassifier):
    r"""The linear support vector machine with an L1 penalty.

    Minimises :math:`\frac{1}{n} \sum_i \max(0, 1 - z_i (x_i'w + b)) + \alpha \|w\|_1`, with labels z of -1
    and +1. More than two classes are fitted one against the rest. An alpha of :math:`1 / (C n)` is the C of
    scikit-learn's ``LinearSVC``.
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
        return Objective("hinge", alpha=self.alpha, positive=self.positive, lower=self.lower, upper=self.upper)


@documented(OF_CLASSIFIERS)
class SparseLogisticRegression(SparseSVC):
    r"""Logistic regression with an L1 penalty or an elastic net.

    Minimises :math:`\frac{1}{n} \sum_i \log(1 + e^{-z_i (x_i'w + b)}) + \alpha (\rho \|w\|_1 + \frac{1 - \rho}{2}
    \|w\|^2)`, with labels z of -1 and +1 and rho the ``l1_ratio``. More than two classes are fitted one against the
    rest. An alpha of :math:`1 / (C n)` is the C of scikit-learn's ``LogisticRegression``.
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        l1_ratio: float = 1.0,
        class_weight: Any = None,
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
            class_weight=class_weight,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            time_limit=time_limit,
            tol=tol,
            warm_start=warm_start,
            positive=positive,
            lower=lower,
            upper=upper,
            constraints=constraints,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            comm=comm,
            device=device,
        )
        self.l1_ratio = l1_ratio

    def _objective(self) -> Objective:
        return Objective(
            "logistic",
            "elasticnet",
            self.alpha,
            l1_ratio=self.l1_ratio,
            positive=self.positive,
            lower=self.lower,
            upper=self.upper,
        )
