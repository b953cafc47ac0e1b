"""Support vector machines with LIBSVM, LIBLINEAR and PDLP."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .answer import MANY, Answer
from .linear_programs import pdlp
from .task import Task


def libsvm(task: Task, tol: float) -> Answer:
    """Solve a linear SVM with an intercept without a penalty by LIBSVM, in scikit-learn."""
    from sklearn.svm import SVC

    model = SVC(kernel="linear", C=1.0 / task["alpha"], tol=tol, cache_size=2000)
    model.fit(task["A"][:, :-1], task["labels"])
    coefficients, multipliers = model.coef_, model.dual_coef_
    if sparse.issparse(coefficients):
        coefficients, multipliers = coefficients.toarray(), multipliers.toarray()
    y = np.zeros(task.shape[0])
    y[model.support_] = -task["alpha"] * multipliers.ravel()
    return Answer(np.append(coefficients, model.intercept_), y)


def liblinear_svm(task: Task, tol: float) -> Answer:
    """Solve a linear SVM, all columns of which have a penalty, by LIBLINEAR, in scikit-learn."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        loss="hinge", C=1.0 / task["alpha"], tol=tol, dual=True, fit_intercept=False, max_iter=MANY, random_state=0
    )
    return Answer(model.fit(task["A"], task["labels"]).coef_.ravel())


def liblinear_squared_hinge(task: Task, tol: float) -> Answer:
    """Solve a squared hinge loss with an L1 penalty by LIBLINEAR, which has no factor 1/2 in this loss."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(
        penalty="l1", C=0.5 / task["alpha"], tol=tol, dual=False, fit_intercept=False, max_iter=MANY, random_state=0
    )
    return Answer(model.fit(task["A"], task["labels"]).coef_.ravel())


def pdlp_svm(task: Task, tol: float) -> Answer:
    """Solve a linear SVM by PDLP: slacks make it a program with a diagonal quadratic term."""
    m, n = task.shape
    labels = task["labels"]
    diagonal = np.zeros(n + m)
    diagonal[: n - int(task["intercept"])] = task["alpha"]
    program = Task(
        "lp",
        {
            "A": sparse.hstack([sparse.diags(labels) @ task["A"], sparse.identity(m)], format="csc"),
            "c": np.repeat([0.0, 1.0], [n, m]),
            "diagonal": diagonal,
            "lower": np.repeat([-np.inf, 0.0], [n, m]),
            "upper": np.full(n + m, np.inf),
            "row_lower": np.ones(m),
            "row_upper": np.full(m, np.inf),
        },
    )
    found = pdlp(program, tol)
    return Answer(found.x[:n], labels * found.y)
