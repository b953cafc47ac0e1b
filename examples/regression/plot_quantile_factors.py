"""
Which factors move the middle, and which only the extremes?
===========================================================

A mean says nothing about rare high values, and a factor may widen a distribution without moving its middle. A quantile
regression with a group penalty selects factors for each quantile. R packages smooth the quantile loss for this, which
blurs what is 0, and in CVXPY one writes the program oneself. Here it is an estimator, and zeros are exact.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import SparseRegressor

rng = np.random.default_rng(0)
samples, factors, levels = 2000, 30, 4
level = rng.integers(levels, size=(samples, factors))
X = np.eye(levels)[level].reshape(samples, factors * levels)
effect = np.linspace(-1.0, 1.0, levels)
centre = effect[level[:, 0]] - effect[level[:, 1]]
spread = np.exp(0.8 * effect[level[:, 2]])  # the third factor widens the distribution and does not move its median
y = 3.0 + centre + 0.5 * spread * rng.standard_normal(samples)

# %%
# Thirty factors with four levels each are offered; three have an effect. The penalty follows the standard deviation of
# the slope of the loss, sqrt(q (1 - q)), so that it is as severe for all quantiles.

sizes = {}
for quantile in (0.5, 0.75, 0.95):
    alpha = 0.018 * np.sqrt(quantile * (1 - quantile))
    model = SparseRegressor("quantile", "group", alpha=alpha, groups=levels, quantile=quantile, tol=1e-3).fit(X, y)
    sizes[quantile] = np.linalg.norm(model.coef_.reshape(factors, levels), axis=1)
    print(
        f"quantile {quantile}: factors {np.flatnonzero(sizes[quantile]) + 1}, gap {model.certificate_.relative_gap:.0e}"
    )

# %%
# The third factor is absent from the median, and its effect grows towards the upper tail.

chosen = np.flatnonzero(np.any(list(sizes.values()), axis=0))
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for shift, colour, (quantile, size) in zip((-0.27, 0, 0.27), ("C0", "C2", "C3"), sizes.items(), strict=True):
    axis.bar(np.arange(chosen.size) + shift, size[chosen], width=0.25, color=colour, label=f"quantile {quantile}")
axis.set_xticks(np.arange(chosen.size), [f"factor {factor + 1}" for factor in chosen])
axis.set(ylabel="norm of the coefficients of the factor")
axis.set_title(f"The other {factors - chosen.size} factors have coefficients of exactly 0", fontsize="medium")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
