"""The quantile process: the coefficients of a quantile regression as functions of the quantile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.arrays import Vector
from ...common.pictures import BAND, label, plain
from ..displays import given_axes
from .asymptotic import QuantileInference


@dataclass(frozen=True, repr=False)
class QuantileProcess:
    """Coefficients over a grid of quantiles, with intervals.

    Attributes
    ----------
    quantiles : array of shape (n_quantiles,)
        The quantiles, increasing.
    names : list of str
        Names of the coefficients, the intercept first if there is one.
    coefficients : array of shape (n_quantiles, n_coefficients)
        The coefficients at each quantile.
    results : list of Result
        The solves, each with its certificate.
    inferences : list of QuantileInference
        Covariance, standard errors and intervals at each quantile; empty if none were asked for.
    level : float
        Level of the intervals.
    """

    quantiles: Vector
    names: Sequence[str]
    coefficients: Vector
    results: list[Any]
    inferences: Sequence[QuantileInference]
    level: float

    def __repr__(self) -> str:
        ends = f"quantiles from {self.quantiles[0]:g} to {self.quantiles[-1]:g}"
        return f"QuantileProcess({self.quantiles.size} {ends}, {len(self.names)} coefficients)"

    @property
    def standard_errors(self) -> Vector | None:
        """The standard errors, in the shape of the coefficients; None if none were asked for."""
        return np.stack([each.standard_errors for each in self.inferences]) if self.inferences else None

    def intervals(self, level: float | None = None) -> Vector | None:
        """Return confidence intervals of shape (n_quantiles, n_coefficients, 2); None if none were asked for.

        They hold for each quantile alone, not for all of them at once. ``level`` is that of the object by default.
        """
        if not self.inferences:
            return None
        return np.stack([each.intervals(self.level if level is None else level) for each in self.inferences])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each quantile and coefficient."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas: pip install pandas") from None
        index = pd.MultiIndex.from_product([self.quantiles, list(self.names)], names=["quantile", "name"])
        columns: dict[str, Any] = {"coefficient": self.coefficients.ravel()}
        intervals = self.intervals()
        if intervals is not None:
            assert self.standard_errors is not None
            columns["std. error"] = self.standard_errors.ravel()
            columns[f"lower {self.level:.4g}"], columns[f"upper {self.level:.4g}"] = intervals.reshape(-1, 2).T
        return pd.DataFrame(columns, index=index)

    def plot(self, names: Sequence[str] | None = None, ax: Any = None) -> Any:
        """Draw coefficients against the quantile, one picture per coefficient, with their intervals as bands.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the coefficients to draw; by default all.
        ax : matplotlib axis or array of axes, optional
            One per coefficient; new ones by default.

        Returns
        -------
        matplotlib axis or array of axes
            The axis, or an array with one per coefficient.
        """
        own = list(self.names)
        drawn = own if names is None else list(names)
        unknown = [name for name in drawn if name not in own]
        if unknown or not drawn:
            raise ValueError(f"names={drawn}: expected some of the coefficients {own[:20]}")
        axes, intervals = given_axes(ax, len(drawn), "one per coefficient"), self.intervals()
        for axis, name in zip(axes, drawn, strict=True):
            place = own.index(name)
            if intervals is not None:
                axis.fill_between(
                    self.quantiles, *intervals[:, place].T, color=BAND, label=f"{100 * self.level:.4g}% interval"
                )
            axis.plot(
                self.quantiles, self.coefficients[:, place], color="C0", marker=".", linewidth=1, label="coefficient"
            )
            axis.axhline(0.0, color="0.5", linewidth=0.5)
            label(axis, "quantile of the target", "coefficient", plain(name))
        axes[0].legend(fontsize="small")
        return axes[0] if axes.size == 1 else axes
