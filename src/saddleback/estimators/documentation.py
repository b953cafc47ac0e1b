"""The parameters and attributes that several estimators share, written once.

``documented`` appends them to the docstring of a class in numpydoc style, with the defaults that its constructor has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, cleandoc, signature
from typing import Any, NamedTuple, TypeVar

Class = TypeVar("Class", bound=type[Any])


class Entry(NamedTuple):
    """The numpydoc entry of a parameter or an attribute: its type, and indented lines with its meaning."""

    kind: str
    meaning: str


def entries(text: str) -> dict[str, Entry]:
    """Return the entries of a numpydoc section by name."""
    found: dict[str, Entry] = {}
    name = ""
    for line in cleandoc(text).splitlines():
        if line.startswith(" "):
            kind, meaning = found[name]
            found[name] = Entry(kind, f"{meaning}\n{line}" if meaning else line)
        else:
            name, _, kind = line.partition(" : ")
            found[name] = Entry(kind, "")
    return found


PARAMETERS = entries("""
loss : str
    Name of the loss; ``SparseRegressor`` and ``SparseClassifier`` have the tables.
penalty : str, dict or None
    Name of the penalty: "l1", "elasticnet", "group", "sparse_group", "group_elasticnet", "mcp", "scad", "log_sum",
    "adaptive", or None for no penalty. A parameter that neither the loss nor the penalty reads gives a warning if it is
    set. A dict has several penalties with their columns, which are names if X is a DataFrame, or indices: a list of
    columns, a list of lists for a penalty on groups, a dict from names of groups to lists, or "rest" for all other
    columns. Each column has one penalty; docs/estimators.md has examples.
alpha : float
    Strength of the penalty, at least 0.
l1_ratio : float
    Share of the L1 norm in the penalty, or of the group norms in "group_elasticnet", between 0 and 1.
gamma : float or None
    Shape of the penalties "mcp", "scad", "log_sum" and "adaptive": the smaller, the less are coefficients shrunk that
    are larger than gamma * alpha. None is 3.7 for "scad" and 3 for the others.
groups : int, list or dict
    Groups of features: a size, for neighbouring groups of that size; a list of sizes; a list of lists of columns; a
    dict from the name of each group to a list of columns; or a list with one label (a string) per column, where
    equal labels make a group. Columns are indices, or names if X is a DataFrame. None makes each feature a group.
weights : array-like or dict
    Weights in the penalty: per feature for "l1" and "elasticnet" (1 by default), per group for group penalties (the
    square root of the size of the group by default). Weight 0 means no penalty. A dict has one weight per name: of the
    groups if these have names, or of the columns. If ``penalty`` is a dict, so are they, with the weights of some
    columns or groups.
quantile : float
    Quantile to predict, strictly between 0 and 1.
expectile : float
    Expectile to predict with loss="expectile", strictly between 0 and 1.
delta : float
    Residual, at least 0, from which on the Huber loss is linear; the width of the parabola of "smoothed_quantile" and
    of "huberised_hinge".
epsilon : float
    Residual, at least 0, up to which the epsilon-insensitive losses are 0.
power : float
    Power of loss="tweedie", strictly between 1 and 2: the variance of a target is proportional to this power of its
    mean.
class_weight : dict or "balanced"
    Weights of the classes, which multiply the sample weights; "balanced" makes them inversely proportional to the
    frequencies of the classes.
fit_intercept : bool
    Whether to fit an intercept, which is never penalised. Without it the intercept is 0.
positive : bool
    Whether all coefficients must be at least 0.
lower : float, array-like or dict
    Lower bounds of the coefficients: one for all, one per feature, or a dict with those of some columns by name.
upper : float, array-like or dict
    Upper bounds of the coefficients, given in the same way.
constraints : LinearConstraint, str or list
    Constraints on the coefficients w, but not on the intercept: ``sb.LinearConstraint(C, lower, upper)`` or that of
    ``scipy.optimize``; "zero-sum", "sum-to-one", "monotone" (w_1 <= w_2 <= ...) or "decreasing"; or a list of these.
    With several classes or columns of y they hold for each of them.
warm_start : bool
    Whether ``fit`` starts from the solution of the previous call.
tol : float
    Certified relative gap to reach: the objective is then at most this far above its minimum, relative to it.
    Coefficients may have fewer correct digits than the objective. With 0 every solve ends at a limit.
max_iter : float
    Most work, in passes over the columns of X. ``n_iter_`` may exceed it by a few.
max_passes : float
    Most work, in passes over the columns of X. ``n_iter_`` may exceed it by a few.
time_limit : float
    Most seconds for a call: ``fit``, ``path``, ``bootstrap`` and others. A fit that ends there warns with the gap that
    it has reached, and the model is the best point so far; a path has the solutions up to there.
n_jobs : int
    Most threads; None and -1 take as many as the process may keep busy (see ``saddleback.solve``).
random_state : int or RandomState
    Seed of the random draws of the solver. None is 0, so that fits are repeatable.
verbose : bool
    Whether to show a progress bar for each solve.
comm : mpi4py communicator
    Processes that fit the model together: all call ``fit`` with the same data, each works on some of the features,
    and all get the fitted model.
device : str
    Device of torch on which X is worked on, such as "cuda". None is the host. Fitted attributes and predictions are
    NumPy arrays in any case.
eps : float
    Smallest alpha of the grid, relative to the largest, which is the smallest alpha with all coefficients 0.
n_alphas : int
    Number of alphas in the grid.
alphas : array-like or int
    The alphas to try. A number is the same as ``n_alphas``.
cv : int, splitter or iterable
    Number of folds (None is 5), a splitter of scikit-learn, or the folds themselves.
rule : "best" or "1se"
    "best" takes the alpha with the least mean loss on held-out samples. "1se" takes the largest alpha whose mean loss
    is within one standard error of that: a sparser model that predicts about as well.
criterion : None or str
    None compares losses on held-out samples. "aic", "bic", "ebic" and "gcv" compare the models of the path by their
    fit to all samples and their number of coefficients that are not 0; there are no folds, and ``cv`` and ``rule`` must
    be left out. docs/estimators.md has the formulas. Losses without a likelihood, as "hinge", have no criterion.
relaxed : bool
    Whether to fit the selected features once more without a penalty, after alpha has been chosen. ``coef_``,
    ``certificate_`` and ``result_`` are those of that fit, with coefficient 0 for all other features. A group counts
    as a whole.
""")

IN_CROSS_VALIDATION = entries("""
n_jobs : int
    Number of folds to fit in parallel, each with the threads that joblib leaves to it; None fits them one after the
    other, with all threads. In models without cross-validation it is the number of threads.
l1_ratio : float or list of float
    Share of the L1 norm in the penalty, between 0 and 1. Of a list the best one is chosen, together with alpha.
time_limit : float
    Most seconds for a ``fit``. If it ends there, the best of the largest alphas is chosen, as far as the time has
    allowed for all samples and in all folds, and a warning says how many.
""")
"""Parameters that have another meaning with cross-validation."""

FITTED = entries("""
coef_ : array of shape (n_features,)
    Coefficients; of shape (n_targets, n_features) for several columns of y. Zeros are exact.
intercept_ : float or array
    Intercept, one value per target.
constraint_multipliers_ : list of arrays
    One array per constraint, with one multiplier per row: positive if the upper bound is active, negative if the lower
    one is, 0 if neither. If a bound moves by a small t, the minimum changes by -t times the multiplier. With several
    classes or columns of y, arrays have one row per class or column. An empty list without constraints.
selected_ : array of str
    In the shape of ``coef_``: "in every solution" if the coefficient is not 0 in any minimiser of the objective, "in
    none" if it is 0 in all of them, otherwise "undecided at this gap"; a smaller ``tol`` decides more. Nothing is
    decided for data in files or in chunks of rows, and for penalties that are not convex.
certificate_ : Certificate
    How far the objective is from its minimum at most: ``relative_gap``, ``gap``, ``primal_value``, ``dual_value``. A
    list with one entry per column of y if several columns are fitted one by one.
result_ : Result
    What ``saddleback.solve`` returned: ``status``, ``message``, ``history`` and more; ``x`` holds the coefficients,
    or a list of the coefficients and the intercept. A list if ``certificate_`` is one.
dual_gap_ : float
    The certified gap of the objective; an array if ``certificate_`` is a list.
n_passes_ : float
    Work done, in passes over the columns; an array if ``certificate_`` is a list.
n_iter_ : int
    ``n_passes_`` rounded up.
n_features_in_ : int
    Number of features.
feature_names_in_ : array of shape (n_features,)
    Names of the features, if X had names that are all strings.
""")
"""Attributes of a fitted linear model."""

OF_CLASSIFIERS = (
    entries("""
classes_ : array of shape (n_classes,)
    The classes, sorted.
""")
    | FITTED
    | entries("""
coef_ : array of shape (1, n_features) or (n_classes, n_features)
    Coefficients: one row for two classes, one row per class for more. Zeros are exact.
intercept_ : array of shape (1,) or (n_classes,)
    Intercepts.
certificate_ : Certificate or list of Certificate
    How far the objective is from its minimum at most: ``relative_gap``, ``gap``, ``primal_value``, ``dual_value``.
    With more than two classes one problem is solved per class, and this is a list with one entry per class.
""")
)
"""Attributes of a fitted classifier."""

OF_CROSS_VALIDATION = entries("""
alpha_ : float
    The chosen alpha.
alphas_ : array of shape (n_alphas,)
    All alphas, the largest first. If ``l1_ratio`` is a list, this and the next four have one more axis, the first one,
    for its values.
loss_path_ : array of shape (n_alphas, n_folds)
    Mean loss on the held-out samples of each fold. The loss is that of the model; for several classes, their sum. None
    if a criterion has chosen alpha, as the next two.
mean_loss_ : array of shape (n_alphas,)
    Mean of ``loss_path_`` over the folds, weighted by their samples.
loss_std_error_ : array of shape (n_alphas,)
    Standard error of ``mean_loss_``: the standard deviation over K folds divided by the square root of K.
criterion_path_ : array of shape (n_alphas,)
    The criterion, of which the smallest value is chosen. None if cross-validation has chosen alpha.
path_ : Path
    The solutions on all data for the chosen l1_ratio; the model is the one at ``alpha_``, unless ``relaxed``.
""")
"""Attributes of a model that has chosen alpha."""

RATIO = entries("""
l1_ratio_ : float
    The chosen ``l1_ratio``; None if the penalty does not have one.
""")
"""Attributes of a model that may have chosen the share of the L1 norm, too."""


def documented(
    attributes: Mapping[str, Entry], parameters: Mapping[str, Entry] = PARAMETERS
) -> Callable[[Class], Class]:
    """Return a decorator that appends parameters and attributes to the docstring of a class, before its examples."""

    def document(cls: Class) -> Class:
        if cls.__doc__ is None:  # python -OO
            return cls
        known = {**PARAMETERS, **parameters}
        own = list(signature(cls).parameters.values())
        for each in own:
            if each.name not in known:
                raise KeyError(
                    f"{cls.__name__} has the parameter {each.name!r}: describe it in documentation.PARAMETERS"
                )
        body, _, examples = cleandoc(cls.__doc__).partition("\nExamples\n")
        sections = [
            body.rstrip(),
            _section("Parameters", {each.name: _with_default(known[each.name], each) for each in own}),
            _section("Attributes", attributes),
        ]
        cls.__doc__ = "\n\n".join(sections + ([f"Examples\n{examples}"] if examples else [])) + "\n"
        return cls

    return document


def _with_default(entry: Entry, parameter: Parameter) -> Entry:
    return entry._replace(kind=f"{entry.kind}, default={parameter.default!r}")


def _section(title: str, contents: Mapping[str, Entry]) -> str:
    lines = [f"{name} : {entry.kind}\n{entry.meaning}" for name, entry in contents.items()]
    return "\n".join([title, "-" * len(title), *lines])
