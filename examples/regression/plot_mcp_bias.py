"""
Why are the large effects of my Lasso too small?
================================================

The penalty that removes small coefficients also shrinks large ones, each by about as much. A smaller alpha shrinks
less, but lets noise in. The minimax concave penalty (MCP) leaves large coefficients alone. It is not convex: R has it
in ncvreg for least squares, logistic, Poisson and Cox models. Here it goes with any loss, as a sequence of convex
problems of which the last is certified.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import Lasso, SparseRegressor

rng = np.random.default_rng(0)
true = np.zeros(200)
true[:8] = [4.0, -3.0, 3.0, -2.5, 2.5, 2.0, -2.0, 2.0]
X = rng.standard_normal((150, 200))
y = X @ true + rng.standard_normal(150)

# %%
# The same alpha for both, with which they find the eight features and nothing else.

models = {"Lasso": Lasso(alpha=0.5), "MCP": SparseRegressor("squared", "mcp", alpha=0.5)}
for name, model in models.items():
    model.fit(X, y)
    wrong = np.count_nonzero(model.coef_[8:])
    print(f"{name}: {wrong} false features, error {np.linalg.norm(model.coef_ - true):.2f}")
print(models["MCP"].result_.message)

# %%
# What the certificate says of the MCP: the coefficients are a stationary point. That no other point is better is not
# proved.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
at = np.arange(8)
axis.bar(at, true[:8], width=0.75, color="0.85", label="truth")
for (name, model), colour, marker, shift in zip(models.items(), ("C1", "C0"), ("s", "o"), (-0.15, 0.15), strict=True):
    axis.plot(at + shift, model.coef_[:8], marker, color=colour, markersize=7, label=name)
axis.axhline(0, color="black", linewidth=0.8)
axis.set_xticks(at, [f"{j + 1}" for j in at])
axis.set(xlabel="feature with an effect", ylabel="coefficient")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False)
plt.show()
