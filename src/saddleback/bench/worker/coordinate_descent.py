"""Coordinate descent on the squared loss: celer, skglm, scikit-learn and adelie.

Their objectives are divided by the number of rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .answer import MANY, Answer, chosen, cores
from .task import Task

OUTER = 1000
"""A limit for celer and skglm, whose iterations solve a working set and which allocate an array of this size."""


def lasso_of(library: str, task: Task, tol: float) -> Answer:
    """Solve a Lasso with celer or skglm."""
    estimators = import_module(library)
    model = estimators.Lasso(task["alpha"] / task.shape[0], tol=tol, max_iter=OUTER, fit_intercept=False)
    return Answer(model.fit(task["A"], task["b"]).coef_)


def group_lasso_of(library: str, task: Task, tol: float) -> Answer:
    """Solve a group Lasso with celer or skglm."""
    model = import_module(library).GroupLasso(
        groups=task["group_size"],
        alpha=task["alpha"] / task.shape[0],
        weights=task["weights"],
        tol=tol,
        max_iter=OUTER,
        fit_intercept=False,
    )
    return Answer(model.fit(task["A"], task["b"]).coef_)


def celer_path(task: Task, tol: float) -> Answer:
    """Solve a path with celer."""
    from celer import celer_path

    alphas = task["alphas"] / task.shape[0]
    # with pruning, as in celer's estimators
    return Answer(celer_path(task["A"], task["b"], "lasso", alphas=alphas, tol=tol, max_iter=OUTER, prune=1)[1])


def skglm_path(task: Task, tol: float) -> Answer:
    """Solve a path with skglm."""
    from skglm import Lasso

    model = Lasso(tol=tol, max_iter=OUTER, fit_intercept=False, warm_start=True)
    return Answer(model.path(task["A"], task["b"], task["alphas"] / task.shape[0])[1])


def sklearn_lasso(task: Task, tol: float) -> Answer:
    """Solve a Lasso with scikit-learn."""
    from sklearn.linear_model import Lasso

    model = Lasso(task["alpha"] / task.shape[0], tol=tol, max_iter=MANY, fit_intercept=False, copy_X=False)
    return Answer(model.fit(task["A"], task["b"]).coef_)


def sklearn_cv(task: Task, tol: float) -> Answer:
    """Choose the alpha of a Lasso with scikit-learn."""
    from sklearn.linear_model import LassoCV

    model = LassoCV(
        alphas=int(task["n_alphas"]), cv=int(task["folds"]), tol=tol, fit_intercept=False, max_iter=MANY, copy_X=False
    )
    return chosen(model.fit(task["A"], task["b"]), task)


def sklearn_path(task: Task, tol: float) -> Answer:
    """Solve a path with scikit-learn."""
    from sklearn.linear_model import lasso_path

    alphas = task["alphas"] / task.shape[0]
    return Answer(lasso_path(task["A"], task["b"], alphas=alphas, tol=tol, max_iter=MANY, copy_X=False)[1])


def adelie_lasso(task: Task, tol: float) -> Answer:
    """Solve a Lasso with adelie."""
    return Answer(_adelie(task, tol, task["alpha"])[0])


def adelie_group_lasso(task: Task, tol: float) -> Answer:
    """Solve a group Lasso with adelie."""
    start = np.arange(0, task.shape[1], task["group_size"])
    return Answer(_adelie(task, tol, task["alpha"], groups=start, penalty=task["weights"])[0])


def adelie_path(task: Task, tol: float) -> Answer:
    """Solve a path with adelie."""
    return Answer(_adelie(task, tol, task["alphas"]).T)


def _adelie(task: Task, tol: float, alphas: Any, **groups: Any) -> Any:
    import adelie

    state = adelie.grpnet(
        adelie.matrix.dense(task["A"], method="naive", n_threads=cores()),
        adelie.glm.gaussian(task["b"]),
        lmda_path=np.atleast_1d(alphas) / task.shape[0],
        tol=tol,
        max_iters=MANY,
        n_threads=cores(),
        intercept=False,
        early_exit=False,
        progress_bar=False,
        **groups,
    )
    return state.betas.toarray()
