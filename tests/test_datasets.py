"""Generated data has the structure that its documentation states."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import saddleback as sb
from saddleback.datasets import interactions, make_group_hinge, make_lasso, make_robust_pca

GENERATORS = {
    "lasso": lambda seed: make_lasso(20, 30, 5, seed),
    "group hinge": lambda seed: make_group_hinge(50, seed),
    "robust pca": lambda seed: make_robust_pca(12, 15, 2, seed),
}


def dense(value):
    return value.toarray() if sparse.issparse(value) else np.asarray(value)


@pytest.mark.parametrize("name", GENERATORS)
def test_the_seed_determines_the_data(name):
    first, again, other = (GENERATORS[name](seed) for seed in (1, 1, 2))
    assert all(np.array_equal(dense(a), dense(b)) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(dense(first[0]), dense(other[0]))


def test_lasso():
    data = make_lasso(200, 300, 20)
    assert data.A.flags.f_contiguous
    np.testing.assert_allclose(np.linalg.norm(data.A, axis=0), 1.0)
    assert np.count_nonzero(data.x_true) == 20
    assert np.std(data.b - data.A @ data.x_true) == pytest.approx(np.sqrt(1e-3), rel=0.2)
    # ten times alpha is alpha_max
    problem = sb.Problem(sb.L1(10 * data.alpha), data.A, sb.Squared(data.b))
    assert sb.certify(problem, np.zeros(300), -data.b).relative_gap < 1e-12


def test_group_hinge_has_the_structure_of_splice_sites():
    data = make_group_hinge(400)
    assert data.A.shape == (400, 2604)
    assert data.A.format == "csc"
    assert data.groups == [4] * 7 + [16] * 21 + [64] * 35
    assert np.all(data.A.data == 1.0)
    assert np.all(np.diff(data.A.tocsr().indptr) == 63)
    assert set(np.unique(data.labels)) == {-1.0, 1.0}
    assert abs(np.sum(data.labels)) <= 1


def test_group_hinge_can_be_learnt():
    data = make_group_hinge(1000)
    problem = sb.Problem(sb.GroupL2(3e-3, data.groups), data.A, sb.Hinge(data.labels, scale=1e-3))
    result = sb.solve(problem, tol=1e-2)
    assert result.status is sb.Status.OPTIMAL
    assert np.mean(data.labels * (data.A @ result.x) > 0) > 0.8


def test_interactions_are_one_hot_of_every_set_of_positions():
    sites = np.random.default_rng(0).integers(0, 4, (9, 4))
    A, groups = interactions(sites, order=2)
    start = np.cumsum([0, *groups])
    sets = [*combinations(range(4), 1), *combinations(range(4), 2)]
    for g, s in enumerate(sets):
        block = A[:, start[g] : start[g + 1]].toarray()
        np.testing.assert_array_equal(block.sum(axis=1), 1.0)
        # two sites share a column exactly if they agree in all positions of the set
        agree = np.all(sites[:, None, s] == sites[None, :, s], axis=2)
        np.testing.assert_array_equal(block @ block.T, agree)


def test_robust_pca():
    data = make_robust_pca(60, 80, 3)
    assert np.linalg.matrix_rank(data.low_rank) == 3
    assert set(np.unique(data.sparse)) == {-10.0, 0.0, 10.0}
    assert np.mean(data.sparse != 0) == pytest.approx(0.05, abs=0.02)
    assert np.max(np.abs(data.B - data.low_rank - data.sparse)) < 0.1
    assert data.sparse_alpha == pytest.approx(0.15 * np.max(np.abs(data.B)))
    assert data.nuclear_alpha == pytest.approx(0.15 * np.linalg.svd(data.B, compute_uv=False)[0])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: make_lasso(5, 4, 6), "nonzeros"),
        (lambda: make_group_hinge(1), "samples"),
        (lambda: make_robust_pca(5, 4, 5), "rank"),
    ],
)
def test_impossible_sizes_are_named(make, name):
    with pytest.raises(ValueError, match=name):
        make()
