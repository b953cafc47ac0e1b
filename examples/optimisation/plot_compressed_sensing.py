"""
Can 60 measurements determine 200 numbers?
==========================================

Not in general: 60 equations have infinitely many solutions. But if few of the numbers are not 0, the solution with the
smallest L1 norm is often the right one. Least squares spreads the signal over all numbers. As a linear program the
problem has twice the variables; here penalty and equations are written as they are.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleback as sb

rng = np.random.default_rng(0)
truth = np.zeros(200)
truth[rng.choice(200, 12, replace=False)] = rng.normal(0, 2, 12)
A = rng.standard_normal((60, 200))
b = A @ truth

# %%
# The penalty is the norm to minimise, and the loss says that the equations hold.

result = sb.solve(sb.Problem(sb.L1(1.0), A, sb.Equality(b)), tol=1e-9)
shortest = np.linalg.lstsq(A, b)[0]
print(result)
print(f"largest error {np.abs(result.x - truth).max():.0e}; least squares {np.abs(shortest - truth).max():.1f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for axis, name, found in ((axes[0], "smallest L2 norm", shortest), (axes[1], "smallest L1 norm", result.x)):
    axis.plot(
        np.flatnonzero(truth), truth[truth != 0], "o", markersize=10, markerfacecolor="none", color="C1", label="truth"
    )
    axis.vlines(np.arange(200), 0, found, color="C0", linewidth=1.5, label="found")
    axis.axhline(0, color="C0", linewidth=0.8)
    axis.set(title=name, xlabel="position")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("value")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
plt.show()
