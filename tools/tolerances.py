"""Judge default fits of several libraries: ``python tools/tolerances.py`` writes the tables of ``docs/tolerances.md``.

Each model is fitted with its defaults except the strength of its penalty, to data that scikit-learn brings or that are
drawn from a seed, and ``saddleback.judge`` certifies it. adelie needs numpy below 2 and runs in an environment of its
own, which ``make test-adelie`` makes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import saddleback as sb

PAGE = Path("docs/tolerances.md")
BEGIN, END = "<!-- tables: tools/tolerances.py writes them -->", "<!-- end of the tables -->"
SHARE = 0.05
"""Strength of a penalty, relative to the least one at which all coefficients are 0."""

GROUP = 5


class Task(NamedTuple):
    """Data with the strengths of penalties for three losses: the targets are numbers, or labels 0 and 1."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]

    def strength(self, slope: NDArray[np.float64]) -> float:
        """Return a share of the least alpha without coefficients, given the slope of the loss at the best constant."""
        return SHARE * float(np.abs((self.X - self.X.mean(axis=0)).T @ slope).max()) / len(self.y)

    @property
    def alpha(self) -> float:
        """The strength for the squared loss, and for twice the logistic loss."""
        return self.strength(self.y - self.y.mean())

    @property
    def of_quantiles(self) -> float:
        """The strength for the pinball loss of the median."""
        return self.strength(0.5 * np.sign(self.y - np.median(self.y)))

    @property
    def design(self) -> NDArray[np.float64]:
        """X after a column of ones."""
        return np.column_stack([np.ones(len(self.y)), self.X])


class Row(NamedTuple):
    """A model of a table: what its tolerance is by default, what the documentation says it means, and how it is fitted.

    ``fit`` returns a fitted model, or what ``certify`` needs for a model that does not keep its penalty.
    """

    library: str
    model: str
    tol: str
    meaning: str
    fit: Callable[[Task], Any]


def regression() -> dict[str, Task]:
    """Return the data of the first table."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    rng = np.random.default_rng(0)
    correlated = rng.standard_normal((200, 100)) + 3.0 * rng.standard_normal((200, 1))
    target = correlated[:, :10].sum(axis=1) + rng.standard_normal(200)
    return {
        "diabetes, as measured": Task(np.asfortranarray(X), y),
        "diabetes, standardised": Task(standardised(X), y),
        "generated, correlated": Task(np.asfortranarray(correlated), target),
    }


def classification() -> dict[str, Task]:
    """Return the data of the second table."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    correlated = regression()["generated, correlated"]
    return {
        "breast cancer, as measured": Task(np.asfortranarray(X), y.astype(np.float64)),
        "breast cancer, standardised": Task(standardised(X), y.astype(np.float64)),
        "generated, correlated": Task(correlated.X, (correlated.y > np.median(correlated.y)).astype(np.float64)),
    }


def standardised(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return columns with mean 0 and standard deviation 1."""
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))


# Fits ---------------------------------------------------------------------------------------------------------------


def scikit_learn(name: str, **options: Any) -> Callable[[Task], Any]:
    """Return a fit of scikit-learn with its alpha for the squared or pinball loss, or C for the logistic loss."""

    def fit(task: Task) -> Any:
        from sklearn import linear_model, svm

        if name == "LinearSVC":
            return svm.LinearSVC(**options).fit(task.X, task.y)
        if name == "LogisticRegression":
            return linear_model.LogisticRegression(C=1 / (len(task.y) * task.alpha), **options).fit(task.X, task.y)
        alpha = task.of_quantiles if name == "QuantileRegressor" else task.alpha
        return getattr(linear_model, name)(alpha=alpha, **options).fit(task.X, task.y)

    return fit


def by_alpha(module: str, name: str, **options: Any) -> Callable[[Task], Any]:
    """Return a fit of a library whose models have an alpha and means of losses."""

    def fit(task: Task) -> Any:
        model = getattr(importlib.import_module(module), name)
        alpha = task.of_quantiles if name == "QuantileRegressor" else task.alpha
        return model(alpha=alpha, **options).fit(task.X, task.y)

    return fit


def adelie(family: str, **options: Any) -> Callable[[Task], Any]:
    """Return a fit of adelie at one lambda."""

    def fit(task: Task) -> Any:
        from adelie import GroupElasticNet

        groups = np.arange(0, task.X.shape[1], GROUP) if options.get("grouped") else None
        path = {"lmda_path": [task.alpha], "progress_bar": False, "groups": groups}
        return GroupElasticNet(family=family).fit(task.X, task.y, **path)

    return fit


def statsmodels_quantile(task: Task) -> Any:
    """Fit the median, without a penalty."""
    from statsmodels.regression.quantile_regression import QuantReg

    return QuantReg(task.y, task.design).fit(q=0.5)


def statsmodels_lasso(task: Task) -> Any:
    """Fit a Lasso; the results do not keep alpha."""
    from statsmodels.api import OLS

    alphas = np.concatenate([[0.0], np.full(task.X.shape[1], task.alpha)])
    found = np.asarray(OLS(task.y, task.design).fit_regularized(alpha=alphas).params)
    return _stated(task, sb.Squared(task.y, scale=1 / len(task.y)), task.alpha, found)


def statsmodels_logit(task: Task) -> Any:
    """Fit a logistic regression with an L1 penalty; the results do not keep alpha."""
    from statsmodels.api import Logit

    alphas = np.concatenate([[0.0], np.full(task.X.shape[1], len(task.y) * task.alpha)])
    found = np.asarray(Logit(task.y, task.design).fit_regularized(alpha=alphas, disp=False).params)
    return _stated(task, sb.Logistic(2 * task.y - 1), len(task.y) * task.alpha, found)


def _stated(task: Task, loss: Any, alpha: float, found: NDArray[np.float64]) -> Any:
    ones = np.ones((len(task.y), 1))
    return sb.Problem([sb.Zero(), sb.L1(alpha)], [ones, task.X], loss), [found[:1], found[1:]]


def cvxpy(kind: str) -> Callable[[Task], Any]:
    """Return a problem of CVXPY, solved by the solver that it chooses."""

    def fit(task: Task) -> Any:
        import cvxpy as cp

        w, c, n = cp.Variable(task.X.shape[1]), cp.Variable(1), len(task.y)
        u = task.X @ w + c
        if kind == "Lasso":
            loss, alpha = cp.sum_squares(task.y - u) / (2 * n), task.alpha
        elif kind == "median":
            loss, alpha = cp.norm1(task.y - u) / (2 * n), task.of_quantiles
        else:
            loss, alpha = cp.sum(cp.logistic(cp.multiply(1 - 2 * task.y, u))) / n, task.alpha
        program = cp.Problem(cp.Minimize(loss + alpha * cp.norm1(w)))
        program.solve()
        return program

    return fit


def ours_svc(task: Task) -> Any:
    """Fit a support vector machine with the objective of LinearSVC's defaults, except that the intercept is free."""
    from saddleback.estimators import SparseClassifier

    model = SparseClassifier("squared_hinge", penalty="elasticnet", l1_ratio=0, alpha=0.5 / len(task.y))
    return model.fit(task.X, task.y)


UPDATES = "the gap is at most tol times the mean of y^2, looked at once updates are small"
CELER = "the gap is at most tol times the mean of y^2"
STOP = "tolerance for the stopping criterion"
OURS = "the relative gap, and any violation, is at most tol"
SETTINGS = "that of the solver it chooses"

REGRESSION = (
    Row("scikit-learn", "Lasso", "1e-4", UPDATES, scikit_learn("Lasso")),
    Row("scikit-learn", "ElasticNet", "1e-4", UPDATES, scikit_learn("ElasticNet")),
    Row("scikit-learn", "QuantileRegressor", "none", "of HiGHS, a simplex method", scikit_learn("QuantileRegressor")),
    Row("skglm", "Lasso", "1e-4", STOP, by_alpha("skglm", "Lasso")),
    Row("skglm", "GroupLasso", "1e-4", STOP, by_alpha("skglm", "GroupLasso", groups=GROUP)),
    Row("celer", "Lasso", "1e-4", CELER, by_alpha("celer", "Lasso")),
    Row("celer", "ElasticNet", "1e-4", CELER, by_alpha("celer", "ElasticNet", l1_ratio=0.5)),
    Row("celer", "GroupLasso", "1e-4", CELER, by_alpha("celer", "GroupLasso", groups=GROUP)),
    Row("adelie", "gaussian", "1e-7", "coordinate descent convergence tolerance", adelie("gaussian")),
    Row("adelie", "gaussian, groups", "1e-7", "the same", adelie("gaussian", grouped=True)),
    Row("statsmodels", "QuantReg", "p_tol=1e-6", "the change of the coefficients", statsmodels_quantile),
    Row("statsmodels", "OLS.fit_regularized", "cnvrg_tol=1e-10", "the change of a coefficient", statsmodels_lasso),
    Row("CVXPY", "Lasso", "none", SETTINGS, cvxpy("Lasso")),
    Row("CVXPY", "median with L1", "none", SETTINGS, cvxpy("median")),
    Row("saddleback", "Lasso", "1e-6", OURS, by_alpha("saddleback.estimators", "Lasso")),
    Row("saddleback", "ElasticNet", "1e-6", OURS, by_alpha("saddleback.estimators", "ElasticNet")),
    Row("saddleback", "GroupLasso", "1e-6", OURS, by_alpha("saddleback.estimators", "GroupLasso", groups=GROUP)),
    Row("saddleback", "QuantileRegressor", "1e-6", OURS, by_alpha("saddleback.estimators", "QuantileRegressor")),
)

CLASSIFICATION = (
    Row("scikit-learn", "LogisticRegression, L1, saga", "1e-4", STOP,
        scikit_learn("LogisticRegression", l1_ratio=1, solver="saga")),
    Row("scikit-learn", "LogisticRegression, L1, liblinear", "1e-4", STOP,
        scikit_learn("LogisticRegression", l1_ratio=1, solver="liblinear")),
    Row("scikit-learn", "LinearSVC", "1e-4", STOP, scikit_learn("LinearSVC")),
    Row("skglm", "SparseLogisticRegression", "1e-4", STOP, by_alpha("skglm", "SparseLogisticRegression")),
    Row("adelie", "binomial", "1e-7", "tolerances of descent and of its outer iteration", adelie("binomial")),
    Row("statsmodels", "Logit.fit_regularized", "acc=1e-10", "requested accuracy of SLSQP", statsmodels_logit),
    Row("CVXPY", "logistic with L1", "none", SETTINGS, cvxpy("logistic")),
    Row("saddleback", "SparseLogisticRegression", "1e-6", OURS,
        by_alpha("saddleback.estimators", "SparseLogisticRegression")),
    Row("saddleback", "SparseClassifier, as LinearSVC", "1e-6", OURS, ours_svc),
)  # fmt: skip

TABLES = {"Regression": (REGRESSION, regression), "Classification": (CLASSIFICATION, classification)}


# Judging ------------------------------------------------------------------------------------------------------------


def judged(row: Row, task: Task) -> str:
    """Return the certified relative gap of a fit, and whether the library has warned."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = row.fit(task)
        warned = any("onverge" in str(each.message) or "iterations" in str(each.message) for each in said)
    found = sb.certify(*model) if isinstance(model, tuple) else _certificate(model, task)
    gap = f"{found.relative_gap:.0e}" if found.relative_gap else "0"
    return gap + (", warned" if warned else "")


def _certificate(model: Any, task: Task) -> sb.Certificate:
    X = task.design if type(model).__module__.startswith("statsmodels") else task.X
    judgement = sb.judge(model) if type(model).__name__ == "Problem" else sb.judge(model, X, task.y)
    assert isinstance(judgement, sb.Judgement)
    return judgement.certificate


def cells(names: set[str]) -> dict[str, list[str]]:
    """Return the judgements of the models of some libraries, by table, library and model."""
    found = {}
    for title, (rows, data) in TABLES.items():
        tasks = data().values()
        for row in rows:
            if row.library in names:
                found[f"{title}/{row.library}/{row.model}"] = [judged(row, task) for task in tasks]
    return found


def lines(title: str, found: dict[str, list[str]]) -> Iterator[str]:
    """Yield a table in Markdown."""
    rows, data = TABLES[title]
    names = list(data())
    yield f"## {title}\n"
    yield "| library | model | default | what the documentation says | " + " | ".join(names) + " |"
    yield "|" + " --- |" * (4 + len(names))
    for row in rows:
        own = found.get(f"{title}/{row.library}/{row.model}", ["not installed"] * len(names))
        yield f"| {row.library} | `{row.model}` | {row.tol} | {row.meaning} | " + " | ".join(own) + " |"
    yield ""


def main() -> None:
    """Write the tables into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--adelie", default=".venv-adelie/bin/python", help="Python interpreter with adelie")
    parser.add_argument("--json", metavar="LIBRARY", help="print the judgements and the version of one library")
    options = parser.parse_args()
    if options.json:
        print(json.dumps([importlib.metadata.version(options.json), cells({options.json})]))
        return
    names = ("scikit-learn", "skglm", "celer", "statsmodels", "cvxpy")
    versions = {name: importlib.metadata.version(name) for name in names}
    found = cells({row.library for rows, _ in TABLES.values() for row in rows} - {"adelie"})
    if Path(options.adelie).exists():
        answer = subprocess.run(
            [options.adelie, __file__, "--json", "adelie"], check=True, stdout=subprocess.PIPE, text=True
        )
        versions["adelie"], own = json.loads(answer.stdout.splitlines()[-1])
        found |= own
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    tables = [line for title in TABLES for line in lines(title, found)]
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text("\n".join([before + BEGIN, "", *tables, f"Made with {made}.", "", END + after]), "utf-8")


if __name__ == "__main__":
    main()
