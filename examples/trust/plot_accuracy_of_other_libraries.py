"""
How accurate is the model that I have just fitted?
==================================================

Solvers stop when their steps are small, and a small step is not a small error. ``sb.judge`` takes a fitted model of
another library as it stands, states its objective, and certifies how far its coefficients are from the optimum.
Without it one would fit again with a smaller tolerance and compare, and still not know.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, PoissonRegressor, QuantileRegressor
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC, LinearSVR

import saddleback as sb

raw, y = load_diabetes(return_X_y=True, scaled=False)
raw_cells, labels = load_breast_cancer(return_X_y=True)
X, cells = scale(raw), scale(raw_cells)

# %%
# Models of scikit-learn with their default tolerances, on columns with standard deviation 1 and on columns as they
# come ("raw"). The solver "saga" gets enough iterations to end by its own rule.

models = {
    "QuantileRegressor": (QuantileRegressor(alpha=0.1), X, y),
    "Lasso": (Lasso(alpha=0.1), X, y),
    "LinearSVC": (LinearSVC(random_state=0), cells, labels),
    "LogisticRegression": (LogisticRegression(), cells, labels),
    "PoissonRegressor, raw": (PoissonRegressor(), raw, y),
    "LinearSVC, raw": (LinearSVC(random_state=0), raw_cells, labels),
    "LinearSVR, raw": (LinearSVR(random_state=0), raw, y),
    "LogisticRegression, raw": (LogisticRegression(), raw_cells, labels),
    "LogisticRegression, raw,\nL1, saga": (
        LogisticRegression(l1_ratio=1, solver="saga", max_iter=10_000, random_state=0),
        raw_cells,
        labels,
    ),
}
gaps, warned = [], []
for model, features, target in models.values():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(features, target)
    gaps.append(sb.judge(model, features, target).certificate.relative_gap)
    warned.append(any(warning.category is ConvergenceWarning for warning in caught))

last = sb.judge(model, features, target)
print(f"the objective of saga: {last.objective:.1f}, the optimum: {sb.solve(last.problem).objective:.1f}")

# %%
# A warning is a sign, but its absence is none: without one, the gap is anywhere between 1e-9 and one half. A gap of
# 0.5 says that the optimum may be as low as half of the objective that was reached. Here it is: saga, which has ended
# by its own rule, is at twice the optimum.

order = sorted(range(len(models)), key=gaps.__getitem__)
figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
axis.axvline(1e-6, color="0.5", linestyle=":", label="the default tolerance of Saddleback")
for name, colour, kind in (("no warning", "C0", False), ("a warning", "C1", True)):
    rows = [row for row, model in enumerate(order) if warned[model] is kind]
    reached = [gaps[order[row]] for row in rows]
    axis.hlines(rows, 1e-11, reached, color=colour, alpha=0.4)
    axis.plot(reached, rows, "o", color=colour, markersize=8, label=name)
axis.set_yticks(range(len(models)), [list(models)[model] for model in order])
axis.invert_yaxis()
axis.set(xscale="log", xlim=(1e-11, 2), xlabel="certified relative gap of the fitted model")
axis.spines[["top", "right"]].set_visible(False)
figure.legend(loc="outside upper center", ncols=3, frameon=False)
plt.show()
