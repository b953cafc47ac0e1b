"""The estimators on data of realistic size: certified, and within the promised memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat

from saddleback.estimators import SparseClassifier, SparseSVC

MEMORY = """
import numpy as np
from saddleback.estimators import QuantileRegressor

def resident(kind):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(kind)))

before, rng = resident("VmRSS"), np.random.default_rng(0)
X = np.empty((1_000_000, 50), order="{order}")
for rows in np.split(np.arange(X.shape[0]), 100):
    X[rows] = rng.standard_normal((rows.size, X.shape[1]))
y = X[:, :5].sum(axis=1) + rng.standard_t(3, size=X.shape[0])
model = QuantileRegressor(quantile=0.8, alpha={alpha}, tol=1e-4).fit(X, y)
print((resident("VmHWM") - before) / X.nbytes, model.certificate_.error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("alpha", [0.01, 0.0])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_million_rows_fit_in_three_times_the_data(order, alpha):
    """The memory, in multiples of X, includes X but not that of the process after its imports."""
    code = MEMORY.format(order=order, alpha=alpha)
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    multiple, error = map(float, output.split())
    assert multiple <= 3.0
    assert error <= 1e-4


def text(messages=4000, words=55_000, telling=200, seed=0):
    """Return a matrix of the words per message, and two groups of messages in which some words differ in frequency."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, words + 1)
    chance = np.minimum(0.5, 80 * chance / chance.sum())
    group = rng.integers(2, size=messages)
    taste = np.zeros(words)
    taste[rng.choice(words // 10, telling, replace=False)] = rng.normal(scale=1.0, size=telling)
    rows = [np.flatnonzero(rng.random(words) < chance * np.exp((2 * side - 1) * taste)) for side in group]
    pointers = np.concatenate([[0], np.cumsum([row.size for row in rows])])
    return sparse.csr_array((np.ones(pointers[-1]), np.concatenate(rows), pointers), (messages, words)), group


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.1, 0.03])
@pytest.mark.parametrize(
    "model",
    [SparseSVC(tol=1e-4), SparseClassifier("logistic", "group", groups=10, tol=1e-4)],
    ids=["hinge and L1", "logistic and groups"],
)
def test_text(model, share):
    """4,000 messages and 55,000 words, at three fractions of alpha_max."""
    X, y = text()
    model.set_params(alpha=share * model.path(X, y, n_alphas=1).alphas[0]).fit(X, y)
    assert model.certificate_.error <= 1e-4
    assert 0 < np.count_nonzero(model.coef_) < X.shape[1] / 2


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.01, 0.001])
def test_basehock(data, alpha):
    file = loadmat(data / "highdim" / "BASEHOCK.mat")
    X, y = sparse.csr_array(file["X"], dtype=float), file["Y"].ravel()
    model = SparseSVC(alpha, tol=1e-4).fit(X, y)
    assert model.certificate_.error <= 1e-4
    assert model.score(X, y) > 0.8
