"""Losses of several classes: matrix variables compared with CVXPY, scikit-learn and identities."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from optional import optional
from scipy import sparse
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

import saddleback as sb
from saddleback.estimators import SparseClassifier, SparseClassifierCV
from saddleback.functions.traits import curvature, hessian_at
from saddleback.places.newton import Smooth, newton_system, weighted_gram
from saddleback.reductions import lift_maximum

cp = optional("cvxpy")

PENALTIES = {
    "L1": lambda alpha: sb.L1(alpha),
    "rows": lambda alpha: sb.GroupL2(alpha, 1),
    "ElasticNet": lambda alpha: sb.ElasticNet(alpha, 0.5),
    "SquaredL2": lambda alpha: sb.SquaredL2(alpha),
    "SparseGroup": lambda alpha: sb.SparseGroup(alpha, 1, 0.4),
}
LOSSES = {"Multinomial": sb.Multinomial, "MulticlassHinge": sb.MulticlassHinge}


def random_problem(name: str, seed: int) -> sb.Problem:
    """Return a problem of an n x q variable; the seed chooses sizes, penalty, weights, intercepts and storage."""
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(5, 25)), int(rng.integers(2, 9)), int(rng.integers(2, 5))
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.7)
    labels = np.argmax(A @ rng.standard_normal((n, q)) + rng.standard_normal((m, q)), axis=1)
    labels[:q] = np.arange(q)
    alpha = float(rng.uniform(0.02, 0.3)) * (m if (whole := rng.random() < 0.5) else 1.0)
    weight = rng.uniform(0.5, 2.0, m) if rng.random() < 0.5 else None
    given = rng.integers(0, 4, (m, q)) + 0.5 if name == "Multinomial" and rng.random() < 0.3 else labels
    loss = LOSSES[name](given, q, weight, 1.0 if whole else 1.0 / m)
    penalty = PENALTIES[str(rng.choice(list(PENALTIES)))](alpha)
    matrix = sparse.csr_array(A) if rng.random() < 0.3 else A
    if rng.random() < 0.5:
        return sb.Problem([penalty, sb.Zero()], [matrix, np.ones(m)], loss)
    return sb.Problem(penalty, matrix, loss)


@pytest.mark.parametrize(
    "seed", [0, 1, 2, 3, 4, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 50))]
)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_matrix_variables_agree_with_cvxpy(name, seed):
    problem = random_problem(name, seed)
    result = sb.solve(problem, tol=1e-7)
    assert result.status is sb.Status.OPTIMAL, result.message
    program = problem.to_cvxpy()
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert result.certificate.primal_value == pytest.approx(program.value, rel=1e-6, abs=1e-8)
    again = sb.certify(problem, result.x, result.y)
    assert again.error <= 1e-6


def test_values_by_their_formulas(rng):
    u, labels = rng.standard_normal((5, 3)), np.array([0, 2, 1, 1, 0])
    own = u[np.arange(5), labels]
    weight = rng.uniform(0.5, 2.0, 5)
    log_loss = np.log(np.exp(u).sum(axis=1)) - own
    margin = np.max(u + (np.arange(3) != labels[:, None]), axis=1) - own
    assert sb.Multinomial(labels, sample_weight=weight, scale=0.3).value(u) == pytest.approx(0.3 * weight @ log_loss)
    assert sb.MulticlassHinge(labels, sample_weight=weight).value(u) == pytest.approx(weight @ margin)


def test_counts_are_repeated_labels(rng):
    counts, u = rng.integers(0, 4, (6, 3)), rng.standard_normal((6, 3))
    rows, labels = np.repeat(np.arange(6), counts.sum(axis=1)), np.concatenate([np.repeat(range(3), c) for c in counts])
    assert sb.Multinomial(counts).value(u) == pytest.approx(sb.Multinomial(labels, 3).value(u[rows]))


def test_two_classes_are_the_binary_losses(rng):
    """With u = (0, v) the losses are those of v with labels -1 and +1; the hinge has the same margin."""
    v, labels = rng.standard_normal(8), rng.integers(0, 2, 8)
    u, signs = np.column_stack([np.zeros(8), v]), 2.0 * labels - 1.0
    assert sb.Multinomial(labels, 2).value(u) == pytest.approx(sb.Logistic(signs).value(v))
    assert sb.MulticlassHinge(labels, 2).value(u) == pytest.approx(sb.Hinge(signs).value(v))


def test_second_derivatives_of_coupled_rows(rng):
    loss = sb.Multinomial([0, 2, 1, 1], sample_weight=[1.0, 0.5, 2.0, 0.0]).bind((4, 3))
    u, d, e = rng.standard_normal(12), rng.standard_normal(12), 1e-6
    slope = (loss.subgradient(u + e * d) - loss.subgradient(u - e * d)) / (2 * e)
    blocks = hessian_at(loss, u)
    assert np.allclose((blocks @ d.reshape(4, 3, 1)).ravel(), slope, atol=1e-8)
    assert np.all(np.linalg.eigvalsh(blocks) <= curvature(loss).reshape(4, 3) + 1e-12)
    A = rng.standard_normal((4, 2))
    operator = sb.Problem(sb.L1(1.0), A, sb.Multinomial([0, 2, 1, 1])).model.A
    free = np.array([0, 2, 3, 5])
    part = Smooth(free, *np.zeros((3, 4)), np.zeros(4, dtype=int), np.zeros(4, dtype=bool))
    system = newton_system(lambda d: operator.matvec(d, free), lambda y: operator.rmatvec(y, free), part, blocks)
    assert np.allclose(weighted_gram(operator, blocks, free), np.stack([system(d) for d in np.eye(4)]))


def test_the_lifted_hinge_has_the_same_value(rng):
    A, labels = rng.standard_normal((7, 3)), rng.integers(0, 4, 7)
    problem = sb.Problem(sb.L1(0.1), A, sb.MulticlassHinge(labels, 4, rng.uniform(0, 2, 7) * (np.arange(7) > 0)))
    lifted = lift_maximum(problem.model)
    x = rng.standard_normal((3, 4))
    point = lifted.reduce_x(x.ravel())
    u = lifted.model.A.matvec(point)
    assert lifted.model.f.value(point) + lifted.model.g.value(u) == pytest.approx(problem.value(x))
    wrapped = sb.functions.points.DensePoint(point)
    assert np.allclose(lifted.restore_u(wrapped, u).reshape(7, 4), A @ x)
    assert np.array_equal(lifted.restore_x(wrapped, lambda: u).vector(), x.ravel())
    assert lift_maximum(sb.Problem(sb.L1(0.1), A, sb.Multinomial(labels, 4)).model) is None


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sb.Multinomial([0.5, 1.0]), "labels has the value 0.5: expected integers"),
        (lambda: sb.MulticlassHinge([-1, 1]), "labels has the value -1: expected integers"),
        (lambda: sb.Multinomial([0, 3], n_classes=3), "below n_classes=3"),
        (lambda: sb.Multinomial([[1.0], [2.0]]), "1 columns of counts: expected at least 2"),
        (lambda: sb.Multinomial([[1.0, -2.0]]), "at least 0"),
        (lambda: sb.MulticlassHinge([[1, 0], [0, 1]]), "expected one class for every row"),
        (lambda: sb.Multinomial([0, 1], n_classes=1), "n_classes"),
        (lambda: sb.Multinomial([0, 1, 2]).value(np.zeros((3, 2))), "has data of shape"),
    ],
)
def test_wrong_arguments_are_named(make, match):
    with pytest.raises(ValueError, match=match):
        make()


# --- estimators -------------------------------------------------------------------------------------------------------


def three_classes(seed=0, m=120, n=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    return X, np.array(["ant", "bee", "cat"])[np.argmax(X[:, :3] + 0.7 * rng.standard_normal((m, 3)), axis=1)]


def test_the_multinomial_model_is_that_of_scikit_learn():
    X, y = three_classes()
    alpha = 0.02
    ours = SparseClassifier("multinomial", alpha=alpha, tol=1e-9).fit(X, y)
    peer = LogisticRegression(C=1 / (alpha * len(y)), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000)
    peer.fit(X, y)
    assert ours.coef_.shape == (3, 6)
    assert np.allclose(ours.coef_, peer.coef_, atol=1e-4)
    assert np.allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-4)
    assert np.allclose(ours.intercept_.mean(), 0.0, atol=1e-12)
    assert np.allclose(softmax(ours.decision_function(X), axis=1), ours.predict_proba(X))


@pytest.mark.parametrize("loss", ["multinomial", "multiclass_hinge"])
def test_a_group_is_a_feature_for_all_classes(loss):
    X, y = three_classes()
    model = SparseClassifier(loss, "group", alpha=0.15).fit(X, y)
    used = np.count_nonzero(model.coef_, axis=0)
    assert set(used) <= {0, 3}
    assert 0 < np.count_nonzero(used) < 6
    assert model.score(X, y) > 0.6


def test_two_classes_have_one_row_of_coefficients():
    X, y = three_classes()
    X, y = X[y != "cat"], y[y != "cat"]
    joint = SparseClassifier("multinomial", alpha=0.02, tol=1e-9).fit(X, y)
    binary = SparseClassifier("logistic", alpha=0.02, tol=1e-9).fit(X, y)
    assert np.allclose(joint.coef_, binary.coef_, atol=1e-4)
    assert np.allclose(joint.predict_proba(X), binary.predict_proba(X), atol=1e-4)
    assert np.array_equal(joint.predict(X), binary.predict(X))


def test_cross_validation_and_paths_of_several_classes():
    X, y = three_classes()
    model = SparseClassifierCV("multinomial", n_alphas=4, eps=0.05, cv=2).fit(X, y)
    assert model.coef_.shape == (3, 6)
    path = SparseClassifier("multiclass_hinge").path(X, y, alphas=[0.1, 0.05])
    assert path.coefs.shape == (3, 6, 2)
    assert path.n_panels == 3


def test_separable_classes_have_no_multinomial_model():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 2]
    with pytest.warns(UserWarning, match="separable"):
        SparseClassifier("multinomial", None, tol=1e-3).fit(np.column_stack([X, X**2]), y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MultinomialExample", "BinomialExample"])
def test_paths_on_the_examples_of_glmnet(name):
    """At no alpha is the objective above that of scikit-learn by more than 1e-6."""
    folder = os.environ.get("SADDLEBACK_DATA")
    if folder is None:
        pytest.skip("SADDLEBACK_DATA does not name the folder of the real data")
    data = np.load(Path(folder) / "glm" / f"{name}.npz")
    X, y = data["x"], np.unique(data["y"].ravel(), return_inverse=True)[1]
    m, q = len(y), int(y.max()) + 1
    path = SparseClassifier("multinomial").path(X, y, n_alphas=12, eps=0.01)
    for alpha, result in zip(path.alphas, path.results, strict=True):
        problem = sb.Problem([sb.L1(alpha), sb.Zero()], [X, np.ones(m)], sb.Multinomial(y, q, scale=1 / m))
        peer = LogisticRegression(C=1 / (alpha * m), l1_ratio=1.0, solver="saga", tol=1e-8, max_iter=20_000).fit(X, y)
        coef, intercept = peer.coef_.T, peer.intercept_
        if q == 2:  # scikit-learn has the difference of the two classes
            coef, intercept = np.hstack([0 * coef, coef]), np.append(0.0, intercept)
        assert problem.value(result.x) <= problem.value([coef, intercept[None]]) + 1e-6
