"""
Would other data select the same features?
==========================================

A Lasso on 150 samples and 300 features selects something, also where there is nothing. Stability selection fits the
model to random halves of the samples and keeps the features that most halves select, with a bound on the expected
number of false ones that needs no assumption on the data. By hand this is a loop over a hundred fits of scikit-learn;
here one call solves for all halves.
"""

import matplotlib.pyplot as plt
import numpy as np

from saddleback.estimators import Lasso, StabilitySelection

rng = np.random.default_rng(0)
samples, features, relevant = 150, 300, 6
X = rng.standard_normal((samples, features))
X[:, 1:] += 0.5 * X[:, :-1]  # neighbours are correlated
X /= X.std(axis=0)
at = np.arange(20, features, features // relevant)[:relevant]
y = X[:, at] @ [1.0, -0.8, 1.0, -0.8, 0.6, 0.6] + rng.standard_normal(samples)

# %%
# The alpha is large, so that a half selects about sqrt(300) features: the bound is q^2 / ((2 threshold - 1) p).

stable = StabilitySelection(Lasso(alpha=0.3), threshold=0.75).fit(X, y)
once = np.flatnonzero(Lasso(alpha=0.15).fit(X, y).coef_)
selected = np.flatnonzero(stable.get_support())
print(f"one Lasso: {np.isin(once, at).sum()} of {relevant} features with an effect, {(~np.isin(once, at)).sum()} false")
print(f"stability selection: {np.isin(selected, at).sum()} of {relevant}, {(~np.isin(selected, at)).sum()} false")
print(f"bound on the expected number of false features: {stable.false_selection_bound_:.1f}")

# %%
figure, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
share = stable.selection_probabilities_
null = np.setdiff1d(np.arange(features), at)
axis.plot(null, share[null], ".", color="0.6", label="features without an effect")
axis.plot(at, share[at], "o", color="C0", markersize=8, label="features with an effect")
axis.axhline(stable.threshold, color="C3", linestyle="--", label="threshold")
axis.set(xlabel="feature", ylabel="share of the halves that select it", ylim=(-0.03, 1.05))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
plt.show()
