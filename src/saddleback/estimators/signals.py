"""Signals: trend filtering, and what it shares with the estimators of images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted

import saddleback as sb

from ..common.arrays import Indices, Vector
from ..common.checks import integer, scalar, shown
from ..common.pictures import label
from ..places.torch import on_host
from .certified import Certified
from .displays import given_axes
from .documentation import documented, entries
from .objective import REGRESSION, Objective

FLAT, SMALL = 1e-9, 1e-6
"""Differences up to FLAT, relative to the largest one, are 0 up to rounding. The largest one is taken to be at least
SMALL times that of the data."""


JUDGED = entries("""
result_ : Result or list
    What ``saddleback.solve`` returned; a list with one result per column if the data have several. So it is for the
    attributes below.
certificate_ : Certificate
    How far the objective is from its minimum at most: ``relative_gap``, ``gap``, ``primal_value``, ``dual_value``.
dual_gap_ : float
    The certified gap of the objective.
n_passes_ : float
    Work done, in passes.
n_iter_ : int
    ``n_passes_`` rounded up.
""")
"""Attributes of all of them."""

OF_SMOOTHERS = entries("""
loss : str
    Name of the loss, one of those of ``SparseRegressor``: "squared", "absolute", "quantile", "huber", "sqrt" and so on.
time_limit : float
    Most seconds for a ``fit``. A fit that ends there warns with the gap that it has reached, and the fitted values are
    the best point so far.
""")
"""Parameters of all of them that have another meaning in linear models."""


class Smoother(Certified):
    """Base of the estimators of x from data b = Kx + noise, by a loss of Kx and a norm of differences of x."""

    alpha: float
    loss: str
    quantile: float
    delta: float
    expectile: float
    epsilon: float
    power: float

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit the data, and return the fitted values in their shape."""
        return self.fit(X, **options)._fitted()

    def _fitted(self) -> Any:
        raise NotImplementedError

    def _objective(self) -> Objective:
        """Return the objective with the loss, after a check of the parameters."""
        scalar("alpha", self.alpha)
        objective = Objective(
            self.loss,
            None,
            quantile=self.quantile,
            expectile=self.expectile,
            delta=self.delta,
            epsilon=self.epsilon,
            power=self.power,
        )
        objective.check(REGRESSION)
        return objective

    def _checked(self, values: Any, name: str, dimensions: int, missing: bool = False) -> Vector:
        """Return data of 1 to some number of dimensions as an array of float64 or float32, with NaN if ``missing``."""
        array: Vector = check_array(
            on_host(values),
            ensure_2d=False,
            allow_nd=True,
            dtype=[np.float64, np.float32],
            input_name=name,
            ensure_all_finite="allow-nan" if missing else True,
        )
        if not 1 <= array.ndim <= dimensions:
            raise ValueError(f"{name} has {array.ndim} dimensions: expected at least 1 and at most {dimensions}")
        if not np.all(np.isnan(array)):
            self._objective().check_targets(name, float(np.nanmin(array)))
        return array

    def _solve(self, problems: list[sb.Problem]) -> list[sb.Result]:
        """Return the results of problems that share the time limit, after a warning if one is not optimal."""
        clock = self._clock()
        results: list[sb.Result] = []
        for problem in problems:
            if results and results[-1].status is sb.Status.INTERRUPTED:
                raise KeyboardInterrupt  # the other columns would have no values
            results.append(sb.solve(problem, **self._options(clock, len(problems) - len(results))))
        self._warn(results)
        return results


@documented(
    entries("""
signal_ : array in the shape of X
    The fitted values; the means exp(x) if the loss has a log link, as "poisson".
knots_ : array of int, or list of arrays
    The indices of the points at which a piece ends and the next one begins; one array per column of X.
""")
    | JUDGED,
    OF_SMOOTHERS
    | entries("""
order : int
    Degree k of the pieces, at least 0.
"""),
)
class TrendFilter(Smoother):
    r"""A signal made of a few polynomial pieces, fitted to data by any loss.

    Minimises :math:`\sum_i s_i\, \ell(x_i, y_i) + \alpha \|D^{(k+1)} x\|_1` over the values x of the signal, with s the
    sample weights and :math:`D^{(k+1)}` the differences of order k + 1 (Kim, Koh, Boyd and Gorinevsky, 2009;
    Tibshirani, 2014). The signal is piecewise constant for order k = 0 (the fused Lasso), piecewise linear for 1, and
    piecewise quadratic for 2. The losses are those of ``SparseRegressor``: loss="absolute" withstands outliers, and
    loss="quantile" gives a curve below which that share of the data lies.

    With uneven points t, differences are divided, :math:`D^{(j+1)} = D^{(1)} \mathrm{diag}\big(j / (t_{i+j} -
    t_i)\big) D^{(j)}`, which are those above if the points are 1 apart.

    Examples
    --------
    >>> import numpy as np
    >>> from saddleback.estimators import TrendFilter
    >>> y = np.concatenate([np.zeros(50), np.ones(50)])
    >>> y[3::7] += 0.3
    >>> model = TrendFilter(order=0, loss="absolute", alpha=3.0).fit(y)
    >>> model.knots_.tolist(), round(float(model.signal_[-1]), 4)
    ([49], 1.0)
    """

    def __init__(
        self,
        order: int = 1,
        loss: str = "squared",
        alpha: float = 1.0,
        *,
        quantile: float = 0.5,
        expectile: float = 0.5,
        delta: float = 1.0,
        epsilon: float = 0.1,
        power: float = 1.5,
        tol: float = 1e-6,
        max_iter: float = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: Any = False,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.order = order
        self.loss = loss
        self.alpha = alpha
        self.quantile = quantile
        self.expectile = expectile
        self.delta = delta
        self.epsilon = epsilon
        self.power = power
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.device = device

    def fit(
        self, X: Any, y: Any = None, *, t: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> TrendFilter:
        """Fit a signal, or one to each column of a matrix.

        Parameters
        ----------
        X : array-like of shape (n_points,) or (n_points, n_signals)
            The data.
        y : None
            Not used.
        t : array-like of shape (n_points,), optional
            Where the points lie, in increasing order; 1 apart by default.
        sample_weight : array-like of shape (n_points,), optional
            Weights of the points in the loss, at least 0.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        objective, data = self._objective(), self._checked(X, "X", 2)
        points = data.shape[0]
        if points < integer("order", self.order, least=0) + 2:
            raise ValueError(
                f"X has n_samples={points}: expected at least {shown(self.order + 2)}, for order={shown(self.order)}"
            )
        weight = None if sample_weight is None else _per_point("sample_weight", sample_weight, points)
        if weight is not None and not (weight.min() >= 0 and weight.any()):
            raise ValueError(
                f"sample_weight has values from {weight.min():g} to {weight.max():g}: expected values that are at "
                "least 0, not all of them zero"
            )
        D = _differences(points, self.order, None if t is None else _per_point("t", t, points))
        columns = data.astype(np.float64).reshape(points, -1).T
        # differences of large values lose digits, and those of values around 0 are the same
        centres = np.median(columns, axis=1) if objective.of_residuals else np.zeros(len(columns))
        centred = columns - centres[:, None]
        losses = [objective.loss_term(column, weight, 1.0) for column in centred]
        exact = self.order == 0 and self.loss == "squared"  # one prox is the solution then
        found = self._solve(
            [
                sb.Problem(sb.TotalVariation1D(self.alpha), sb.Identity(), loss)
                if exact
                else sb.Problem(sb.Zero(), [sb.Identity(), D], [loss, sb.L1(self.alpha)])
                for loss in losses
            ]
        )
        results = [replace(result, x=result.x + centre) for result, centre in zip(found, centres, strict=True)]
        self._judgement(results)
        values = np.stack([result.x for result in results], axis=-1).reshape(data.shape)
        self.signal_ = (np.exp(values) if objective.log_link else values).astype(data.dtype)
        product = D.matvec if t is None else D.dot
        knots = []
        for result, column in zip(found, centred, strict=True):
            # D'q = -y for the dual variables q of the differences
            of_differences = np.cumsum(result.y)[:-1] if exact else result.y[1]
            least = SMALL * float(np.abs(product(column)).max())
            knots.append(_knots(product(result.x), of_differences, self.alpha, least) + self.order)
        self.knots_ = knots[0] if data.ndim == 1 else knots
        self._drawn = np.arange(points) if t is None else np.asarray(t), data
        self._stop_if_interrupted(results)
        return self

    def _fitted(self) -> Any:
        return self.signal_

    def plot(self, ax: Any = None) -> Any:
        """Draw the data, the fitted signal and its knots.

        Parameters
        ----------
        ax : matplotlib axis or array of axes, optional
            One, or one per column of X; new ones by default.

        Returns
        -------
        matplotlib axis or array of axes
            The axis, or an array with one per column.
        """
        check_is_fitted(self)
        t, data = self._drawn
        columns, signals = (values.reshape(t.size, -1).T for values in (data, self.signal_))
        axes = given_axes(ax, len(columns), "one per column of X")
        knots = self.knots_ if isinstance(self.knots_, list) else [self.knots_]
        for each, column, signal, own in zip(axes, columns, signals, knots, strict=True):
            each.plot(t, column, ".", color="0.7", markersize=3, label="data")
            each.plot(t, signal, color="C0", drawstyle="steps-post" if self.order == 0 else "default", label="signal")
            each.plot(t[own], signal[own], "o", color="C3", markersize=4, label=f"{own.size} knots")
            label(each, "t", "y")
            each.legend(fontsize="small", frameon=False)
        return axes[0] if axes.size == 1 else axes


def _knots(differences: Vector, y: Vector, alpha: float, least: float) -> Indices:
    """Return which differences are not 0, given their dual variables.

    The dual variable of such a difference is alpha or -alpha. A solution is approximate, so that a difference counts as
    0 if it is closer to 0, relative to the largest one, than its dual variable is to these bounds, relative to alpha.
    The largest difference counts as at least ``least``, since all of them may be 0.
    """
    size = np.abs(differences)
    largest = max(float(size.max()), least)
    if alpha == 0 or largest == 0:
        return np.flatnonzero(size)
    return np.flatnonzero(size / largest > np.maximum(1.0 - np.abs(y) / alpha, FLAT))


def _differences(points: int, order: int, t: Vector | None) -> Any:
    """Return the differences between points, divided by their distances if these are given."""
    if t is None:
        return sb.Differences(points, order + 1)
    gaps = np.diff(t)
    if not gaps.min() > 0:
        raise ValueError(f"t does not increase from index {int(np.argmin(gaps))} on: expected distinct sorted points")
    D = sb.Differences(t.size, 1).tosparse()
    for j in range(1, order + 1):
        D = sb.Differences(t.size - j, 1).tosparse() @ sparse.diags_array(j / (t[j:] - t[:-j])) @ D
    return D.tocsc()


def _per_point(name: str, values: ArrayLike, points: int) -> Vector:
    if np.asarray(on_host(values)).dtype.kind in "mM":
        raise TypeError(f"{name} holds dates: expected numbers; divide the time since the first point by a unit")
    array: Vector = check_array(on_host(values), ensure_2d=False, dtype=np.float64, input_name=name)
    if array.shape != (points,):
        raise ValueError(f"{name} has shape {array.shape}: expected one value for each of {points} points")
    return array
