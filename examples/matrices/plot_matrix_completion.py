"""
What would the missing sensors have measured?
=============================================

Stations fail, and a table of measurements has holes. If few patterns, such as the day and the weather, explain most of
it, the table has low rank, and the nuclear norm fills the holes. Means of rows or columns ignore the patterns, and
alternating least squares needs the rank and may end in a local minimum. This problem is convex, and its answer
certified.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import saddleback as sb

rng = np.random.default_rng(0)
hours, stations = 96, 60
t = np.arange(hours)[:, None] / 24
patterns = np.hstack(
    [np.ones_like(t), np.sin(2 * np.pi * t), np.cos(2 * np.pi * t), np.cumsum(rng.normal(0, 0.2, (hours, 1)), 0)]
)
truth = 3 * patterns @ rng.standard_normal((4, stations))
observed = rng.random(truth.shape) < 0.35
for station in range(0, stations, 6):
    start = rng.integers(hours - 24)
    observed[start : start + 24, station] = False  # a whole day is lost
measured = truth + 0.3 * rng.standard_normal(truth.shape)

# %%
# The matrix A picks the observed entries of the variable, which is itself a matrix.

at = np.flatnonzero(observed)
pick = sp.csr_array((np.ones(at.size), (np.arange(at.size), at)), shape=(at.size, truth.size))
problem = sb.Problem(sb.Nuclear(4.0, truth.shape), pick, sb.Squared(measured[observed]))
result = sb.solve(problem, tol=1e-4)
print(f"rank {np.linalg.matrix_rank(result.x, tol=1e-6)}, certified relative gap {result.relative_gap:.0e}")

means = np.where(observed, measured, np.nan)
means = np.nanmean(means, axis=1, keepdims=True) + np.nanmean(means, axis=0) - np.nanmean(means)
for name, guess in {"means of stations and hours": np.broadcast_to(means, truth.shape), "low rank": result.x}.items():
    print(f"{name}: error {np.sqrt(np.mean((guess - truth)[~observed] ** 2)):.2f} where nothing was measured")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9.5, 4), sharey=True, layout="constrained")
shown = {"measured": np.where(observed, measured, np.nan), "completed": result.x, "truth": truth}
limit = np.quantile(np.abs(truth), 0.98)
for axis, (name, image) in zip(axes, shown.items(), strict=True):
    drawn = axis.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    axis.set(title=name, xlabel="station")
    axis.set_facecolor("0.8")
axes[0].set_ylabel("hour")
figure.colorbar(drawn, ax=axes, label="measurement")
plt.show()
