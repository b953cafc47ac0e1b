"""The solutions of a model along its alphas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import saddleback as sb

from ..functions._base import Vector


@dataclass(frozen=True)
class Path:
    """Solutions from the largest alpha to the smallest, each with a certificate.

    Attributes
    ----------
    alphas : the values of alpha.
    coefs : of shape (n_features, n_alphas); (n_targets, n_features, n_alphas) for several classes or tasks.
    intercepts : of shape (n_alphas,) or (n_targets, n_alphas).
    dual_gaps : the certified gaps, of shape (n_alphas,); (n_classes, n_alphas) for several classes.
    results : the results, a list; a list of lists for several classes.
    """

    alphas: Vector
    coefs: Vector
    intercepts: Vector
    dual_gaps: Vector
    results: list[Any]

    def flat(self) -> list[sb.Result]:
        """Return all results, of all classes."""
        return [result for along in self.by_problem() for result in along]

    def by_problem(self) -> list[list[sb.Result]]:
        """Return the results, a list for every problem."""
        return self.results if isinstance(self.results[0], list) else [self.results]

    def plot(self, axis: Any = None) -> Any:
        """Draw every coefficient against alpha; return the matplotlib axis."""
        axis = axis if axis is not None else new_axes(1)[0]
        lines = self.coefs.reshape(-1, self.alphas.size)
        axis.plot(self.alphas, lines[np.any(lines, axis=1)].T, linewidth=1)
        axis.set(xscale="log", xlabel="alpha", ylabel="coefficients")
        axis.invert_xaxis()
        axis.grid(alpha=0.3)
        return axis


def new_axes(count: int) -> Any:
    """Return new matplotlib axes side by side."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot() needs matplotlib: pip install 'saddleback[plot]'") from None
    return plt.subplots(1, count, figsize=(4.5 * count, 3.5), layout="constrained", squeeze=False)[1][0]


def coefficients(result: sb.Result) -> tuple[Vector, Vector]:
    """Return the coefficients and the intercept of a linear model's result: one value, or one a task."""
    x = result.x if isinstance(result.x, list) else [result.x, np.zeros((1, *result.x.shape[1:]))]
    coef: Vector = x[0] + 0.0  # no -0
    return coef, x[1].reshape(coef.shape[1:])
