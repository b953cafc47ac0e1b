"""Reference results on real data, to the accuracy that the methods reach without the finish."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat

import saddleback as sb
from saddleback.datasets import load_memset
from saddleback.io.problem_files import read_problem


@pytest.mark.parametrize(
    ("quantile", "optimum"),
    [
        (0.05, 2174.317315),
        (0.1, 3869.932161),
        (0.25, 7082.315899),
        (0.5, 8779.966324),
        (0.75, 6529.250284),
        (0.9, 3391.983711),
        (0.95, 1900.244225),
    ],
)
def test_engel_quantiles(data, quantile, optimum):
    """Food expenditure on income, with free intercept and slope. Centring and scaling income gives the same model."""
    income, food = _engel(data)
    X = np.column_stack([np.ones(income.size), (income - income.mean()) / income.std()])
    result = sb.solve(sb.Problem(sb.Zero(), X, sb.Pinball(food, quantile)), tol=1e-8, max_passes=100_000)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(optimum, rel=2e-8)
    if quantile == 0.5:
        slope = result.x[1] / income.std()
        assert result.x[0] - slope * income.mean() == pytest.approx(81.48224742, rel=1e-5)
        assert slope == pytest.approx(0.56018055, rel=1e-6)


def _engel(data):
    table = np.genfromtxt(data / "quantile" / "engel.csv", delimiter=",", names=True, dtype=None, encoding="utf8")
    return table["income"].astype(float), table["foodexp"].astype(float)


def test_glmnet_quick_start(data):
    """Minimise ||y - Xb||^2 + 8 ||b||_1, written as 1/2 ||.||^2 + 4 ||.||_1."""
    file = np.load(data / "glmnet" / "QuickStartExample.npz")
    X, y = file["X"], file["y"]
    result = sb.solve(sb.Problem(sb.L1(4.0), X, sb.Squared(y)), tol=1e-10)
    assert 2 * result.certificate.primal_value == pytest.approx(131.0234574973, rel=1e-10)
    assert np.allclose(result.x, np.loadtxt(data / "glmnet" / "beta_CVX.csv"), atol=1e-4)


def test_robust_pca_small(data):
    """0.4 nuclear(L) + 0.1 norm1(S) + 0.5 norm_F(L + S - Y)^2, as two blocks with a squared loss and as three."""
    file = loadmat(data / "rpca" / "verySmall_l1.mat")
    Y = file["Y"]
    two = sb.Problem([sb.Nuclear(0.4, Y.shape), sb.L1(0.1)], [sb.Identity()] * 2, sb.Squared(Y))
    three = sb.Problem([sb.SquaredL2(1.0), sb.L1(0.1), sb.Nuclear(0.4, Y.shape)], [sb.Identity()] * 3, sb.Equality(Y))
    for problem in (two, three):
        result = sb.solve(problem, tol=1e-9, max_passes=100_000)
        assert result.status is sb.Status.OPTIMAL
        assert result.certificate.primal_value == pytest.approx(7.972839081068, rel=2e-9)
    assert np.allclose(result.x[2], file["L"], atol=1e-4)


def test_heart_scale_svm(data):
    """A linear SVM with C = 1 and a free intercept, 1/2 ||w||^2 + sum hinge, and LIBSVM's negated dual objective."""
    X, labels = _svmlight(data / "libsvm" / "heart_scale", 13)
    problem = sb.Problem([sb.SquaredL2(1.0), sb.Zero()], [X, np.ones(labels.size)], sb.Hinge(labels))
    result = sb.solve(problem, tol=1e-7, max_passes=100_000)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(92.473374620, rel=2e-7)
    assert result.certificate.dual_value == pytest.approx(92.473374620, rel=2e-7)


def _svmlight(path, columns):
    labels, rows, cols, values = [], [], [], []
    for row, line in enumerate(path.read_text().splitlines()):
        label, *entries = line.split()
        labels.append(float(label))
        for entry in entries:
            column, value = entry.split(":")
            rows.append(row)
            cols.append(int(column) - 1)
            values.append(float(value))
    return sparse.csc_matrix((values, (rows, cols)), shape=(len(labels), columns)), np.array(labels)


def test_grplasso_splice(data):
    """-loglik + 25 sum sqrt(df) ||beta_g||, for Pos.1 * Pos.2 in sum contrasts, with blocks such that X'X = nI."""
    lines = [
        line.replace('"', "").split(",")
        for line in (data / "memset" / "grplasso_splice_400.csv").read_text().splitlines()
    ]
    header, rows = lines[0], lines[1:]
    column = {name: i for i, name in enumerate(header)}
    y = np.where(np.array([float(row[column["y"]]) for row in rows]) > 0, 1.0, -1.0)
    n = y.size

    def contrasts(name):
        levels = sorted({row[column[name]] for row in rows})
        codes = np.array([levels.index(row[column[name]]) for row in rows])
        table = np.vstack([np.eye(len(levels) - 1), -np.ones(len(levels) - 1)])
        return table[codes]

    one, two = contrasts("Pos.1"), contrasts("Pos.2")
    both = np.column_stack([a * b for b in two.T for a in one.T])
    blocks = [np.linalg.qr(block)[0] * np.sqrt(n) for block in (one, two, both)]
    groups = [block.shape[1] for block in blocks]
    problem = sb.Problem([sb.GroupL2(25.0, groups), sb.Zero()], [np.column_stack(blocks), np.ones(n)], sb.Logistic(y))
    result = sb.solve(problem, tol=1e-9, max_passes=100_000)
    assert result.status is sb.Status.OPTIMAL
    assert result.certificate.primal_value == pytest.approx(270.416370, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("afiro", -464.75314286),
        ("adlittle", 225494.96316),
        ("blend", -30.812149846),
        ("recipe", -266.616),
        ("sc50a", -64.575077059),
        ("sc50b", -70.0),
        ("sc105", -52.202061212),
        ("brandy", 1518.5098965),
        ("israel", -896644.82186),
        ("kb2", -1749.9001299),
        ("stocfor1", -41131.976219),
    ],
)
def test_netlib(data, name, optimum):
    """The linear programs that the block method alone solves to 1e-6."""
    pytest.importorskip("highspy")
    loaded = read_problem(data / "netlib" / f"{name}.mps.gz")
    result = sb.solve(loaded, tol=1e-6, max_passes=100_000)
    assert result.status is sb.Status.OPTIMAL
    assert loaded.objective(result.certificate.primal_value) == pytest.approx(optimum, rel=3e-6)


@pytest.mark.slow
def test_memset_group_hinge(data):
    """The balanced MEMset Donor set, lambda = 1e-4, to a certified 1e-4; the bounds enclose the reference optimum.

    Seeds 0 to 4 took 906, 857, 807, 877 and 810 passes; the goal is 900. The weight at a restart depends on the seed.
    """
    A, labels, groups, _ = load_memset(data)
    assert A.shape == (16830, 2604)
    problem = sb.Problem(sb.GroupL2(1e-4, groups), A, sb.Hinge(labels, scale=1 / labels.size))
    result = sb.solve(problem, tol=1e-4)
    assert result.status is sb.Status.OPTIMAL
    assert result.passes <= 1000
    assert result.certificate.dual_value <= 0.12880058706
    assert result.certificate.primal_value >= 0.12880058697
