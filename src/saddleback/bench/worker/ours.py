"""How saddleback solves each kind of task."""

from __future__ import annotations

import numpy as np

from .answer import Answer, chosen
from .task import Task


def solve(task: Task, tol: float) -> Answer:
    """Solve one problem."""
    import saddleback as sb
    from saddleback.bench.judging import problem_of

    problem = problem_of(task)
    result = sb.solve(problem, tol=tol)
    x = np.concatenate(result.x) if problem.is_list else result.x
    told = {name: result.settings[name] for name in ("working_set", "rows", "finish_steps") if name in result.settings}
    return Answer(x, result.y, {"passes": result.passes, "method": result.method, **told})


def path(task: Task, tol: float) -> Answer:
    """Solve a Lasso for every alpha of a path."""
    import saddleback as sb

    results = sb.path(sb.L1(1.0), task["A"], sb.Squared(task["b"]), alphas=task["alphas"], tol=tol)
    x, y = (np.column_stack([getattr(result, name) for result in results]) for name in ("x", "y"))
    return Answer(x, y, {"passes": sum(result.passes for result in results)})


def cross_validation(task: Task, tol: float) -> Answer:
    """Choose the alpha of a Lasso."""
    from saddleback.estimators import LassoCV

    model = LassoCV(n_alphas=int(task["n_alphas"]), cv=int(task["folds"]), tol=tol, fit_intercept=False)
    return chosen(model.fit(task["A"], task["b"]), task)
