r"""The bootstrap: how much coefficients vary from one sample to another, estimated by fits to changed data.

Every draw is a fit with other weights of the samples,

.. math::

    \min_{w, b}\; \frac{1}{\sum_i s_i} \sum_i \omega_i s_i\, \ell(x_i'w + b, y_i) + \text{penalty}(w),
    \qquad \sum_i \omega_i s_i = \sum_i s_i,

or, for the wild bootstrap of a quantile regression, with other targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.arrays import Indices, Vector
from .checks import check_name, checked_level
from .summary import Summary

ROOT = float(np.sqrt(5.0))


def pairs(rng: np.random.Generator, draws: int, units: int) -> Vector:
    """Return counts of units that are drawn with replacement, one row per draw (Efron, 1979)."""
    return rng.multinomial(units, np.full(units, 1.0 / units), draws).astype(np.float64)


def exponential(rng: np.random.Generator, draws: int, units: int) -> Vector:
    """Return exponential weights, of mean 1 and variance 1 (Rubin, 1981; Bose and Chatterjee, 2003)."""
    return rng.exponential(size=(draws, units))


def mammen(rng: np.random.Generator, draws: int, units: int) -> Vector:
    """Return (3 - sqrt 5) / 2 or (3 + sqrt 5) / 2, of mean 1, variance 1 and third central moment 1 (Mammen, 1993)."""
    low = rng.random((draws, units)) < (ROOT + 1) / (2 * ROOT)
    return np.where(low, (3 - ROOT) / 2, (3 + ROOT) / 2)


WEIGHTS: Mapping[str, Callable[[np.random.Generator, int, int], Vector]] = {
    "pairs": pairs,
    "multiplier": exponential,
    "mammen": mammen,
}
"""Random weights of samples or clusters by the kind of the bootstrap."""

WILD = "wild"
"""The kind with other targets in place of other weights."""


def drawn_weights(kind: str, rng: np.random.Generator, draws: int, clusters: Indices, weight: Vector | None) -> Vector:
    """Return factors of the sample weights, one row per draw, which leave the sum of the weights as it is."""
    by_cluster = WEIGHTS[kind](rng, draws, int(clusters.max()) + 1)
    factors = by_cluster[:, clusters]
    share = np.full(clusters.size, 1.0 / clusters.size) if weight is None else weight / weight.sum()
    found: Vector = factors / (factors @ share)[:, None]
    return found


def wild_targets(rng: np.random.Generator, draws: int, fitted: Vector, residual: Vector, quantile: float) -> Vector:
    """Return targets x_i'b + v_i abs(u_i), one row per draw.

    v_i is 2 (1 - q) with probability 1 - q, and -2 q otherwise: the quantile q of v_i abs(u_i) is then 0 (Feng, He and
    Hu, 2011, Wild bootstrap for quantile regression).
    """
    positive = rng.random((draws, fitted.size)) < 1 - quantile
    found: Vector = fitted + np.where(positive, 2 * (1 - quantile), -2 * quantile) * np.abs(residual)
    return found


def leverage_corrected(residual: Vector, leverage: Vector, quantile: float, density: float) -> Vector:
    """Return residuals + leverage psi / density, which have the spread of the errors in small samples.

    This is the correction of Feng, He and Hu (2011), as in quantreg.
    """
    found: Vector = residual + leverage * (quantile - (residual < 0)) / density
    return found


INTERVALS = ("percentile", "basic")
"""The kinds of intervals."""


@dataclass(frozen=True, repr=False)
class Bootstrap:
    """Fits to changed data, with the standard errors and intervals that they give.

    Attributes
    ----------
    names : list of str
        Names of the coefficients, the intercept first if there is one; class by class, or target by target, if there
        are several.
    coefficients : array of shape (n_coefficients,)
        Those of the fit to the data as given.
    draws : array of shape (n_boot, n_coefficients)
        Those of each draw.
    kind : str
        How the data were changed.
    results : list
        What ``saddleback.solve_many`` returned: one list of results for each class or target.
    title : str
        The name of the model.
    facts : dict
        What is known of the fit, for ``summary``.
    """

    names: Sequence[str]
    coefficients: Vector
    draws: Vector
    kind: str
    results: list[Any]
    title: str
    facts: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Bootstrap({self.draws.shape[0]} draws of {self.draws.shape[1]} coefficients, kind={self.kind!r})"

    @property
    def standard_errors(self) -> Vector:
        """The standard deviations over the draws."""
        return np.asarray(np.std(self.draws, axis=0, ddof=1))

    @property
    def selected(self) -> Vector:
        """The share of the draws in which a coefficient is not 0."""
        return np.asarray(np.mean(self.draws != 0, axis=0))

    def intervals(self, level: float = 0.95, kind: str = "percentile") -> Vector:
        """Return confidence intervals, one row per coefficient.

        Parameters
        ----------
        level : float, default 0.95
            Probability, between 0 and 1.
        kind : str, default "percentile"
            "percentile" has the quantiles of the draws as ends: the order statistics (n_boot + 1) (1 - level) / 2
            and (n_boot + 1) (1 + level) / 2, as in Davison and Hinkley (1997). "basic" reflects them at the
            coefficient b: 2 b minus the upper quantile, and 2 b minus the lower one.

        Returns
        -------
        array of shape (n_coefficients, 2)
            Lower and upper ends.
        """
        check_name("kind", kind, INTERVALS)
        outside = (1 - checked_level(level)) / 2
        low, high = np.quantile(self.draws, [outside, 1 - outside], axis=0, method="weibull")
        if kind == "basic":
            low, high = 2 * self.coefficients - high, 2 * self.coefficients - low
        return np.column_stack([low, high])

    def summary(self, level: float = 0.95, kind: str = "percentile") -> Summary:
        """Return the table with standard errors and intervals; parameters as in ``intervals``."""
        low, high = self.intervals(level, kind).T
        columns = {
            "coefficient": self.coefficients,
            "std. error": self.standard_errors,
            f"lower {level:.4g}": low,
            f"upper {level:.4g}": high,
            "not 0": self.selected,
        }
        note = (
            f"Standard errors and {kind} intervals of {self.draws.shape[0]} draws of the bootstrap of kind "
            f"{self.kind!r}; the last column is the share of the draws in which a coefficient is not 0."
        )
        return Summary(self.title, self.facts, self.names, columns, note)
