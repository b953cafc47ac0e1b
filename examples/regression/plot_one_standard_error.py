"""
How many features can I drop without losing accuracy?
=====================================================

The alpha with the least cross-validated error is itself an estimate, and errors within its own uncertainty are no
worse. The one-standard-error rule of glmnet takes the largest alpha among them: a simpler model that predicts about as
well. scikit-learn has no such rule for its Lasso; here it is one argument.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from saddleback.estimators import LassoCV

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(PolynomialFeatures(degree=2, include_bias=False).fit_transform(X))

best = LassoCV(cv=10, eps=0.01).fit(X, y)
simple = LassoCV(cv=10, eps=0.01, rule="1se").fit(X, y)
for name, model in {"least error": best, "one standard error": simple}.items():
    print(
        f"{name}: {np.count_nonzero(model.coef_)} of {X.shape[1]} features, gap {model.certificate_.relative_gap:.0e}"
    )

# %%
# The features are ten measurements of patients, their squares and products.

figure, axis = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
mean, error = 2 * best.mean_loss_, 2 * best.loss_std_error_  # the loss is half of the squared error
axis.fill_between(best.alphas_, mean - error, mean + error, color="C0", alpha=0.2, label="one standard error")
axis.plot(best.alphas_, mean, color="C0", label="mean over 10 folds")
for model, colour, name in ((best, "C3", "least error"), (simple, "C2", "one standard error")):
    kept = np.count_nonzero(model.coef_)
    height = mean[np.argmin(np.abs(best.alphas_ - model.alpha_))]
    axis.plot(model.alpha_, height, "o", color=colour, markersize=9, label=f"{name}: {kept} features")
axis.axhline((mean + error)[mean.argmin()], color="0.5", linestyle=":", linewidth=1)
axis.set(xscale="log", xlabel="alpha, the weight of the penalty", ylabel="squared error on held-out patients")
axis.invert_xaxis()
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
