"""Models by formula: "y ~ C(region) + income" says which columns of a table are the target and the features.

formulaic evaluates the formula. Every term of it, such as a factor, a spline or an interaction, is a group of features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .certified import Certified

INTERCEPT = "Intercept"
"""The column that formulaic makes for the intercept."""


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features and targets.

    Attributes
    ----------
    formula : the formula as it was given.
    features : formulaic's record of the right side, with the levels of every factor.
    target : that of the left side, or the name of a column with classes.
    names : names of the features.
    groups : names of the features of every term, by the name of the term.
    """

    formula: str
    features: Any
    target: Any
    names: list[str]
    groups: dict[str, list[str]]

    def features_of(self, data: Any) -> Any:
        """Return the features as a DataFrame, with the levels of the factors as in the fit."""
        from formulaic.errors import DataMismatchWarning

        with warnings.catch_warnings():
            warnings.simplefilter("error", DataMismatchWarning)
            try:
                encoded = self.features.get_model_matrix(data, na_action="raise")
            except DataMismatchWarning as unknown:
                told = str(unknown).partition(". ")[0]
                raise ValueError(f"X has a category that the data of the fit do not have: {told}") from None
        return encoded.__wrapped__[self.names]

    def target_of(self, data: Any) -> Any:
        """Return the targets or classes."""
        if isinstance(self.target, str):
            return data[self.target]
        values = self.target.get_model_matrix(data, na_action="raise").to_numpy()
        return values[:, 0] if values.shape[1] == 1 else values


def encoding(formula: str, data: Any, classes: bool) -> Encoding:
    """Return the encoding that a formula gives for a table.

    Parameters
    ----------
    formula : a formula with a left side.
    data : a DataFrame of pandas.
    classes : whether the target is a column of classes, which is left as it is.
    """
    try:
        from formulaic import Formula, ModelSpec
    except ImportError:
        raise ImportError("fit_formula needs formulaic: pip install 'saddleback[formula]'") from None
    if not isinstance(formula, str):
        raise TypeError(f"formula is {type(formula).__name__}: expected a string such as 'y ~ C(region) + income'")
    if not hasattr(data, "columns"):
        raise TypeError(f"data is {type(data).__name__}: expected a DataFrame of pandas")
    parsed = Formula(formula)
    if not hasattr(parsed, "lhs"):
        raise ValueError(f"formula={formula!r} has no target: expected 'target ~ features'")
    if classes:
        target: Any = str(parsed.lhs)
        if target not in data.columns:
            raise ValueError(
                f"formula={formula!r} has the target {target!r}, which is no column of the data: expected the name of "
                "the column with the classes"
            )
    else:
        target = ModelSpec.from_spec(parsed.lhs).get_model_matrix(data, na_action="raise").model_spec
    matrix = ModelSpec.from_spec(parsed.rhs).get_model_matrix(data, na_action="raise")
    features = matrix.model_spec
    groups = {str(part.term): list(part.columns) for part in features.structure if part.columns != [INTERCEPT]}
    names = [name for columns in groups.values() for name in columns]
    if not names:
        raise ValueError(f"formula={formula!r} has no features: expected one or more terms besides the intercept")
    return Encoding(formula, features, target, names, groups)


class Formulated(Certified):
    """The part of the linear models that knows formulas."""

    fit_intercept: bool

    def fit_formula(self, formula: str, data: Any, sample_weight: Any = None) -> Any:
        """Fit the model to the columns of a table that a formula names.

        Parameters
        ----------
        formula : str
            Target and features in the language of formulaic, as in R: "y ~ C(region) + income". With a group penalty
            and ``groups=None``, the columns that a term makes, such as a factor or an interaction, are one group. The
            intercept of the formula is that of the model: a model with ``fit_intercept=False`` needs "- 1". A formula
            is code: its terms are expressions of Python, which run here and in ``predict``. Never pass one that comes
            from somebody whom you would not let run a program.
        data : DataFrame
            A DataFrame of pandas. Missing values are an error.
        sample_weight : str or array-like, optional
            Name of the column with the weights of the samples, or one value per sample.

        Returns
        -------
        self : object
            The fitted model. ``predict`` and ``score`` take tables with the same columns as ``data``. ``formula_`` has
            the ``names`` of the features, and the ``groups`` of them by term.
        """
        made = encoding(formula, data, is_classifier(self))
        has_intercept = INTERCEPT in made.features.column_names
        if has_intercept != self.fit_intercept:
            change = "fit_intercept=False" if self.fit_intercept else "fit_intercept=True"
            raise ValueError(
                f"formula={formula!r} has {'an' if has_intercept else 'no'} intercept, but fit_intercept="
                f"{self.fit_intercept}: pass {change}, or {'add' if has_intercept else 'leave out'} '- 1'"
            )
        self.formula_ = made
        weight = data[sample_weight] if isinstance(sample_weight, str) else sample_weight
        return self.fit(made.features_of(data), made.target_of(data), sample_weight=weight)

    def _unfitted(self, **changes: Any) -> Any:
        """Return a model with the same parameters, but for some, and the same formula."""
        other = type(self)(**(self.get_params(deep=False) | changes))
        if hasattr(self, "formula_"):
            other.formula_ = self.formula_
        return other

    def _encoding(self) -> Encoding | None:
        """Return the encoding of the features; None if the model was last fitted to features without a formula."""
        made, names = getattr(self, "formula_", None), getattr(self, "feature_names_in_", None)
        return made if made is not None and names is not None and list(names) == made.names else None

    def _features(self, X: Any) -> Any:
        """Return a table as features, if the model was fitted by a formula; X itself otherwise."""
        made = self._encoding()
        columns = getattr(X, "columns", None)
        if made is None or columns is None or list(columns) == made.names:
            return X
        return made.features_of(X)

    def _data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return features and targets; a table has both, if the model was fitted by a formula."""
        if y is None:
            made = self._encoding()
            if made is None:
                raise TypeError("y is missing: only a model that was fitted by fit_formula finds the target in X")
            y = made.target_of(X)
        return self._features(X), np.asarray(y) if hasattr(y, "columns") else y
