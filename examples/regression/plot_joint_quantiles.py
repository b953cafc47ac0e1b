"""
Why is my 90th percentile below my 80th?
========================================

Quantiles that are fitted one by one may cross, which no distribution allows: predictions then contradict each other.
scikit-learn, statsmodels and quantreg fit them one by one, and sorting the predictions afterwards hides the conflict
instead of solving it. A joint fit, with a constraint per pair of neighbours and sample, cannot cross in the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import JointQuantileRegressor

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(-1, 1, 50))
y = np.sin(3 * x) + (0.15 + 0.4 * x**2) * rng.standard_t(3, x.size)
X = np.column_stack([x**power for power in range(1, 7)])
quantiles = np.linspace(0.1, 0.9, 9)

# %%
# Nine quantiles of a curve with a polynomial of degree six. Red marks are samples at which two of them are in the
# wrong order.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 4), sharey=True, layout="constrained")
for axis, non_crossing, name in ((axes[0], False, "one by one"), (axes[1], True, "jointly")):
    model = JointQuantileRegressor(quantiles, non_crossing=non_crossing).fit(X, y)
    model.plot(X, y, ax=axis)
    crossed = np.any(np.diff(model.predict(X), axis=1) < -1e-9, axis=1)  # by more than rounding
    print(f"{name}: certified relative gap {model.certificate_.relative_gap:.0e}")
    axis.plot(x[crossed], np.full(crossed.sum(), -1.7), "|", color="red", markersize=12, markeredgewidth=2)
    axis.set(title=f"{name}: wrong order at {crossed.sum()} of 50 samples", ylim=(-1.8, 1.8), xlabel="x")
axes[0].get_legend().remove()
axes[1].legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1, 1), title="quantile")
plt.show()
