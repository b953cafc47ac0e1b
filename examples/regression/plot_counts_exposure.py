"""
Who has more claims, and who was just insured for longer?
=========================================================

Counts depend on how long one counts. A Poisson regression handles this with an offset, the logarithm of the exposure;
without it, features that go along with long contracts look dangerous. ``PoissonRegressor`` of scikit-learn needs rates
and weights in place of an offset, and has no penalty that selects features. R's glmnet has both, and stops when its
steps become small.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import SparseRegressor

rng = np.random.default_rng(0)
contracts = 3000
names = ["age of the driver", "power", "city", "mileage", "age of the car", "garage", "colour", "doors", "discount"]
X = rng.standard_normal((contracts, len(names)))
true = np.array([-0.4, 0.3, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
years = np.exp(0.5 * X[:, 4] - 0.5 * X[:, 5] + 0.4 * rng.standard_normal(contracts))  # old cars stay insured for longer
claims = rng.poisson(years * np.exp(-1.5 + X @ true))

with_offset = SparseRegressor("poisson", "l1", alpha=0.01).fit(X, claims, offset=np.log(years))
without = SparseRegressor("poisson", "l1", alpha=0.01).fit(X, claims)
print(f"certified relative gap: {with_offset.certificate_.relative_gap:.0e}")

# %%
# Without the exposure, old cars seem to cause claims and garages seem to prevent them. Both only change how long a
# contract lasts.

figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
at = np.arange(len(names))[::-1]
axis.barh(at, true, height=0.7, color="0.85", label="truth")
axis.plot(without.coef_, at, "s", color="C1", label="claims alone")
axis.plot(with_offset.coef_, at, "o", color="C0", label="claims per year (offset)")
axis.axvline(0, color="black", linewidth=0.8)
axis.set_yticks(at, names)
axis.set(xlabel="effect on the logarithm of the rate of claims")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()
