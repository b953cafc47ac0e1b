"""
How many measurements does a diagnosis need?
============================================

A support vector machine uses all features, and each costs a measurement. With an L1 penalty it needs few of them.
``LinearSVC`` of scikit-learn refuses the hinge loss with an L1 penalty, since LIBLINEAR cannot solve it. It is a
linear program, but solvers for these take far longer on large data. Here it is an estimator like any other.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from saddleback.estimators import SparseSVC

X, y = load_breast_cancer(return_X_y=True)
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)

# %%
# The error on held-out patients, and the number of features, for nine weights of the penalty.

features, errors, spread = [], [], []
for alpha in np.geomspace(0.3, 0.002, 9):
    model = make_pipeline(StandardScaler(), SparseSVC(alpha, tol=1e-4))
    shares = 1 - cross_val_score(model, X, y, cv=folds)
    features.append(np.count_nonzero(model.fit(X, y)[-1].coef_))
    errors.append(shares.mean())
    spread.append(shares.std() / np.sqrt(5))
full = 1 - cross_val_score(make_pipeline(StandardScaler(), LinearSVC(loss="hinge", max_iter=100_000)), X, y, cv=folds)
print(f"the last model: {features[-1]} features, certified relative gap {model[-1].certificate_.relative_gap:.0e}")

# %%
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.errorbar(features, errors, spread, marker="o", capsize=3, color="C0", label="hinge loss with L1")
axis.axhline(full.mean(), color="C3", linestyle="--", label="SVM with all 30 features (LinearSVC)")
axis.set(xscale="log", ylim=(0, None), xlabel="features in the model", ylabel="error on held-out patients")
axis.xaxis.set_major_locator(FixedLocator(np.unique(features)))
axis.xaxis.set_minor_locator(NullLocator())
axis.xaxis.set_major_formatter("{x:.0f}")
axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
