"""Certificates of fits of adelie, which needs numpy below 2: ``make test-adelie`` runs them in its own environment."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import saddleback as sb

adelie = pytest.importorskip("adelie", reason="adelie is not installed here: make test-adelie")

RNG = np.random.default_rng(0)
X = np.asfortranarray(RNG.standard_normal((80, 6)) + 1.0)
Y = X[:, :2].sum(axis=1) + 0.5 * RNG.standard_normal(80) + 2.0
WEIGHT = RNG.uniform(0.5, 2.0, 80)
TARGETS = {
    "gaussian": Y,
    "binomial": (np.median(Y) < Y).astype(float),
    "poisson": RNG.poisson(np.exp(0.3 * X[:, 0])).astype(float),
    "multigaussian": np.column_stack([Y, Y[::-1]]),
}
TIGHT: dict[str, Any] = {"tol": 1e-14, "irls_tol": 1e-14, "progress_bar": False}
GROUPS = np.array([0, 2, 5])
OPTIONS: dict[str, dict[str, Any]] = {
    "lasso": {},
    "group lasso": {"groups": GROUPS},
    "group elastic net": {"groups": GROUPS, "alpha": 0.3},
    "own factors": {"alpha": 0.6, "penalty": np.array([0.0, 1.0, 2.0, 3.0, 1.0, 1.0])},
    "no intercept": {"groups": GROUPS, "intercept": False},
}


def errors(*arguments: Any, **options: Any) -> list[float]:
    found = sb.judge(*arguments, **options)
    return [each.certificate.error for each in (found if isinstance(found, list) else [found])]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("family", TARGETS)
def test_a_path_has_a_small_gap_at_each_lambda(family: str, options: str, weighted: bool) -> None:
    """A wrong constant, factor or order of coefficients would show as a gap."""
    y = TARGETS[family]
    glm = getattr(adelie.glm, family)(y, weights=WEIGHT if weighted else None)
    state = adelie.grpnet(X, glm, lmda_path_size=7, early_exit=False, **TIGHT, **OPTIONS[options])
    found = errors(state, X, y)
    assert len(found) == len(state.lmdas) == 7
    assert max(found) <= 2e-6
    if weighted:
        assert np.allclose(found, errors(state, X, y, WEIGHT), atol=1e-9)
        assert errors(state, X, y, np.ones(80))[-1] > 1e-5


@pytest.mark.parametrize("family", TARGETS)
def test_the_estimator_is_judged_at_the_lambdas_that_it_keeps(family: str) -> None:
    y = TARGETS[family]
    path = adelie.GroupElasticNet(family=family).fit(X, y, groups=GROUPS, lmda_path_size=5, early_exit=False, **TIGHT)
    assert len(errors(path, X, y)) == 5
    assert max(errors(path, X, y)) <= 2e-6
    chosen = adelie.GroupElasticNet(solver="cv_grpnet", family=family).fit(X, y, groups=GROUPS, **TIGHT)
    assert len(errors(chosen, X, y)) == 1
    assert errors(chosen, X, y)[0] <= 2e-6


def test_a_loose_fit_has_the_gap_of_its_objective() -> None:
    state = adelie.grpnet(X, adelie.glm.gaussian(Y), tol=1e-2, lmda_path=[0.01], progress_bar=False, early_exit=False)
    judgement = sb.judge(state, X, Y)
    assert judgement.name == "adelie gaussian_naive"
    best = sb.solve(judgement.problem, tol=1e-10).objective
    assert judgement.certificate.gap >= judgement.objective - best - 1e-12


def test_terms_that_are_not_known_are_named() -> None:
    glm = adelie.glm.gaussian(Y)
    with pytest.raises(TypeError, match="has offsets"):
        sb.judge(adelie.grpnet(X, glm, offsets=Y / 2, **TIGHT), X, Y)
    bounds = [adelie.constraint.lower(np.zeros(1)) for _ in range(6)]
    with pytest.raises(TypeError, match="has constraints"):
        sb.judge(adelie.grpnet(X, glm, constraints=bounds, **TIGHT), X, Y)
    labels = TARGETS["binomial"]
    with pytest.raises(TypeError, match="binomial_probit: expected one of binomial_logit, gaussian"):
        sb.judge(adelie.grpnet(X, adelie.glm.binomial(labels, link="probit"), **TIGHT), X, labels)
    with pytest.raises(TypeError, match="other values than 0 and 1"):
        sb.judge(adelie.grpnet(X, adelie.glm.binomial(0.5 * labels), **TIGHT), X, 0.5 * labels)


POSITIVE = adelie.constraint.lower(np.zeros(1))
CHANGES: dict[str, dict[str, Any]] = {
    "constraints": {"constraints": [POSITIVE, *[None] * 5]},
    "groups": {"groups": GROUPS},
    "alpha": {"alpha": 0.4},
    "penalty": {"penalty": np.array([0.5, 1.0, 2.0, 3.0, 1.0, 0.0])},
    "offsets": {"offsets": 0.1 * Y},
    "lmda_path": {"lmda_path": [0.2, 0.1, 0.05]},
    "irls_max_iters": {"irls_max_iters": 20_000},
    "irls_tol": {"irls_tol": 1e-13},
    "max_iters": {"max_iters": 200_000},
    "tol": {"tol": 1e-13},
    "adev_tol": {"adev_tol": 0.5, "early_exit": True},
    "ddev_tol": {"ddev_tol": 1e-3, "early_exit": True},
    "newton_tol": {"newton_tol": 1e-13},
    "newton_max_iters": {"newton_max_iters": 2000},
    "n_threads": {"n_threads": 2},
    "early_exit": {"early_exit": True},
    "intercept": {"intercept": False},
    "screen_rule": {"screen_rule": "strong"},
    "min_ratio": {"min_ratio": 0.1},
    "lmda_path_size": {"lmda_path_size": 4},
    "max_screen_size": {"max_screen_size": 6},
    "max_active_size": {"max_active_size": 6},
    "pivot_subset_ratio": {"pivot_subset_ratio": 0.5},
    "pivot_subset_min": {"pivot_subset_min": 3},
    "pivot_slack_ratio": {"pivot_slack_ratio": 2.0},
    "check_state": {"check_state": True},
    "progress_bar": {"progress_bar": False},
    "warm_start": {},  # a state, in the test
    "exit_cond": {"exit_cond": lambda state: len(state.lmdas) > 3},
}
REFUSED = {"constraints": "has constraints", "offsets": "has offsets"}


@pytest.mark.parametrize("parameter", sorted(inspect.signature(adelie.grpnet).parameters.keys() - {"X", "glm"}))
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_each_parameter_of_a_path_is_judged_or_refused(family: str, parameter: str) -> None:
    y = TARGETS[family]
    glm = getattr(adelie.glm, family)(y)
    options: dict[str, Any] = {"lmda_path_size": 6, "early_exit": False, **TIGHT}
    if parameter == "warm_start":
        options["warm_start"] = adelie.grpnet(X, glm, **options)
    state = adelie.grpnet(X, glm, **{**options, **CHANGES[parameter]})
    if parameter in REFUSED:
        with pytest.raises(TypeError, match=REFUSED[parameter]):
            sb.judge(state, X, y)
    else:
        assert max(errors(state, X, y)) <= 2e-6
