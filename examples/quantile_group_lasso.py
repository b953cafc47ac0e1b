"""Which of thirty categorical factors move the median, and which the upper tail.

Group Lasso under the quantile loss: a factor is in the model with all its levels or not at all, and every quantile has
factors of its own. Nothing is smoothed: zeros are exact, and every fit has a certificate.

    python examples/quantile_group_lasso.py [picture.png]
"""

import sys

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
    spread = np.exp(0.8 * effect[levels[:, 2]])  # the third factor widens the distribution and leaves its middle
    y = 3.0 + centre + 0.5 * spread * rng.standard_normal(SAMPLES)

    _, axes = plt.subplots(len(QUANTILES), 1, figsize=(8, 6), sharex=True, sharey=True, layout="constrained")
    for axis, quantile in zip(axes, QUANTILES, strict=True):
        model = SparseRegressor("quantile", "group", alpha=0.008, groups=LEVELS, quantile=quantile, tol=1e-3).fit(X, y)
        sizes = np.linalg.norm(model.coef_.reshape(FACTORS, LEVELS), axis=1)
        print(f"quantile {quantile}: factors {np.flatnonzero(sizes).tolist()}, {model.result_}")
        axis.bar(np.arange(FACTORS), sizes)
        axis.set_ylabel(f"quantile {quantile}")
    axes[0].set_title("Norm of the coefficients of each factor")
    axes[-1].set_xlabel("factor")
    plt.savefig(picture, dpi=150)
    print(f"The picture is in {picture}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "quantile_group_lasso.png")
