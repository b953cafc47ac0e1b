"""The solutions of a model along its alphas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import saddleback as sb

from ..common.arrays import Indices, Vector

COLOURS = ["C0", "C1", "C2", "C3", "C4", "C5", "C6", "C8"]
"""Colours of the coefficients or groups that have a name in a picture; all others are grey."""


@dataclass(frozen=True, repr=False)
class Path:
    """Solutions from the largest alpha to the smallest, each with a certificate.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        The values of alpha.
    coefs : array of shape (n_features, n_alphas) or (n_targets, n_features, n_alphas)
        The coefficients; the second shape is for several classes or tasks.
    intercepts : array of shape (n_alphas,) or (n_targets, n_alphas)
        The intercepts.
    dual_gaps : array of shape (n_alphas,) or (n_classes, n_alphas)
        The certified gaps.
    results : list
        One ``Result`` per alpha; a list of such lists for several classes.
    feature_names : list of str or None
        Names of the features, if X had any.
    groups : sequence of (str, array)
        Name and columns of every group, if a group penalty has groups of several features.
    panels : sequence of str
        Titles of the pictures of several classes or targets.
    piecewise_constant : bool
        Whether coefficients are constant in alpha except for jumps.
    """

    alphas: Vector
    coefs: Vector
    intercepts: Vector
    dual_gaps: Vector
    results: list[Any]
    feature_names: list[str] | None = None
    groups: Sequence[tuple[str, Indices]] = ()
    panels: Sequence[str] = ()
    piecewise_constant: bool = False

    def __repr__(self) -> str:
        worst = max(result.relative_gap for result in self.flat())
        ends = f"alphas from {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}"
        return f"Path({self.alphas.size} {ends}, coefs of shape {self.coefs.shape}, largest relative gap {worst:.2g})"

    def flat(self) -> list[sb.Result]:
        """Return all results, of all classes."""
        return [result for along in self.by_problem() for result in along]

    def by_problem(self) -> list[list[sb.Result]]:
        """Return the results, one list per problem."""
        return self.results if isinstance(self.results[0], list) else [self.results]

    @property
    def n_panels(self) -> int:
        """The number of axes that ``plot`` draws on."""
        return len(self._by_panel())

    def plot(self, ax: Any = None) -> Any:
        """Draw every coefficient against alpha.

        The largest coefficients, or groups of them, have colours and names, the others are grey. Lines are steps if
        coefficients jump between alphas that are not known, as those of a quantile regression with an L1 penalty do.

        Parameters
        ----------
        ax : matplotlib axis or array of axes, optional
            One, or one per class or target; new ones by default.

        Returns
        -------
        matplotlib axis or array of axes
            The axis, or an array with one per class or target.
        """
        axes = given_axes(ax, self.n_panels, "one per class or target")
        for each, lines, title in zip(axes, self._by_panel(), self.panels or [""], strict=True):
            self._draw(each, lines)
            each.set_title(title, fontsize="medium")
        return axes[0] if axes.size == 1 else axes

    def _by_panel(self) -> Vector:
        return self.coefs.reshape(-1, *self.coefs.shape[-2:])

    def _draw(self, axis: Any, lines: Vector) -> None:
        names = self.feature_names or [f"feature {j}" for j in range(lines.shape[0])]
        families = self.groups or [(names[j], np.array([j])) for j in range(lines.shape[0])]
        families = [(name, own) for name, own in families if np.any(lines[own])]
        families = sorted(families, key=lambda family: -float(np.linalg.norm(lines[family[1], -1])))
        style = {"linewidth": 1, "drawstyle": "steps-post" if self.piecewise_constant else "default"}
        for _, own in families[len(COLOURS) :]:
            axis.plot(self.alphas, lines[own].T, color="0.8", **style)
        for (name, own), colour in zip(families, COLOURS, strict=False):
            drawn = axis.plot(self.alphas, lines[own].T, color=colour, zorder=3, **style)
            drawn[0].set_label(name)
        axis.set(xscale="log", xlabel="alpha", ylabel="coefficients")
        axis.invert_xaxis()
        axis.grid(alpha=0.3)
        if families:
            axis.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def given_axes(ax: Any, count: int, meaning: str) -> Any:
    """Return an array of matplotlib axes: those that were given, if they are as many as needed, or new ones."""
    if ax is None:
        return _new_axes(count)
    axes = np.atleast_1d(np.asarray(ax, dtype=object))
    if axes.shape != (count,):
        raise ValueError(f"ax has {axes.size} axes: expected {count}, {meaning}")
    return axes


def _new_axes(count: int) -> Any:
    """Return new matplotlib axes side by side."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot() needs matplotlib: pip install 'saddleback[plot]'") from None
    return plt.subplots(1, count, figsize=(5.0 * count, 3.5), layout="constrained", squeeze=False)[1][0]


def coefficients(result: sb.Result) -> tuple[Vector, Vector]:
    """Return the coefficients and the intercept of a linear model's result: one value, or one per task."""
    return split(result.x)


def split(x: Any) -> tuple[Vector, Vector]:
    """Return the coefficients and the intercept in a solution x."""
    x = x if isinstance(x, list) else [x, np.zeros((1, *x.shape[1:]))]
    coef: Vector = x[0] + 0.0  # turns -0 into 0
    return coef, x[1].reshape(coef.shape[1:])
