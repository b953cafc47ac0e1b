"""The solutions of a model along its alphas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import saddleback as sb

from ..common.arrays import Indices, Vector
from ..common.cards import FAIR, GOOD, Curve, card
from .displays import PathDisplay


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

    def _repr_html_(self) -> str:
        results = self.flat()
        optimal = sum(result.status.solved for result in results)
        selected = np.count_nonzero(self.by_panel().any(axis=0), axis=0)
        facts = {
            "alphas": f"{self.alphas.size}, from {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}",
            "features": str(self.coefs.shape[-2]),
            "largest relative gap": f"{max(result.relative_gap for result in results):.2e}",
        }
        return card(
            "Path",
            facts,
            (f"{optimal} of {len(results)} OPTIMAL", GOOD if optimal == len(results) else FAIR),
            Curve(-np.log(self.alphas), selected, f"features that are not 0: from {selected[0]} to {selected[-1]}"),
        )

    def first(self, count: int) -> Path:
        """Return the path of the first alphas."""
        results = [along[:count] for along in self.by_problem()]
        return replace(
            self,
            alphas=self.alphas[:count],
            coefs=self.coefs[..., :count],
            intercepts=self.intercepts[..., :count],
            dual_gaps=self.dual_gaps[..., :count],
            results=results if isinstance(self.results[0], list) else results[0],
        )

    def flat(self) -> list[sb.Result]:
        """Return all results, of all classes."""
        return [result for along in self.by_problem() for result in along]

    def by_problem(self) -> list[list[sb.Result]]:
        """Return the results, one list per problem."""
        return self.results if isinstance(self.results[0], list) else [self.results]

    @property
    def n_panels(self) -> int:
        """The number of axes that ``plot`` draws on."""
        return len(self.by_panel())

    def plot(self, ax: Any = None) -> Any:
        """Draw every coefficient against alpha, as ``PathDisplay`` does.

        Parameters
        ----------
        ax : matplotlib axis or array of axes, optional
            One, or one per class or target; new ones by default.

        Returns
        -------
        matplotlib axis or array of axes
            The axis, or an array with one per class or target.
        """
        axes = PathDisplay(self).plot(ax).axes_
        return axes[0] if axes.size == 1 else axes

    def by_panel(self) -> Vector:
        """Return the coefficients, one matrix of features by alphas per class or target."""
        return self.coefs.reshape(-1, *self.coefs.shape[-2:])


def coefficients(result: sb.Result) -> tuple[Vector, Vector]:
    """Return the coefficients and the intercept of a linear model's result: one value, or one per task."""
    return split(result.x)


def split(x: Any) -> tuple[Vector, Vector]:
    """Return the coefficients and the intercept in a solution x."""
    x = x if isinstance(x, list) else [x, np.zeros((1, *x.shape[1:]))]
    coef: Vector = x[0] + 0.0  # turns -0 into 0
    return coef, x[1].reshape(coef.shape[1:])
