"""
Which positions of a DNA sequence act together?
===============================================

A splice site is recognised by its neighbouring bases, and some of them count in combination only. All single
positions, pairs and triples of seven positions are 63 groups with 2,604 columns; a group penalty with a hinge loss
selects among them. Packages for the group Lasso have squared or logistic losses, and a general solver for conic
programs (Clarabel, through CVXPY) takes about fifteen times as long.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from saddleback.datasets import make_group_hinge
from saddleback.estimators import SparseClassifier

sites = make_group_hinge(samples=3000)  # simulated sites, with the structure of the MEMset data
model = SparseClassifier("hinge", "group", alpha=3e-3, groups=sites.groups, tol=1e-3).fit(sites.A, sites.labels)
print(f"{model.score(sites.A, sites.labels):.1%} right, certified relative gap {model.certificate_.relative_gap:.0e}")

# %%
# Equal sites are merged before the fit, so that its cost depends on the number of distinct sites.

positions = ["-3", "-2", "-1", "+3", "+4", "+5", "+6"]
chosen = [group for size in (1, 2, 3) for group in combinations(positions, size)]
sizes = np.array([np.linalg.norm(part) for part in np.split(model.coef_[0], np.cumsum(sites.groups)[:-1])])
kept = np.argsort(sizes)[-12:]
colours = {1: "C0", 2: "C1", 3: "C2"}

figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
axis.barh([", ".join(chosen[g]) for g in kept], sizes[kept], color=[colours[len(chosen[g])] for g in kept])
for size, name in {1: "single position", 2: "pair", 3: "triple"}.items():
    axis.barh(0, 0, color=colours[size], label=name)
axis.set(xlabel="norm of the coefficients", ylabel="positions, relative to the splice site")
axis.set_title(f"The 12 largest of {np.count_nonzero(sizes)} selected groups", fontsize="medium")
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="lower right")
plt.show()
