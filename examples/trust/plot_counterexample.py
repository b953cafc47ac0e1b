"""
Does the published method converge?
===================================

Theorem 1 of Zhu and Storkey (2015) says that the expected gap of their stochastic block method falls like 1/T. On a
Lasso with two features the iterates grow without bound. Two steps of the proof fail: the dual step length depends on
the random draw, and the extrapolation is noisy. With a fixed step length, and an extrapolation of the present iterate,
the method converges. Without a certificate, one would have to guess whether a run has failed or is slow.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import saddleback as sb

A = np.array([[10.0, 1.0], [1.0, 10.0]])
problem = sb.Problem(sb.L1(0.1), A, sb.Squared(np.array([11.0, 11.0])))

optimum = sb.solve(problem, tol=1e-10).objective

# %%
# A callback gets the iterate at every certificate. Both methods draw one of the two features per iteration.


def excess(method, seed):
    """Return the passes, and how far the objective of the iterates is above the optimum, relative to it."""
    passes, above = [], []

    def look(info):
        x = info.current.x
        passes.append(info.passes)
        above.append((0.5 * np.sum((A @ x - 11) ** 2) + 0.1 * np.abs(x).sum()) / optimum - 1)

    options = {"layers": False, "blocks_per_iteration": 1, "check_every": 1, "tol": 1e-10}
    result = sb.solve(problem, method=method, seed=seed, callback=look, **options)
    return passes, above, result.status.name


# %%
# Ten runs of each, which differ in the random draws.

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for method, colour, name in (("sp-bcd-published", "C3", "as published"), ("sp-bcd", "C0", "repaired")):
    ends = []
    for seed in range(10):
        passes, above, end = excess(method, seed)
        axis.semilogy(passes, above, color=colour, alpha=0.6, label=name if seed == 0 else None)
        ends.append(end)
    print(f"{name}: {Counter(ends)}")
axis.set(
    xlim=(0, 125),
    ylim=(1e-12, 1e30),
    xlabel="passes over the data",
    ylabel="objective above the optimum, relative to it",
)
axis.spines[["top", "right"]].set_visible(False)
axis.grid(alpha=0.3)
axis.legend(frameon=False, loc="upper left")
plt.show()
