"""Fit a signal with outliers, denoise a picture, and regress on neighbouring features, each with a certificate.

A trend filter with the absolute loss withstands the outliers that bend one with the squared loss, total variation
removes the noise of a picture and keeps its edges, and the fused Lasso finds stretches of equal coefficients.

    python examples/signals.py [folder]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import FusedLasso, Lasso, TotalVariationDenoiser, TrendFilter


def trends(folder: Path, rng: np.random.Generator) -> None:
    """Draw a broken line with outliers, fitted by two losses, and two quantiles of noise that grows."""
    t = np.linspace(0.0, 1.0, 400)
    line = np.interp(t, [0.0, 0.3, 0.6, 1.0], [0.0, 2.0, 1.0, 3.0])
    y = line + 0.2 * rng.standard_normal(t.size)
    y[rng.random(t.size) < 0.1] -= 3.0
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    for axis, loss, alpha in zip(axes, ("squared", "absolute"), (100.0, 100.0), strict=False):
        model = TrendFilter(order=1, loss=loss, alpha=alpha).fit(y)
        print(f"trend filter, {loss} loss: {model.knots_.size} knots, {model.result_}")
        model.plot(axis)
        axis.set_title(f"{loss} loss", fontsize="medium")
    noisy = np.sin(6 * t) + (0.1 + t) * rng.standard_normal(t.size)
    for quantile in (0.1, 0.5, 0.9):
        model = TrendFilter(order=2, loss="quantile", quantile=quantile, alpha=2000.0).fit(noisy)
        axes[2].plot(model.signal_, label=f"quantile {quantile}")
    axes[2].plot(noisy, ".", color="0.7", markersize=3)
    axes[2].set_title("quantiles, order 2", fontsize="medium")
    axes[2].legend(fontsize="small", frameon=False)
    figure.savefig(folder / "trend_filter.png", dpi=100)


def images(folder: Path, rng: np.random.Generator) -> None:
    """Draw a noisy picture before and after, and one with half of its pixels missing."""
    rows, columns = np.indices((160, 160)) / 160
    picture = 1.0 * ((rows - 0.5) ** 2 + (columns - 0.4) ** 2 < 0.1) + 0.6 * (columns > 0.75) + 0.3 * rows
    noisy = picture + 0.15 * rng.standard_normal(picture.shape)
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    model = TotalVariationDenoiser(alpha=0.2).fit(noisy)
    print(f"total variation: {model.result_}")
    model.plot(axes[:2])
    noisy[rng.random(picture.shape) < 0.5] = np.nan
    TotalVariationDenoiser(alpha=0.2, isotropic=False, tol=1e-3).fit(noisy).plot(axes[2:])
    figure.savefig(folder / "total_variation.png", dpi=100)


def coefficients(folder: Path, rng: np.random.Generator) -> None:
    """Draw coefficients in stretches, as the Lasso and the fused Lasso find them from fewer samples than features."""
    w = np.repeat([0.0, 1.0, 0.0, -2.0, 0.0], [60, 30, 50, 20, 40])
    X = rng.standard_normal((120, w.size))
    y = X @ w + rng.standard_normal(120)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.0), sharey=True, layout="constrained")
    for axis, model in zip(axes, (Lasso(alpha=0.1), FusedLasso(alpha=0.02, fused_alpha=0.2)), strict=True):
        model.fit(X, y)
        print(f"{type(model).__name__}: error {np.linalg.norm(model.coef_ - w):.2f}, {model.result_}")
        axis.plot(w, color="0.7", linewidth=3, label="true coefficients")
        axis.plot(model.coef_, color="C0", label=type(model).__name__)
        axis.set(xlabel="feature")
        axis.legend(fontsize="small", frameon=False)
    figure.savefig(folder / "fused_lasso.png", dpi=100)


def main(folder: str) -> None:
    """Write one picture per estimator."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for draw in (trends, images, coefficients):
        draw(Path(folder), rng)
    print(f"The pictures are in {Path(folder).resolve()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/signals")
