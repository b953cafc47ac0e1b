r"""Stability selection: features that a model selects on most random halves of the samples.

In the complementary pairs of Shah and Samworth (2013) every split gives two halves without a common sample. If q
features are selected by a half on average, then with the threshold :math:`\tau > 1/2`

.. math::

    E\, |\hat S \cap L| \le \frac{q^2}{(2 \tau - 1) p},

where :math:`\hat S` are the features whose share of selections is at least the threshold, and L those that a half
selects with a probability of at most q / p, the share of a feature that is drawn at random. This is their bound for
any distribution, Theorem 1, and holds for any number of pairs.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

import saddleback as sb

from ..common.arrays import Indices, Vector
from ..common.checks import integer, scalar
from ..common.pictures import label, plain
from ..engine.clock import Clock
from ..places.mpi.communicator import SERIAL
from .certified import Certified, calling_level
from .cross_validation import CrossValidated
from .displays import given_axes
from .linear import LinearModel
from .many_weights import for_weights
from .path import coefficients

SHOWN = 30
"""Largest number of features in a picture."""


class StabilitySelection(MetaEstimatorMixin, SelectorMixin, BaseEstimator):
    """Select the features that a model selects on most random halves of the samples.

    These are complementary pairs of halves, as in Shah and Samworth (2013). If the model is a linear model of this
    library with one problem, and without constraints, ``saddleback.solve_many`` solves for all halves. Any other model
    is fitted to one half after the other.

    Parameters
    ----------
    estimator : model
        A model with ``coef_``, such as ``Lasso(alpha=0.1)``; a model that chooses alpha does so on every half. It
        selects the features whose coefficients are not 0, and groups as a whole.
    n_pairs : int, default=50
        Number of random splits into two halves. The halves of a classifier have equal shares of every class.
    threshold : float, default=0.6
        Share of the halves that have to select a feature, more than 0.5 and at most 1.
    random_state : int or RandomState, default=None
        Seed of the splits. None is 0, so that the selection is repeatable.

    Attributes
    ----------
    selection_probabilities_ : array of shape (n_features,)
        The share of the halves that have selected each feature.
    mean_selected_ : float
        Mean number of features that a half has selected, q.
    false_selection_bound_ : float
        A bound on the expected number of selected features that are not better than random ones, those that a half
        selects with a probability of at most q / p: q^2 / ((2 threshold - 1) p), Theorem 1 of Shah and Samworth with
        the estimate of q. It needs no assumption on the data.
    n_features_in_ : int
        Number of features, p.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import Lasso, StabilitySelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> y = X[:, :2].sum(axis=1) + rng.standard_normal(100)
    >>> chosen = StabilitySelection(Lasso(alpha=0.3), n_pairs=20).fit(X, y)
    >>> np.flatnonzero(chosen.get_support()).tolist()
    [0, 1]
    """

    def __init__(self, estimator: Any, *, n_pairs: int = 50, threshold: float = 0.6, random_state: Any = None) -> None:
        self.estimator = estimator
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> StabilitySelection:
        """Fit the model to all halves.

        Parameters
        ----------
        X, y : array-like
            As in ``fit`` of the model.

        Returns
        -------
        self : object
            The fitted selection.
        """
        integer("n_pairs", self.n_pairs)
        if not 0.5 < scalar("threshold", self.threshold) <= 1.0:
            raise ValueError(f"threshold={self.threshold}: expected a share of the halves above 0.5 and at most 1")
        model = clone(self.estimator)
        clock = model._clock() if isinstance(model, Certified) else Clock(None, SERIAL)
        together = isinstance(model, LinearModel) and not isinstance(model, CrossValidated)
        together = together and model.comm is None and getattr(model, "class_weight", None) is None
        selected = self._together(model, X, y, clock) if together else None
        if selected is None:
            selected = self._one_by_one(X, y, clock)
        pairs = len(selected) // 2
        if pairs < self.n_pairs:
            told = f"the time_limit of the estimator was enough for {pairs} of {self.n_pairs} pairs of halves"
            if not pairs:
                raise TimeoutError(f"{told}: raise it")
            warnings.warn(told, ConvergenceWarning, stacklevel=calling_level())
            selected = selected[: 2 * pairs]
        self.selection_probabilities_ = selected.mean(axis=0)
        self.mean_selected_ = float(selected.sum(axis=1).mean())
        self.false_selection_bound_ = self.mean_selected_**2 / ((2.0 * self.threshold - 1.0) * self.n_features_in_)
        return self

    def plot(self, ax: Any = None) -> Any:
        """Draw the selection probabilities, the largest first, and the threshold.

        Parameters
        ----------
        ax : matplotlib axis, optional
            A new one by default.

        Returns
        -------
        matplotlib axis
            The axis.
        """
        check_is_fitted(self)
        (axis,) = given_axes(ax, 1, "for the selection probabilities")
        names = getattr(self, "feature_names_in_", [f"feature {j}" for j in range(self.n_features_in_)])
        order = np.argsort(-self.selection_probabilities_, kind="stable")[:SHOWN]
        colours = ["C0" if chosen else "0.8" for chosen in self.get_support()[order]]
        axis.bar([plain(names[j]) for j in order], self.selection_probabilities_[order], color=colours)
        axis.axhline(self.threshold, color="black", linestyle=":", label=f"threshold {self.threshold:g}")
        axis.tick_params(axis="x", rotation=90, labelsize="small")
        bound = f"at most {self.false_selection_bound_:.2g} of the selected are expected to be false"
        label(axis, "", "share of the halves that select it", bound)
        axis.set_ylim(0.0, 1.05)
        axis.legend(fontsize="small")
        return axis

    def _halves(self, y: Any, n: int) -> list[Indices]:
        """Return the halves, those of a pair one after the other."""
        rng = check_random_state(0 if self.random_state is None else self.random_state)
        labels = np.asarray(y) if is_classifier(self.estimator) else np.zeros(n)
        members = [np.flatnonzero(labels == own) for own in np.unique(labels)]
        halves: list[Indices] = []
        for _ in range(self.n_pairs):
            shuffled = [rng.permutation(own) for own in members]
            for k in range(2):
                parts = [own[k * (own.size // 2) : (k + 1) * (own.size // 2)] for own in shuffled]
                halves.append(np.sort(np.concatenate(parts)))
        if not halves[0].size:
            raise ValueError(f"X has {n} samples: halves need at least two, and two of every class")
        return halves

    def _together(self, model: Any, X: Any, y: Any, clock: Clock) -> NDArray[np.bool_] | None:
        """Return the features that each half selects, from one problem with other weights; None if there are more."""
        table, targets, _ = model._check_data(X, y, None)
        ready = model._prepare(table, targets, None)
        if len(ready.targets) > 1 or not table.in_memory or ready.has_further_losses:
            return None
        self._keep_names(model)
        halves = self._halves(targets, table.shape[0])
        weights = np.zeros((len(halves), table.shape[0]))
        for own, half in zip(weights, halves, strict=True):
            own[half] = 1.0
        results = for_weights(ready, 0, weights, model._options(clock))
        if results[-1].status is sb.Status.INTERRUPTED:
            raise KeyboardInterrupt
        if results[-1].status is sb.Status.TIME_LIMIT:
            results.pop()
        if results:
            model._warn(results)
        return _masks([ready.selected(coefficients(result)[0]) for result in results], self.n_features_in_)

    def _one_by_one(self, X: Any, y: Any, clock: Clock) -> NDArray[np.bool_]:
        """Return the features that each half selects, from one fit per half."""
        validate_data(self, X, y, skip_check_array=True)
        found = []
        for half in self._halves(y, _num_samples(X)):
            model = clone(self.estimator)
            if clock.share() is not None:
                model.set_params(time_limit=clock.share())
            model.fit(_safe_indexing(X, half), _safe_indexing(y, half))
            if clock.expired():
                break
            found.append(np.flatnonzero(np.any(np.atleast_2d(model.coef_), axis=0)))
        self.n_features_in_ = model.n_features_in_
        return _masks(found, self.n_features_in_)

    def _keep_names(self, model: Any) -> None:
        """Take over the number and the names of the features of a model."""
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _get_support_mask(self) -> Vector:
        check_is_fitted(self)
        # a share such as 0.6 is a sum of 1 / (2 n_pairs) up to rounding
        mask: Vector = self.selection_probabilities_ >= self.threshold - 1e-9
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self.estimator)
        tags.input_tags.sparse = base.input_tags.sparse
        tags.target_tags = base.target_tags
        tags.target_tags.required = True
        return tags


def _masks(selected: list[Indices], n_features: int) -> NDArray[np.bool_]:
    masks = np.zeros((len(selected), n_features), dtype=bool)
    for mask, own in zip(masks, selected, strict=True):
        mask[own] = True
    return masks
