"""The linear models of this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .stated import Known

SAME = 1e-4
"""Largest relative difference of the objectives of a fit and of a judgement at the same coefficients: in float32, the
rounding of the coefficients."""


def linear(model: Any, X: Any, y: Any, weight: Any, offset: Any = None) -> list[Any]:
    """Read any linear model: it states its problems itself."""
    if getattr(model, "relaxed", False):
        raise TypeError(
            "model has relaxed=True: its coefficients minimise no objective with a penalty. Its certificate_ is that "
            "of the fit without a penalty to the features that were selected"
        )
    return list(model._posed(X, y, weight, offset))


def check_same(model: Any, y: Any, objectives: Sequence[float]) -> None:
    """Raise if the objectives at the coefficients are not those of the fit: then it had other data."""
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    rounding = 1e-9 * float(np.max(np.abs(y))) if np.issubdtype(np.asarray(y).dtype, np.number) else 0.0
    for value, result in zip(objectives, results, strict=True):
        fitted = result.certificate.primal_value
        if not np.isclose(value, fitted, SAME, rounding):
            raise ValueError(
                f"X and y are not the data of the fit: the objective there was {fitted:.6g}, and at the same "
                f"coefficients is {value:.6g} here; pass the same samples, with the sample_weight and the offset of "
                "the fit if it had any"
            )


MODELS = {"LinearModel": Known(linear)}
"""By the name of the base class."""
