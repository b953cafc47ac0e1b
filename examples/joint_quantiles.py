"""Draw quantiles of a noisy curve that are fitted one by one, and jointly so that they do not cross.

python examples/joint_quantiles.py docs/figures/joint_quantiles.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import JointQuantileRegressor

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(-1, 1, 50))
y = np.sin(3 * x) + (0.15 + 0.4 * x**2) * rng.standard_t(3, x.size)
X = np.column_stack([x**power for power in range(1, 7)])
quantiles = np.linspace(0.1, 0.9, 9)

_, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for axis, non_crossing in zip(axes, (False, True), strict=True):
    model = JointQuantileRegressor(quantiles, non_crossing=non_crossing).fit(X, y)
    model.plot(X, y, ax=axis)
    crossings = np.count_nonzero(np.diff(model.predict(X), axis=1) < 0)
    axis.set(
        title=f"{'jointly' if non_crossing else 'one by one'}: {crossings} crossings", ylim=(-1.8, 1.8), xlabel="x"
    )
axes[0].get_legend().remove()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "joint_quantiles.png", dpi=90)
