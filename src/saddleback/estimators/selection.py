"""Which coefficients of a fitted model are in every solution.

To decide it takes the data, which a model does not keep, and about as long as one pass over them. That is little beside
a fit to many samples, and much beside one to few. So the decision is made at the end of a fit if the data are large;
small data are kept until the decision is first read, or the model is copied or stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

import saddleback as sb

from ..certificates.bounds import UNDECIDED
from ..common.arrays import Vector

SMALL = 1 << 18
"""Largest number of entries of X that are kept until the decision: two megabytes."""


class Deciding(Protocol):
    """A fit that can say which coefficients of its results are in every solution."""

    def kept(self) -> Deciding:
        """Return the fit with data of which nobody else has the memory."""

    @property
    def entries(self) -> int:
        """The number of entries of X."""

    def decided(self, k: int, result: sb.Result) -> Any:
        """Return the decision for each coefficient of problem k; None if the fit does not tell."""


class Selection:
    """The decisions for all coefficients of a fit, in the shape of its coefficients."""

    def __init__(self, ready: Deciding, results: Sequence[sb.Result], coef: Vector) -> None:
        self._shape = coef.shape
        large = ready.entries > SMALL
        self._undecided: tuple[Deciding, list[sb.Result]] | None = (ready if large else ready.kept(), list(results))
        if large:
            self.decided()

    def decided(self) -> Any:
        """Return the decisions; the first call makes them."""
        if self._undecided is not None:
            ready, results = self._undecided
            found = [ready.decided(k, result) for k, result in enumerate(results)]
            known = all(each is not None for each in found)
            parts = (found[0].T if len(found) == 1 else np.stack([each.T for each in found])) if known else None
            self._decided = np.full(self._shape, UNDECIDED, object) if parts is None else parts.reshape(self._shape)
            self._undecided = None
        return self._decided

    def __getstate__(self) -> dict[str, Any]:
        self.decided()
        return vars(self)
