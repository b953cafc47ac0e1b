"""Classify messages of two newsgroups by their words: a support vector machine that needs few words.

Hinge loss with an L1 penalty on sparse word counts. The counts are simulated, unless the file of the BASEHOCK data set
(1,993 messages, 4,862 words) is given.

    python examples/sparse_svm.py [picture.png] [BASEHOCK.mat]
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator
from scipy import sparse
from scipy.io import loadmat
from sklearn.model_selection import train_test_split

from saddleback.estimators import SparseSVC


def make_counts(messages=2000, words=5000, telling=60, seed=0):
    """Return word counts of two groups, in which one group uses a few words more often, and the groups."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, words + 1)
    frequency *= 60 / frequency.sum()
    group = rng.integers(2, size=messages)
    taste = np.zeros(words)
    taste[rng.choice(words // 10, telling, replace=False)] = rng.normal(scale=1.2, size=telling)
    rates = frequency * np.exp(np.outer(2 * group - 1, taste))
    return sparse.csr_array(rng.poisson(rates).astype(float)), group


def read_counts(path):
    """Return the counts and groups of a MAT file with the arrays X and Y."""
    file = loadmat(path)
    return sparse.csr_array(file["X"], dtype=float), file["Y"].ravel()


def main(picture: str, path: str | None) -> None:
    """Fit at several alphas; draw the number of words in the model and the accuracy on held-out messages."""
    X, y = make_counts() if path is None else read_counts(path)
    train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    alphas = np.geomspace(0.05, 0.001, 8)
    words, right = [], []
    for alpha in alphas:
        model = SparseSVC(alpha, tol=1e-3).fit(train_X, train_y)
        words.append(np.count_nonzero(model.coef_))
        right.append(model.score(test_X, test_y))
        print(f"alpha {alpha:.4f}: {words[-1]} of {X.shape[1]} words, {right[-1]:.1%} right, {model.result_}")
    _, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    axis.semilogx(words, right, marker="o")
    axis.set(xlabel="words in the model", ylabel="accuracy on held-out messages")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:.0f}")
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(alpha=0.3)
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(picture, dpi=150)
    print(f"The picture is in {Path(picture).resolve()}")


if __name__ == "__main__":
    main(*(sys.argv[1:] + ["out/sparse_svm.png", None][len(sys.argv) - 1 :])[:2])
