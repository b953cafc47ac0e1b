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

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for axis, non_crossing in zip(axes, (False, True), strict=True):
    model = JointQuantileRegressor(quantiles, non_crossing=non_crossing).fit(X, y)
    model.plot(X, y, ax=axis)
    crossings = np.count_nonzero(np.diff(model.predict(X), axis=1) < 0)
    print(f"{crossings} crossings, certified relative gap {model.certificate_.relative_gap:.0e}")
    axis.set(
        title=f"{'jointly' if non_crossing else 'one by one'}: {crossings} crossings", ylim=(-1.8, 1.8), xlabel="x"
    )
axes[0].get_legend().remove()
axes[1].legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
