"""The objectives of statsmodels' results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import Pinball, Zero
from .stated import Known, Stated


def quantile(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean pinball loss, without a penalty; X has the column of the intercept, as for ``QuantReg``."""
    return [Stated(Zero(), Pinball(y, float(model.q), scale=1 / len(y)), np.asarray(model.params))]


MODELS = {"QuantReg": Known(quantile, ())}
"""By the name of ``results.model``."""
