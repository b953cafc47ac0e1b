"""Find which of thirty categorical factors affect the median, and which affect the upper tail.

A group Lasso with the quantile loss: a factor is in the model with all its levels or not at all, and each quantile may
select other factors. The loss is not smoothed, zeros are exact, and every fit has a certificate.

    python examples/quantile_group_lasso.py [picture.png]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import SparseRegressor

SAMPLES, FACTORS, LEVELS = 2000, 30, 4
QUANTILES = [0.5, 0.75, 0.95]


def main(picture: str) -> None:
    """Fit three quantiles and draw the size of every factor in each."""
    rng = np.random.default_rng(0)
    levels = rng.integers(LEVELS, size=(SAMPLES, FACTORS))
    X = np.eye(LEVELS)[levels].reshape(SAMPLES, FACTORS * LEVELS)
    effect = np.linspace(-1.0, 1.0, LEVELS)
    centre = effect[levels[:, 0]] - effect[levels[:, 1]]
    spread = np.exp(0.8 * effect[levels[:, 2]])  # the third factor widens the distribution and does not move its median
    y = 3.0 + centre + 0.5 * spread * rng.standard_normal(SAMPLES)

    sizes = []
    for quantile in QUANTILES:
        model = SparseRegressor("quantile", "group", alpha=0.008, groups=LEVELS, quantile=quantile, tol=1e-3).fit(X, y)
        sizes.append(np.linalg.norm(model.coef_.reshape(FACTORS, LEVELS), axis=1))
        print(f"quantile {quantile}: factors {np.flatnonzero(sizes[-1]).tolist()}, {model.result_}")

    chosen = np.flatnonzero(np.any(sizes, axis=0))
    _, axes = plt.subplots(len(QUANTILES), 1, figsize=(6, 6), sharex=True, sharey=True, layout="constrained")
    for axis, quantile, own in zip(axes, QUANTILES, sizes, strict=True):
        axis.bar([f"factor {factor}" for factor in chosen], own[chosen], width=0.5)
        axis.set_ylabel(f"quantile {quantile}")
    axes[0].set_title(f"Norm of the coefficients of the {chosen.size} factors of {FACTORS} that count")
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(picture, dpi=150)
    print(f"The picture is in {Path(picture).resolve()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/quantile_group_lasso.png")
