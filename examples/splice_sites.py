"""Find the interactions of neighbouring bases that predict a splice site.

Hinge loss with a group penalty over all single positions, pairs and triples of 7 bases: 63 groups, 2,604 columns. The
sites are simulated. Equal sites are merged, so that the cost depends on the number of distinct sites.

    python examples/splice_sites.py [picture.png]
"""

import sys
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from saddleback.datasets import make_group_hinge
from saddleback.estimators import SparseClassifier

POSITIONS = ["-3", "-2", "-1", "+3", "+4", "+5", "+6"]


def main(picture: str) -> None:
    """Fit the model and draw the selected groups."""
    sites = make_group_hinge(samples=3000)
    model = SparseClassifier("hinge", "group", alpha=3e-3, groups=sites.groups, tol=1e-3).fit(sites.A, sites.labels)
    names = [" ".join(chosen) for size in (1, 2, 3) for chosen in combinations(POSITIONS, size)]
    sizes = np.array([np.linalg.norm(part) for part in np.split(model.coef_[0], np.cumsum(sites.groups)[:-1])])
    kept = np.argsort(-sizes)[: np.count_nonzero(sizes)]
    print(f"{kept.size} of {sizes.size} groups, {model.score(sites.A, sites.labels):.1%} right, {model.result_}")
    _, axis = plt.subplots(figsize=(6, 5), layout="constrained")
    axis.barh([names[g] for g in kept[::-1]], sizes[kept[::-1]])
    axis.set(xlabel="norm of the coefficients", title="Positions that interact")
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(picture, dpi=150)
    print(f"The picture is in {Path(picture).resolve()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/splice_sites.png")
