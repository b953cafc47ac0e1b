"""The objectives of statsmodels' results."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import Pinball, Zero
from .stated import Reader, Stated


def quantile(model: Any, X: Any, y: Any, weight: Any) -> list[Stated]:
    """Read the mean pinball loss, without a penalty; X has the column of the intercept, as for ``QuantReg``."""
    return [Stated(Zero(), Pinball(y, float(model.q), weight, 1 / len(y)), np.asarray(model.params))]


MODELS: dict[str, Reader] = {"QuantReg": quantile}
"""By the name of ``results.model``."""
