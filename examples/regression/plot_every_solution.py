"""
Is this feature really needed, or would another fit do without it?
==================================================================

If two columns say nearly the same, a solver that stops a little early may keep either or both of them: whether a
feature is in the model is then an accident. The gap of a fit decides this. It gives intervals that contain the
coefficients of *every* solution, and so proves which features are in all of them. Other libraries return one solution,
and no word about the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import saddleback as sb

X, y = load_diabetes(return_X_y=True, as_frame=True)
X.columns = [
    "age",
    "sex",
    "body mass",
    "blood pressure",
    "total chol.",
    "LDL",
    "HDL",
    "chol. / HDL",
    "triglyc.",
    "sugar",
]
X = X / X.std()
X["body mass, again"] = X["body mass"] + 0.01 * np.random.default_rng(0).standard_normal(len(X))
X = (X - X.mean()) / X.std()
problem = sb.Problem(sb.L1(0.5), X.to_numpy(), sb.Squared(y - y.mean(), scale=1 / len(y)))

# %%
# Three fits of the same Lasso by a plain method, which stops when the certified gap is small enough. At 1e-2 the two
# measurements of body mass share the effect, and little is proved. At 1e-5 only the second measurement is undecided,
# and at 1e-8 it is in no solution.

colours = {"in every solution": "C0", "in none": "0.55", "undecided at this gap": "C1"}
figure, axes = plt.subplots(1, 3, figsize=(10, 4.2), sharex=True, sharey=True, layout="constrained")
for axis, tol in zip(axes, (1e-2, 1e-5, 1e-8), strict=True):
    result = sb.solve(problem, method="fista", layers=False, tol=tol)
    bounds = result.bounds()
    for row, decision in enumerate(bounds.decided):
        ends = np.clip([bounds.lower[row], bounds.upper[row]], -60, 60)
        axis.plot(ends, [row, row], color=colours[decision], linewidth=8, solid_capstyle="butt", alpha=0.4)
        axis.plot(result.x[row], row, "o", color=colours[decision], markersize=5)
    axis.axvline(0, color="black", linewidth=0.8)
    undecided = np.count_nonzero(bounds.decided == "undecided at this gap")
    print(f"relative gap {result.relative_gap:.0e}: {undecided} of {X.shape[1]} features are undecided")
    axis.set(title=f"relative gap {tol:.0e}", xlim=(-40, 40), xlabel="coefficient and its interval")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks(range(X.shape[1]), X.columns)
axes[0].invert_yaxis()
for name, colour in colours.items():
    axes[0].plot([], [], "o", color=colour, label=name)
figure.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
