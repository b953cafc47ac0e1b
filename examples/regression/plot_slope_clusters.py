"""
Which of my correlated features belong together?
================================================

Of several features that measure the same thing, a Lasso keeps one, almost at random. SLOPE, the sorted L1 norm, gives
them one common coefficient, and so finds the clusters by itself. An elastic net keeps all of them too, but with
different coefficients, and the group Lasso has to be told the groups.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleback as sb

rng = np.random.default_rng(1)
samples, cluster = 100, np.repeat([0, 1, 2, 3], [4, 4, 4, 12])  # the last 12 features are alone, and have no effect
common = rng.standard_normal((samples, 3))
X = rng.standard_normal((samples, cluster.size))
X[:, :12] = common[:, cluster[:12]] + 0.25 * X[:, :12]
X /= np.linalg.norm(X, axis=0)
y = X @ np.array([3.0, -2.0, 1.0, 0.0])[cluster] + 0.1 * rng.standard_normal(samples)

# %%
# The weights of SLOPE fall linearly: the largest coefficient has the largest weight.

weights = np.linspace(1.0, 0.2, cluster.size)
paths = {}
for name, penalty in {"Lasso": sb.L1(1.0), "SLOPE": sb.SLOPE(weights)}.items():
    results = sb.path(penalty, X, sb.Squared(y), n_alphas=60, eps=2e-3, tol=1e-7)
    paths[name] = np.array([result.settings["alpha"] for result in results]), np.array([result.x for result in results])
    print(f"{name}: the largest relative gap of the path is {max(result.relative_gap for result in results):.0e}")

# %%
# The features of a cluster leave zero together and stay equal, until alpha is so small that the noise separates them.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
names, colours = ["cluster 1", "cluster 2", "cluster 3", "no effect"], ["C0", "C1", "C2", "0.7"]
for axis, (name, (alphas, coefficients)) in zip(axes, paths.items(), strict=True):
    for j in range(cluster.size)[::-1]:
        label = names[cluster[j]] if j == 0 or cluster[j] != cluster[j - 1] else None
        axis.semilogx(alphas / alphas[0], coefficients[:, j], color=colours[cluster[j]], label=label, alpha=0.8)
    axis.invert_xaxis()
    axis.set(title=name, xlabel="weight of the penalty, as a share of the largest")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("coefficient")
axes[1].legend(*(part[::-1] for part in axes[1].get_legend_handles_labels()), frameon=False, loc="upper left")
plt.show()
