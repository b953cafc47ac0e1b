"""The function ``judge``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from ..certificates.bounds import Bounds
from ..engine.certify import certify
from ..engine.solve import solve
from ..problem import Problem
from ..result import Certificate
from . import own
from .stated import Known, Stated

LIBRARIES = {
    "sklearn": "scikit_learn",
    "skglm": "skglm",
    "celer": "celer",
    "adelie": "adelie",
    "statsmodels": "statsmodels",
    "cvxpy": "cvxpy",
    "saddleback": "own",
}
"""The file of this folder for each library."""

KNOWN_BY_A_BASE = {"saddleback", "adelie"}
"""Libraries whose models may be known by the name of a base class; in others a subclass may have another objective."""


@dataclass(frozen=True)
class Judgement:
    """How far a fitted model is from the optimum of its own objective.

    Attributes
    ----------
    name : str
        The library and the class of the model.
    certificate : Certificate
        The certificate of its coefficients.
    problem : Problem
        The objective that the model minimises.
    x : ndarray or list of ndarray
        Its coefficients as a point of that problem; a list with the intercept last if there is one.
    """

    name: str
    certificate: Certificate
    problem: Problem = field(repr=False)
    x: Any = field(repr=False)

    @property
    def objective(self) -> float:
        """The objective at the coefficients of the model."""
        return self.certificate.primal_value

    def bounds(self) -> Bounds:
        """Return intervals that contain every optimum of the model's objective, from a solve that starts at the model.

        Returns
        -------
        Bounds
            The intervals in the shape of ``x``.
        """
        found: Bounds = solve(self.problem, x0=self.x).bounds()
        return found

    def __str__(self) -> str:
        c = self.certificate
        broken = max(c.primal_infeasibility, c.dual_infeasibility)
        violated = f", and constraints are violated by {broken:.1e}" if broken > 0 else ""
        return (
            f"{self.name}: the objective is {c.primal_value:.10g}, at most {max(c.gap, 0.0):.1e} above the optimum, "
            f"a relative gap of {c.relative_gap:.1e}{violated}."
        )


def judge(
    model: Any, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
) -> Judgement | list[Judgement]:
    """Return the certificate of a model that another library has fitted, as it stands.

    Parameters
    ----------
    model : object
        A fitted linear model of scikit-learn, skglm, celer, adelie or this library, a search of scikit-learn over such
        models (its best one is judged), a state of adelie's ``grpnet``, the results of a ``QuantReg`` of statsmodels,
        or a ``cvxpy.Problem`` whose variables have values.
    X : array-like or sparse matrix, optional
        The samples that the model was fitted to; for statsmodels with the column of the intercept. Not for CVXPY.
    y : array-like, optional
        Their targets or labels. Not for CVXPY.
    sample_weight : array-like, optional
        Their weights, if the fit had any. A fit of adelie keeps its own, which are the default for it.
    offset : array-like, optional
        The ``offset`` of ``fit``, if there was one. For models of this library alone.

    Returns
    -------
    Judgement or list of Judgement
        The certificate and the problem; a list with one per target, class or value of lambda if there are several.

    Raises
    ------
    TypeError
        If the model is not known, or one of its parameters has a value for which its objective is not known. The
        message names them; ``certify`` accepts the point of any other model.
    ValueError
        If a model of this library had another objective in its fit: then X, y, weights or offset are others.

    Examples
    --------
    >>> import numpy as np, saddleback as sb
    >>> from sklearn.linear_model import Lasso
    >>> X, y = np.eye(4), np.array([4.0, -3.0, 1.0, 0.5])
    >>> judgement = sb.judge(Lasso(alpha=0.25, fit_intercept=False).fit(X, y), X, y)
    >>> judgement.certificate.relative_gap < 1e-12
    True
    """
    model = getattr(model, "best_estimator_", model)
    name, known = _known(model)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not name.startswith("cvxpy"):
        missing = " and ".join(argument for argument, given in (("X", X), ("y", y)) if given is None)
        if missing:
            raise TypeError(f"judge({name}) needs {missing}: give the data that the model was fitted to")
        X = X if hasattr(X, "shape") and hasattr(X, "dtype") else np.asarray(X, dtype=np.float64)
        y = np.asarray(y)
    ours = name.startswith("saddleback")
    if offset is not None and not ours:
        raise TypeError(f"offset was given, and is not known for {name}: expected a model of this library")
    known.check(name, model, weight)
    found = []
    for each in known.read(model, X, y, weight, **({} if offset is None else {"offset": offset})):
        problem, x = each.posed(X) if isinstance(each, Stated) else each
        found.append(Judgement(name, certify(problem, x), problem, x))
    if ours:
        own.check_same(model, y, [each.objective for each in found])
    return found[0] if len(found) == 1 else found


def _known(model: Any) -> tuple[str, Known]:
    """Return the name of a model and what is known of it, by the first of its classes of a known library."""
    for kind in _kinds(model):
        library = kind.__module__.partition(".")[0]
        if library in LIBRARIES:
            models = import_module(f".{LIBRARIES[library]}", __package__).MODELS
            names = [base.__name__ for base in kind.__mro__] if library in KNOWN_BY_A_BASE else [kind.__name__]
            known = next((models[name] for name in names if name in models), None)
            if known is not None:
                return f"{library} {kind.__name__.lstrip('_')}", known
            break
    listed = "; ".join(
        f"{library}: {', '.join(sorted(import_module(f'.{file}', __package__).MODELS))}"
        for library, file in LIBRARIES.items()
    )
    raise TypeError(
        f"model is {type(model).__module__}.{type(model).__name__}, which is not known. Known are {listed}. "
        "For any other model, state its objective as a Problem and use sb.certify(problem, x)"
    )


def _kinds(model: Any) -> Iterator[type]:
    """Yield the class of a model and its bases; for results of statsmodels, first that of their model."""
    if type(model).__module__.startswith("statsmodels"):
        yield type(getattr(model, "model", model))
    yield from type(model).__mro__
