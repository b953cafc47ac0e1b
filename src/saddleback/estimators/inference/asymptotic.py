"""Standard errors, tests and intervals of a quantile regression without a penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from ...common.arrays import Vector
from .checks import checked_level
from .summary import Summary


@dataclass(frozen=True, repr=False)
class QuantileInference:
    """What the asymptotic distribution says about the coefficients of a quantile regression.

    Attributes
    ----------
    names : list of str
        Names of the coefficients, the intercept first if there is one.
    coefficients : array of shape (n_coefficients,)
        The coefficients.
    covariance : array of shape (n_coefficients, n_coefficients)
        Their estimated covariance.
    degrees : int
        Degrees of freedom of the t distribution: samples minus coefficients, or clusters minus one.
    kind : str
        How the covariance was estimated.
    level : float
        Level of the intervals of ``summary``.
    title : str
        The name of the model.
    facts : dict
        What is known of the fit, for ``summary``.
    """

    names: Sequence[str]
    coefficients: Vector
    covariance: Vector
    degrees: int
    kind: str
    level: float
    title: str
    facts: Mapping[str, str]

    def __repr__(self) -> str:
        return f"QuantileInference({len(self.names)} coefficients, kind={self.kind!r}, level={self.level:g})"

    @property
    def standard_errors(self) -> Vector:
        """The roots of the diagonal of the covariance."""
        found: Vector = np.sqrt(np.diag(self.covariance))
        return found

    @property
    def t_values(self) -> Vector:
        """The coefficients in units of their standard errors."""
        found: Vector = self.coefficients / self.standard_errors
        return found

    @property
    def p_values(self) -> Vector:
        """For each coefficient, the probability of a larger t value, of either sign, if it were 0."""
        return np.asarray(2 * student.sf(np.abs(self.t_values), self.degrees))

    def intervals(self, level: float | None = None) -> Vector:
        """Return confidence intervals, one row per coefficient: b - t se, b + t se.

        Parameters
        ----------
        level : float, optional
            Probability, between 0 and 1; by default the ``level`` of the object.

        Returns
        -------
        array of shape (n_coefficients, 2)
            Lower and upper ends.
        """
        level = self.level if level is None else checked_level(level)
        width = student.ppf(0.5 + level / 2, self.degrees) * self.standard_errors
        return np.column_stack([self.coefficients - width, self.coefficients + width])

    def summary(self) -> Summary:
        """Return the table with standard errors, t values, p values and intervals."""
        low, high = self.intervals().T
        columns: dict[str, Any] = {
            "coefficient": self.coefficients,
            "std. error": self.standard_errors,
            "t": self.t_values,
            "P>|t|": self.p_values,
            f"lower {self.level:.4g}": low,
            f"upper {self.level:.4g}": high,
        }
        note = f"Standard errors of kind {self.kind!r}; t distribution with {self.degrees} degrees of freedom."
        return Summary(self.title, self.facts, self.names, columns, note)
