r"""Covariances of the coefficients of a quantile regression without a penalty.

Let x_i be the rows of the design D, with a column of ones for the intercept, u_i the residuals, q the quantile and
:math:`\psi_i = q - 1(u_i \le 0)`. All estimates are sandwiches

.. math::

    H^{-1} J H^{-1}, \qquad H = \sum_i f_i x_i x_i', \qquad J \approx \operatorname{cov}\Big(\sum_i \psi_i x_i\Big),

where :math:`f_i` is the density of the target of sample i at its conditional quantile. They differ in how they estimate
:math:`f_i` and J:

=========  ===================================  =============================  =====================
kind       f_i                                  J                              the same as
=========  ===================================  =============================  =====================
"iid"      one kernel estimate for all samples  q (1 - q) D'D                  statsmodels, "iid"
"robust"   the same                             sum_i psi_i^2 x_i x_i'         statsmodels, "robust"
"nid"      2 h / x_i'(b(q + h) - b(q - h))      q (1 - q) D'D                  quantreg, "nid"
"kernel"   K(u_i / w) / w                       q (1 - q) D'D                  quantreg, "ker"
"cluster"  1(abs(u_i) < w) / (2 w)              sum over clusters of s_c s_c'  pyfixest, "CRV1"
=========  ===================================  =============================  =====================

with a bandwidth h, a width w on the scale of the residuals, and s_c the sum of psi_i x_i over a cluster.

References
----------
Koenker and Bassett (1978), Regression quantiles, for "iid". Greene (2008), Econometric Analysis, for "robust".
Hendricks and Koenker (1992), Hierarchical spline models for conditional quantiles, for "nid". Powell (1991), Estimation
of monotonic regression models under quantile restrictions, for "kernel". Parente and Santos Silva (2016), Quantile
regression with clustered data, for "cluster".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.stats import norm

from ...common.arrays import Indices, Vector

NORMAL_QUARTILES = 1.34
"""Distance between the quartiles of a standard normal distribution, rounded as in quantreg and statsmodels."""

DEPENDENT = 1e-12
"""Smallest eigenvalue of D'D, with columns scaled to length 1, at which they count as independent."""


# Bandwidths ---------------------------------------------------------------------------------------------------------


def hall_sheather(quantile: float, n: int) -> float:
    """Return n^(-1/3) z^(2/3) (1.5 phi(t)^2 / (2 t^2 + 1))^(1/3), z and t being normal quantiles of 0.975 and q.

    Hall and Sheather (1988), On the distribution of a studentized quantile.
    """
    t = norm.ppf(quantile)
    return float(n ** (-1 / 3) * norm.ppf(0.975) ** (2 / 3) * (1.5 * norm.pdf(t) ** 2 / (2 * t**2 + 1)) ** (1 / 3))


def bofinger(quantile: float, n: int) -> float:
    """Return n^(-1/5) (4.5 phi(t)^4 / (2 t^2 + 1)^2)^(1/5), t being the normal quantile of q.

    Bofinger (1975), Estimation of a density function using order statistics. statsmodels 0.14 and 0.15 have phi(2 t) in
    place of phi(t), which is the same for the median alone.
    """
    t = norm.ppf(quantile)
    return float(n ** (-1 / 5) * (4.5 * norm.pdf(t) ** 4 / (2 * t**2 + 1) ** 2) ** (1 / 5))


def chamberlain(quantile: float, n: int) -> float:
    """Return z sqrt(q (1 - q) / n), z being the normal quantile of 0.975.

    Chamberlain (1994), Quantile regression, censoring, and the structure of wages.
    """
    return float(norm.ppf(0.975) * np.sqrt(quantile * (1 - quantile) / n))


BANDWIDTHS: Mapping[str, Callable[[float, int], float]] = {
    "hall-sheather": hall_sheather,
    "bofinger": bofinger,
    "chamberlain": chamberlain,
}


def bandwidth(name: str, quantile: float, n: int) -> float:
    """Return a bandwidth h, halved until q - h and q + h are inside of (0, 1), as in quantreg."""
    h = BANDWIDTHS[name](quantile, n)
    while not (quantile - h > 0 and quantile + h < 1):
        h /= 2
    return h


# Kernels ------------------------------------------------------------------------------------------------------------


def _parzen(u: Vector) -> Vector:
    size = np.abs(u)
    inner, outer = 4 / 3 - 8 * size**2 + 8 * size**3, 8 / 3 * (1 - size) ** 3
    return np.where(size <= 0.5, inner, np.where(size <= 1, outer, 0.0))


KERNELS: Mapping[str, Callable[[Vector], Vector]] = {
    "epanechnikov": lambda u: np.where(np.abs(u) <= 1, 0.75 * (1 - u**2), 0.0),
    "biweight": lambda u: np.where(np.abs(u) <= 1, 15 / 16 * (1 - u**2) ** 2, 0.0),
    "cosine": lambda u: np.where(np.abs(u) <= 0.5, 1 + np.cos(2 * np.pi * u), 0.0),
    "gaussian": norm.pdf,
    "parzen": _parzen,
    "uniform": lambda u: np.where(np.abs(u) < 1, 0.5, 0.0),
}
"""Symmetric densities, by which residuals close to 0 are counted."""


# The data of an estimate --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What the covariances are computed from.

    Attributes
    ----------
    design : n x p matrix, dense or sparse, with a column of ones if there is an intercept.
    target : the targets.
    residual : target - design b, 0 for the samples that the fit interpolates.
    quantile : q.
    bandwidth : h, a difference of quantiles.
    kernel : a kernel, for the kinds with one.
    difference : design (b(q + h) - b(q - h)), for "nid".
    clusters : the number of the cluster of every sample, for "cluster".
    """

    design: Any
    target: Vector
    residual: Vector
    quantile: float
    bandwidth: float
    kernel: Callable[[Vector], Vector] | None = None
    difference: Vector | None = None
    clusters: Indices | None = None

    @property
    def variance(self) -> float:
        """The variance of psi_i, q (1 - q)."""
        return self.quantile * (1 - self.quantile)

    @property
    def psi(self) -> Vector:
        """The derivative of the loss: q for a positive residual, q - 1 otherwise."""
        return np.asarray(self.quantile - (self.residual <= 0), dtype=np.float64)

    def width(self, spread: float) -> float:
        """Return h on the scale of the residuals: that of normal residuals with a given spread."""
        ends = norm.ppf([self.quantile - self.bandwidth, self.quantile + self.bandwidth])
        return float(spread * (ends[1] - ends[0]))

    @property
    def quartile_spread(self) -> float:
        """The distance of the quartiles of the residuals, as a standard deviation."""
        low, high = np.quantile(self.residual, [0.25, 0.75])
        return float(high - low) / NORMAL_QUARTILES


def gram(design: Any, weight: Vector | None = None) -> Vector:
    """Return D' diag(weight) D."""
    weighted = design if weight is None else sparse.diags_array(weight) @ design
    product = design.T @ weighted
    return np.asarray(product.toarray() if sparse.issparse(product) else product, dtype=np.float64)


def inverse(matrix: Vector) -> Vector:
    """Return the inverse of a positive definite matrix; raise if columns of the design are dependent."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if np.any(scale == 0) or np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] <= DEPENDENT:
        raise ValueError(
            "X has columns that depend on each other (or on the intercept) in the samples that matter for the standard "
            "errors: leave some out, or take a larger bandwidth or another kind"
        )
    found: Vector = np.linalg.inv(matrix / np.outer(scale, scale)) / np.outer(scale, scale)
    return found


def sandwich(bread: Vector, meat: Vector) -> Vector:
    """Return the covariance with bread H and meat J: H^-1 J H^-1."""
    outer = inverse(bread)
    found: Vector = outer @ meat @ outer
    return found


# Covariances --------------------------------------------------------------------------------------------------------


def density(given: Evidence) -> float:
    """Return the density of the residuals at 0: the mean of K(u_i / w) / w, w from the smaller of two spreads.

    These are the standard deviation of the targets and the distance of the quartiles of the residuals, as in
    statsmodels and Stata.
    """
    assert given.kernel is not None
    w = given.width(min(float(np.std(given.target)), given.quartile_spread))
    return float(np.mean(given.kernel(given.residual / w))) / w


def iid(given: Evidence) -> Vector:
    """Return q (1 - q) / f^2 (D'D)^-1, for residuals with one distribution."""
    found: Vector = given.variance / density(given) ** 2 * inverse(gram(given.design))
    return found


def robust(given: Evidence) -> Vector:
    """Return the sandwich with one density and the squares of psi_i."""
    return sandwich(density(given) * gram(given.design), gram(given.design, given.psi**2))


def nid(given: Evidence) -> Vector:
    """Return the sandwich with densities from the quantiles q - h and q + h, which are fitted too.

    Where they cross, the density is taken to be 0.
    """
    assert given.difference is not None
    least = np.finfo(np.float64).eps ** (2 / 3)
    crossed = given.difference <= least
    densities = np.where(crossed, 0.0, 2 * given.bandwidth / np.where(crossed, 1.0, given.difference - least))
    return sandwich(gram(given.design, densities), given.variance * gram(given.design))


def kernel(given: Evidence) -> Vector:
    """Return the sandwich with a kernel estimate for every sample."""
    assert given.kernel is not None
    w = given.width(min(float(np.std(given.residual, ddof=1)), given.quartile_spread))
    return sandwich(gram(given.design, given.kernel(given.residual / w) / w), given.variance * gram(given.design))


def cluster(given: Evidence) -> Vector:
    """Return the sandwich for samples that depend on each other within clusters.

    It is multiplied by G / (G - 1) (n - 1) / (n - p), for G clusters. The width comes from the median absolute
    deviation of the residuals.
    """
    assert given.clusters is not None
    w = given.width(float(np.median(np.abs(given.residual - np.median(given.residual)))))
    bread = gram(given.design, KERNELS["uniform"](given.residual / w) / w)
    (n, p), count = given.design.shape, int(given.clusters.max()) + 1
    members = sparse.csr_array((given.psi, (given.clusters, np.arange(n))), shape=(count, n))
    meat = gram(members @ given.design)
    return sandwich(bread, meat * (count / (count - 1) * (n - 1) / (n - p)))


class Kind(NamedTuple):
    """A way to estimate the covariance.

    ``kernel`` is the kernel that it takes by default, or None if it takes none; ``neighbours`` says whether it needs
    the fits of the quantiles q - h and q + h, and ``clustered`` whether it needs clusters.
    """

    covariance: Callable[[Evidence], Vector]
    kernel: str | None = None
    neighbours: bool = False
    clustered: bool = False


KINDS: Mapping[str, Kind] = {
    "iid": Kind(iid, kernel="epanechnikov"),
    "robust": Kind(robust, kernel="epanechnikov"),
    "nid": Kind(nid, neighbours=True),
    "kernel": Kind(kernel, kernel="gaussian"),
    "cluster": Kind(cluster, clustered=True),
}
