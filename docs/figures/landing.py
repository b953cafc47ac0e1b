"""Draw the picture of the landing page: ``python docs/figures/landing.py``."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import saddleback as sb
from saddleback.estimators import JointQuantileRegressor

rng = np.random.default_rng(0)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")

t = np.sort(rng.random(400))
y = np.sin(5 * t) + (0.1 + 0.5 * t) * rng.standard_normal(400)
powers = np.vander(2 * t - 1, 6)[:, :-1]
quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
model = JointQuantileRegressor(quantiles).fit(powers, y)
left.plot(t, y, ".", color="0.75", markersize=3)
for quantile, curve in zip(quantiles, model.predict(powers).T, strict=True):
    left.plot(t, curve, color=plt.cm.viridis(0.85 * quantile), label=f"{quantile:.0%}")
left.set(title="Quantiles that do not cross", xlabel="x", ylabel="y")
left.legend(frameon=False, fontsize=8)

A = rng.standard_normal((300, 600))
b = A[:, :10].sum(axis=1) + rng.standard_t(2, size=300)
problem = sb.Problem(sb.GroupL2(8.0, groups=5), A, sb.Absolute(b))
history = sb.solve(problem, method="sp-bcd", layers=False, tol=1e-6, max_passes=2000).history
best_upper, best_lower = np.minimum.accumulate(history.primal_value), np.maximum.accumulate(history.dual_value)
right.fill_between(history.passes, best_lower, best_upper, color="C0", alpha=0.2, label="the optimum is in here")
right.plot(history.passes, best_upper, color="C3", label="upper bound: the objective")
right.plot(history.passes, best_lower, color="C0", label="lower bound: the dual")
right.set(title="Every result has a certificate", xlabel="passes over the data", ylabel="objective", xscale="log")
right.set_ylim(best_lower[-1] * 0.8, best_upper[-1] * 1.3)
right.legend(frameon=False, fontsize=8)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=160)
