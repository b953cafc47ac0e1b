"""
Where does a trend change, if some measurements are wrong?
==========================================================

A trend filter fits straight pieces and finds where they meet. Most packages for it have the squared loss, which a few
wrong measurements bend. The absolute loss ignores them; its problem has two kinks per point, which general solvers
treat as a large linear program. Here it takes a time proportional to the length of the signal.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import TrendFilter

rng = np.random.default_rng(0)
t = np.arange(400)
truth = np.interp(t, [0, 120, 240, 400], [0.0, 2.0, 1.0, 3.0])
y = truth + 0.2 * rng.standard_normal(t.size)
y[rng.random(t.size) < 0.1] -= 3.0  # one measurement in ten is wrong

# %%
# Both fits have the same weight of the penalty. Their knots are the points at which the slope changes.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for axis, loss in zip(axes, ("squared", "absolute"), strict=True):
    model = TrendFilter(order=1, loss=loss, alpha=100.0).fit(y)
    error = np.abs(model.signal_ - truth).mean()
    print(f"{loss} loss: {model.knots_.size} knots, mean error {error:.2f}, gap {model.certificate_.relative_gap:.0e}")
    axis.plot(t, y, ".", color="0.75", markersize=4, label="measurements")
    axis.plot(t, truth, color="C1", linewidth=4, alpha=0.6, label="truth")
    axis.plot(t, model.signal_, color="C0", label="trend filter")
    axis.plot(model.knots_, model.signal_[model.knots_], "|", color="black", markersize=14, label="knots")
    axis.set(title=f"{loss} loss", xlabel="time")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("signal")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()
