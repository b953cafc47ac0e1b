r"""Information criteria: the choice of a model by its fit to all samples and its size, without folds.

Let m be the mean loss, minus that of a perfect fit, n the number of observations and k the number of fitted
coefficients, the intercept included. With D = -2 log(likelihood), up to a constant,

.. math::

    AIC = D + 2 k, \quad BIC = D + k \log n, \quad EBIC = BIC + 2 \log \binom{p}{s}, \quad
    GCV = \frac{m}{(1 - k/n)^o}

where s of p features (or groups) are selected. A loss of residuals, l(r), is the likelihood with the density
:math:`e^{-l(r)/\sigma} / Z(\sigma)`, whose scale :math:`\sigma` is unknown and has its best value:

.. math::

    D = \min_\sigma\; 2 n \left( \log Z(\sigma) + m / \sigma \right), \quad Z(\sigma) = \int e^{-l(r) / \sigma}\, dr.

That is n log(RSS / n) for the squared loss, n log(2 m) for the expectile loss, and 2 n log(m) for the absolute and the
quantile loss. The logistic, the Poisson and the Kullback-Leibler loss are likelihoods without a scale, and D = 2 n m is
the deviance. The shape of gamma targets is unknown, and has its best value too:

.. math::

    D = \min_\nu\; 2 n \left( \nu (m + 1 - \log \nu) + \log \Gamma(\nu) \right).

The density of the Tweedie loss has no closed form, so that it has no criterion. The order o of GCV is 2, and 1 for
losses that grow linearly, as in the GACV of Yuan (2006) for quantiles. The EBIC is that of Chen and Chen (2008), with
gamma = 1.

k counts the coefficients that are not 0, which is unbiased for the Lasso. With a squared or a group norm in the
penalty it is too large, since these shrink what they select.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erf, gammaln

from ..common.arrays import Vector


@dataclass(frozen=True)
class Likelihood:
    """The likelihood of a loss.

    Attributes
    ----------
    deviance : D / n as a function of the mean losses, and of the parameters of the loss by name.
    order : the power of 1 - k / n in GCV.
    """

    deviance: Callable[..., Any]
    order: int = 2


def _of_squares(mean: Vector, **_: float) -> Any:
    """Z is proportional to the square root of sigma, whose best value is twice the mean loss."""
    return np.log(2.0 * mean)


def _of_homogeneous(mean: Vector, **_: float) -> Any:
    """Z is proportional to sigma, whose best value is the mean loss."""
    return 2.0 * np.log(mean)


def _of_insensitive(mean: Vector, epsilon: float) -> Any:
    """Z = 2 (sigma + epsilon), so that sigma^2 = m (sigma + epsilon)."""
    scale = 0.5 * (mean + np.sqrt(mean**2 + 4.0 * mean * epsilon))
    share = np.divide(mean, scale, out=np.ones_like(mean), where=scale > 0)
    return 2.0 * (np.log(scale + epsilon) + share - 1.0)


def _of_huber(mean: Vector, delta: float) -> Any:
    """Z is the integral of a normal density up to delta, and of an exponential one beyond it."""

    def half(log_scale: float, own: float) -> float:
        scale = np.exp(log_scale)
        ratio = delta / np.sqrt(2.0 * scale)
        log_z = 0.5 * log_scale + np.log(erf(ratio) + np.exp(-(ratio**2)) / (np.sqrt(np.pi) * ratio))
        return float(log_z + own / scale)

    # the bracket holds the best scale if no residual is larger than delta; the search extends it if not
    found = [
        minimize_scalar(half, (np.log(own), np.log(4.0 * own)), args=(own,)).fun if own > 0 else -np.inf for own in mean
    ]
    return 2.0 * np.array(found)


def _of_gamma(mean: Vector) -> Any:
    r"""Return the least value of :math:`2 \nu (m + 1 - \log \nu) + 2 \log \Gamma(\nu)`, the shape being unknown.

    At the best shape :math:`\log \nu - \psi(\nu) = m`, which is between 1 / (2 nu) and 1 / nu.
    """

    def half(log_shape: float, own: float) -> float:
        shape = np.exp(log_shape)
        return float(shape * (own + 1.0 - log_shape) + gammaln(shape))

    found = [
        minimize_scalar(half, (-np.log(2.0 * own), -np.log(own)), args=(own,)).fun if own > 0 else -np.inf
        for own in mean
    ]
    return 2.0 * np.array(found)


def _of_likelihood(mean: Vector) -> Any:
    return 2.0 * mean


SQUARES = Likelihood(_of_squares)
LINEAR = Likelihood(_of_homogeneous, 1)
INSENSITIVE = Likelihood(_of_insensitive, 1)
HUBER = Likelihood(_of_huber)
GAMMA = Likelihood(_of_gamma)
PLAIN = Likelihood(_of_likelihood)


@dataclass(frozen=True)
class Sizes:
    """The sizes of models: observations, fitted coefficients, and how many of all features or groups are selected."""

    n: float
    fitted: Vector
    selected: Vector
    candidates: int


CRITERIA: Mapping[str, Callable[[Vector, Sizes], Any]] = {
    "aic": lambda deviance, size: deviance + 2.0 * size.fitted,
    "bic": lambda deviance, size: deviance + np.log(size.n) * size.fitted,
    "ebic": lambda deviance, size: deviance + np.log(size.n) * size.fitted + 2.0 * _log_choices(size),
}
"""The criteria that are D plus a price of the size; GCV is the other one."""

NAMES = (*CRITERIA, "gcv")


def values(name: str, likelihood: Likelihood, mean: Vector, size: Sizes, given: Mapping[str, Any]) -> Vector:
    """Return the criterion of several models by their mean losses; infinite if it has no residual degree of freedom.

    ``given`` are the parameters of the loss.
    """
    with np.errstate(divide="ignore"):  # a perfect fit has D = -inf
        if name == "gcv":
            found = mean / np.maximum(1.0 - size.fitted / size.n, 0.0) ** likelihood.order
        else:
            found = CRITERIA[name](size.n * likelihood.deviance(mean, **given), size)
    return np.where(size.fitted < size.n, found, np.inf)


def _log_choices(size: Sizes) -> Any:
    """Return the logarithm of the number of ways to select as many of the candidates."""
    p, s = size.candidates, size.selected
    return gammaln(p + 1.0) - gammaln(s + 1.0) - gammaln(p - s + 1.0)
