"""Pictures of a path and of the choice of alpha, in the style of scikit-learn's displays.

A display holds what is drawn. ``from_estimator`` makes it and draws it, and ``plot`` draws it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..common import pictures
from ..common.arrays import Vector
from ..common.pictures import GREY, new_axes

if TYPE_CHECKING:
    from .path import Path

COLOURS = ["C0", "C1", "C2", "C3", "C4", "C5", "C6", "C8"]
"""Colours of the coefficients or groups that have a name in a picture; all others are grey."""


class PathDisplay:
    """A picture of a path: every coefficient against alpha.

    The largest coefficients, or groups of them, have colours and names, the others are grey. Lines are steps if
    coefficients jump between alphas that are not known, as those of a quantile regression with an L1 penalty do.

    Parameters
    ----------
    path : Path
        The solutions, from ``model.path(X, y)`` or the attribute ``path_`` of a model that has chosen alpha.

    Attributes
    ----------
    axes_ : array of matplotlib axes
        One axis, or one per class or target.
    figure_ : matplotlib figure
        The figure of the axes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        alphas: ArrayLike | None = None,
        n_alphas: int = 100,
        eps: float = 1e-3,
        ax: Any = None,
    ) -> PathDisplay:
        """Compute the path of a linear model, which need not be fitted, and draw it.

        Parameters
        ----------
        estimator : linear model
            The model; it is not changed.
        X, y, sample_weight : array-like
            As in ``fit``. Names are the columns of X if it is a DataFrame.
        alphas, n_alphas, eps : optional
            As in ``estimator.path``.
        ax : matplotlib axis or array of axes, optional
            One, or one per class or target; new ones by default.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        return cls.from_path(estimator.path(X, y, sample_weight, alphas=alphas, n_alphas=n_alphas, eps=eps), ax=ax)

    @classmethod
    def from_path(cls, path: Path, *, ax: Any = None) -> PathDisplay:
        """Draw a path.

        Parameters
        ----------
        path : Path
            The solutions.
        ax : matplotlib axis or array of axes, optional
            One, or one per class or target; new ones by default.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        return cls(path).plot(ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axis or array of axes, optional
            One, or one per class or target; new ones by default.

        Returns
        -------
        PathDisplay
            The display itself, with ``axes_`` and ``figure_``.
        """
        axes = given_axes(ax, self.path.n_panels, "one per class or target")
        for each, lines, title in zip(axes, self.path.by_panel(), self.path.panels or [""], strict=True):
            self._draw(each, lines)
            each.set_title(pictures.plain(title), fontsize="medium")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _draw(self, axis: Any, lines: Vector) -> None:
        path = self.path
        names = path.feature_names or [f"feature {j}" for j in range(lines.shape[0])]
        families = path.groups or [(names[j], np.array([j])) for j in range(lines.shape[0])]
        families = [(name, own) for name, own in families if np.any(lines[own])]
        families = sorted(families, key=lambda family: -float(np.linalg.norm(lines[family[1], -1])))
        style = {"linewidth": 1, "drawstyle": "steps-post" if path.piecewise_constant else "default"}
        for _, own in families[len(COLOURS) :]:
            axis.plot(path.alphas, lines[own].T, color=GREY, **style)
        for (name, own), colour in zip(families, COLOURS, strict=False):
            drawn = axis.plot(path.alphas, lines[own].T, color=colour, zorder=3, **style)
            drawn[0].set_label(pictures.plain(name))
        _prepare(axis, "coefficient")
        if families:
            axis.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


class CVDisplay:
    """A picture of the choice of alpha: the losses on held-out samples, or the criterion, against alpha.

    The losses of the folds are grey, their mean has a band of one standard error, and a dotted line marks the chosen
    alpha. With several values of ``l1_ratio`` there is a line for each, and folds and band belong to the chosen one.

    Parameters
    ----------
    estimator : fitted model
        A model that has chosen alpha, such as ``LassoCV``.

    Attributes
    ----------
    ax_ : matplotlib axis
        The axis.
    figure_ : matplotlib figure
        Its figure.
    """

    def __init__(self, estimator: Any) -> None:
        if not hasattr(estimator, "criterion"):
            raise TypeError(
                f"estimator is {type(estimator).__name__}, which does not choose alpha: expected a model whose name "
                "ends with CV, such as LassoCV"
            )
        check_is_fitted(estimator)
        self.estimator = estimator

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, sample_weight: ArrayLike | None = None, ax: Any = None
    ) -> CVDisplay:
        """Draw the choice of alpha of a model.

        Parameters
        ----------
        estimator : linear model
            A model that chooses alpha. It is fitted, or X and y are given.
        X, y, sample_weight : array-like, optional
            Data to which a copy of the model is fitted first. The model itself is not changed.
        ax : matplotlib axis, optional
            A new one by default.

        Returns
        -------
        CVDisplay
            The display, drawn; its attribute ``estimator`` is the fitted model.
        """
        if X is not None:
            estimator = clone(estimator).fit(X, y, sample_weight=sample_weight)
        return cls(estimator).plot(ax)

    def plot(self, ax: Any = None) -> CVDisplay:
        """Draw the choice of alpha.

        Parameters
        ----------
        ax : matplotlib axis, optional
            A new one by default.

        Returns
        -------
        CVDisplay
            The display itself, with ``ax_`` and ``figure_``.
        """
        (axis,) = given_axes(ax, 1, "for the loss")
        model, (name, factor) = self.estimator, self.estimator._objective().drawn_loss
        if model.criterion is None:
            self._draw_folds(axis, factor)
            _prepare(axis, f"{name} on held-out samples")
        else:
            self._draw_lines(axis, model.criterion_path_, model.criterion.upper())
            _prepare(axis, model.criterion.upper())
        axis.axvline(model.alpha_, color="black", linestyle=":", label=f"chosen: alpha = {model.alpha_:.3g}")
        axis.legend(fontsize="small")
        self.ax_, self.figure_ = axis, axis.figure
        return self

    def _draw_folds(self, axis: Any, factor: float) -> None:
        model = self.estimator
        shown = (model.alphas_, factor * model.loss_path_, factor * model.mean_loss_, factor * model.loss_std_error_)
        alphas, folds, mean, error = (part[self._row()] for part in shown) if self._ratios() else shown
        axis.plot(alphas, folds, color=GREY, linewidth=1)[0].set_label("single folds")
        self._draw_lines(axis, factor * model.mean_loss_, "mean over folds")
        axis.fill_between(alphas, mean - error, mean + error, color="C0", alpha=0.2, label="one standard error")

    def _draw_lines(self, axis: Any, values: Vector, label: str) -> None:
        """Draw one line per l1_ratio, the chosen one as the first."""
        alphas, values = np.atleast_2d(self.estimator.alphas_), np.atleast_2d(values)
        ratios, chosen = self._ratios(), self._row()
        for row in [chosen, *(row for row in range(len(alphas)) if row != chosen)]:
            name = f"{label}, l1_ratio={ratios[row]:g}" if ratios else label
            axis.plot(alphas[row], values[row], marker=".", alpha=1.0 if row == chosen else 0.4, label=name)

    def _ratios(self) -> list[float]:
        """Return the values of l1_ratio, if there are several rows for them."""
        return self.estimator._ratios() if np.ndim(self.estimator.alphas_) == 2 else []

    def _row(self) -> int:
        return self._ratios().index(self.estimator.l1_ratio_) if self._ratios() else 0


def _prepare(axis: Any, label: str) -> None:
    """Label an axis whose abscissa is alpha, from the largest to the smallest."""
    pictures.label(axis, "alpha, the weight of the penalty", label)
    axis.set_xscale("log")
    axis.invert_xaxis()


def given_axes(ax: Any, count: int, meaning: str) -> Any:
    """Return an array of matplotlib axes: those that were given, if they are as many as needed, or new ones."""
    if ax is None:
        return new_axes(count)
    axes = np.atleast_1d(np.asarray(ax, dtype=object))
    if axes.shape != (count,):
        raise ValueError(f"ax has {axes.size} axes: expected {count}, {meaning}")
    return axes
